"""What an operator does in the hour of a sale: each action says what it does, asks once, can be undone, and is in the audit log."""

from typing import Any, NamedTuple

from starlette.responses import Response

from greenroom.control import events, rooms
from greenroom.control.api_schema import EXTENSION
from greenroom.control.config_service import ConfigChange
from greenroom.control.refusals import ApiFault, Code, Refused
from greenroom.control.time_format import plain_moment
from greenroom.dashboard.forms import Faults, FieldView, field_view, schema_field, unchanged_since
from greenroom.dashboard.live_action_table import ACTIONS, LIMIT_LABELS, LIMITS, MINUTE_MS, LiveAction
from greenroom.dashboard.live_words import LimitPlan, effect_of
from greenroom.dashboard.pages.rooms import LABELS
from greenroom.dashboard.request import PageRequest
from greenroom.dashboard.room_live import RoomLive, room_live
from greenroom.dashboard.routing import action, view
from greenroom.model.account import Role
from greenroom.model.change import AuditEntry
from greenroom.model.configuration import Entry
from greenroom.model.event import OVERRIDES, Event
from greenroom.model.room import Room

LIVE = "/zones/{zone_id}/rooms/{room_id}/live"


UNDOABLE = {
    "total_active_users",
    "new_users_per_minute",
    "queue_all",
    "queueing_method",
    "suspended",
    "session_duration",
    "disable_session_renewal",
    "pace_admissions",
    "on_unhealthy_origin",
    "refresh_max_seconds",
    "description",
    "event_end_ms",
    "written_times",
    "branding",
}
"""What can be taken back safely: not the hosts and paths of a room or the name of its cookie, by which visitors are known."""

UNDO_LABELS = {
    **LABELS,
    "suspended": "Suspended",
    "event_end_ms": "End of the event",
    "branding": "Message, or another part of the theme",
}
UNDO_MS = 30 * MINUTE_MS
UNDO_LOOKS = 20
"""Entries of the audit log that are looked at for a change that can be undone."""


def fits(one: LiveAction, live: RoomLive, entry: Entry[Room]) -> bool:
    """Whether this can be done now."""
    if one.name in ("suspend", "resume"):
        return not entry.read_only and one.offered(live) and (one.name == "suspend" or entry.record.suspended)
    return not entry.read_only and live.word != "suspended" and one.offered(live)


def ask(page: PageRequest) -> Response:
    """What the action does, and the button for it."""
    return _asked(page, _wanted(page), Faults())


def do(page: PageRequest) -> Response:
    """Does it; for the limits shows first what they would change."""
    one, entry = _wanted(page), page.room
    live = configured_live(page)
    try:
        if one.typed and page.field("typed").strip() != entry.record.name:
            raise Refused(ApiFault(Code.INVALID, f"typed: must be the name of the room, {entry.record.name}", "/typed"))
        kind, changed, plan = _planned(page, one, live)
        careful = unchanged_since(kind, changed, page.field("revision"), plan)
        if one.name == "limits" and page.field("step") != "save":
            page.services.config.trial(careful)
            return _asked(page, one, Faults(), effect_of(live, LimitPlan(*(int(page.field(name)) for name in LIMITS))))
        page.change(careful)
    except Refused as refused:
        return _asked(page, one, Faults(refused.faults), status=refused.status)
    return page.redirect(f"/zones/{page.zone.id}/rooms/{entry.id}/live", notice="done")


def configured_live(page: PageRequest) -> RoomLive:
    """The room with its figures, and with the settings of the newest configuration: gateways follow it a moment later."""
    live = room_live(page.known, page.room, page.room_state(page.room.id), page.now_ms)
    configured = room_live(page.known, page.room, None, page.now_ms)
    return live._replace(now=configured.now, word=configured.word)


def _wanted(page: PageRequest) -> LiveAction:
    one = ACTIONS.get(page.path("name"))
    if one is None:
        raise Refused(ApiFault(Code.NO_OBJECT, "there is no such action"), status=404)
    return one


def _planned(page: PageRequest, one: LiveAction, live: RoomLive) -> tuple[str, str, ConfigChange]:
    """The kind and id of what changes, and the change."""
    document = one.document(live, {**page.form, "now_ms": page.now_ms})
    event = _event_of(one, live)
    if one.plan is not None:
        return "room", page.room.id, one.plan(page.zone.id, page.room.id, page.form)
    if event is not None:
        return "event", event.id, events.change(page.zone.id, page.room.id, event.id, document, whole=False)
    if one.on_event:
        raise Refused(ApiFault(Code.NO_OBJECT, "there is no event at the moment"), status=404)
    return "room", page.room.id, rooms.change(page.zone.id, page.room.id, document, whole=False)


def _event_of(one: LiveAction, live: RoomLive) -> Event | None:
    """The event that the action changes; None: it changes the room."""
    event = live.now.event
    if event is None or one.on_event:
        return event
    return event if any(name in OVERRIDES and getattr(event, name) is not None for name in one.names) else None


def _asked(page: PageRequest, one: LiveAction, faults: Faults, effect: list[str] | None = None, status: int = 200) -> Response:
    live = configured_live(page)
    event = _event_of(one, live)
    entry: Entry[Any] | None = page.known.events.get(event.id) if event is not None else page.room
    fields = _fields(page, one, live, faults)
    return page.render(
        "live_action.html",
        status,
        action=one,
        entry=page.room,
        zone=page.zone,
        live=live,
        fields=fields,
        effect=effect,
        problems=faults.general,
        revision=page.field("revision") or (str(entry.revision) if entry else ""),
        event=event,
        available=fits(one, live, page.room),
    )


def _fields(page: PageRequest, one: LiveAction, live: RoomLive, faults: Faults) -> list[FieldView]:
    if one.name == "limits":
        values = {name: page.field(name) or getattr(live.now.room, name) for name in LIMITS}
        return [field_view(rooms.ROOM, name, values[name], faults, label=LIMIT_LABELS[name]) for name in LIMITS]
    if one.name == "message":
        told = "One line of at most 500 characters, such as: The sale lasts until midnight, and there is enough for everyone."
        value = page.field("message") if "message" in page.form else live.now.room.branding.message
        return [FieldView(name="message", label="Message", kind="text", value=value, help=told, problems=faults.take("branding"))]
    if one.name == "extend":
        told = "How much longer the event lasts."
        value = page.field("minutes") or "30"
        return [FieldView(name="minutes", label="Minutes", kind="number", value=value, help=told, problems=faults.take("minutes"))]
    if one.name == "let-in":
        value, problems = page.field("count") or "10", faults.take("count")
        return [FieldView(name="count", label="Visitors", kind="number", value=value, help="How many more, once.", problems=problems)]
    if one.typed:
        told = f"Type {page.room.record.name} to confirm. This cannot be undone."
        return [FieldView(name="typed", label="Name of the room", kind="text", value="", help=told, problems=faults.take("typed"))]
    return []


class Undo(NamedTuple):
    """The last change of this room by this person, while it can be taken back. `said`: (field, now, then)."""

    entry: AuditEntry
    revision: str
    said: list[tuple[str, Any, Any]]


def undo_of(page: PageRequest) -> Undo | None:
    """What `undo` would take back; None when another change came later, or the last one is too old or of another kind."""
    ids = {page.room.id, *(event.id for event in page.known.events.of(page.room.id))}
    last = next((one for one in page.services.config.store.audit(UNDO_LOOKS) if one.id in ids), None)
    if last is None or last.author != page.person.author or last.action != "changed" or page.now_ms - last.at_ms > UNDO_MS:
        return None
    before, after = last.before or {}, last.after or {}
    index = page.known.index_of(last.kind)
    if not before or not before.keys() <= UNDOABLE or last.id not in index:
        return None
    if not all("message" in side.get("branding", ("message",)) for side in (before, after)):  # too long for the audit log
        return None
    names = [name for name in before if name != "written_times"]
    return Undo(last, str(index[last.id].revision), [(name, after.get(name), before[name]) for name in names])


def undo(page: PageRequest) -> Response:
    """Takes the last change back, when it still is the last one."""
    found = undo_of(page)
    where = f"/zones/{page.zone.id}/rooms/{page.room.id}/live"
    if found is None or str(found.entry.number) != page.field("number"):
        raise Refused(ApiFault(Code.CHANGED_MEANWHILE, "there is nothing to undo any more: the room was changed since, or too long ago"))
    document = {name: value for name, _, value in found.said}
    if "event_end_ms" in document:
        document["event_end_time"] = plain_moment(document.pop("event_end_ms"))
    if found.entry.kind == "room":
        extensions = [name for name in document if schema_field(rooms.ROOM, name).rule.extension]
        document |= {EXTENSION: {name: document.pop(name) for name in extensions}} if extensions else {}
    make = rooms.change(page.zone.id, page.room.id, document, whole=False)
    if found.entry.kind == "event":
        make = events.change(page.zone.id, page.room.id, found.entry.id, document, whole=False)
    page.change(unchanged_since(found.entry.kind, found.entry.id, found.revision, make))
    return page.redirect(where, notice="undone")


PAGES = (
    action(f"{LIVE}/undo", undo),
    view(f"{LIVE}/do/{{name}}", ask, Role.OPERATOR),
    action(f"{LIVE}/do/{{name}}", do),
)
