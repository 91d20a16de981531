"""The table of rooms, and making, changing and removing one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from starlette.responses import Response

from greenroom.analytics.dashboard.parts import ANALYTICS_STORE
from greenroom.configuration import rooms
from greenroom.configuration.dashboard.parts import room_state
from greenroom.dashboard.pages.room_meaning import MEANS, example_of, sentences
from greenroom.dashboard.parts import DRY_RUNS, PEAKS
from greenroom.dashboard.room_live import no_estimate, room_live, urgency, wait_words
from greenroom.dashboard.sale_words import coming_words, readiness, running_words
from greenroom.decision.room_view import ROOM_STATES, RoomView
from greenroom.model.account import Role
from greenroom.model.configuration import Entry
from greenroom.model.event import Event
from greenroom.model.fields import form_fields, with_unit, written
from greenroom.model.room import LIMITS, Room
from greenroom.model.route import Route
from greenroom.model.zone import Zone
from greenroom.web.api_schema import EXTENSION, NEEDED, UNSET
from greenroom.web.api_shapes import Json
from greenroom.web.pages.forms import (
    Difference,
    Faults,
    FieldView,
    differences,
    document_of,
    field_view,
    flat,
    host_and_path,
    places,
    schema_field,
    several,
    slug_of,
    unchanged_since,
)
from greenroom.web.pages.rendering import Viewer, grouped
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import action, view
from greenroom.web.refusals import Refused

PER_PAGE = 50
SORTS = {
    "state": "Needs attention",
    "name": "Name",
    "waiting": "Most waiting",
    "active": "Most active",
}

ROOM_PATH = "/zones/{zone_id}/rooms/{room_id}"

STEPS = (
    ("where", "Where"),
    ("limits", "How many"),
    ("waiting", "How visitors wait"),
    ("more", "More settings"),
)
"""Sections of the form with their titles; the last one is folded up."""

FORM = form_fields(Room, *(section for section, _ in STEPS))
LABELS: Mapping[str, str] = {name: one.label for name, one in FORM.items()}
"""In the order of form and review."""

DEFAULTS: Json = {"total_active_users": 500, "new_users_per_minute": 500, "path": "/"}


class RoomTableRow(NamedTuple):
    entry: Entry[Room]
    zone: Zone
    live: RoomView
    coming: Event | None = None
    """The next event, unless one is on."""
    sale: str = ""
    rules: int = 0
    """Enabled bypass rules."""


def table(page: PageRequest) -> Response:
    zones = page.person.zones(page.known)
    text, zone_id, state = page.query("q").strip().lower(), page.query("zone"), page.query("state")
    sort = page.query("sort") if page.query("sort") in SORTS else next(iter(SORTS))
    rows = [row for row in _rows(page, zone_id) if _fits(row, text, state)]
    rows.sort(key=_ORDERS[sort])
    number = page.query("page", "1")
    pages = max(1, -(-len(rows) // PER_PAGE))
    at = min(
        max(1, int(number) if number.isascii() and number.isdigit() and len(number) < 7 else 1),
        pages,
    )
    return page.render(
        "rooms_table.html" if page.is_fragment else "rooms.html",
        rows=rows[(at - 1) * PER_PAGE : at * PER_PAGE],
        peaks=page.parts[PEAKS].of_all(
            page.part(ANALYTICS_STORE), frozenset(page.known.rooms), page.now_ms
        ),
        no_estimate=no_estimate,
        total=len(rows),
        at=at,
        pages=pages,
        sort=sort,
        sorts=SORTS.items(),
        asked={"q": page.query("q"), "zone": zone_id, "state": state, "sort": sort},
        zones=zones,
        own_zones=page.person.own_zones(page.known),
        states=[(row.word, row.label) for row in ROOM_STATES],
        any_rooms=any(True for _ in page.person.rooms(page.known)),
    )


def _rows(page: PageRequest, zone_id: str) -> list[RoomTableRow]:
    return [
        _row(page, entry)
        for entry in page.person.rooms(page.known)
        if not zone_id or entry.parent == zone_id
    ]


def _row(page: PageRequest, entry: Entry[Room]) -> RoomTableRow:
    known, now_ms = page.known, page.now_ms
    live = room_live(known, entry, room_state(page, entry.id), now_ms)
    coming, sale = sale_of(page, entry, live)
    rules = sum(rule.enabled for rule in known.rules_of(entry.id))
    return RoomTableRow(entry, known.zones[entry.parent].record, live, coming, sale, rules)


def _fits(row: RoomTableRow, text: str, state: str) -> bool:
    room = row.entry.record
    return (not state or row.live.word == state) and (
        not text or text in f"{room.name} {room.host}{room.path} {room.description}".lower()
    )


def _by_name(row: RoomTableRow) -> tuple[str, str]:
    return row.entry.record.name.lower(), row.entry.id


_ORDERS: Mapping[str, Any] = {
    "state": lambda row: (urgency(row.live), _by_name(row)),
    "name": _by_name,
    "waiting": lambda row: (-row.live.figures.waiting, _by_name(row)),
    "active": lambda row: (-row.live.figures.active, _by_name(row)),
}


def show(page: PageRequest) -> Response:
    entry = page.room
    if page.is_fragment:
        return page.render("room_now.html", entry=entry, **_now(page))
    shown = _values(rooms.show(page.known, entry, page.now_ms))
    state = room_state(page, entry.id)
    return page.render(
        "room.html",
        lost=state.requests.get("ticket_lost", 0) if state else 0,
        entry=entry,
        zone=page.zone,
        **_now(page),
        said=sentences(shown),
        example=example_of(page, shown),
        shown=worded(shown),
        **_settings_by_change(shown),
    )


def _now(page: PageRequest) -> Json:
    """The part of the overview that is refreshed."""
    entry, row = page.room, _row(page, page.room)
    state = room_state(page, entry.id)
    dry_runs = page.part(DRY_RUNS)
    steps = (
        readiness(
            page.known,
            entry,
            row.coming,
            state.origin if state else "",
            rehearsed=bool(dry_runs and dry_runs.done(entry.id)),
        )
        if row.coming and page.person.may(Role.OPERATOR)
        else []
    )
    return {
        "live": row.live,
        "wait_words": wait_words(row.live),
        "rules": row.rules,
        "coming": row.coming,
        "steps": steps,
        "sale": row.sale,
    }


def sale_of(page: PageRequest, entry: Entry[Room], live: RoomView) -> tuple[Event | None, str]:
    """The next event unless one is on, and words for either; empty when there is none."""
    coming = rooms.next_event(page.known, entry.id, page.now_ms)
    if coming is None and not live.now.event:
        return None, ""
    viewer = Viewer.of(page.request.headers, page.request.cookies)
    if coming is None or live.now.event:
        return None, running_words(live, page.now_ms, viewer.zone)

    def number(value: float) -> str:
        return grouped(value, viewer.language)

    return coming, coming_words(coming, entry.record, page.now_ms, viewer.zone, number)


def _values(document: Json) -> Json:
    """For forms and tables: empty instead of null."""
    found = flat(document)
    return {
        **found,
        "cookie_suffix": found["cookie_suffix"] or "",
        "additional_routes": found["additional_routes"] or [],
    }


def _settings_by_change(shown: Mapping[str, Any]) -> Json:
    """By whether they differ from their default: the page folds those that do not."""
    present = [name for name in LABELS if name in shown]
    kept = [name for name in present if _is_default(name, shown[name])]
    return {
        "changed": [(name, LABELS[name]) for name in present if name not in kept],
        "kept": [(name, LABELS[name]) for name in kept],
    }


def _is_default(name: str, value: Any) -> bool:
    one = schema_field(rooms.ROOM, name)
    return (
        one.default is not NEEDED
        and one.default is not UNSET
        and (one.shape.show(one.default) or None) == (value or None)
    )


def worded(shown: Mapping[str, Any]) -> Json:
    return {name: _worded(name, value) for name, value in shown.items()}


def _worded(name: str, value: Any) -> Any:
    if name not in FORM:
        return value
    rule = schema_field(rooms.ROOM, name).rule
    if rule.unit:
        return with_unit(value, rule.unit)
    return rule.choice_labels().get(written(value), value)


def new(page: PageRequest) -> Response:
    return _form(page, {**DEFAULTS, "host": page.own_zone.record.name}, Faults())


def create(page: PageRequest) -> Response:
    document = _document(page)
    plan = rooms.create(page.zone.id, document, page.person.sees)
    try:
        if page.field("step") == "save":
            made = page.change(plan)
            return page.redirect(f"/zones/{page.zone.id}/rooms/{made['id']}", notice="created")
        after = _values(page.config.trial(_answering(plan)))
    except Refused as refused:
        return _form(page, flat(document), Faults(refused.faults, LABELS), status=refused.status)
    return _review(page, None, after)


def edit(page: PageRequest) -> Response:
    shown = _values(rooms.show(page.known, page.room, page.now_ms))
    proposed = {name: page.query(name)[:12] for name in LIMITS if page.query(name)}
    return _form(page, shown | proposed, Faults(), entry=page.room)


def save(page: PageRequest) -> Response:
    entry = page.room
    plan = rooms.change(page.zone.id, entry.id, _document(page), whole=False, sees=page.person.sees)
    before = _values(rooms.show(page.known, entry, page.now_ms))
    try:
        if page.field("step") == "save":
            page.change(unchanged_since("room", entry.id, page.field("revision"), plan))
            return page.redirect(f"/zones/{page.zone.id}/rooms/{entry.id}", notice="saved")
        after = _values(page.config.trial(_answering(plan)))
    except Refused as refused:
        return _form(
            page,
            {**before, **flat(_document(page))},
            Faults(refused.faults, LABELS),
            entry=entry,
            status=refused.status,
        )
    return _review(page, before, after, entry)


def _answering(plan: Any) -> Any:
    def planned(known: Any, at: Any) -> Any:
        change = plan(known, at)
        record, zone_id = change.changes[0].record, change.changes[0].parent
        entry = Entry(record, zone_id, at.now_ms, at.now_ms, known.revision)
        return change._replace(answer=lambda _known: rooms.show(known, entry, at.now_ms))

    return planned


def ask_removal(page: PageRequest) -> Response:
    return page.render(
        "room_remove.html",
        entry=page.room,
        zone=page.zone,
        below=page.known.below("room", page.room.id),
        problem="",
    )


def remove(page: PageRequest) -> Response:
    entry = page.room
    if page.field("typed") != entry.record.name:
        problem = f"Type {entry.record.name} to remove the room."
        return page.render(
            "room_remove.html",
            400,
            entry=entry,
            zone=page.zone,
            below=page.known.below("room", entry.id),
            problem=problem,
        )
    page.change(rooms.delete(page.zone.id, entry.id))
    return page.redirect("/rooms", notice="removed")


def _document(page: PageRequest) -> Json:
    listed = [name for name, one in FORM.items() if one.lines]
    document = document_of(rooms.ROOM, [name for name in FORM if name not in listed], page.form)
    for name in listed:
        text = page.field(name)
        where = document[EXTENSION] if schema_field(rooms.ROOM, name).rule.extension else document
        where[name] = (
            [_route(one) for one in places(text)] if name == "additional_routes" else several(text)
        )
    host, path = host_and_path(page.field("host"))
    if host:
        document["host"] = host
    if path.rstrip("/") and document.get("path") in ("", "/", None):
        document["path"] = path
    if shown := page.field("site_name").strip():
        document[EXTENSION]["branding"] = {"site_name": shown}
        document["name"] = document.get("name") or slug_of(shown)
    return document


def _display_name(page: PageRequest, faults: Faults) -> FieldView:
    """Only for a new room; later it is a field of its waiting page."""
    return FieldView(
        name="site_name",
        label="Display name",
        kind="text",
        value=page.field("site_name"),
        help="Visitors see it. Without a name below, the room is named after it.",
        placeholder="Autumn sale",
        problems=tuple(
            text.partition("site_name: ")[2] or text for text in faults.take("branding")
        ),
    )


def _route(text: str) -> Json:
    host, path = host_and_path(text)
    return {"host": host, "path": path or "/"}


def _form(
    page: PageRequest,
    values: Mapping[str, Any],
    faults: Faults,
    entry: Entry[Room] | None = None,
    status: int = 200,
) -> Response:
    steps = [
        (step, title, [_field(name, values, faults) for name in form_fields(Room, step)])
        for step, title in STEPS
    ]
    if entry is None:
        steps[0][2].insert(0, _display_name(page, faults))
    return page.render(
        "room_form.html",
        status,
        zone=page.zone,
        entry=entry,
        steps=steps,
        problems=faults.general,
        means=MEANS,
        revision=page.field("revision") or (str(entry.revision) if entry else ""),
    )


def _field(name: str, values: Mapping[str, Any], faults: Faults) -> FieldView:
    default = next(one.default for one in rooms.ROOM.fields if one.name == name)
    value = values.get(name, default if isinstance(default, (str, int, bool)) else "")
    if not FORM[name].lines:
        return field_view(rooms.ROOM, name, value, faults)
    text = value if isinstance(value, str) else "\n".join(_line(one) for one in value or ())
    return replace(field_view(rooms.ROOM, name, text, faults), kind="textarea")


def _line(item: Any) -> str:
    if isinstance(item, Route):
        return f"{item.host}{item.path}"
    return item if isinstance(item, str) else f"{item['host']}{item['path']}"


def _review(
    page: PageRequest, before: Json | None, after: Json, entry: Entry[Room] | None = None
) -> Response:
    sent = [
        (name, value)
        for name, values in page.form.items()
        for value in values
        if name not in ("_csrf", "step")
    ]
    return page.render(
        "room_review.html",
        zone=page.zone,
        entry=entry,
        compared=_compared(before, after),
        kept=[label for _, label in _settings_by_change(after)["kept"]],
        said=sentences(after),
        said_before=sentences(before) if before else [],
        example=example_of(page, after),
        sent=sent,
        name=after["name"],
    )


def _compared(before: Json | None, after: Json) -> list[Difference]:
    shown = after["branding"]["site_name"]
    named = [Difference("Display name", None, shown)] if shown and before is None else []
    return named + differences(LABELS, worded(before) if before else None, worded(after))


PAGES = (
    view("/rooms", table, filtered=True),
    view("/zones/{zone_id}/rooms/new", new, Role.OPERATOR),
    action("/zones/{zone_id}/rooms/new", create),
    view(ROOM_PATH, show),
    view(f"{ROOM_PATH}/edit", edit, Role.OPERATOR),
    action(f"{ROOM_PATH}/edit", save),
    view(f"{ROOM_PATH}/remove", ask_removal, Role.OPERATOR),
    action(f"{ROOM_PATH}/remove", remove),
)
