"""Answers the datasets of waiting rooms from the analytics store."""

import time
from collections.abc import Callable
from typing import Any

from greenroom.analytics.graphql.datasets import (
    ROOM_GROUPS,
    ROOM_MINUTES,
    Comparison,
    DatasetAnswer,
    DatasetLimits,
    DatasetQuery,
    DatasetRows,
    Every,
    TooLong,
    Where,
)
from greenroom.analytics.metrics import DIMENSIONS, METRICS, ROOM
from greenroom.analytics.question import (
    FOREVER_S,
    NO_BEGIN_S,
    AllOf,
    AnalyticsStore,
    AnyOf,
    DimensionFilter,
    Filter,
    Order,
    Question,
    QuestionRefused,
    Row,
    SlowAnswer,
    Wanted,
    span_of,
)
from greenroom.model.clock import Clock
from greenroom.web.stores import ConfigStore

SAMPLE_INTERVAL = 1

ONE_FIELD = "sampleInterval"

_OPS = {
    "": "eq",
    "_neq": "neq",
    "_gt": "gt",
    "_geq": "geq",
    "_lt": "lt",
    "_leq": "leq",
    "_in": "in",
    "_notin": "notin",
}

TEXT_OPERATORS: dict[str, Callable[[str, Any], bool]] = {
    "": lambda text, value: text == value,
    "_neq": lambda text, value: text != value,
    "_gt": lambda text, value: text > value,
    "_lt": lambda text, value: text < value,
    "_geq": lambda text, value: text >= value,
    "_leq": lambda text, value: text <= value,
    "_in": lambda text, value: text in value,
    "_notin": lambda text, value: text not in value,
    "_like": lambda text, value: like(text, value),
    "_notlike": lambda text, value: not like(text, value),
}


def like(text: str, pattern: str) -> bool:
    """`%` matches any characters. Linear in both."""
    first, *rest = pattern.split("%")
    if not rest:
        return text == pattern
    *middle, last = rest
    if not text.startswith(first) or len(text) < len(first) + len(last) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def room_answers(
    store: AnalyticsStore, config: ConfigStore, clock: Clock
) -> dict[str, DatasetAnswer]:
    def rooms_of(zone_id: str) -> frozenset[str]:
        known = config.read().rooms
        gone = [room for room in store.rooms_of(zone_id) if room not in known]
        return frozenset([*(entry.id for entry in known.of(zone_id)), *gone])

    answer = _answer(store, rooms_of, clock)
    return {dataset.name: answer for dataset in (ROOM_MINUTES, ROOM_GROUPS)}


def _answer(
    store: AnalyticsStore, rooms_of: Callable[[str], frozenset[str]], clock: Clock
) -> DatasetAnswer:
    def answer(query: DatasetQuery) -> DatasetRows:
        rooms = rooms_of(query.zone_id)
        raw = bool(query.dataset.fields)
        question = _question(query, rooms, raw, clock.now_ms() // 1_000)
        try:
            found = store.answer(question, max(0.01, query.deadline_s - time.monotonic()))
        except SlowAnswer:
            raise TooLong from None
        shape = _flat if raw else _nested
        return DatasetRows(
            [shape(row, query) for row in found.rows], found.incomplete, found.generated
        )

    return answer


def _question(query: DatasetQuery, rooms: frozenset[str], raw: bool, now_s: int) -> Question:
    found = _filter(query.where, rooms)
    start_s, end_s = _bounds(found, query.dataset.limits, now_s)
    named = [
        name
        for aggregate, name in query.selected
        if aggregate in ("", "dimensions") and name in DIMENSIONS
    ]
    metrics = [
        Wanted(aggregate, name)
        for aggregate, name in query.selected
        if aggregate != "dimensions" and name in METRICS
    ]
    order = tuple(
        Order(one.aggregate, one.name, one.descending)
        for one in query.order
        if one.name != ONE_FIELD
    )
    return Question(
        start_s, end_s, rooms, tuple(named), tuple(metrics), found, order, query.limit, raw
    )


def _bounds(found: Filter, limits: DatasetLimits, now_s: int) -> tuple[int, int]:
    """Without a begin, the longest allowed range. Raises Refused."""
    start_s, end_s, _ = span_of(found)
    end_s = now_s + 60 if end_s == FOREVER_S else end_s
    if start_s == NO_BEGIN_S:
        start_s = max(end_s - limits.max_duration_s, now_s - limits.not_older_than_s)
    elif start_s < now_s - limits.not_older_than_s - 60:
        raise QuestionRefused(f"cannot request data older than {limits.not_older_than_s}s")
    if end_s - start_s > limits.max_duration_s + 60:
        raise QuestionRefused(
            f"query time range is too large: it cannot be wider than {limits.max_duration_s}s"
        )
    return start_s, max(start_s, end_s)


def _filter(where: Where, rooms: frozenset[str]) -> Filter:
    if not isinstance(where, Comparison):
        parts = tuple(_filter(part, rooms) for part in where.parts)
        return AllOf(parts) if isinstance(where, Every) else AnyOf(parts)
    if where.field == ROOM:
        matches = TEXT_OPERATORS[where.op]
        return DimensionFilter(
            ROOM, "in", tuple(sorted(room for room in rooms if matches(room, where.value)))
        )
    values = where.value if isinstance(where.value, list) else [where.value]
    return DimensionFilter(where.field, _OPS[where.op], tuple(values))


def _nested(row: Row, query: DatasetQuery) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "dimensions": {},
        **{aggregate: {} for aggregate in query.dataset.aggregates},
    }
    for aggregate, name in query.selected:
        if not aggregate:
            shown[name] = row["", name]
        elif name == ONE_FIELD:
            shown[aggregate][name] = SAMPLE_INTERVAL
        else:
            shown[aggregate][name] = row["" if aggregate == "dimensions" else aggregate, name]
    return shown


def _flat(row: Row, query: DatasetQuery) -> dict[str, Any]:
    return {
        name: SAMPLE_INTERVAL if name == ONE_FIELD else row["", name] for _, name in query.selected
    }
