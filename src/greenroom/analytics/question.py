"""A question to analytics, and the tables that answer it. The span is cut into whole days, whole
hours, and minutes at both ends; merging is associative, so the answer equals that of the minutes
alone. Only whole numbers and names from the tables of `metrics` reach a store.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from greenroom.analytics.metrics import DAY_S, DIMENSIONS, HOUR_S, METRICS, MINUTE_S, ROOM

ROWS_MAX = 10_000

CONDITIONS_MAX = 200
VALUES_MAX = 1_000
"""A store parses them as text."""

OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda one, other: one == other,
    "neq": lambda one, other: one != other,
    "gt": lambda one, other: one > other,
    "geq": lambda one, other: one >= other,
    "lt": lambda one, other: one < other,
    "leq": lambda one, other: one <= other,
}


class QuestionRefused(ValueError):
    """The text is for the person who asked."""


class DimensionFilter(NamedTuple):
    """Times are Unix seconds. The room allows only `in` and `notin`; the caller resolves
    patterns.
    """

    dimension: str
    op: str
    values: tuple[int | str, ...]


class AllOf(NamedTuple):
    parts: "tuple[Filter, ...]"


class AnyOf(NamedTuple):
    parts: "tuple[Filter, ...]"


Filter = DimensionFilter | AllOf | AnyOf


class Wanted(NamedTuple):
    aggregate: str
    metric: str


class Order(NamedTuple):
    """By a dimension (aggregate empty), by `count`, or by a metric."""

    aggregate: str
    name: str
    descending: bool = False


class Question(msgspec.Struct, frozen=True):
    """`end_s` is exclusive; `rooms` None means all. Rows are grouped by exactly `dimensions`;
    `raw`: one row for each room and minute.
    """

    start_s: int
    end_s: int
    rooms: frozenset[str] | None = None
    dimensions: tuple[str, ...] = ()
    metrics: tuple[Wanted, ...] = ()
    filter: Filter | None = None
    order: tuple[Order, ...] = ()
    limit: int = ROWS_MAX
    raw: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= ROWS_MAX:
            raise QuestionRefused(f"limit must be from 1 to {ROWS_MAX}, not {self.limit}")
        if self.start_s < 0:
            raise QuestionRefused("the time range begins before 1970")
        for name in self.dimensions:
            if name not in DIMENSIONS:
                raise QuestionRefused(f"unknown dimension {name}")
        for aggregate, name in self.metrics:
            _check_metric(aggregate, name, self.raw)
        for order in self.order:
            _check_order(order, self)
        if self.filter is not None:
            _check_filter(self.filter)

    @property
    def finest_s(self) -> int:
        if self.raw:
            return MINUTE_S
        named = [
            *self.dimensions,
            *(
                order.name
                for order in self.order
                if not order.aggregate and order.name in DIMENSIONS
            ),
        ]
        widths = [
            DIMENSIONS[name].bucket_s
            for name in (*named, *_dimensions_of(span_of(self.filter).rest))
        ]
        return min([width for width in widths if width], default=DAY_S)


def _check_metric(aggregate: str, name: str, raw: bool) -> None:
    metric = METRICS.get(name)
    if metric is None:
        raise QuestionRefused(f"unknown metric {name}")
    if raw:
        if aggregate or metric.raw is None:
            raise QuestionRefused(f"{name} has no {aggregate or 'value'} in raw rows")
    elif aggregate not in metric.aggregates:
        raise QuestionRefused(
            f"{name} has no {aggregate or 'value of its own'}; it has"
            f" {', '.join(metric.aggregates)}"
        )


def _check_order(order: Order, question: Question) -> None:
    if order.aggregate:
        _check_metric(order.aggregate, order.name, question.raw)
        if order.aggregate == "percentile":
            raise QuestionRefused(
                "rows cannot be ordered by a percentile of merged histograms; order by avgWeighted"
            )
    elif question.raw:
        if order.name not in DIMENSIONS:
            _check_metric("", order.name, raw=True)
    elif order.name not in DIMENSIONS and order.name != "count":
        raise QuestionRefused(f"rows cannot be ordered by {order.name}")


def _check_filter(found: Filter) -> None:
    conditions = list(conditions_of(found))
    if len(conditions) > CONDITIONS_MAX:
        raise QuestionRefused(
            f"a filter has at most {CONDITIONS_MAX} conditions, not {len(conditions)}"
        )
    for condition in conditions:
        if condition.dimension not in DIMENSIONS:
            raise QuestionRefused(f"unknown dimension {condition.dimension}")
        if condition.op not in OPERATORS and condition.op not in ("in", "notin"):
            raise QuestionRefused(f"unknown operator {condition.op}")
        if condition.dimension == ROOM and condition.op not in ("in", "notin"):
            raise QuestionRefused("rooms are filtered by `in` or `notin`")
        if len(condition.values) > VALUES_MAX and condition.dimension != ROOM:
            raise QuestionRefused(
                f"a condition has at most {VALUES_MAX} values, not {len(condition.values)}"
            )
        kind = str if condition.dimension == ROOM else int
        if any(type(value) is not kind for value in condition.values):
            raise QuestionRefused(f"{condition.dimension} is compared with {kind.__name__} values")


def conditions_of(found: Filter) -> Iterator[DimensionFilter]:
    if isinstance(found, DimensionFilter):
        yield found
    else:
        for part in found.parts:
            yield from conditions_of(part)


def _dimensions_of(found: Filter | None) -> Iterator[str]:
    if found is not None:
        yield from (condition.dimension for condition in conditions_of(found))


# -- the span --------------------------------------------------------------------------------------

NO_BEGIN_S, FOREVER_S = -(1 << 40), 1 << 32


class Span(NamedTuple):
    start_s: int
    end_s: int
    rest: Filter | None


def span_of(found: Filter | None) -> Span:
    """A minute counts for the moment at which it begins."""
    start_s, end_s, rest = NO_BEGIN_S, FOREVER_S, list[Filter]()
    for part in _required(found):
        bounds = _bounds(part) if isinstance(part, DimensionFilter) else None
        if bounds is None:
            rest.append(part)
        else:
            start_s, end_s = max(start_s, bounds[0]), min(end_s, bounds[1])
    return Span(start_s, end_s, AllOf(tuple(rest)) if rest else None)


def _required(found: Filter | None) -> Iterator[Filter]:
    if isinstance(found, AllOf):
        for part in found.parts:
            yield from _required(part)
    elif found is not None:
        yield found


def _bounds(condition: DimensionFilter) -> tuple[int, int] | None:
    """None when the times are not one range."""
    width = DIMENSIONS[condition.dimension].bucket_s if condition.dimension in DIMENSIONS else 0
    if (
        not width
        or condition.op not in ("eq", "gt", "geq", "lt", "leq")
        or len(condition.values) != 1
    ):
        return None
    value = int(condition.values[0])
    first_from = -(-value // width) * width  # the first bucket that begins at the moment or later
    first_after = (value // width + 1) * width  # the first bucket that begins after it
    if condition.op == "eq":
        return (value, value + width) if value % width == 0 else (FOREVER_S, FOREVER_S)
    return {
        "geq": (first_from, FOREVER_S),
        "gt": (first_after, FOREVER_S),
        "lt": (NO_BEGIN_S, first_from),
        "leq": (NO_BEGIN_S, first_after),
    }[condition.op]


# -- from which tables -----------------------------------------------------------------------------


class Piece(NamedTuple):
    table: str  # minutes, hours or days
    start_s: int
    end_s: int


class Known(NamedTuple):
    """Hours and days are complete below `hours_to_s` and `days_to_s`; minutes and hours are kept
    from `minutes_from_s` and `hours_from_s`.
    """

    hours_to_s: int = 0
    days_to_s: int = 0
    minutes_from_s: int = 0
    hours_from_s: int = 0


def pieces(start_s: int, end_s: int, finest_s: int, known: Known) -> list[Piece]:
    """Raises Refused if a table begins later."""
    cut: list[Piece] = []
    levels = [("days", DAY_S, known.days_to_s), ("hours", HOUR_S, known.hours_to_s)]
    _cut(start_s, end_s, [level for level in levels if finest_s % level[1] == 0], cut)
    oldest = {"minutes": known.minutes_from_s, "hours": known.hours_from_s, "days": 0}
    for piece in cut:
        if piece.start_s < oldest[piece.table]:
            raise QuestionRefused(
                f"cannot answer from {piece.table} before Unix time {oldest[piece.table]}: older"
                " ones are not kept; ask for whole hours or days, or a later time range"
            )
    return cut


def _cut(
    start_s: int, end_s: int, levels: Sequence[tuple[str, int, int]], cut: list[Piece]
) -> None:
    if start_s >= end_s:
        return
    if not levels:
        cut.append(Piece("minutes", start_s, end_s))
        return
    (table, width, whole_to_s), *finer = levels
    first = -(-start_s // width) * width
    last = min(end_s // width * width, whole_to_s // width * width)
    if first >= last:
        _cut(start_s, end_s, finer, cut)
        return
    _cut(start_s, first, finer, cut)
    cut.append(Piece(table, first, last))
    _cut(last, end_s, finer, cut)


Row = Mapping[tuple[str, str], "int | float | str | None"]
"""("", name) for dimensions, ("", "count") for minutes."""


class AnalyticsAnswer(NamedTuple):
    """`generated` minutes are made up."""

    rows: Sequence[Row]
    incomplete: int = 0
    generated: int = 0


class SlowAnswer(Exception): ...


class AnalyticsStore(Protocol):
    """Blocks; several threads may call it."""

    def answer(self, question: Question, timeout_s: float | None = None) -> AnalyticsAnswer:
        """Raises Refused (of analytics.question), SlowAnswer, StorageFailed."""

    def rooms_of(self, zone_id: str) -> Collection[str]: ...
