"""The state of health checks that survives a restart."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from greenroom.health.rules.condition import Condition
from greenroom.health.rules.roster import Agent
from greenroom.model.alert import Alert
from greenroom.model.probe import CheckEvent


class HealthMemory(msgspec.Struct, frozen=True):
    """What the store knew when it was asked: the condition of each check, and the agents with their
    regions.
    """

    conditions: Mapping[str, Condition] = {}
    agents: Sequence[Agent] = ()


class HealthBatch(msgspec.Struct, frozen=True):
    """What is to be written down together, all or nothing. A condition None is removed; `agents`
    None: they did not change.

    Alerts wait in the store until they have been handed on, so a process that dies in between hands
    them on at its next start.
    """

    conditions: Mapping[str, Condition | None] = {}
    events: Sequence[CheckEvent] = ()
    alerts: Sequence[Alert] = ()
    agents: Sequence[Agent] | None = None


class EventQuestion(msgspec.Struct, frozen=True):
    """Which events are wanted, newest first. Times in Unix ms: `since_ms` is the first that counts,
    `until_ms` the first that does not.
    """

    since_ms: int
    until_ms: int
    check_ids: Sequence[str] = ()
    zone_id: str = ""
    region: str = ""
    scope: str = ""
    only_changes: bool = False
    limit: int = 1_000


class Uptime(msgspec.Struct, frozen=True):
    """How a check did on one day (UTC), all regions together."""

    check_id: str
    day: str  # 2030-01-31
    good: int
    total: int
    rtt_ms: float  # mean of the good probes


class HealthStore(Protocol):
    """What health checks remember, in one database that several processes may share; one of them
    leads.

    Methods block: call them in a thread. All raise StorageFailed.
    """

    def load(self) -> HealthMemory:
        """Conditions and agents as they were written last."""

    def save(self, batch: HealthBatch, now_ms: int) -> None:
        """Writes all of it or nothing. Old events go by themselves."""

    def alerts(self) -> list[tuple[int, Alert]]:
        """Alerts that have not been handed on, oldest first, each with its number."""

    def handed_on(self, numbers: Sequence[int]) -> None:
        """These alerts are kept elsewhere now."""

    def events(self, question: EventQuestion) -> list[CheckEvent]:
        """Newest first."""

    def counts(
        self, check_id: str, since_ms: int, until_ms: int
    ) -> list[tuple[str, str, str, int]]:
        """(region, scope, reason or empty, number of events) of one check."""

    def uptimes(self, check_ids: Collection[str], since_day: str) -> list[Uptime]:
        """By check and day, oldest first."""

    def lead(self, holder: str, term_ms: int) -> bool:
        """Whether this process leads for so long from now on: takes the lead when no other process
        has it, and prolongs its own.
        """

    def close(self) -> None:
        """Gives connections back; nothing may be called after it."""
