"""Answers a question with one statement, and one more for percentiles of merged histograms."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from greenroom.analytics import histogram
from greenroom.analytics.columns import KEPT, TIMES
from greenroom.analytics.metrics import DIMENSIONS, METRICS, ROOM, Share
from greenroom.analytics.question import (
    AllOf,
    AnalyticsAnswer,
    DimensionFilter,
    Filter,
    Known,
    Order,
    Piece,
    Question,
    QuestionRefused,
    Row,
    SlowAnswer,
    Wanted,
    pieces,
    span_of,
)
from greenroom.analytics.rollup import PERCENTS
from greenroom.analytics.store.engine import Engine, Values

# The SQL of a question: whole-number arithmetic that DuckDB and ClickHouse both read. No client
# text gets in here.

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


HISTOGRAMS_MAX = 50_000
"""About a second; larger questions are refused."""


def answer(
    engine: Engine,
    question: Question,
    numbers: Mapping[str, int],
    known: Known,
    timeout_s: float | None,
) -> AnalyticsAnswer:
    """Raises Refused, SlowAnswer, StorageFailed."""
    span = span_of(question.filter)
    start_s, end_s = max(question.start_s, span.start_s), min(question.end_s, span.end_s)
    needed = pieces(start_s, end_s, question.finest_s, known)
    where = _where(question, span.rest, numbers)
    if not needed:
        return AnalyticsAnswer([])
    until = None if timeout_s is None else time.monotonic() + timeout_s
    ids = {number: room for room, number in numbers.items()}
    if question.raw:
        raw = Raw(question)
        return _raw_rows(raw, engine.select(raw.text(needed, where), timeout_s), ids)
    grouped = Grouped(question)
    rows = engine.select(grouped.text(needed, where), timeout_s)
    wanted = [found for found in question.metrics if found.aggregate == "percentile"]
    merged: dict[Values, dict[str, histogram.HistogramCounts]] = {}
    if wanted and rows:
        names = [name for name in TIMES if any(_time_of(found) == name for found in wanted)]
        text = grouped.histograms_text(needed, where, names, HISTOGRAMS_MAX + 1)
        merged = _merged(engine.select(text, _left(until)), len(question.dimensions), names, until)
    return _grouped_rows(grouped, rows, merged, ids)


def _where(question: Question, rest: Any, numbers: Mapping[str, int]) -> str:
    conditions = [] if rest is None else [f"({condition(rest, numbers)})"]
    if question.rooms is not None:
        conditions.append(
            rooms_condition(numbers[room] for room in question.rooms if room in numbers)
        )
    return " AND ".join(conditions) or EVERYTHING


def _left(until: float | None) -> float | None:
    if until is None:
        return None
    left = until - time.monotonic()
    if left <= 0:
        raise SlowAnswer
    return left


def _merged(
    rows: Sequence[Values], keys: int, names: Sequence[str], until: float | None
) -> dict[Values, dict[str, histogram.HistogramCounts]]:
    if len(rows) > HISTOGRAMS_MAX:
        raise QuestionRefused(
            "the percentiles of so many rooms and minutes cannot be merged at once: try a reduced"
            " time period or wider buckets"
        )
    sums: dict[Values, dict[str, histogram.HistogramCounts]] = {}
    for place, row in enumerate(rows):
        into = sums.setdefault(row[:keys], {name: {} for name in names})
        for name, data in zip(names, row[keys:], strict=True):
            histogram.add(into[name], histogram.unpacked(bytes(data)))
        if place % 1_000 == 0:
            _left(until)
    return sums


def _grouped_rows(
    grouped: Grouped, rows: Sequence[Values], merged: Mapping[Values, Any], ids: Mapping[int, str]
) -> AnalyticsAnswer:
    question, keys = grouped.question, len(grouped.question.dimensions)
    answers: list[Row] = []
    incomplete = generated = 0
    shares = [
        (found, METRICS[found.metric].aggregates[found.aggregate]) for found in question.metrics
    ]
    for row in rows:
        values = dict(zip(grouped.columns, row[keys:], strict=True))
        shown: dict[tuple[str, str], Any] = {
            ("", name): _dimension(name, value, ids)
            for name, value in zip(question.dimensions, row, strict=False)
        }
        shown["", "count"] = int(values["minutes"])
        for found, share in shares:
            if found.aggregate == "percentile":
                shown[found] = _percentile(share, merged.get(row[:keys], {}))
            else:
                shown[found] = _value(share, values)
        answers.append(shown)
        incomplete += int(values["incomplete"])
        generated += int(values["generated"])
    return AnalyticsAnswer(answers, incomplete, generated)


def _raw_rows(raw: Raw, rows: Sequence[Values], ids: Mapping[int, str]) -> AnalyticsAnswer:
    answers: list[Row] = []
    incomplete = generated = 0
    for t, room, *rest in rows:
        values = dict(zip(raw.columns, rest, strict=True))
        shown: dict[tuple[str, str], Any] = {
            ("", name): _dimension(
                name, t - t % DIMENSIONS[name].bucket_s if DIMENSIONS[name].bucket_s else room, ids
            )
            for name in raw.question.dimensions
        }
        for found in raw.question.metrics:
            share = METRICS[found.metric].raw
            shown[found] = _value(share, values) if share else None
        answers.append(shown)
        incomplete += int(values["incomplete"])
        generated += int(values["generated"])
    return AnalyticsAnswer(answers, incomplete, generated)


def _dimension(name: str, value: int, ids: Mapping[int, str]) -> str:
    found = DIMENSIONS[name]
    if not found.bucket_s:
        return ids.get(value, "")
    text = datetime.fromtimestamp(value, UTC).isoformat()  # strftime takes six times as long
    return text[: len("2026-11-22")] if found.kind == "Date" else text.removesuffix("+00:00") + "Z"


def _value(share: Share, values: Mapping[str, Any]) -> int | float:
    """Null, or a weight of zero, counts as zero, as published."""
    number = values[share.column] or 0
    if share.over:
        over = values[share.over] or 0
        number = number / over if over else 0
    return int(number) if share.digits is None else round(number / share.per, share.digits)


def _time_of(found: Wanted) -> str:
    return METRICS[found.metric].aggregates["percentile"].column.rpartition("_p")[0]


def _percentile(share: Share, merged: Mapping[str, histogram.HistogramCounts]) -> float:
    name, _, percent = share.column.rpartition("_p")
    place = PERCENTS.index(int(percent))
    return round(
        histogram.percentiles(merged.get(name, {}), PERCENTS)[place] / share.per, share.digits
    )
