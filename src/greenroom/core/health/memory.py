"""The state of health checks that survives a restart."""

from collections.abc import Mapping, Sequence

import msgspec

from greenroom.core.health.condition import Condition
from greenroom.core.health.roster import Agent
from greenroom.model.alert import Alert
from greenroom.model.probe import CheckEvent


class HealthMemory(msgspec.Struct, frozen=True):
    """What the store knew when it was asked: the condition of each check, and the agents with their regions."""

    conditions: Mapping[str, Condition] = {}
    agents: Sequence[Agent] = ()


class HealthBatch(msgspec.Struct, frozen=True):
    """What is to be written down together, all or nothing. A condition None is removed; `agents` None: they did not change.

    Alerts wait in the store until they have been handed on, so a process that dies in between hands them on at its next start.
    """

    conditions: Mapping[str, Condition | None] = {}
    events: Sequence[CheckEvent] = ()
    alerts: Sequence[Alert] = ()
    agents: Sequence[Agent] | None = None


class EventQuestion(msgspec.Struct, frozen=True):
    """Which events are wanted, newest first. Times in Unix ms: `since_ms` is the first that counts, `until_ms` the first that does not."""

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
