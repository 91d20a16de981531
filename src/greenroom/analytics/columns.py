"""The columns of the minute table, and what hours and days keep of them: the highest, the lowest or
the sum of the minutes. A weighted average is kept as two sums. All are whole numbers, so hours and
days give exactly what the minutes give.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from greenroom.analytics.outcomes import OUTCOMES
from greenroom.analytics.rollup import PERCENTS

GAUGES = ("active", "queued", "wait")
LIMITS = ("limit_active", "limit_rate", "limit_session")
TARGETS = ("target", "applied")
"""Where the capacity is not fixed: active visitors that the origin takes, and the limit in force."""
TARGET_MINUTES = ("target_stopped", "target_unmeasured")
TARGETED = "targeted"
TIMES = ("waited", "origin")

WEIGHTS = {"waited": "admitted", "origin": "active_max"}

SAMPLES = {name: f"{name}_samples" for name in GAUGES}


class Kept(NamedTuple):
    name: str
    of_minute: str
    merge: str  # sum, max or min, as SQL and as Python
    nullable: bool = False


def _minute_columns() -> Iterator[str]:
    for name in GAUGES:
        yield SAMPLES[name]
        yield from _spread(name)
    yield "limited"
    yield from LIMITS
    yield TARGETED
    yield from TARGETS
    yield from TARGET_MINUTES
    yield from OUTCOMES
    yield from (f"{name}_count" for name in TIMES)
    yield from (f"{name}_p{percent}" for name in TIMES for percent in PERCENTS)
    yield from ("incomplete", "generated")


def _spread(name: str) -> tuple[str, str, str]:
    return f"{name}_max", f"{name}_min", f"{name}_sum"


def _kept() -> Iterator[Kept]:
    yield Kept("minutes", "1", "sum")
    for name in GAUGES:
        yield Kept(SAMPLES[name], SAMPLES[name], "sum")
        yield Kept(f"{name}_max", f"{name}_max", "max")
        yield Kept(
            f"{name}_min",
            f"CASE WHEN {SAMPLES[name]} > 0 THEN {name}_min END",
            "min",
            nullable=True,
        )
        yield Kept(f"{name}_sum", f"{name}_sum", "sum")
    yield from _settings("limited", LIMITS)
    yield from targets_kept()
    for name in OUTCOMES:
        yield Kept(f"{name}_sum", name, "sum")
    yield Kept("admitted_max", "admitted", "max")
    yield Kept("admitted_min", "admitted", "min", nullable=True)
    for name in TIMES:
        yield Kept(f"{name}_count", f"{name}_count", "sum")
        yield Kept(
            f"{name}_weight", f"CASE WHEN {name}_count > 0 THEN {WEIGHTS[name]} ELSE 0 END", "sum"
        )
        for percent in PERCENTS:
            yield Kept(f"{name}_p{percent}_weighted", f"{name}_p{percent} * {WEIGHTS[name]}", "sum")
    yield Kept("incomplete", "incomplete", "sum")
    yield Kept("generated", "generated", "sum")


def _settings(known: str, names: Iterable[str]) -> Iterator[Kept]:
    yield Kept(known, known, "sum")
    for name in names:
        yield Kept(f"{name}_max", name, "max")
        yield Kept(f"{name}_min", f"CASE WHEN {known} > 0 THEN {name} END", "min", nullable=True)
        yield Kept(f"{name}_sum", name, "sum")


def targets_kept() -> Iterator[Kept]:
    yield from _settings(TARGETED, TARGETS)
    for name in TARGET_MINUTES:
        yield Kept(name, name, "sum")


MINUTE_COLUMNS: tuple[str, ...] = tuple(_minute_columns())

KEPT: dict[str, Kept] = {column.name: column for column in _kept()}
