"""The SQL of a question: whole-number arithmetic that DuckDB and ClickHouse both read. No client
text gets in here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from greenroom.analytics.columns import KEPT, TIMES
from greenroom.analytics.metrics import DIMENSIONS, METRICS, ROOM, Share
from greenroom.analytics.question import (
    AllOf,
    DimensionFilter,
    Filter,
    Order,
    Piece,
    Question,
    QuestionRefused,
)

Numbers = Mapping[str, int]

NOTHING, EVERYTHING = "1 = 0", "1 = 1"

_SIGNS = {"eq": "=", "neq": "<>", "gt": ">", "geq": ">=", "lt": "<", "leq": "<="}


def bucket(name: str) -> str:
    width = DIMENSIONS[name].bucket_s
    return f"(t - t % {width})" if width else "room"


def rooms_condition(numbers: Iterable[int]) -> str:
    listed = ", ".join(map(str, sorted(numbers)))
    return f"room IN ({listed})" if listed else NOTHING


def condition(found: Filter, numbers: Numbers) -> str:
    """An unknown room matches nothing."""
    if isinstance(found, DimensionFilter):
        return _comparison(found, numbers)
    parts = [f"({condition(part, numbers)})" for part in found.parts]
    if isinstance(found, AllOf):
        return " AND ".join(parts) or EVERYTHING
    return " OR ".join(parts) or EVERYTHING


def _comparison(found: DimensionFilter, numbers: Numbers) -> str:
    if found.dimension == ROOM:
        text = rooms_condition(numbers[str(value)] for value in found.values if value in numbers)
        return text if found.op == "in" else f"NOT ({text})"
    values = [int(value) for value in found.values]
    if found.op in _SIGNS:
        return f"{bucket(found.dimension)} {_SIGNS[found.op]} {values[0]}"
    if not values:
        return NOTHING if found.op == "in" else EVERYTHING
    sign = "IN" if found.op == "in" else "NOT IN"
    return f"{bucket(found.dimension)} {sign} ({', '.join(map(str, values))})"


# -- pieces ----------------------------------------------------------------------------------------


def pieces_text(pieces: Sequence[Piece], columns: Iterable[str], where: str) -> str:
    names = list(columns)
    return " UNION ALL ".join(_piece(piece, names, where) for piece in pieces)


def _piece(piece: Piece, columns: Sequence[str], where: str) -> str:
    shown = [
        name if piece.table != "minutes" or name in TIMES else f"{KEPT[name].of_minute} AS {name}"
        for name in columns
    ]
    # Inside, so that an expression named like the column it is made of does not hide it from the
    # condition.
    return (
        f"SELECT {', '.join(['t', 'room', *shown])} FROM {piece.table} "  # noqa: S608 - names from tables, numbers
        f"WHERE t >= {piece.start_s} AND t < {piece.end_s} AND {where}"
    )


class Grouped:
    def __init__(self, question: Question) -> None:
        self.question = question
        self.columns = list(dict.fromkeys(self._needed()))

    def _needed(self) -> Iterator[str]:
        yield from ("minutes", "incomplete", "generated")
        for aggregate, name in self.question.metrics:
            if aggregate != "percentile":
                yield from _columns(METRICS[name].aggregates[aggregate])
        for order in self.question.order:
            if order.aggregate:
                yield from _columns(METRICS[order.name].aggregates[order.aggregate])

    def text(self, pieces: Sequence[Piece], where: str) -> str:
        question = self.question
        keys = [bucket(name) for name in question.dimensions]
        merged = [f"{KEPT[name].merge}({name})" for name in self.columns]
        by_room = any(order.name == ROOM and not order.aggregate for order in question.order)
        joined = " JOIN rooms AS named ON named.number = pieces.room" if by_room else ""
        orders = [*map(_order, question.order), *keys]
        return (
            f"SELECT {', '.join([*keys, *merged])} "  # noqa: S608
            f"FROM ({pieces_text(pieces, self.columns, where)}) AS pieces{joined}"
            + (f" GROUP BY {', '.join(keys)}" if keys else " HAVING count(*) > 0")
            + (f" ORDER BY {', '.join(orders)}" if orders else "")
            + f" LIMIT {question.limit}"
        )

    def histograms_text(
        self, pieces: Sequence[Piece], where: str, names: Sequence[str], limit: int
    ) -> str:
        """At most `limit` rows."""
        keys = [bucket(name) for name in self.question.dimensions]
        filled = " OR ".join(f"{name}_count > 0" for name in names)
        rows = pieces_text(pieces, names, f"{where} AND ({filled})")
        return f"SELECT {', '.join([*keys, *names])} FROM ({rows}) AS pieces LIMIT {limit}"  # noqa: S608


def _columns(share: Share) -> Iterator[str]:
    yield share.column
    if share.over:
        yield share.over


def _order(order: Order) -> str:
    down = " DESC" if order.descending else ""
    if order.aggregate:
        share = METRICS[order.name].aggregates[order.aggregate]
        value = f"{KEPT[share.column].merge}({share.column})"
        if share.over:
            value = (
                f"CASE WHEN sum({share.over}) > 0 "
                f"THEN CAST({value} AS DOUBLE) / sum({share.over}) ELSE 0 END"
            )
        return f"{value}{down}"
    if order.name == "count":
        return f"sum(minutes){down}"
    inner = "named.id" if order.name == ROOM else bucket(order.name)
    return f"{'max' if order.descending else 'min'}({inner}){down}"


class Raw:
    def __init__(self, question: Question) -> None:
        self.question = question
        self.columns = list(
            dict.fromkeys(
                ["incomplete", "generated", *(_raw(name).column for _, name in question.metrics)]
            )
        )

    def text(self, pieces: Sequence[Piece], where: str) -> str:
        question = self.question
        spans = (
            " OR ".join(f"(t >= {piece.start_s} AND t < {piece.end_s})" for piece in pieces)
            or NOTHING
        )
        by_room = any(order.name == ROOM for order in question.order)
        joined = " JOIN rooms AS named ON named.number = minutes.room" if by_room else ""
        orders = [*map(self._order, question.order), "t", "room"]
        return (
            f"SELECT {', '.join(['t', 'room', *self.columns])} "  # noqa: S608
            f"FROM minutes{joined} WHERE ({spans}) AND {where} "
            f"ORDER BY {', '.join(orders)} LIMIT {question.limit}"
        )

    def _order(self, order: Order) -> str:
        down = " DESC" if order.descending else ""
        if order.name == ROOM:
            return f"named.id{down}"
        return (
            f"{bucket(order.name) if order.name in DIMENSIONS else _raw(order.name).column}{down}"
        )


def _raw(name: str) -> Share:
    share = METRICS[name].raw
    if share is None:
        raise QuestionRefused(f"{name} has no value in raw rows")
    return share
