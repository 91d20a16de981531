"""Availability, failures and latency for the analytics page. Short spans are read from single
events, long ones from hourly sums.
"""

from collections.abc import Collection, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from greenroom.health.rules.memory import (
    HOUR_MS,
    TIMES,
    EventQuestion,
    HourQuestion,
    KeptEvent,
    StepCount,
    Timing,
)
from greenroom.health.rules.sketch import Sketch
from greenroom.health.store import HealthStore
from greenroom.model.probe import ProbeResult

K = TypeVar("K")

EVENTS_MAX = 10_000
"""Events that one page reads; a span with more uses hourly sums."""

EVENTS_MS = 25 * HOUR_MS

SHORT_MS = 2 * HOUR_MS
"""Below this span the table counts single verdicts instead of whole hours."""


class HealthSpan(NamedTuple):
    """`step_ms` is a multiple of an hour when `hourly`."""

    begin_ms: int
    end_ms: int
    step_ms: int
    hourly: bool

    def steps(self) -> range:
        return range(self.begin_ms, self.end_ms, self.step_ms)

    def step_of(self, at_ms: int) -> int:
        return max(self.begin_ms, at_ms - at_ms % self.step_ms)


class UptimeShare(NamedTuple):
    good: int = 0
    total: int = 0

    @property
    def percent(self) -> float | None:
        return 100 * self.good / self.total if self.total else None


class RegionFigures(NamedTuple):
    """`medians` by the names of TIMES; 0 where there is no such phase."""

    region: str
    share: UptimeShare
    medians: Mapping[str, float]
    rtt: Sketch


class Latency(NamedTuple):
    """Latency of healthy probes. `bands`: name of TIMES -> step -> (median, p95)."""

    bands: Mapping[str, Mapping[int, tuple[float, float]]]
    regions: Sequence[RegionFigures]
    heat: Mapping[tuple[str, int], float]


def span_for(
    history: HealthStore, check_ids: Sequence[str], begin_ms: int, end_ms: int, step_ms: int
) -> HealthSpan:
    hourly = bool(check_ids) and not _readable(history, check_ids, begin_ms, end_ms)
    step_ms = max(step_ms, HOUR_MS) if hourly else step_ms
    begin_ms, end_ms = begin_ms // step_ms * step_ms, -(-end_ms // step_ms) * step_ms
    return HealthSpan(begin_ms, end_ms, step_ms, hourly)


def _readable(history: HealthStore, check_ids: Sequence[str], begin_ms: int, end_ms: int) -> bool:
    """Whether all events are still stored, and few enough to read."""
    if end_ms - begin_ms > EVENTS_MS:
        return False
    if history.count(EventQuestion(begin_ms, end_ms, check_ids), EVENTS_MAX + 1) > EVENTS_MAX:
        return False
    oldest_ms = history.oldest_ms()
    gone_ms = (oldest_ms or 0) // HOUR_MS * HOUR_MS
    return gone_ms <= begin_ms or not history.hours(
        HourQuestion(begin_ms, gone_ms, check_ids, limit=1)
    )


def _counts(
    history: HealthStore, check_ids: Sequence[str], span: HealthSpan, *, probes: bool
) -> list[StepCount]:
    kind = {"probes": True} if probes else {"scope": "overall"}
    if span.hourly:
        return history.hour_counts(HourQuestion(span.begin_ms, span.end_ms, check_ids, **kind))
    question = EventQuestion(span.begin_ms, span.end_ms, check_ids, **kind)
    return history.step_counts(question, span.step_ms)


def availability(
    history: HealthStore, check_ids: Sequence[str], span: HealthSpan
) -> dict[str, dict[int, UptimeShare]]:
    """Check -> step -> share of healthy verdicts."""
    found: dict[str, dict[int, UptimeShare]] = {check_id: {} for check_id in check_ids}
    for one in _counts(history, check_ids, span, probes=False) if check_ids else ():
        steps, at = found[one.check_id], span.step_of(one.at_ms)
        steps[at] = _plus(steps.get(at, UptimeShare()), one)
    return found


def whole(available: Mapping[str, Mapping[int, UptimeShare]]) -> dict[str, UptimeShare]:
    return {
        check_id: UptimeShare(
            sum(one.good for one in steps.values()), sum(one.total for one in steps.values())
        )
        for check_id, steps in available.items()
    }


def _plus(share: UptimeShare, one: StepCount) -> UptimeShare:
    return UptimeShare(share.good + (0 if one.reason else one.number), share.total + one.number)


def uptimes(
    history: HealthStore, check_ids: Collection[str], span: HealthSpan
) -> dict[str, UptimeShare]:
    if span.end_ms - span.begin_ms > SHORT_MS:
        found = history.availability(span.begin_ms, span.end_ms)
        return {key: UptimeShare(*share) for key, share in found.items() if key in check_ids}
    shares: dict[str, UptimeShare] = {}
    question = EventQuestion(span.begin_ms, span.end_ms, scope="overall")
    for one in history.step_counts(question, SHORT_MS):
        if one.check_id in check_ids:
            shares[one.check_id] = _plus(shares.get(one.check_id, UptimeShare()), one)
    return shares


def failures(
    history: HealthStore, check_ids: Sequence[str], span: HealthSpan
) -> tuple[dict[str, dict[int, int]], int]:
    """Reason -> step -> failed probes, the most frequent reason first; and the number of probes."""
    found: dict[str, dict[int, int]] = {}
    total = 0
    for one in _counts(history, check_ids, span, probes=True) if check_ids else ():
        total += one.number
        if one.reason:
            steps, at = found.setdefault(one.reason, {}), span.step_of(one.at_ms)
            steps[at] = steps.get(at, 0) + one.number
    ordered = sorted(found.items(), key=lambda item: -sum(item[1].values()))
    return dict(ordered), total


def _timings(history: HealthStore, check_id: str, span: HealthSpan) -> Sequence[Timing]:
    if span.hourly:
        return history.hour_timings(
            HourQuestion(span.begin_ms, span.end_ms, [check_id], probes=True)
        )
    return history.timings(EventQuestion(span.begin_ms, span.end_ms, [check_id], probes=True))


def latency(history: HealthStore, check_id: str, span: HealthSpan) -> Latency:
    parts: dict[tuple[str, int], list[Sketch]] = {}
    shares: dict[str, UptimeShare] = {}
    for one in _timings(history, check_id, span):
        share = shares.get(one.region, UptimeShare())
        good = one.number if one.healthy else 0
        shares[one.region] = UptimeShare(share.good + good, share.total + one.number)
        sketches = _at(parts, (one.region, span.step_of(one.at_ms)))
        for sketch, found in zip(sketches, one.times, strict=True) if one.healthy else ():
            if isinstance(found, Sketch):
                sketch.add(found)
            elif isinstance(found, float) and found:
                sketch.record(found)
    steps: dict[int, list[Sketch]] = {}
    regions: dict[str, list[Sketch]] = {}
    heat: dict[tuple[str, int], Sketch] = {}
    heat_ms = max(HOUR_MS, span.step_ms)
    for (region, at), sketches in sorted(parts.items()):
        for into in (_at(steps, at), _at(regions, region)):
            for sketch, found in zip(into, sketches, strict=True):
                sketch.add(found)
        heat.setdefault((region, at // heat_ms * heat_ms), Sketch()).add(sketches[_RTT])
    return Latency(
        {
            name: {
                at: (sketches[place].quantile(50), sketches[place].quantile(95))
                for at, sketches in sorted(steps.items())
                if sketches[place].counts
            }
            for place, name in enumerate(TIMES)
        },
        [
            RegionFigures(
                region,
                shares[region],
                {name: one.quantile(50) for name, one in zip(TIMES, sketches, strict=True)},
                sketches[_RTT],
            )
            for region, sketches in regions.items()
        ],
        {key: sketch.quantile(50) for key, sketch in heat.items() if sketch.counts},
    )


_RTT = TIMES.index("rtt_ms")


def _at(of: dict[K, list[Sketch]], key: K) -> list[Sketch]:
    if key not in of:
        of[key] = [Sketch() for _ in TIMES]
    return of[key]


def log(history: HealthStore, check_ids: Sequence[str], question: EventQuestion) -> list[KeptEvent]:
    """Newest first. One query per check: the database has each sorted already."""
    pages = [history.log(replace(question, check_ids=[check_id])) for check_id in check_ids]
    newest = merge(*pages, key=lambda kept: (-kept.event.at_ms, -kept.number))
    return list(islice(newest, question.limit))


class ProbePhase(NamedTuple):
    name: str
    start_ms: float
    length_ms: float


PHASES = {
    "dns_ms": "DNS",
    "tcp_ms": "TCP",
    "tls_ms": "TLS",
    "request_ms": "Request",
    "ttfb_ms": "First byte",
    "rtt_ms": "Body",
}


def waterfall(times: Mapping[str, float] | ProbeResult) -> list[ProbePhase]:
    """Each phase starts where the last ended. First byte and whole body are measured from the
    connection, as published.
    """
    found = {
        name: times[name] if isinstance(times, Mapping) else getattr(times, name) for name in TIMES
    }
    lengths = found | {
        "ttfb_ms": found["ttfb_ms"] - found["request_ms"],
        "rtt_ms": found["rtt_ms"] - found["ttfb_ms"],
    }
    phases, at = [], 0.0
    for name, label in PHASES.items():
        length = round(max(0.0, lengths[name]), 2)
        if found[name]:
            phases.append(ProbePhase(label, round(at, 2), length))
            at += length
    return phases
