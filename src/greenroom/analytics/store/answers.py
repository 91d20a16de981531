"""Answers a question with one statement, and one more for percentiles of merged histograms."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from greenroom.analytics import histogram
from greenroom.analytics.columns import TIMES
from greenroom.analytics.metrics import DIMENSIONS, METRICS, Share
from greenroom.analytics.question import (
    AnalyticsAnswer,
    Known,
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
from greenroom.analytics.store.sql import (
    EVERYTHING,
    Grouped,
    Raw,
    condition,
    rooms_condition,
)

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
    """Null and a weight of zero are zero, as published."""
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
