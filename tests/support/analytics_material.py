"""Rollups, parts and questions for tests of analytics, and an oracle that answers questions from
the rollups themselves.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

from greenroom.analytics.metrics import DIMENSIONS, METRICS
from greenroom.analytics.outcomes import OUTCOMES
from greenroom.analytics.question import AllOf, DimensionFilter, Filter, Question
from greenroom.analytics.rollup import (
    PERCENTS,
    SLOTS,
    GaugeTrack,
    Part,
    Rollup,
    RoomLimits,
    RoomTarget,
    longest,
    merge,
    together,
)

BEGIN_S = 1_893_456_000  # 2030-01-01, a whole day

slots = st.lists(st.integers(-1, 500), min_size=SLOTS, max_size=SLOTS).map(tuple)
tracks = st.builds(GaugeTrack, slots, slots, slots)
counts = st.dictionaries(st.integers(0, 9_000), st.integers(1, 5), max_size=8)
limits = st.none() | st.builds(
    RoomLimits, st.integers(0, 5), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)
)
targets = st.none() | st.builds(
    RoomTarget,
    st.integers(0, 2),
    st.integers(0, 9),
    st.integers(0, 9),
    st.booleans(),
    st.booleans(),
)
outcomes = st.dictionaries(
    st.sampled_from(list(OUTCOMES)), st.integers(0, 50), max_size=len(OUTCOMES)
)
rollups = st.builds(
    Rollup,
    outcomes,
    st.dictionaries(st.sampled_from(["a", "b", "c"]), tracks, max_size=3),
    limits,
    counts,
    counts,
    st.booleans(),
    st.booleans(),
    targets,
)


def a_rollup(rng: random.Random, busy: float = 0.6) -> Rollup:
    """A room in some minute: mostly looked at, often with visitors."""
    if rng.random() > busy:
        return Rollup(
            {}, {"here": GaugeTrack((0,) * SLOTS, (0,) * SLOTS)}, RoomLimits(1, 100, 50, 5)
        )
    new = rng.randrange(40)
    active = tuple(rng.choice([-1, rng.randrange(300)]) for _ in range(SLOTS))
    waits = tuple(rng.choice([-1, rng.randrange(300)]) for _ in range(SLOTS))
    waited = {rng.randrange(20_000): rng.randrange(1, 4) for _ in range(rng.randrange(6))}
    origin = {rng.randrange(20_000): rng.randrange(1, 4) for _ in range(rng.randrange(6))}
    return Rollup(
        {"admitted": new, **{name: rng.randrange(9) for name in OUTCOMES if name != "admitted"}},
        {"here": GaugeTrack(active, tuple(rng.randrange(300) for _ in range(SLOTS)), waits)},
        RoomLimits(
            rng.randrange(3), rng.randrange(50, 400), rng.randrange(10, 90), rng.choice([1, 5, 30])
        ),
        waited,
        origin,
        incomplete=rng.random() < 0.02,
        target=rng.choice(
            [
                None,
                RoomTarget(
                    rng.randrange(3),
                    rng.randrange(400),
                    rng.randrange(400),
                    rng.random() < 0.2,
                    rng.random() < 0.2,
                ),
            ]
        ),
    )


def parts_of(
    rng: random.Random, minutes: Iterable[int], rooms: Sequence[str], sources: Sequence[str]
) -> list[Part]:
    """A part of every source for every minute and room, a few left out."""
    return [
        Part(source, minute, room, a_rollup(rng))
        for minute in minutes
        for room in rooms
        for source in sources
        if rng.random() > 0.05
    ]


# -- the oracle ------------------------------------------------------------------------------------


def values_within(counts: dict[int, int]) -> list[int]:
    """Every value of a histogram, as its bucket says it (the highest that falls into it)."""
    from greenroom.analytics.histogram import highest_of

    return sorted(highest_of(bucket) for bucket, count in counts.items() for _ in range(count))


def nearest_rank(values: Sequence[int], percent: int) -> int:
    """The percentile as textbooks define it."""
    return values[max(1, -(-percent * len(values) // 100)) - 1] if values else 0


def oracle(parts: Iterable[Part], question: Question) -> list[dict[Any, Any]]:
    """What a grouped question must give, in no particular order; filters on time and room by brute
    force.
    """
    cells: dict[tuple[int, str], list[Rollup]] = defaultdict(list)
    for part in {part.key: part for part in parts}.values():
        cells[part.minute * 60, part.room].append(part.rollup)
    groups: dict[tuple[Any, ...], list[Rollup]] = defaultdict(list)
    for (t, room), rollups in cells.items():
        if question.rooms is not None and room not in question.rooms:
            continue
        if question.start_s <= t < question.end_s and _matches(question.filter, t, room):
            groups[tuple(_dimension(name, t, room) for name in question.dimensions)].append(
                merge(rollups)
            )
    return [
        {("", name): value for name, value in zip(question.dimensions, key, strict=True)}
        | {("", "count"): len(found)}
        | {wanted: _measure(*wanted, found) for wanted in question.metrics}
        for key, found in groups.items()
    ]


def _dimension(name: str, t: int, room: str) -> Any:
    from greenroom.analytics.store.answers import _dimension as shown

    width = DIMENSIONS[name].bucket_s
    return shown(name, t - t % width, {}) if width else room


def _matches(found: Filter | None, t: int, room: str) -> bool:
    if found is None:
        return True
    if not isinstance(found, DimensionFilter):
        results = [_matches(part, t, room) for part in found.parts]
        return all(results) if isinstance(found, AllOf) or not results else any(results)
    width = DIMENSIONS[found.dimension].bucket_s
    value: Any = t - t % width if width else room
    first = found.values[0] if found.values else None
    compared: dict[str, Callable[[], bool]] = {
        "eq": lambda: value == first,
        "neq": lambda: value != first,
        "gt": lambda: value > first,
        "geq": lambda: value >= first,
        "lt": lambda: value < first,
        "leq": lambda: value <= first,
        "in": lambda: value in found.values,
        "notin": lambda: value not in found.values,
    }
    return compared[found.op]()


GAUGES = {"totalActiveUsers": "active", "totalQueuedUsers": "queued", "estimatedWaitTime": "wait_s"}
CONFIGS = {
    "totalActiveUsersConfig": "total_active_users",
    "newUsersPerMinuteConfig": "new_users_per_minute",
    "sessionDurationConfig": "session_minutes",
}
TARGETS = {"capacityTarget": "sessions", "capacityLimit": "limit"}
TARGET_MINUTES = {"minutesCapacityStopped": "stopped", "minutesCapacityUnmeasured": "unmeasured"}
SUMS = {row.metric: row.column for row in OUTCOMES.values() if row.column != "admitted"}


def _looks(rollup: Rollup, gauge: str) -> list[int]:
    columns = [getattr(track, gauge) for track in rollup.tracks.values()]
    return longest(columns) if gauge == "wait_s" else together(columns)


def _measure(aggregate: str, metric: str, found: list[Rollup]) -> Any:
    if metric in GAUGES:
        looks = [look for rollup in found for look in _looks(rollup, GAUGES[metric])]
        return _spread(aggregate, looks)
    if metric in CONFIGS:
        return _spread(
            aggregate,
            [getattr(rollup.limits, CONFIGS[metric]) for rollup in found if rollup.limits],
        )
    targets = [rollup.target for rollup in found if rollup.target]
    if metric in TARGETS:
        return _spread(aggregate, [getattr(target, TARGETS[metric]) for target in targets])
    if metric in TARGET_MINUTES:
        return sum(getattr(target, TARGET_MINUTES[metric]) for target in targets)
    if metric == "newUsersPerMinute":
        return _spread(aggregate, [rollup.outcomes.get("admitted", 0) for rollup in found])
    if metric in SUMS:
        return sum(rollup.outcomes.get(SUMS[metric], 0) for rollup in found)
    if metric == "minutesIncomplete":
        return sum(rollup.incomplete for rollup in found)
    if metric == "minutesGenerated":
        return sum(rollup.generated for rollup in found)
    if metric in ("sessionsEnded", "usersWaited"):
        return sum(
            sum((rollup.origin if metric == "sessionsEnded" else rollup.waited).values())
            for rollup in found
        )
    return _time(aggregate, metric, found)


def _spread(aggregate: str, values: list[int]) -> Any:
    if not values:
        return 0
    return {
        "max": lambda: max(values),
        "min": lambda: min(values),
        "sum": lambda: sum(values),
        "avg": lambda: round(sum(values) / len(values), 4),
    }[aggregate]()


def _time(aggregate: str, metric: str, found: list[Rollup]) -> float:
    stem, _, percent = metric.rpartition("P")
    wait = stem == "totalTimeWaited"
    if aggregate == "percentile":
        everything = sorted(
            value
            for rollup in found
            for value in values_within(rollup.waited if wait else rollup.origin)
        )
        return round(nearest_rank(everything, int(percent)) / 1000, 2)
    above = below = 0
    for rollup in found:
        values = values_within(rollup.waited if wait else rollup.origin)
        if not values:
            continue
        looks = _looks(rollup, "active")
        weight = rollup.outcomes.get("admitted", 0) if wait else (max(looks) if looks else 0)
        above += nearest_rank(values, int(percent)) * weight
        below += weight
    return round(above / below / 1000, 2) if below else 0.0


ALL_WANTED = [
    (aggregate, metric.name) for metric in METRICS.values() for aggregate in metric.aggregates
]
assert len(PERCENTS) == 5
