"""Events: the list and timeline of all rooms, and making, changing and removing one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from starlette.responses import Response

from greenroom.configuration import events
from greenroom.configuration.dashboard.event_forms import (
    EVENT_LABELS,
    TIMES,
    document_of_event,
    fields_of,
    fresh_values,
    review_lines,
    shown_values,
    values_of,
)
from greenroom.configuration.dashboard.event_page import MOMENTS, preview
from greenroom.configuration.dashboard.parts import room_state
from greenroom.configuration.state import DrawState
from greenroom.model.account import Role
from greenroom.model.configuration import Entry
from greenroom.model.event import Event
from greenroom.model.room import LIMITS, TEMPLATE_MAX, Room
from greenroom.web.pages.forms import Faults, flat, unchanged_since
from greenroom.web.pages.rendering import Viewer
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import SearchResult, action, view
from greenroom.web.refusals import Refused
from greenroom.web.time_format import milliseconds

ENTRIES_MAX = 3

FIRST_YEAR, LAST_YEAR = 1971, 9998

LAST_MS = 253_370_764_800_000
"""Later times cannot be shown in every time zone."""


class MonthEvent(NamedTuple):
    """From the start of its pre-queue, in Unix ms."""

    name: str
    room: str
    path: str
    tone: str
    opens_ms: int
    end_ms: int


class MonthDay(NamedTuple):
    at: date
    in_month: bool
    today: bool
    events: Sequence[MonthEvent]
    more: int


class EventMonth(NamedTuple):
    """Whole weeks, Monday to Sunday, in the viewer's time zone."""

    title: str
    weeks: Sequence[Sequence[MonthDay]]
    before: str
    after: str


def event_month(text: str, events: Iterable[MonthEvent], now_ms: int, zone: str) -> EventMonth:
    """`text` is like `2030-11`; anything else is this month."""
    today = day_of(now_ms, zone)
    first = _month_of(text) or today.replace(day=1)
    days = list(_weeks(first))
    by_day: dict[date, list[MonthEvent]] = {day: [] for week in days for day in week}
    for event in sorted(events, key=lambda one: (one.opens_ms, one.name)):
        day, last = (
            max(day_of(event.opens_ms, zone), days[0][0]),
            day_of(max(event.opens_ms, event.end_ms - 1), zone),
        )
        while day <= min(last, days[-1][-1]):
            by_day[day].append(event)
            day += timedelta(days=1)
    weeks = [[_shown(day, first, today, by_day[day]) for day in week] for week in days]
    return EventMonth(f"{first:%B} {first.year}", weeks, _beside(first, -1), _beside(first, 32))


def _weeks(first: date) -> Iterator[list[date]]:
    monday = first - timedelta(days=first.weekday())
    while monday <= first or monday.month == first.month:
        yield [monday + timedelta(days=number) for number in range(7)]
        monday += timedelta(days=7)


def _shown(day: date, first: date, today: date, events: list[MonthEvent]) -> MonthDay:
    return MonthDay(
        day,
        day.month == first.month,
        day == today,
        events[:ENTRIES_MAX],
        max(0, len(events) - ENTRIES_MAX),
    )


def day_of(unix_ms: int, zone: str) -> date:
    return datetime.fromtimestamp(
        min(unix_ms, LAST_MS) / 1000, UTC if zone == "UTC" else ZoneInfo(zone)
    ).date()


def _month_of(text: str) -> date | None:
    year, _, month = text.partition("-")
    if len(text) != 7 or not (year + month).isascii() or not (year + month).isdigit():
        return None
    return (
        date(int(year), int(month), 1)
        if FIRST_YEAR <= int(year) <= LAST_YEAR and 1 <= int(month) <= 12
        else None
    )


def _beside(first: date, days: int) -> str:
    other = first + timedelta(days=days)
    return f"{other:%Y-%m}" if FIRST_YEAR <= other.year <= LAST_YEAR else ""


EVENTS = "/zones/{zone_id}/rooms/{room_id}/events"
ONE = f"{EVENTS}/{{event_id}}"
DAY_MS = 86_400_000
LINE_DAYS_BEFORE, LINE_DAYS = 7, 35

ROWS_MAX = 200
LINES_MAX = 30


class EventRow(NamedTuple):
    entry: Entry[Event]
    room: Entry[Room]
    state: str
    tone: str
    draw: DrawState | None


class TimelineBar(NamedTuple):
    name: str
    left: int
    start: int
    right: int
    tone: str


def index(page: PageRequest) -> Response:
    return _list(page, list(page.person.rooms(page.known)), None)


def of_room(page: PageRequest) -> Response:
    return _list(page, [page.room], page.room)


def _list(page: PageRequest, rooms: list[Entry[Room]], only: Entry[Room] | None) -> Response:
    rows = [_row(page, entry, room) for room in rooms for entry in page.known.events.of(room.id)]
    rows.sort(key=lambda row: _order(row, page.now_ms))
    own = sorted((room for room in rooms if not room.read_only), key=lambda room: room.record.name)
    return page.render(
        "events.html",
        entry=only,
        rows=rows[:ROWS_MAX],
        total=len(rows),
        lines=_timeline(rows, page.now_ms)[:LINES_MAX],
        ticks=_ticks(page.now_ms, _zone(page)),
        now_at=_place(page.now_ms, page.now_ms),
        month=event_month(page.query("month"), map(_in_month, rows), page.now_ms, _zone(page)),
        rooms=own[:LINES_MAX],
        more_rooms=len(own[LINES_MAX:]),
    )


def _row(page: PageRequest, entry: Entry[Event], room: Entry[Room]) -> EventRow:
    event, now_ms = entry.record, page.now_ms
    state = room_state(page, room.id)
    draw = next((one for one in (state.draws if state else ()) if one.event_id == event.id), None)
    if event.suspended:
        return EventRow(entry, room, "Suspended", "gray", draw)
    if event.event_end_ms <= now_ms:
        return EventRow(entry, room, "Over", "gray", draw)
    if event.event_start_ms <= now_ms:
        return EventRow(entry, room, "Running", "green", draw)
    return (
        EventRow(entry, room, "Pre-queue", "blue", draw)
        if event.opens_ms <= now_ms
        else EventRow(entry, room, "Planned", "yellow", draw)
    )


def _in_month(row: EventRow) -> MonthEvent:
    event, room = row.entry.record, row.room
    path = f"/zones/{room.parent}/rooms/{room.id}/events/{row.entry.id}"
    return MonthEvent(
        event.name,
        room.record.name,
        "" if row.entry.read_only else path,
        row.tone,
        event.opens_ms,
        event.event_end_ms,
    )


def _order(row: EventRow, now_ms: int) -> tuple[int, int]:
    event = row.entry.record
    over = event.event_end_ms <= now_ms
    return (
        (2, -event.event_end_ms) if over else (0 if event.opens_ms <= now_ms else 1, event.opens_ms)
    )


def _place(at_ms: int, now_ms: int) -> int:
    begin = now_ms - LINE_DAYS_BEFORE * DAY_MS
    return round(1000 * (at_ms - begin) / (LINE_DAYS * DAY_MS))


def _timeline(rows: list[EventRow], now_ms: int) -> list[tuple[Entry[Room], list[TimelineBar]]]:
    found: dict[str, tuple[Entry[Room], list[TimelineBar]]] = {}
    for row in rows:
        event = row.entry.record
        left, right = (
            max(0, _place(event.opens_ms, now_ms)),
            min(1000, _place(event.event_end_ms, now_ms)),
        )
        if right <= 0 or left >= 1000:
            continue
        start = min(max(left, _place(event.event_start_ms, now_ms)), 1000)
        bar = TimelineBar(event.name, left, start, max(right, left + 4), row.tone)
        found.setdefault(row.room.id, (row.room, []))[1].append(bar)
    return list(found.values())


def _ticks(now_ms: int, zone: str) -> list[tuple[int, str]]:
    return [
        (_place(at, now_ms), f"{day_of(at, zone):%-d %b}")
        for at in (now_ms + (day - LINE_DAYS_BEFORE) * DAY_MS for day in range(0, LINE_DAYS, 7))
    ]


def _zone(page: PageRequest) -> str:
    return Viewer.of(page.request.headers, page.request.cookies).zone


def _entry(page: PageRequest) -> Entry[Event]:
    return events.event_of(page.known, page.zone.id, page.room.id, page.path("event_id"))


def new(page: PageRequest) -> Response:
    _ = page.own_room  # or it is refused
    return _form(page, fresh_values(page.now_ms, _zone(page)), Faults(), None)


def edit(page: PageRequest) -> Response:
    entry = _entry(page)
    proposed = {name: page.query(name)[:12] for name in LIMITS if page.query(name)}
    return _form(page, values_of(entry, _zone(page)) | proposed, Faults(), entry)


def create(page: PageRequest) -> Response:
    document = document_of_event(page.form, _zone(page))
    return _checked(page, document, events.create(page.zone.id, page.room.id, document), None)


def save(page: PageRequest) -> Response:
    entry = _entry(page)
    document = document_of_event(page.form, _zone(page), entry)
    plan = events.change(page.zone.id, page.room.id, entry.id, document, whole=False)
    return _checked(
        page, document, unchanged_since("event", entry.id, page.field("revision"), plan), entry
    )


def _checked(
    page: PageRequest, document: Mapping[str, Any], plan: Any, entry: Entry[Event] | None
) -> Response:
    try:
        if page.field("step") == "save":
            page.change(plan)
            return page.redirect(
                f"/zones/{page.zone.id}/rooms/{page.room.id}/events",
                notice="saved" if entry else "created",
            )
        page.config.trial(_unanswered(plan))
    except Refused as refused:
        return _form(
            page,
            shown_values(document, _zone(page)),
            Faults(refused.faults, EVENT_LABELS),
            entry,
            refused.status,
        )
    if page.field("step") == "again":
        return _form(page, shown_values(document, _zone(page)), Faults(), entry)
    return _review(page, document, entry)


def _unanswered(plan: Any) -> Any:
    """The answer would look for an event that is not written."""

    def planned(known: Any, at: Any) -> Any:
        return plan(known, at)._replace(answer=lambda _known: None)

    return planned


def _form(
    page: PageRequest,
    values: Mapping[str, Any],
    faults: Faults,
    entry: Entry[Event] | None,
    status: int = 200,
) -> Response:
    fields = fields_of(page.room.record, values, faults)
    page_faults = faults.take("custom_page_html")
    return page.render(
        "event_form.html",
        status,
        entry=page.room,
        zone=page.zone,
        event=entry,
        fields=fields,
        html=values.get("custom_page_html", ""),
        html_faults=page_faults,
        html_max=TEMPLATE_MAX,
        moments=MOMENTS,
        problems=faults.general,
        revision=page.field("revision") or (str(entry.revision) if entry else ""),
    )


def _review(page: PageRequest, document: Mapping[str, Any], entry: Entry[Event] | None) -> Response:
    sent = [
        (name, value)
        for name, values in page.form.items()
        for value in values
        if name not in ("_csrf", "step")
    ]
    before = flat(events.show(entry)) if entry else {}
    times = [
        (TIMES[name][0], milliseconds(before.get(name)), milliseconds(document[name]))
        for name in TIMES
    ]
    others = [
        one.record
        for one in page.known.events.of(page.room.id)
        if entry is None or one.id != entry.id
    ]
    return page.render(
        "event_review.html",
        entry=page.room,
        zone=page.zone,
        event=entry,
        document=document,
        times=times,
        lines=review_lines(page.known, page.room, document, page.now_ms),
        others=sorted(others, key=lambda one: one.opens_ms),
        sent=sent,
    )


def ask_removal(page: PageRequest) -> Response:
    return page.render(
        "event_remove.html", entry=page.room, zone=page.zone, event=_entry(page), now_ms=page.now_ms
    )


def remove(page: PageRequest) -> Response:
    page.change(events.delete(page.zone.id, page.room.id, _entry(page).id))
    return page.redirect(f"/zones/{page.zone.id}/rooms/{page.room.id}/events", notice="removed")


def find(page: PageRequest, text: str) -> Iterator[SearchResult]:
    for room in page.person.rooms(page.known):
        for entry in page.known.events.of(room.id):
            if text in f"{entry.record.name} {entry.record.description}".lower():
                yield SearchResult(
                    "Event",
                    entry.record.name,
                    f"/zones/{room.parent}/rooms/{room.id}/events",
                    f"in {room.record.name}",
                )


PAGES = (
    view("/events", index, filtered=True),
    view(EVENTS, of_room),
    view(f"{EVENTS}/new", new, Role.OPERATOR),
    action(f"{EVENTS}/new", create),
    action(f"{EVENTS}/preview", preview),
    view(ONE, edit, Role.OPERATOR),
    action(ONE, save),
    view(f"{ONE}/remove", ask_removal, Role.OPERATOR),
    action(f"{ONE}/remove", remove),
)
