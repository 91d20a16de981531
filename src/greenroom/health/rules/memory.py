from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from greenroom.health.rules.condition import Condition
from greenroom.health.rules.roster import Agent
from greenroom.model.alert import Alert
from greenroom.model.probe import CheckEvent


class HealthMemory(msgspec.Struct, frozen=True):
    conditions: Mapping[str, Condition] = {}
    agents: Sequence[Agent] = ()


class HealthBatch(msgspec.Struct, frozen=True):
    """All or nothing. A condition None is removed. Alerts wait in the store until they are handed
    on.
    """

    conditions: Mapping[str, Condition | None] = {}
    events: Sequence[CheckEvent] = ()
    alerts: Sequence[Alert] = ()
    agents: Sequence[Agent] | None = None


class EventQuestion(msgspec.Struct, frozen=True):
    """`since_ms` is inclusive, `until_ms` exclusive."""

    since_ms: int
    until_ms: int
    check_ids: Sequence[str] = ()
    zone_id: str = ""
    region: str = ""
    scope: str = ""
    only_changes: bool = False
    limit: int = 1_000


class Uptime(msgspec.Struct, frozen=True):
    check_id: str
    day: str  # 2030-01-31
    good: int
    total: int
    rtt_ms: float  # mean of the good probes


class HealthStore(Protocol):
    """Several processes may share it; one leads. All methods block and raise StorageFailed."""

    def load(self) -> HealthMemory: ...

    def save(self, batch: HealthBatch, now_ms: int) -> None:
        """Also removes old events."""

    def alerts(self) -> list[tuple[int, Alert]]: ...

    def handed_on(self, numbers: Sequence[int]) -> None: ...

    def events(self, question: EventQuestion) -> list[CheckEvent]: ...

    def counts(
        self, check_id: str, since_ms: int, until_ms: int
    ) -> list[tuple[str, str, str, int]]:
        """(region, scope, reason or empty, number of events)."""

    def uptimes(self, check_ids: Collection[str], since_day: str) -> list[Uptime]: ...

    def lead(self, holder: str, term_ms: int) -> bool: ...

    def close(self) -> None: ...
