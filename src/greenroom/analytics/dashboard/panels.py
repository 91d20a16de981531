"""The analytics page's panels with their series, spans of time, and queries of the store."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from greenroom.analytics.question import (
    AnalyticsAnswer,
    AnalyticsStore,
    Order,
    Question,
    QuestionRefused,
    Row,
    SlowAnswer,
    Wanted,
)
from greenroom.errors import StorageFailed
from greenroom.web.pages.spans import DAY_S, DEFAULT_SPAN, HOUR_S, ChartSpan, span_of
from greenroom.web.time_format import milliseconds

PATIENCE_S = 10.0
OPENING_PATIENCE_S = 2.0
"""The page opens on DEFAULT_SPAN when the age of a room takes longer."""


class PanelSeries(NamedTuple):
    """`kind`: bar, line, area or limit. `less` is subtracted, down to 0."""

    label: str
    wanted: Wanted
    kind: str
    tone: str
    stack: bool = False
    less: Wanted | None = None


class ChartPanel(NamedTuple):
    """`unit`: users, seconds, requests or sessions."""

    name: str
    title: str
    told: str
    unit: str
    series: tuple[PanelSeries, ...]


def _percentiles(stem: str) -> tuple[PanelSeries, ...]:
    rows = (
        ("50", "Median", "accent"),
        ("75", "p75", "blue"),
        ("95", "p95", "red"),
    )
    return tuple(
        PanelSeries(label, Wanted("percentile", f"{stem}P{percent}"), "line", tone)
        for percent, label, tone in rows
    )


CAPACITY = "capacity"
"""The panel of rooms whose capacity is not fixed."""

PANELS = (
    ChartPanel(
        "users",
        "Visitors",
        "Peak active and waiting visitors of each step, with the limit of active visitors, and the"
        " fewest free places.",
        "users",
        (
            PanelSeries("Active", Wanted("max", "totalActiveUsers"), "bar", "accent"),
            PanelSeries("Waiting", Wanted("max", "totalQueuedUsers"), "line", "yellow"),
            PanelSeries(
                "Limit of active visitors", Wanted("max", "totalActiveUsersConfig"), "limit", "red"
            ),
            PanelSeries(
                "Free places",
                Wanted("max", "totalActiveUsersConfig"),
                "line",
                "blue",
                less=Wanted("max", "totalActiveUsers"),
            ),
        ),
    ),
    ChartPanel(
        "new",
        "New visitors per minute",
        "The busiest minute of each step, with the limit. Visitors who were inside already do not"
        " count.",
        "users",
        (
            PanelSeries("Let in per minute", Wanted("max", "newUsersPerMinute"), "bar", "blue"),
            PanelSeries(
                "Limit per minute", Wanted("max", "newUsersPerMinuteConfig"), "limit", "red"
            ),
        ),
    ),
    ChartPanel(
        CAPACITY,
        "What your application takes",
        "The most active visitors that greenroom found your application to take, with the limit in"
        " force. While admissions stop, the limit is those who are inside.",
        "users",
        (
            PanelSeries("Active", Wanted("max", "totalActiveUsers"), "bar", "accent"),
            PanelSeries("Found", Wanted("max", "capacityTarget"), "line", "blue"),
            PanelSeries("Limit in force", Wanted("max", "capacityLimit"), "limit", "red"),
        ),
    ),
    ChartPanel(
        "waited",
        "Time in line",
        "How long visitors had waited when they were let in, from the first time they were seen."
        " Visitors who gave up are not in it.",
        "seconds",
        _percentiles("totalTimeWaited"),
    ),
    ChartPanel(
        "origin",
        "Time in your application",
        "From being let in to the last click, for visitors whose session ended in this step.",
        "seconds",
        _percentiles("timeOnOrigin"),
    ),
    ChartPanel(
        "gone",
        "Gave up",
        "Visitors who left: by the button on the waiting page, by ending their session, or because"
        " they stayed away for too long.",
        "users",
        (
            PanelSeries("Abandoned", Wanted("sum", "usersAbandoned"), "bar", "yellow", stack=True),
            PanelSeries(
                "Left by themselves", Wanted("sum", "usersLeft"), "bar", "blue", stack=True
            ),
        ),
    ),
    ChartPanel(
        "outcomes",
        "Requests",
        "What became of requests: held with the waiting page, or passed because the visitor was"
        " inside.",
        "requests",
        (
            PanelSeries("Passed", Wanted("sum", "requestsPassed"), "bar", "accent", stack=True),
            PanelSeries("Held", Wanted("sum", "requestsHeld"), "bar", "yellow", stack=True),
        ),
    ),
    ChartPanel(
        "sessions",
        "Sessions that ended",
        "All sessions that ended, for any reason, and those that your application ended itself.",
        "sessions",
        (
            PanelSeries("Ended", Wanted("sum", "sessionsEnded"), "bar", "blue"),
            PanelSeries(
                "Ended by your application", Wanted("sum", "sessionsRevoked"), "bar", "red"
            ),
        ),
    ),
)

ADMITTED = Wanted("sum", "newUsersPerMinute")
ENDED = Wanted("sum", "sessionsEnded")


class GlanceGroup(NamedTuple):
    """`counts`: how many visitors or sessions the figures are of, with the word after the number."""

    title: str
    figures: tuple[tuple[str, Wanted, str], ...]
    counts: tuple[tuple[Wanted, str], ...]


def _times(stem: str) -> tuple[tuple[str, Wanted, str], ...]:
    names = ((50, "Median"), (75, "p75"), (95, "p95"))
    return tuple(
        (name, Wanted("percentile", f"{stem}P{percent}"), "seconds") for percent, name in names
    )


GLANCE = (
    GlanceGroup(
        "Visitors",
        (
            ("Let in", ADMITTED, "users"),
            ("Peak active", Wanted("max", "totalActiveUsers"), "users"),
            ("Longest line", Wanted("max", "totalQueuedUsers"), "users"),
        ),
        ((Wanted("max", "newUsersPerMinute"), "peak admitted per minute"),),
    ),
    GlanceGroup(
        "Time in line",
        _times("totalTimeWaited"),
        (
            (Wanted("sum", "usersWaited"), "let in from the line"),
            (Wanted("sum", "usersAbandoned"), "abandoned"),
        ),
    ),
    GlanceGroup("Time in your application", _times("timeOnOrigin"), ((ENDED, "sessions ended"),)),
)


def glance_wanted() -> tuple[Wanted, ...]:
    return tuple(
        dict.fromkeys(
            wanted
            for group in GLANCE
            for wanted in (*(one[1] for one in group.figures), *(one[0] for one in group.counts))
        )
    )


COMPARISONS = {
    "": ("No comparison", 0),
    "before": ("Previous period", -1),
    "day": ("Previous day", DAY_S),
    "week": ("Previous week", 7 * DAY_S),
}
"""Name -> (label, seconds earlier; -1: as long as the span)."""


YOUNG_SPANS = (("6h", 6 * HOUR_S), ("1h", HOUR_S))


def earlier(span: ChartSpan, comparison: str) -> ChartSpan | None:
    """None: no comparison is wanted, or it would be before 1970."""
    shift_s = COMPARISONS.get(comparison, ("", 0))[1]
    shift_s = span.seconds if shift_s < 0 else shift_s
    if not shift_s or span.start_s < shift_s:
        return None
    return span._replace(start_s=span.start_s - shift_s, end_s=span.end_s - shift_s)


def all_wanted() -> tuple[Wanted, ...]:
    return tuple(dict.fromkeys(series.wanted for panel in PANELS for series in panel.series))


class SpanAnswer(NamedTuple):
    span: ChartSpan
    rows: Mapping[int, Row]
    whole: Row
    generated: int
    incomplete: int

    def value(self, at_s: int, wanted: Wanted) -> float | None:
        row = self.rows.get(at_s)
        found = row.get((wanted.aggregate, wanted.metric)) if row is not None else None
        return None if found is None or isinstance(found, str) else found

    def of_series(self, at_s: int, series: PanelSeries) -> float | None:
        value = self.value(at_s, series.wanted)
        taken = self.value(at_s, series.less) if series.less else None
        return value if value is None or taken is None else max(0, value - taken)

    def total(self, wanted: Wanted) -> float | None:
        found = self.whole.get((wanted.aggregate, wanted.metric))
        return None if found is None or isinstance(found, str) else found

    def steps(self) -> range:
        return range(self.span.start_s, self.span.end_s, self.span.step_s)


_GENERATED = Wanted("sum", "minutesGenerated")


def ask(store: AnalyticsStore, room_id: str, span: ChartSpan) -> SpanAnswer:
    """Raises QuestionRefused, SlowAnswer, StorageFailed."""
    rooms = frozenset({room_id})
    order = (Order("", span.dimension),)
    steps = store.answer(
        Question(
            span.start_s,
            span.end_s,
            rooms,
            (span.dimension,),
            (*all_wanted(), ADMITTED, _GENERATED),
            order=order,
        ),
        PATIENCE_S,
    )
    whole: AnalyticsAnswer = store.answer(
        Question(span.start_s, span.end_s, rooms, (), glance_wanted()),
        PATIENCE_S,
    )
    rows = {_second(row["", span.dimension]): row for row in steps.rows}
    return SpanAnswer(
        span, rows, whole.rows[0] if whole.rows else {}, steps.generated, steps.incomplete
    )


def opening_span(store: AnalyticsStore | None, room_id: str, now_s: int) -> str:
    """The shortest that holds all recorded minutes, else DEFAULT_SPAN. Blocks."""
    found = DEFAULT_SPAN
    if store is None:
        return found
    for name, seconds in YOUNG_SPANS:
        before = Question(
            0,
            span_of(now_s - seconds, now_s).start_s,
            frozenset({room_id}),
            ("waitingRoomId",),
            all_wanted()[:1],
            limit=1,
        )
        try:
            if store.answer(before, OPENING_PATIENCE_S).rows:
                return found
        except (
            QuestionRefused,
            SlowAnswer,
            StorageFailed,
        ):  # the page says what is wrong with the store
            return DEFAULT_SPAN
        found = name
    return found


def _second(text: object) -> int:
    day = isinstance(text, str) and "T" not in text
    return (milliseconds(f"{text}T00:00:00Z" if day else text) or 0) // 1000


def csv_lines(answer: SpanAnswer, times: Sequence[str]) -> Iterator[str]:
    """`times` are the moments of the steps as text."""
    names = [
        f"{panel.title}: {series.label} ({panel.unit})"
        for panel in PANELS
        for series in panel.series
    ]
    series = [one for panel in PANELS for one in panel.series]
    if answer.generated:
        names.append("generated minutes (sample data)")
        series.append(PanelSeries("", _GENERATED, "bar", ""))
    yield ",".join(["time", *(f'"{name}"' for name in names)])
    for at_s, text in zip(answer.steps(), times, strict=True):
        values = [answer.of_series(at_s, one) for one in series]
        yield ",".join(
            [
                text,
                *(
                    "" if value is None else f"{value:g}" if value % 1 else f"{value:.0f}"
                    for value in values
                ),
            ]
        )
