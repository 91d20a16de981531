"""Spans of the analytics page, its questions, and moments in forms."""

import csv
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.analytics.dashboard.panels import (
    COMPARISONS,
    PANELS,
    ChartSpan,
    SpanAnswer,
    all_wanted,
    ask,
    csv_lines,
    earlier,
    glance_wanted,
)
from greenroom.analytics.metrics import DIMENSIONS, METRICS
from greenroom.analytics.question import AnalyticsAnswer, Question
from greenroom.model.event import Event
from greenroom.web.pages.spans import DAY_S, SPAN_LEAST_S, SPAN_MOST_S, span_of
from greenroom.web.time_format import from_input, local_input

BEGIN_S = 1_893_456_000
SECONDS = st.integers(0, 1 << 33)


@given(SECONDS, SECONDS)
def test_every_span_is_whole_steps_and_at_most_some_hundred_of_them(
    start_s: int, end_s: int
) -> None:
    span = span_of(start_s, end_s)
    assert span.start_s % span.step_s == span.end_s % span.step_s == 0
    assert 1 <= span.seconds // span.step_s <= 800
    assert SPAN_LEAST_S <= span.seconds <= SPAN_MOST_S + 2 * DAY_S
    assert DIMENSIONS[span.dimension].bucket_s == span.step_s


@given(st.integers(0, 1 << 31), st.integers(600, SPAN_MOST_S))
def test_a_span_holds_what_was_asked_for(start_s: int, length_s: int) -> None:
    span = span_of(start_s, start_s + length_s)
    assert span.start_s <= start_s
    assert span.end_s >= start_s + length_s


@given(st.integers(0, 1 << 31), st.integers(600, 40 * DAY_S), st.sampled_from(sorted(COMPARISONS)))
def test_an_earlier_span_is_as_long(start_s: int, length_s: int, comparison: str) -> None:
    span = span_of(start_s, start_s + length_s)
    before = earlier(span, comparison)
    assert before is None or (before.seconds == span.seconds and 0 <= before.start_s < span.start_s)
    assert (before is None) or comparison != ""


def test_every_panel_asks_for_metrics_that_there_are() -> None:
    for aggregate, metric in (*all_wanted(), *glance_wanted()):
        assert aggregate in METRICS[metric].aggregates, metric
    assert len({panel.name for panel in PANELS}) == len(PANELS)


class KnownStore:
    """Answers every metric with the number of the step."""

    def __init__(self) -> None:
        self.asked: list[Question] = []

    def answer(self, question: Question, timeout_s: float | None = None) -> AnalyticsAnswer:
        del timeout_s
        self.asked.append(question)
        rows = []
        for index in range(2 if question.dimensions else 1):
            times = {("", name): self._text(question, index) for name in question.dimensions}
            rows.append({**times, **dict.fromkeys(question.metrics, index + 0.5)})
        return AnalyticsAnswer(rows, generated=3)

    def _text(self, question: Question, index: int) -> str:
        bucket_s = DIMENSIONS[question.dimensions[0]].bucket_s
        at = datetime.fromtimestamp(question.start_s + index * bucket_s, UTC)
        return f"{at:%Y-%m-%d}" if bucket_s == DAY_S else f"{at:%Y-%m-%dT%H:%M:%SZ}"

    def rooms_of(self, zone_id: str) -> list[str]:
        del zone_id
        return []


@pytest.mark.parametrize("length_s", [3_600, DAY_S, 2 * DAY_S, 20 * DAY_S, 100 * DAY_S])
def test_values_stand_at_their_step_whatever_the_width(length_s: int) -> None:
    store = KnownStore()
    answer = ask(store, "r", span_of(BEGIN_S, BEGIN_S + length_s))
    wanted = PANELS[0].series[0].wanted
    first, second, third = list(answer.steps())[:3]
    assert [answer.value(at_s, wanted) for at_s in (first, second, third)] == [0.5, 1.5, None]
    assert answer.generated == 3
    assert all(question.rooms == frozenset({"r"}) for question in store.asked)


def test_free_places_are_the_limit_less_the_peak_and_never_below_none() -> None:
    free = next(one for one in PANELS[0].series if one.label == "Free places")
    assert free.less is not None
    figures = {BEGIN_S: (10.0, 4.0), BEGIN_S + 60: (10.0, 36.0)}
    rows = {
        at_s: {tuple(free.wanted): limit, tuple(free.less): active}
        for at_s, (limit, active) in figures.items()
    }
    span = ChartSpan(BEGIN_S, BEGIN_S + 180, "datetimeMinute", 60)
    answer = SpanAnswer(span, rows, {}, 0, 0)
    assert [answer.of_series(at_s, free) for at_s in answer.steps()] == [6, 0, None]


def test_csv_has_one_line_for_each_step_and_one_column_for_each_series() -> None:
    answer = ask(KnownStore(), "r", ChartSpan(BEGIN_S, BEGIN_S + 600, "datetimeMinute", 60))
    rows = list(csv.reader(csv_lines(answer, [str(at_s) for at_s in answer.steps()])))
    assert len(rows) == 11
    assert {len(row) for row in rows} == {2 + sum(len(panel.series) for panel in PANELS)}
    assert rows[0][-1] == "generated minutes (sample data)"
    real = csv.reader(
        csv_lines(answer._replace(generated=0), [str(at_s) for at_s in answer.steps()])
    )
    assert {len(row) for row in real} == {1 + sum(len(panel.series) for panel in PANELS)}
    assert rows[1][:2] == [str(BEGIN_S), "0.5"]
    assert rows[5][1] == ""


@given(
    st.integers(0, 4_000_000_000).flatmap(
        lambda at_s: st.sampled_from([at_s // 60 * 60_000, at_s * 1000, at_s * 1000 + at_s % 1000])
    ),
    st.sampled_from(["UTC", "Asia/Kolkata", "Asia/Tokyo"]),
)
def test_a_moment_survives_the_form(at_ms: int, zone: str) -> None:
    assert from_input(local_input(at_ms, zone), zone) == at_ms
    assert len(local_input(at_ms // 60_000 * 60_000, zone)) == len("2030-11-29T18:00"), (
        "seconds are shown where there are some"
    )


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "2030-13-01T00:00", "1960-01-01T00:00", "9999-12-31T23:59:59.9+99:00"]
)
def test_a_text_that_is_no_moment_is_none(text: str) -> None:
    assert from_input(text, "Europe/Berlin") is None


def test_times_of_events_are_named_as_in_the_form() -> None:
    from greenroom.configuration.dashboard.event_forms import OVERRIDES, TIMES
    from greenroom.model.event import OVERRIDES as OVERRIDABLE

    assert set(OVERRIDES) <= set(OVERRIDABLE)
    assert {name.replace("_time", "_ms") for name in TIMES} <= set(Event.__dataclass_fields__)
