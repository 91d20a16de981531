"""The time range of charts: in the address, so that the back button works."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from greenroom.web.pages.rendering import Viewer
from greenroom.web.pages.request import PageRequest
from greenroom.web.time_format import from_input, local_input

HOUR_S, DAY_S = 3_600, 86_400
SPAN_LEAST_S, SPAN_MOST_S = 600, 400 * DAY_S

STEPS = (
    (4 * HOUR_S, "datetimeMinute", 60),
    (DAY_S, "datetimeFiveMinutes", 300),
    (3 * DAY_S, "datetimeFifteenMinutes", 900),
    (31 * DAY_S, "datetimeHour", HOUR_S),
    (SPAN_MOST_S, "date", DAY_S),
)
"""(up to this span, dimension, its width in seconds)."""

SPANS = (
    ("1h", "1 hour", HOUR_S),
    ("6h", "6 hours", 6 * HOUR_S),
    ("24h", "24 hours", DAY_S),
    ("7d", "7 days", 7 * DAY_S),
)
MORE_SPANS = (("30d", "30 days", 30 * DAY_S),)
DEFAULT_SPAN = "24h"
LENGTHS = {name: seconds for name, _, seconds in (*SPANS, *MORE_SPANS)}

MOVES = (("Earlier", -0.5), ("Later", 0.5))


class ChartSpan(NamedTuple):
    """Unix seconds on a step; `end_s` is exclusive."""

    start_s: int
    end_s: int
    dimension: str
    step_s: int

    @property
    def seconds(self) -> int:
        return self.end_s - self.start_s

    def moved(self, share: float) -> tuple[int, int]:
        shift = int(self.seconds * share)
        return max(0, self.start_s + shift), max(1, self.end_s + shift)


def span_of(start_s: int, end_s: int, steps: Sequence[tuple[int, str, int]] = STEPS) -> ChartSpan:
    """At most as long as the last row of `steps`."""
    start_s = max(0, min(start_s, 1 << 32))
    end_s = min(max(end_s, start_s + SPAN_LEAST_S), start_s + steps[-1][0])
    _, dimension, step_s = next(row for row in steps if end_s - start_s <= row[0])
    return ChartSpan(start_s // step_s * step_s, -(-end_s // step_s) * step_s, dimension, step_s)


def asked_range(page: PageRequest) -> tuple[int, int] | None:
    """`from` and `to` in the query, in Unix seconds or the viewer's local time."""
    start_s, end_s = _second(page, "from"), _second(page, "to")
    return (
        (start_s, end_s) if start_s is not None and end_s is not None and start_s < end_s else None
    )


def asked_span(
    page: PageRequest,
    default: str = DEFAULT_SPAN,
    lengths: Mapping[str, int] = LENGTHS,
    steps: Sequence[tuple[int, str, int]] = STEPS,
) -> tuple[ChartSpan, str]:
    """The span, and its name; that is empty for one from `from` to `to`."""
    if asked := asked_range(page):
        return span_of(*asked, steps), ""
    now_s, named = page.now_ms // 1000, page.query("span")
    named = named if named in lengths else default
    return span_of(now_s - lengths[named], now_s, steps), named


def span_inputs(page: PageRequest, span: ChartSpan) -> tuple[str, str]:
    """Begin and end for form fields, in the viewer's zone."""
    zone = zone_of(page)
    begin, end = (local_input(at_s // 60 * 60_000, zone) for at_s in (span.start_s, span.end_s))
    return begin, end


def zone_of(page: PageRequest) -> str:
    return Viewer.of(page.request.headers, page.request.cookies).zone


def _second(page: PageRequest, name: str) -> int | None:
    text = page.query(name)
    if text.isascii() and text.isdigit() and len(text) < 12:
        return int(text)
    at_ms = from_input(text, zone_of(page)) if text else None
    return None if at_ms is None else at_ms // 1000
