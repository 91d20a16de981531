from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from greenroom.health.rules.condition import Condition
from greenroom.health.rules.roster import Agent
from greenroom.health.rules.sketch import Sketch
from greenroom.model.alert import Alert
from greenroom.model.probe import CheckEvent

HOUR_MS = 3_600_000
TIMES = ("dns_ms", "tcp_ms", "tls_ms", "request_ms", "ttfb_ms", "rtt_ms")
HOUR_KEY = (
    "check_id",
    "hour_ms",
    "region",
    "scope",
    "probe",
    "healthy",
    "reason",
    "code",
    "address",
    "changed",
)


class HealthMemory(msgspec.Struct, frozen=True):
    conditions: Mapping[str, Condition] = {}
    agents: Sequence[Agent] = ()


class HealthBatch(msgspec.Struct, frozen=True):
    """Written in one transaction. A condition None is deleted. Alerts stay in the store until they
    are handed on.
    """

    conditions: Mapping[str, Condition | None] = {}
    events: Sequence[CheckEvent] = ()
    alerts: Sequence[Alert] = ()
    agents: Sequence[Agent] | None = None


class EventQuestion(msgspec.Struct, frozen=True):
    """`since_ms` is inclusive, `until_ms` exclusive. `healthy` and `probes` None: both. `before`:
    (time, number) of the event that ended the page before.
    """

    since_ms: int
    until_ms: int
    check_ids: Sequence[str] = ()
    zone_id: str = ""
    region: str = ""
    scope: str = ""
    only_changes: bool = False
    limit: int = 1_000
    offset: int = 0
    healthy: bool | None = None
    probes: bool | None = None  # probes of agents, or verdicts over all of them
    reason: str = ""
    before: tuple[int, int] | None = None


class KeptEvent(NamedTuple):
    number: int
    event: CheckEvent


class HourQuestion(msgspec.Struct, frozen=True):
    """Whole hours from the one of `since_ms` on. No `check_ids`: all of them."""

    since_ms: int
    until_ms: int
    check_ids: Sequence[str] = ()
    zone_id: str = ""
    region: str = ""
    scope: str = ""
    probes: bool | None = None
    limit: int = 100_000


class HourSum(msgspec.Struct):
    """Events of one hour that differ only in their times. `times` as TIMES."""

    check_id: str
    hour_ms: int
    region: str
    scope: str
    probe: int
    healthy: int
    reason: str
    code: int
    address: str
    changed: int
    zone_id: str
    name: str
    fqdn: str
    expected: str
    count: int = 0
    times: list[Sketch] = []

    def add(self, event: CheckEvent) -> None:
        self.count += 1
        self.times = self.times or [Sketch() for _ in TIMES]
        for sketch, name in zip(self.times, TIMES, strict=True):
            value = getattr(event.result, name)
            if value:
                sketch.record(value)

    def merge(self, other: "HourSum") -> None:
        self.count += other.count
        for mine, more in zip(self.times, other.times, strict=True):
            mine.add(more)


def hour_sums(events: Iterable[CheckEvent]) -> dict[tuple[Any, ...], HourSum]:
    sums: dict[tuple[Any, ...], HourSum] = {}
    for event in events:
        result = event.result
        key = (
            event.check_id,
            event.at_ms // HOUR_MS * HOUR_MS,
            event.region,
            event.scope,
            int(bool(event.agent)),
            int(event.healthy),
            result.reason,
            result.code,
            result.address,
            int(event.changed),
        )
        if key not in sums:
            sums[key] = HourSum(*key, event.zone_id, event.name, event.fqdn, event.expected)
        sums[key].add(event)
    return sums


class Timing(NamedTuple):
    """Probes of one region: one at `at_ms`, or all of that hour. `times` as TIMES."""

    region: str
    at_ms: int
    healthy: bool
    number: int
    times: Sequence[float] | Sequence[Sketch]


class StepCount(NamedTuple):
    """`reason` is empty for healthy events."""

    check_id: str
    at_ms: int
    reason: str
    number: int


class Uptime(msgspec.Struct, frozen=True):
    check_id: str
    day: str  # 2030-01-31
    good: int
    total: int
    rtt_ms: float  # mean of the good probes
