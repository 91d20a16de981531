"""What an operator does in the hour of a sale: each action says what it does, asks once, can be undone, and is in the audit log."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from starlette.responses import Response

from greenroom.control import events, rooms
from greenroom.control.api_schema import EXTENSION, Json
from greenroom.control.config_service import ConfigChange
from greenroom.control.refusals import ApiFault, Code, Refused
from greenroom.control.time_format import plain_moment
from greenroom.core.schedule import Phase
from greenroom.dashboard.forms import Faults, FieldView, field_view, read_value, schema_field, unchanged_since
from greenroom.dashboard.live_words import LimitPlan, effect_of
from greenroom.dashboard.pages.rooms import LABELS
from greenroom.dashboard.request import PageRequest
from greenroom.dashboard.room_live import RoomLive, room_live
from greenroom.dashboard.routing import action, view
from greenroom.model.account import Role
from greenroom.model.change import AuditEntry
from greenroom.model.configuration import Entry
from greenroom.model.event import EVENT_LEAST_MS, OVERRIDES, Event
from greenroom.model.room import Room

LIVE = "/zones/{zone_id}/rooms/{room_id}/live"
LIMITS = ("total_active_users", "new_users_per_minute")
LIMIT_LABELS = {"total_active_users": "Active visitors at once", "new_users_per_minute": "New visitors per minute"}
MINUTE_MS = 60_000
EXTEND_MAX = 7 * 24 * 60
"""Minutes by which an event may be extended at once."""


class LiveAction(NamedTuple):
    """One action. `document`: what changes, from the state and the form; `offered`: whether it makes sense now.

    `names` are the fields that change: in the event whose time it is if it overrides them or `on_event` says so, else in the room.
    """

    name: str
    label: str
    title: str
    text: str
    done: str
    tone: str
    offered: Callable[[RoomLive], bool]
    document: Callable[[RoomLive, Mapping[str, Any]], Json]
    names: tuple[str, ...]
    on_event: bool = False
    role: Role = Role.OPERATOR


def _limits(_live: RoomLive, form: Mapping[str, Any]) -> Json:
    return {name: read_value(int, (form.get(name) or [""])[-1], present=True) for name in LIMITS}


def _extend(live: RoomLive, form: Mapping[str, Any]) -> Json:
    minutes = read_value(int, (form.get("minutes") or [""])[-1], present=True)
    if live.now.event is None or not isinstance(minutes, int) or not 1 <= minutes <= EXTEND_MAX:
        raise Refused(ApiFault(Code.INVALID, f"minutes: must be a number from 1 to {EXTEND_MAX}", "/minutes"))
    return {"event_end_time": plain_moment(live.now.event.event_end_ms + minutes * MINUTE_MS)}


def _message(_live: RoomLive, form: Mapping[str, Any]) -> Json:
    return {EXTENSION: {"branding": {"message": (form.get("message") or [""])[-1].strip()}}}


def _end(live: RoomLive, form: Mapping[str, Any]) -> Json:
    event = live.now.event
    now_ms = int(form["now_ms"])
    if event is None or live.now.phase is not Phase.RUNNING:
        return {"suspended": True}
    return {"event_end_time": plain_moment(max(event.event_start_ms + EVENT_LEAST_MS, now_ms // 1000 * 1000))}


ACTIONS: Mapping[str, LiveAction] = {
    one.name: one
    for one in (
        LiveAction(
            "limits",
            "Change limits",
            "Change the limits",
            "Visitors who are inside stay, also when the limits are lower. Those who wait keep their places.",
            "Change the limits",
            "primary",
            lambda _: True,
            _limits,
            LIMITS,
        ),
        LiveAction(
            "hold",
            "Hold everybody",
            "Hold all new visitors",
            "From now on every new visitor waits, however much room there is. Visitors who are inside stay and go on as before.",
            "Hold all new visitors",
            "danger",
            lambda live: not live.now.room.queue_all,
            lambda _live, _form: {"queue_all": True},
            ("queue_all",),
        ),
        LiveAction(
            "release",
            "Let visitors in again",
            "Let visitors in again",
            "New visitors are let in again as the limits allow, in the order in which they wait.",
            "Let visitors in again",
            "primary",
            lambda live: live.now.room.queue_all,
            lambda _live, _form: {"queue_all": False},
            ("queue_all",),
        ),
        LiveAction(
            "reject",
            "Reject new visitors",
            "Reject new visitors",
            "From now on new visitors are told that it is closed, also those who wait now. Visitors who are inside stay.",
            "Reject new visitors",
            "danger",
            lambda live: live.now.room.queueing_method != "reject",
            lambda _live, _form: {"queueing_method": "reject"},
            ("queueing_method",),
        ),
        LiveAction(
            "accept",
            "Accept visitors again",
            "Accept visitors again",
            "New visitors are let in as the limits allow; the others wait, first come, first served.",
            "Accept visitors again",
            "primary",
            lambda live: live.now.room.queueing_method == "reject",
            lambda _live, _form: {"queueing_method": "fifo"},
            ("queueing_method",),
        ),
        LiveAction(
            "message",
            "Tell waiting visitors",
            "Tell waiting visitors something",
            "The message is shown on the waiting page, to those who wait from the next refresh on. An empty text removes it. "
            "Languages with a message of their own keep it.",
            "Show the message",
            "primary",
            lambda live: not live.now.room.custom_page_html,
            _message,
            ("branding",),
        ),
        LiveAction(
            "extend",
            "Extend the event",
            "Extend the event",
            "The settings of the event stay in force for longer.",
            "Extend the event",
            "primary",
            lambda live: live.now.event is not None and live.now.phase is Phase.RUNNING,
            _extend,
            ("event_end_time",),
            on_event=True,
        ),
        LiveAction(
            "end-event",
            "End the event",
            "End the event now",
            "The room goes back to its own settings at once. Visitors keep their places and sessions.",
            "End the event now",
            "danger",
            lambda live: live.now.event is not None,
            _end,
            ("event_end_time", "suspended"),
            on_event=True,
        ),
        LiveAction(
            "suspend",
            "Suspend the room",
            "Suspend the room",
            "Every visitor goes straight to your application from now on, also all who wait, and nothing limits them.",
            "Suspend the room",
            "danger",
            lambda live: live.word != "suspended",
            lambda _live, _form: {"suspended": True},
            ("suspended",),
        ),
        LiveAction(
            "resume",
            "Resume the room",
            "Resume the room",
            "The limits apply again. Visitors whose sessions have ended meanwhile join the line like new ones.",
            "Resume the room",
            "primary",
            lambda live: live.word == "suspended",
            lambda _live, _form: {"suspended": False},
            ("suspended",),
        ),
    )
}
"""By name, in the order in which they are shown."""

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
