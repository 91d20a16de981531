"""Actions for the hour of a sale: each says what it does, asks once, can be undone, and is in the
audit log.
"""

import dataclasses
from typing import Any

from starlette.responses import Response

from greenroom.admission.schedule import effective
from greenroom.configuration import events, rooms
from greenroom.configuration.dashboard.parts import room_state
from greenroom.configuration.dashboard.undo import GONE, LOOKED_AT, LastChange, last_change
from greenroom.dashboard.live_action_table import (
    ACTIONS,
    LIMIT_LABELS,
    ActionTarget,
    LiveAction,
)
from greenroom.dashboard.live_words import LimitPlan, effect_of
from greenroom.dashboard.page_forms import LANGUAGE_NAMES
from greenroom.dashboard.pages.rooms import LABELS
from greenroom.dashboard.room_live import room_live
from greenroom.decision.room_view import RoomView
from greenroom.model.account import Role
from greenroom.model.branding import LocalMessage
from greenroom.model.configuration import Entry
from greenroom.model.event import OVERRIDES, Event
from greenroom.model.operation import MESSAGE
from greenroom.model.record import replace
from greenroom.model.room import LIMITS, Room
from greenroom.web.config_service import ConfigChange
from greenroom.web.pages.forms import Faults, FieldView, field_view, unchanged_since
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import action, view
from greenroom.web.refusals import ApiFault, Code, Refused

LIVE = "/zones/{zone_id}/rooms/{room_id}/live"


UNDO_LABELS = {
    **LABELS,
    "suspended": "Suspended",
    "event_end_ms": "End of the event",
    "branding": "Message, or another part of the theme",
    "branding_messages": "Messages in other languages",
}


def fits(one: LiveAction, live: RoomView, entry: Entry[Room]) -> bool:
    if entry.read_only and (one.plan is None or (one.name == "release" and entry.record.queue_all)):
        return False  # settings of a file are changed in the file
    if one.name in ("suspend", "resume"):
        return one.offered(live) and (one.name == "suspend" or entry.record.suspended)
    return live.word != "suspended" and one.offered(live)


def ask(page: PageRequest) -> Response:
    return _asked(page, _wanted(page), Faults())


def do(page: PageRequest) -> Response:
    one, entry = _wanted(page), page.room
    live = configured_live(page)
    try:
        if one.typed and page.field("typed").strip() != entry.record.name:
            raise Refused(
                ApiFault(
                    Code.INVALID,
                    f"typed: Type {entry.record.name} to confirm.",
                    "/typed",
                )
            )
        if page.field("until_ms").isdigit() and page.now_ms >= int(page.field("until_ms")):
            raise Refused(ApiFault(Code.INVALID, "the suggestion has expired: look again"))
        kind, changed, plan = _planned(page, one, live)
        careful = unchanged_since(kind, changed, page.field("revision"), plan)
        if one.name == "limits" and page.field("step") != "save":
            page.config.trial(careful)
            return _asked(
                page,
                one,
                Faults(),
                effect_of(
                    own_limits(page, live), LimitPlan(*(int(page.field(name)) for name in LIMITS))
                ),
            )
        page.change(careful)
    except Refused as refused:
        return _asked(page, one, Faults(refused.faults, UNDO_LABELS), status=refused.status)
    return page.redirect(f"/zones/{page.zone.id}/rooms/{entry.id}/live", notice=f"did-{one.name}")


def configured_live(page: PageRequest) -> RoomView:
    """The room as configured, which gateways follow a moment later."""
    live = room_live(page.known, page.room, room_state(page, page.room.id), page.now_ms)
    configured = room_live(page.known, page.room, None, page.now_ms)
    return replace(live, now=configured.now)


def own_limits(page: PageRequest, live: RoomView) -> RoomView:
    """The room's own limits, without those of an operation that lasts a minute."""
    room = live.now.room
    if page.now_ms >= room.let_in_until_ms:
        return live
    record = dataclasses.replace(page.known.room_in_operation(page.room.id), let_in=0)
    events = page.known.events_of(record.id)
    return replace(live, now=effective(record, events, page.now_ms))


def _wanted(page: PageRequest) -> LiveAction:
    one = ACTIONS.get(page.path("name"))
    if one is None:
        raise Refused(ApiFault(Code.NO_OBJECT, "there is no such action"), status=404)
    return one


def _planned(page: PageRequest, one: LiveAction, live: RoomView) -> tuple[str, str, ConfigChange]:
    document = one.document(live, {**page.form, "now_ms": page.now_ms})
    event = _event_of(one, live)
    if one.plan is not None:
        target = ActionTarget(
            page.zone.id, page.room.id, page.person.author, page.form, live.figures.active
        )
        return "operation", page.room.id, one.plan(target)
    if event is not None:
        return (
            "event",
            event.id,
            events.change(page.zone.id, page.room.id, event.id, document, whole=False),
        )
    if one.on_event:
        raise Refused(ApiFault(Code.NO_OBJECT, "there is no event at the moment"), status=404)
    return "room", page.room.id, rooms.change(page.zone.id, page.room.id, document, whole=False)


def _event_of(one: LiveAction, live: RoomView) -> Event | None:
    """None when the action changes the room."""
    event = live.now.event
    if event is None or one.on_event:
        return event
    return (
        event
        if any(name in OVERRIDES and getattr(event, name) is not None for name in one.names)
        else None
    )


def _asked(
    page: PageRequest,
    one: LiveAction,
    faults: Faults,
    effect: list[str] | None = None,
    status: int = 200,
) -> Response:
    live = configured_live(page)
    event = _event_of(one, live)
    entry: Entry[Any] | None = page.known.events.get(event.id) if event is not None else page.room
    if one.plan is not None:
        entry = page.known.operations.get(page.room.id)
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
        own=own_limits(page, live).now.room,
        admitting=page.known.room_in_operation(page.room.id),
        now_ms=page.now_ms,
        problems=faults.general,
        revision=page.field("revision") or (str(entry.revision) if entry else ""),
        event=event,
        available=fits(one, live, page.room),
    )


MESSAGE_HELP = (
    "One line of at most 500 characters, such as: The sale lasts until midnight, and there is enough"
    " for everyone."
)


def _fields(page: PageRequest, one: LiveAction, live: RoomView, faults: Faults) -> list[FieldView]:
    def field(name: str, label: str, value: str, help: str, kind: str = "number") -> FieldView:
        problems = faults.take(name)
        return FieldView(
            name=name, label=label, kind=kind, value=value, help=help, problems=problems
        )

    match one.name:
        case "limits":
            own = own_limits(page, live).now.room
            values = {name: page.field(name) or getattr(own, name) for name in LIMITS}
            return [
                field_view(rooms.ROOM, name, values[name], faults, label=LIMIT_LABELS[name])
                for name in LIMITS
            ]
        case "message":
            return _message_fields(page, faults)
        case "extend":
            value = page.field("minutes") or "30"
            return [field("minutes", "Minutes", value, "How much longer the event lasts.")]
        case "hold":
            told = "Leave blank to hold until you let visitors in again."
            return [field("minutes", "Minutes", page.field("minutes"), told)]
        case "let-in":
            value = page.field("count") or "10"
            return [field("count", "Visitors", value, "How many more, once.")]
        case "take-over":
            state = room_state(page, page.room.id)
            current = state.capacity.sessions if state and state.capacity else ""
            value, told = page.field("count") or str(current), "At most the limit of the room."
            return [field("count", "Active visitors at once", value, told)]
    if one.typed:
        told = f"Type {page.room.record.name} to confirm. This cannot be undone."
        return [field("typed", "Name of the room", "", told, "text")]
    return []


def _message_fields(page: PageRequest, faults: Faults) -> list[FieldView]:
    found = page.known.operations.get(page.room.id)
    posted = found.record.of(MESSAGE) if found else None
    posted_text = posted.text if posted else ""
    every = FieldView(
        name="message",
        label="Message",
        kind="text",
        value=page.field("message") if "message" in page.form else posted_text,
        help=MESSAGE_HELP,
        problems=faults.take("message"),
    )
    wrong = faults.take("messages")
    texts = {it.language: it for it in page.room.record.branding_messages}
    texts |= {it.language: it for it in (posted.texts if posted else ())}
    return [every, *(_local_message(page, it, wrong) for it in texts.values())]


def _local_message(page: PageRequest, own: LocalMessage, problems: tuple[str, ...]) -> FieldView:
    """Blank unless it was sent: an urgent message must reach every language."""
    name = f"message_{own.language}"
    return FieldView(
        name=name,
        label=f"Message in {LANGUAGE_NAMES[own.language]}",
        kind="text",
        value=page.field(name),
        help=f"Shown now: “{own.text}” Leave blank to show the message above instead.",
        problems=problems if page.field(name) else (),
    )


def undo_of(page: PageRequest) -> LastChange | None:
    ids = {page.room.id, *(event.id for event in page.known.events.of(page.room.id))}
    found = last_change(page.config, page.known, page.person, of=ids, most=LOOKED_AT)
    if found is None or found.entries[0].kind == "operation":
        return found
    known = all(name in UNDO_LABELS for name, _, _ in found.said)
    return found if found.said and known else None


def undo(page: PageRequest) -> Response:
    found = undo_of(page)
    if found is None or found.number != page.field("number"):
        raise Refused(ApiFault(Code.CHANGED_MEANWHILE, GONE))
    page.change(found.plan)
    return page.redirect(f"/zones/{page.zone.id}/rooms/{page.room.id}/live", notice="undone")


PAGES = (
    action(f"{LIVE}/undo", undo),
    view(f"{LIVE}/do/{{name}}", ask, Role.OPERATOR),
    action(f"{LIVE}/do/{{name}}", do),
)
