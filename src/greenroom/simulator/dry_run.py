"""A dry run: an expected crowd under a room's limits and alternatives. Waits depend on visitors per
limit, so a large crowd is scaled down together with the limits, to LIMIT_LEAST at the lowest: below
that, single visits would show in the waits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.room import LIMITS
from greenroom.simulator.arrivals import ArrivalRow, from_curve, from_rows, read_rows
from greenroom.simulator.chance import Streams
from greenroom.simulator.lease_model import LeaseModel
from greenroom.simulator.report import quantile
from greenroom.simulator.sale import sale
from greenroom.simulator.scenario import START_MS, Behaviour
from greenroom.simulator.world import World

VISITORS_SIMULATED = 500

LIMIT_LEAST = 10
POINTS = 120

LAST_ROW_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunRequest:
    """`rows` (CSV) replaces visitors, minutes and curve. A pre-queue of `prequeue_s` admits nobody;
    `shuffle` draws the places of its visitors.
    """

    settings: Sequence[Mapping[str, Any]]
    visitors: int = 0
    minutes: float = 0.0
    curve: str = "rush"
    rows: str = ""
    visit_s: float = 120.0
    patience_s: float = 0.0
    prequeue_s: float = 0.0
    early: float = 0.0
    """Share of `visitors` in the pre-queue; with `rows`, times count from its opening."""
    shuffle: bool = False


def crowd_of(request: DryRunRequest) -> tuple[list[ArrivalRow], int]:
    """Raises InvalidConfig with the problems of each line."""
    if not request.rows.strip():
        return [], request.visitors
    rows, problems = read_rows(request.rows, 1)
    if problems:
        raise InvalidConfig(
            [Problem(f"rows: {problem.pointer}", problem.reason) for problem in problems]
        )
    return rows, sum(count for _, count, _ in rows)


def dry_run(
    request: DryRunRequest, streams: Callable[[], Streams], progress: Callable[[float], None]
) -> list[dict[str, Any]]:
    """All runs get the same random numbers. Raises InvalidConfig."""
    rows, visitors = crowd_of(request)
    found = []
    for number, settings in enumerate(request.settings):
        part = scale_of(visitors, settings)
        draw = streams()
        arrivals = (
            _thinned(rows, part, draw) if rows else _shaped(request, round(visitors / part), draw)
        )
        world = _world(request, scaled(settings, part), arrivals, draw)
        world.run(
            lambda share, number=number: progress((number + share) / len(request.settings))  # type: ignore[misc]
        )
        found.append(_result(world, request, settings, visitors, part))
    return found


def _world(
    request: DryRunRequest,
    settings: Mapping[str, Any],
    arrivals: list[tuple[int, int]],
    draw: Streams,
) -> World:
    held = {"queue_all": True} if request.prequeue_s else {}
    scenario = sale(
        {**settings, **held},
        arrivals,
        1,
        Behaviour(visit_s=request.visit_s, patience_s=request.patience_s),
    )
    world = World(scenario, draw)
    start_ms = START_MS + round(request.prequeue_s * 1000)
    if held:
        world.agenda.at(start_ms, world.configure, replace(scenario.room, queue_all=False))
    if isinstance(world.system, LeaseModel):
        world.system.forecast_nothing()
        world.system.draw_until_ms = start_ms if request.shuffle else 0
    return world


def _shaped(request: DryRunRequest, visitors: int, draw: Streams) -> list[tuple[int, int]]:
    early = round(visitors * request.early) if request.prequeue_s else 0
    before = from_curve(draw("early"), "flat", early, request.prequeue_s / 60, 1) if early else []
    shift_ms = round(request.prequeue_s * 1000)
    after = from_curve(draw("arrivals"), request.curve, visitors - early, request.minutes, 1)
    return [*before, *((at_ms + shift_ms, center) for at_ms, center in after)]


def scale_of(visitors: int, settings: Mapping[str, Any]) -> float:
    smallest = min(float(settings[name]) for name in LIMITS)
    return max(1.0, min(visitors / VISITORS_SIMULATED, smallest / LIMIT_LEAST))


def scaled(settings: Mapping[str, Any], part: float) -> dict[str, Any]:
    limits = {name: max(1, round(settings[name] / part)) for name in LIMITS}
    limits["new_users_per_minute"] = min(limits.values())
    return {**settings, **limits}


def _thinned(rows: Sequence[ArrivalRow], part: float, streams: Streams) -> list[tuple[int, int]]:
    fewer, due, given = [], 0.0, 0
    for second, count, center in rows:
        due += count / part
        fewer.append((second, round(due) - given, center))
        given = round(due)
    return from_rows(streams("arrivals"), fewer, LAST_ROW_S, 1)


def _result(
    world: World, request: DryRunRequest, settings: Mapping[str, Any], visitors: int, part: float
) -> dict[str, Any]:
    start_ms = START_MS + round(request.prequeue_s * 1000)
    waits = sorted(
        (one.entered_ms - max(one.came_ms, start_ms)) / 1000
        for one in world.crowd.visitors
        if one.entered_ms
    )
    series = world.ground_truth.series
    step = max(1, -(-len(series) // POINTS))
    kept = [*series[::step], *series[-1:]]
    came = max(1, len(world.crowd.visitors))
    return {
        "settings": dict(settings),
        "visitors": visitors,
        "simulated": len(world.crowd.visitors),
        "entered": round(visitors * len(waits) / came),
        "gave_up": round(visitors * (came - len(waits)) / came),
        "wait_p50_s": quantile(waits, 0.5),
        "wait_p95_s": quantile(waits, 0.95),
        "wait_longest_s": waits[-1] if waits else 0.0,
        "peak_waiting": round(world.ground_truth.most_waiting * part),
        "peak_active": min(
            round(world.ground_truth.most_active * part), int(settings["total_active_users"])
        ),
        "empty_after_s": max(
            0.0,
            next((second for second, _, waiting, _ in reversed(series) if waiting), 0.0)
            - request.prequeue_s,
        ),
        "prequeue_s": request.prequeue_s,
        "series": [
            [second, round(active * part), round(waiting * part)]
            for second, active, waiting, _ in kept
        ],
    }


# The last wait of an example crowd, shown at the form of the limits. A run ends early: once the room
# is full, visitors enter at a constant rate, measured over whole stays after the first, because
# visitors who entered together leave together. With fewer than STAYS stays the answer is a lower
# bound.

VISITORS, MINUTES, VISIT_S = 10_000, 10, 120.0

SIMULATED_LEAST = 50
STAYS = 3

REFRESH_S = 60
"""Tries dominate the runtime."""

TRIES_MAX = 50_000
"""About a second on one core."""

SEEN_MAX_S = 2 * 86_400
STEP_S = 30

FILLINGS = 3


class LastWait(NamedTuple):
    seconds: float
    least: bool = False


def last_wait(settings: Mapping[str, Any], streams: Callable[[], Streams]) -> LastWait:
    """Raises InvalidConfig."""
    part = scale_of(VISITORS, settings)
    stay_s = settings["session_duration"] * 60 + (
        0.0 if settings["disable_session_renewal"] else VISIT_S
    )
    expected = round(VISITORS / part)
    limits = {**scaled(settings, part), "refresh_max_seconds": REFRESH_S}
    fitting = max(
        SIMULATED_LEAST,
        int(TRIES_MAX * REFRESH_S / (2 * STAYS * stay_s)),
        FILLINGS * limits["total_active_users"],
    )
    simulated = min(expected, fitting)
    world = _example_world(limits, simulated, MINUTES * simulated / expected, streams())
    _run(world)
    if world.crowd.settled and simulated == expected:
        return LastWait(max(visitor.wait_s for visitor in world.crowd.visitors))
    entered = sorted(
        (visitor.entered_ms - START_MS) / 1000
        for visitor in world.crowd.visitors
        if visitor.entered_ms
    )
    seen_s = entered[-1] if world.crowd.settled else (world.agenda.now_ms - START_MS) / 1000
    return _projected(entered, expected, seen_s, stay_s)


def _example_world(
    settings: Mapping[str, Any], visitors: int, minutes: float, draw: Streams
) -> World:
    arrivals = from_curve(draw("arrivals"), "flat", visitors, minutes, 1)
    world = World(sale(settings, arrivals, 1, Behaviour(visit_s=VISIT_S)), draw)
    if isinstance(world.system, LeaseModel):
        world.system.forecast_nothing()
    return world


def _run(world: World) -> None:
    tries, at_s = 0.0, 0
    while not world.crowd.settled and tries <= TRIES_MAX and at_s < SEEN_MAX_S:
        at_s += STEP_S
        world.agenda.run(START_MS + at_s * 1000)
        tries += world.ground_truth.waiting * STEP_S / REFRESH_S


def _projected(entered: list[float], expected: int, seen_s: float, stay_s: float) -> LastWait:
    stays = int(seen_s / stay_s) - 1
    let_in = sum(second > seen_s - stays * stay_s for second in entered)
    if stays + 1 < STAYS or not let_in:
        return LastWait(max(0.0, seen_s - MINUTES * 60), least=True)
    last_s = seen_s + (expected - len(entered)) * stays * stay_s / let_in
    return LastWait(max(0.0, last_s - MINUTES * 60))
