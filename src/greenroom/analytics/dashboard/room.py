"""A room's analytics over one span of time, kept in the address for the back button."""

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from starlette.responses import Response

from greenroom.analytics.advice import (
    Advice,
    AdviceEvent,
    AdviceFacts,
    AdviceStep,
    advise,
    cause,
)
from greenroom.analytics.dashboard.panels import (
    CAPACITY,
    COMPARISONS,
    ENDED,
    GLANCE,
    PANELS,
    ChartPanel,
    SpanAnswer,
    ask,
    csv_lines,
    earlier,
    opening_span,
)
from greenroom.analytics.dashboard.parts import ANALYTICS_STORE
from greenroom.analytics.question import QuestionRefused, SlowAnswer, Wanted
from greenroom.errors import StorageFailed
from greenroom.model.account import Role
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import view
from greenroom.web.pages.spans import (
    LENGTHS,
    MORE_SPANS,
    MOVES,
    SPANS,
    ChartSpan,
    asked_range,
    asked_span,
    span_inputs,
    zone_of,
)
from greenroom.web.refusals import ApiFault, Code, Refused
from greenroom.web.time_format import plain_moment

ANALYTICS = "/zones/{zone_id}/rooms/{room_id}/analytics"
REMOVED_MAX = 200
"""A room has rules too."""

EVENTS_MAX = 50


class EventMark(NamedTuple):
    """`removed`: only in the audit log."""

    name: str
    opens_ms: int
    start_ms: int
    end_ms: int
    removed: bool


def show(page: PageRequest) -> Response:
    span, named = _asked_span(page, opening=True)
    compare = page.query("compare") if page.query("compare") in COMPARISONS else ""
    answer, before, problem = _answers(page, span, compare)
    fixed = page.room.record.capacity == "fixed"
    panels = [panel for panel in PANELS if not (fixed and panel.name == CAPACITY)]
    marks = list(_marks(page))
    shown = [
        mark
        for mark in marks
        if mark.end_ms > span.start_s * 1000 and mark.opens_ms < span.end_s * 1000
    ]
    return page.render(
        "analytics.html",
        entry=page.room,
        zone=page.zone,
        span=span,
        named=named,
        spans=(*SPANS, *MORE_SPANS),
        causes_of=CAUSES,
        compare=compare,
        comparisons=COMPARISONS,
        panels=panels,
        answer=answer,
        before=before,
        problem=problem,
        glance=_glance(answer, before),
        chart_json=json.dumps(_chart_data(answer, before, shown, panels)) if answer else "",
        marks=marks,
        inputs=span_inputs(page, span),
        steps=[(name, span.moved(share)) for name, share in MOVES],
        advice=[(one, _setting_path(page, one)) for one in _advice(page, answer, marks)],
        causes=_causes(answer) if answer else [],
        days=_days(page),
    )


def _advice(
    page: PageRequest, answer: SpanAnswer | None, marks: Iterable[EventMark]
) -> list[Advice]:
    if answer is None:
        return []
    room = page.room.record
    visit = tuple(
        answer.total(Wanted("percentile", f"timeOnOriginP{percent}")) for percent in (50, 95)
    )
    return advise(
        AdviceFacts(
            advice_steps(answer),
            answer.span.step_s,
            room.session_duration * 60,
            not room.disable_session_renewal,
            answer.total(ENDED) or 0,
            None if visit[0] is None or visit[1] is None else (visit[0], visit[1]),
            [
                AdviceEvent(mark.name, mark.opens_ms // 1000, mark.start_ms // 1000)
                for mark in marks
                if mark.opens_ms < mark.start_ms
            ],
        )
    )


def advice_steps(answer: SpanAnswer) -> list[AdviceStep]:
    def figure(at_s: int, aggregate: str, metric: str) -> float:
        return answer.value(at_s, Wanted(aggregate, metric)) or 0

    return [
        AdviceStep(
            at_s,
            figure(at_s, "max", "totalActiveUsers"),
            figure(at_s, "max", "totalActiveUsersConfig"),
            figure(at_s, "max", "newUsersPerMinute"),
            figure(at_s, "max", "newUsersPerMinuteConfig"),
            figure(at_s, "sum", "newUsersPerMinute"),
            figure(at_s, "max", "totalQueuedUsers"),
        )
        for at_s in answer.steps()
        if at_s in answer.rows
    ]


def _setting_path(page: PageRequest, advice: Advice) -> str:
    """Empty when this person cannot change it."""
    if page.room.read_only or not page.person.may(Role.OPERATOR):
        return ""
    below = "/events" if advice.setting == "events" else "/edit"
    fragment = "" if advice.setting == "events" else f"#f-{advice.setting}"
    return page.url(f"/zones/{page.zone.id}/rooms/{page.room.id}{below}") + fragment


CAUSES = {
    "active": "Active visitors",
    "rate": "New visitors per minute",
    "both": "Both limits",
    "hold": "A hold, an event or the site's health",
}


class CausePart(NamedTuple):
    """Places in thousandths of the span."""

    cause: str
    left: float
    width: float


def _causes(answer: SpanAnswer) -> list[CausePart]:
    """Adjacent steps with the same cause are merged."""
    span, found = answer.span, list[CausePart]()
    for step in advice_steps(answer):
        why = cause(step)
        if not why:
            continue
        left = 1000 * (step.start_s - span.start_s) / span.seconds
        width = 1000 * span.step_s / span.seconds
        last = found[-1] if found else None
        if last and last.cause == why and abs(last.left + last.width - left) < width / 2:
            found[-1] = last._replace(width=left + width - last.left)
        else:
            found.append(CausePart(why, left, width))
    return found


def _days(page: PageRequest) -> list[tuple[str, int, int]]:
    """Today and yesterday in the viewer's zone."""
    zone = ZoneInfo(zone_of(page))
    midnight = datetime.fromtimestamp(page.now_ms / 1000, zone).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    today_s = int(midnight.timestamp())
    before_s = int((midnight - timedelta(days=1)).timestamp())
    now_s = max(page.now_ms // 1000, today_s + 600)
    return [("Today", today_s, now_s), ("Yesterday", before_s, today_s)]


def download(page: PageRequest) -> Response:
    span, name = _asked_span(page)[0], page.room.record.name
    if page.part(ANALYTICS_STORE) is None:
        raise Refused(
            ApiFault(Code.NO_OBJECT, "analytics are switched off, or another process keeps them")
        )
    answer, _, problem = _answers(page, span, "")
    if answer is None:
        return Response(f"{problem}\n", 503, media_type="text/plain")
    lines = csv_lines(answer, [plain_moment(at_s * 1000) for at_s in answer.steps()])
    file = f"{name}-{plain_moment(span.start_s * 1000)}.csv".replace(":", "")
    headers = {"Content-Disposition": f'attachment; filename="{file}"'}
    return Response("\r\n".join(lines) + "\r\n", media_type="text/csv", headers=headers)


def _asked_span(page: PageRequest, *, opening: bool = False) -> tuple[ChartSpan, str]:
    """`opening`: without a span, what fits the age of the room."""
    if not opening or asked_range(page) or page.query("span") in LENGTHS:
        return asked_span(page)
    named = opening_span(page.part(ANALYTICS_STORE), page.room.id, page.now_ms // 1000)
    return asked_span(page, default=named)


def _answers(
    page: PageRequest, span: ChartSpan, compare: str
) -> tuple[SpanAnswer | None, SpanAnswer | None, str]:
    store, other = page.part(ANALYTICS_STORE), earlier(span, compare)
    if store is None:
        return None, None, "Analytics are switched off, or another process keeps them."
    try:
        return (
            ask(store, page.room.id, span),
            ask(store, page.room.id, other) if other else None,
            "",
        )
    except QuestionRefused as refused:
        return None, None, f"This cannot be answered: {refused}."
    except SlowAnswer:
        return None, None, "The answer took too long. Choose a shorter span."
    except StorageFailed as failed:
        return None, None, f"Analytics cannot be read at the moment: {failed}."


class GlanceFigure(NamedTuple):
    label: str
    unit: str
    value: float | None
    before: float | None

    @property
    def change(self) -> str:
        """Per cent, or empty when there is nothing to compare."""
        if self.value is None or not self.before:
            return ""
        share = round(100 * (self.value - self.before) / self.before)
        return f"{share:+d} %" if share else "unchanged"


class GlanceShown(NamedTuple):
    title: str
    figures: list[GlanceFigure]
    counts: list[tuple[float, str]]


def _glance(answer: SpanAnswer | None, before: SpanAnswer | None) -> list[GlanceShown]:
    if answer is None:
        return []

    def figure(label: str, wanted: Wanted, unit: str) -> GlanceFigure:
        earlier = before.total(wanted) if before else None
        return GlanceFigure(label, unit, answer.total(wanted), earlier)

    return [
        GlanceShown(
            group.title,
            [figure(*one) for one in group.figures],
            [(answer.total(wanted) or 0, word) for wanted, word in group.counts],
        )
        for group in GLANCE
    ]


def _chart_data(
    answer: SpanAnswer,
    before: SpanAnswer | None,
    marks: Iterable[EventMark],
    panels: Iterable[ChartPanel],
) -> dict[str, Any]:
    return {
        "step": answer.span.step_s * 1000,
        "from": answer.span.start_s * 1000,
        "to": answer.span.end_s * 1000,
        "marks": [[mark.name, mark.opens_ms, mark.start_ms, mark.end_ms] for mark in marks],
        "panels": {
            panel.name: {
                "unit": panel.unit,
                "series": [
                    {
                        "label": series.label,
                        "kind": series.kind,
                        "tone": series.tone,
                        "stack": series.stack,
                        "values": [answer.of_series(at_s, series) for at_s in answer.steps()],
                        "before": [before.of_series(at_s, series) for at_s in before.steps()]
                        if before and not index
                        else None,
                    }
                    for index, series in enumerate(panel.series)
                ],
            }
            for panel in panels
        },
    }


def _marks(page: PageRequest) -> Iterable[EventMark]:
    found = {}
    for entry in page.known.events.of(page.room.id):
        event = entry.record
        if not event.suspended:
            found[event.id] = EventMark(
                event.name, event.opens_ms, event.event_start_ms, event.event_end_ms, removed=False
            )
    for one in page.config.store.audit(REMOVED_MAX, removed_from=page.room.id):
        if one.kind == "event" and one.before and one.id not in found:
            start_ms, end_ms = one.before.get("event_start_ms"), one.before.get("event_end_ms")
            if isinstance(start_ms, int) and isinstance(end_ms, int) and start_ms < one.at_ms:
                opens_ms = one.before.get("prequeue_start_ms") or start_ms
                found[one.id] = EventMark(
                    one.name, opens_ms, start_ms, min(end_ms, one.at_ms), removed=True
                )
    return sorted(found.values(), key=lambda mark: -mark.start_ms)[:EVENTS_MAX]


PAGES = (view(ANALYTICS, show), view(f"{ANALYTICS}/csv", download))
