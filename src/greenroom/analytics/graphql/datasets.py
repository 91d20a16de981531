"""The table of datasets. A row is a field of a zone with its types, filter, order and limits."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from greenroom.analytics.metrics import DAY_S, DIMENSIONS, FLOATS, METRICS, ROOM
from greenroom.analytics.question import (
    FOREVER_S,
    NO_BEGIN_S,
    ROWS_MAX,
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

ORDERED = ("", "_neq", "_gt", "_lt", "_geq", "_leq", "_in", "_notin")
OPERATORS: dict[str, tuple[str, ...]] = {
    "string": (*ORDERED, "_like", "_notlike"),
    "Time": ORDERED,
    "Date": ORDERED,
    "uint64": ORDERED,
    "float64": ORDERED,
    "[string!]": ("", "_neq", "_has", "_hasall", "_hasany"),
}
"""Type of a field -> suffixes in a filter."""

LISTED = frozenset({"_in", "_notin", "_hasall", "_hasany"})


class TooLong(Exception): ...


class DatasetLimits(NamedTuple):
    """Durations in seconds."""

    max_page_size: int = ROWS_MAX
    max_duration_s: int = 31 * DAY_S
    max_fields: int = 100
    not_older_than_s: int = 31 * DAY_S


class Dataset(NamedTuple):
    """Names with their GraphQL types. A raw dataset has `fields`, a grouped one `dimensions` and
    `aggregates`.
    """

    name: str
    type_name: str
    filter_name: str
    help: str
    filters: Mapping[str, str]
    fields: Mapping[str, str] = {}
    dimensions: Mapping[str, str] = {}
    aggregates: Mapping[str, Mapping[str, str]] = {}
    counted: bool = False
    limits: DatasetLimits = DatasetLimits()

    def order_tokens(self) -> list[tuple[str, str]]:
        """The aggregate is empty for fields, dimensions and the count."""
        plain = [("", name) for name in (*self.fields, *self.dimensions)]
        counted = [("", "count")] if self.counted else []
        return (
            plain
            + counted
            + [(aggregate, name) for aggregate, names in self.aggregates.items() for name in names]
        )

    def paths(self) -> list[str]:
        """The paths that `availableFields` lists."""
        groups = [f"dimensions_{name}" for name in self.dimensions]
        counted = ["count"] if self.counted else []
        return [
            *self.fields,
            *counted,
            *groups,
            *(
                f"{aggregate}_{name}"
                for aggregate, names in self.aggregates.items()
                for name in names
            ),
        ]


class Comparison(NamedTuple):
    """`op` is empty for equality. Times are Unix seconds."""

    field: str
    op: str
    value: Any


class Every(NamedTuple):
    parts: "tuple[Where, ...]"


class Some(NamedTuple):
    parts: "tuple[Where, ...]"


Where = Comparison | Every | Some


class OrderBy(NamedTuple):
    aggregate: str
    name: str
    descending: bool


class DatasetQuery(NamedTuple):
    """`selected`: (aggregate, name), as in `order_tokens`."""

    dataset: Dataset
    zone_id: str
    where: Where
    order: Sequence[OrderBy]
    limit: int
    selected: Sequence[tuple[str, str]]
    deadline_s: float


class DatasetRows(NamedTuple):
    rows: list[dict[str, Any]]
    incomplete_minutes: int = 0
    generated_minutes: int = 0


DatasetAnswer = Callable[[DatasetQuery], DatasetRows]
"""Called in a worker thread. Raises `Refused` of `analytics.question`."""

_TIMES = {name: found.kind for name, found in DIMENSIONS.items()}
_GROUPS = "waitingRoomAnalyticsAdaptiveGroups"


def _kind(aggregate: str) -> str:
    return "float64" if aggregate in FLOATS else "uint64"


def _raw_kind(name: str) -> str:
    share = METRICS[name].raw
    return "float64" if share and share.digits is not None else "uint64"


def _aggregates() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for metric in METRICS.values():
        for aggregate in metric.aggregates:
            found.setdefault(aggregate, {})[metric.name] = _kind(aggregate)
    return found


ROOM_MINUTES = Dataset(
    name="waitingRoomAnalyticsAdaptive",
    type_name="ZoneWaitingRoomAnalyticsAdaptive",
    filter_name="ZoneWaitingRoomAnalyticsAdaptiveFilter_InputObject",
    help="One row for each waiting room and minute.",
    filters=_TIMES,
    fields={
        **_TIMES,
        "sampleInterval": "uint64",
        **{name: _raw_kind(name) for name, metric in METRICS.items() if metric.raw},
    },
)

ROOM_GROUPS = Dataset(
    name=_GROUPS,
    type_name="ZoneWaitingRoomAnalyticsAdaptiveGroups",
    filter_name="ZoneWaitingRoomAnalyticsAdaptiveGroupsFilter_InputObject",
    help="Minutes of waiting rooms, grouped by the dimensions that are selected.",
    filters=_TIMES,
    dimensions={**_TIMES, "sampleInterval": "uint64"},
    aggregates=_aggregates(),
    counted=True,
)

DATASETS: tuple[Dataset, ...] = (ROOM_MINUTES, ROOM_GROUPS)


# Answers the datasets of waiting rooms from the analytics store.

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
