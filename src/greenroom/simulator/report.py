"""What only a simulation knows of a run."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from greenroom.simulator.ground_truth import BURST_MS, WINDOW_MS
from greenroom.simulator.scenario import START_MS
from greenroom.simulator.visitor import SimulatedVisitor
from greenroom.simulator.world import World

QuartileShares = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """Shares are between 0 and 1, None where there was nothing to measure."""

    name: str
    visitors: int
    entered: int
    waits_p50_s: float
    """Over all who entered, including those who entered at once."""
    waits_p95_s: float
    peak_minute: int
    over_active: int
    over_minute: int
    unconfirmed: int
    unused: float | None
    burst: float
    queued_early: float
    asked_for_ticket: float
    queued_in_flood: float
    """Share of arrivals: as `queued_early`, but a flood that looked alike would have used up the
    room.
    """
    overtaking_p50_s: float
    overtaking_p99_s: float
    error_first: float | None
    error_joining: float | None
    error_polls: float | None
    inside_quartiles: float | None
    coverage_joining: QuartileShares | None
    coverage_polls: QuartileShares | None
    unknown: float | None
    latency_mean_ms: float
    latency_p99_ms: float
    calls_per_admission: float
    messages_per_center_s: float
    lost_sessions: int
    flood: float | None
    """The largest share of the room held by requests without cookies."""
    broken_laws: list[str] = field(default_factory=list)


def quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def report(world: World) -> SimulationReport:
    scenario, ground_truth, crowd, system = (
        world.scenario,
        world.ground_truth,
        world.crowd,
        world.system,
    )
    inside = [visitor for visitor in crowd.visitors if visitor.entered_ms]
    waits = sorted(visitor.wait_s for visitor in inside)
    overtaken = sorted(
        visitor.overtaken_ms / 1000 for visitor in inside if visitor.overtaken_ms >= 0
    )
    latencies = sorted(visitor.latency_ms for visitor in crowd.visitors)
    joining = [(visitor, *visitor.guess) for visitor in inside if visitor.guess]
    first = [(visitor, *visitor.first_guess) for visitor in inside if visitor.first_guess]
    polls = [guess for guess in crowd.guesses if guess[0].entered_ms]
    seconds = (world.agenda.now_ms - START_MS) / 1000
    return SimulationReport(
        scenario.name,
        len(crowd.visitors),
        ground_truth.entered,
        quantile(waits, 0.5),
        quantile(waits, 0.95),
        ground_truth.most_minute,
        ground_truth.over_active,
        ground_truth.over_minute,
        max(0, ground_truth.over_active - max(0, ground_truth.over_beyond_trust)),
        ground_truth.unused_ms / ground_truth.waited_ms if ground_truth.waited_ms else None,
        ground_truth.most_burst / max(1.0, ground_truth.per_minute * BURST_MS / WINDOW_MS),
        ground_truth.early / max(1, len(crowd.visitors)),
        ground_truth.asked / max(1, len(crowd.visitors)),
        ground_truth.early_in_flood / max(1, len(crowd.visitors)),
        quantile(overtaken, 0.5),
        quantile(overtaken, 0.99),
        relative_error(first),
        relative_error(joining),
        relative_error(polls),
        inside_quartiles(joining + polls),
        coverage(joining),
        coverage(polls),
        crowd.unknown / crowd.told if crowd.told else None,
        sum(latencies) / max(1, len(latencies)),
        quantile(latencies, 0.99),
        system.global_calls / max(1, ground_truth.entered),
        system.messages / scenario.centers / seconds,
        crowd.lost,
        crowd.most_flood / ground_truth.total if crowd.flooded else None,
        world.broken_laws,
    )


Guess = tuple[SimulatedVisitor, int, float, float, float]


def relative_error(guesses: Sequence[Guess]) -> float | None:
    """Relative to the mean wait."""
    actual = [(visitor.entered_ms - now_ms) / 1000 for visitor, now_ms, *_ in guesses]
    if not actual or not sum(actual):
        return None
    return sum(abs(guess[3] - wait_s) for guess, wait_s in zip(guesses, actual, strict=True)) / sum(
        actual
    )


def coverage(guesses: Sequence[Guess]) -> QuartileShares | None:
    waits = [
        ((visitor.entered_ms - now_ms) / 1000, told)
        for visitor, now_ms, *told in guesses
        if told[2] > told[0]
    ]
    if not waits:
        return None
    p25, p50, p75 = (
        sum(wait_s <= told[which] for wait_s, told in waits) / len(waits) for which in range(3)
    )
    return p25, p50, p75


def inside_quartiles(guesses: Sequence[Guess]) -> float | None:
    inside = [
        p25 <= (visitor.entered_ms - now_ms) / 1000 <= p75
        for visitor, now_ms, p25, _, p75 in guesses
        if p75 > p25
    ]
    return sum(inside) / len(inside) if inside else None
