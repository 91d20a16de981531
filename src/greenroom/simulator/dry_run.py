"""A dry run: what a room would do with an expected crowd, under its own limits and under others, soon enough to wait for.

Theory. What a crowd meets depends on visitors per limit, so a crowd of 100,000 before limits of 1,000 waits as long as one of 1,000
before limits of 10. Large crowds are therefore simulated as a part of them before limits that are smaller by the same factor, as long
as LIMIT_LEAST visitors still fit: below that, single visits would show in the waits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from greenroom.errors import InvalidConfig, Problem
from greenroom.simulator.arrivals import ArrivalRow, from_curve, from_rows, read_rows
from greenroom.simulator.chance import Streams
from greenroom.simulator.lease_model import LeaseModel
from greenroom.simulator.report import quantile
from greenroom.simulator.sale import sale
from greenroom.simulator.scenario import Behaviour
from greenroom.simulator.world import World

VISITORS_SIMULATED = 500
"""Visitors of one run, unless the limits are so small that fewer would not be like the whole crowd."""

LIMIT_LEAST = 10
POINTS = 120
"""Of each curve."""

LIMITS = ("total_active_users", "new_users_per_minute")
LAST_ROW_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunRequest:
    """An expected crowd and the settings to try. `rows`: CSV instead of visitors, minutes and curve; settings are those of a Room."""

    settings: Sequence[Mapping[str, Any]]
    visitors: int = 0
    minutes: float = 0.0
    curve: str = "rush"
    rows: str = ""
    visit_s: float = 120.0
    patience_s: float = 0.0


def crowd_of(request: DryRunRequest) -> tuple[list[ArrivalRow], int]:
    """The rows of the CSV (none without one), and how many visitors are expected. Raises InvalidConfig with what is wrong in each line."""
    if not request.rows.strip():
        return [], request.visitors
    rows, problems = read_rows(request.rows, 1)
    if problems:
        raise InvalidConfig([Problem(f"rows: {problem.pointer}", problem.reason) for problem in problems])
    return rows, sum(count for _, count, _ in rows)


def dry_run(request: DryRunRequest, streams: Callable[[], Streams], progress: Callable[[float], None]) -> list[dict[str, Any]]:
    """One result for each of the settings, in their order; `streams` makes the same random numbers for each. Raises InvalidConfig."""
    rows, visitors = crowd_of(request)
    found = []
    for number, settings in enumerate(request.settings):
        part = scale_of(visitors, settings)
        draw = streams()
        arrivals = (
            _thinned(rows, part, draw) if rows else from_curve(draw("arrivals"), request.curve, round(visitors / part), request.minutes, 1)
        )
        scenario = sale(scaled(settings, part), arrivals, 1, Behaviour(visit_s=request.visit_s, patience_s=request.patience_s))
        world = World(scenario, draw)
        if isinstance(world.system, LeaseModel):
            world.system.forecast_nothing()
        world.run(lambda share, number=number: progress((number + share) / len(request.settings)))  # type: ignore[misc]
        found.append(_result(world, settings, visitors, part))
    return found


def scale_of(visitors: int, settings: Mapping[str, Any]) -> float:
    """By which factor the crowd is larger than what is simulated."""
    smallest = min(float(settings[name]) for name in LIMITS)
    return max(1.0, min(visitors / VISITORS_SIMULATED, smallest / LIMIT_LEAST))


def scaled(settings: Mapping[str, Any], part: float) -> dict[str, Any]:
    """The settings for one `part` of the crowd."""
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


def _result(world: World, settings: Mapping[str, Any], visitors: int, part: float) -> dict[str, Any]:
    waits = sorted(visitor.wait_s for visitor in world.crowd.visitors if visitor.entered_ms)
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
        "peak_active": min(round(world.ground_truth.most_active * part), int(settings["total_active_users"])),
        "empty_after_s": next((second for second, _, waiting, _ in reversed(series) if waiting), 0.0),
        "series": [[second, round(active * part), round(waiting * part)] for second, active, waiting, _ in kept],
    }
