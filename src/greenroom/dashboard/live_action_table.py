from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from greenroom.admission.schedule import Phase
from greenroom.configuration import operations, rooms
from greenroom.decision.room_view import RoomView
from greenroom.model.account import Role
from greenroom.model.branding import LocalMessage
from greenroom.model.change import Change
from greenroom.model.configuration import Configuration
from greenroom.model.event import EVENT_LEAST_MS
from greenroom.model.operation import ADMIT, END_SESSIONS, HOLD, MESSAGE, TAKE_OVER
from greenroom.model.room import LANGUAGES, LIMITS
from greenroom.web.api_shapes import Json
from greenroom.web.config_service import ChangeContext, ConfigChange, PlannedChange
from greenroom.web.pages.forms import read_value
from greenroom.web.refusals import ApiFault, Code, Refused
from greenroom.web.time_format import plain_moment

LIMIT_LABELS = {
    "total_active_users": "Active visitors at once",
    "new_users_per_minute": "New visitors per minute",
}
MINUTE_MS = 60_000
EXTEND_MAX = 7 * 24 * 60


class ActionTarget(NamedTuple):
    zone_id: str
    room_id: str
    author: str
    form: Mapping[str, Any]
    active: int = 0

    def text(self, name: str) -> str:
        return str((self.form.get(name) or [""])[-1]).strip()

    def number(self, name: str) -> Any:
        return read_value(int, self.text(name), present=True)

    def begin(self, kind: str, **more: Any) -> ConfigChange:
        return operations.begin(self.zone_id, self.room_id, kind, self.author, **more)


class LiveAction(NamedTuple):
    """`names`: fields that change, in the current event if it overrides them or `on_event`, else in
    the room. `plan`: begins or ends a live operation instead, also in a room of a configuration
    file. `typed`: the room's name confirms it. `key` never opens another action.
    """

    name: str
    key: str
    label: str
    title: str
    text: str
    done: str
    tone: str
    offered: Callable[[RoomView], bool]
    document: Callable[[RoomView, Mapping[str, Any]], Json]
    names: tuple[str, ...]
    on_event: bool = False
    role: Role = Role.OPERATOR
    plan: Callable[[ActionTarget], ConfigChange] | None = None
    typed: bool = False
    undoable: bool = True

    @property
    def rare(self) -> bool:
        """Shown in the menu behind the bar."""
        return self.tone == "danger" and self.name != "hold"


def _limits(_live: RoomView, form: Mapping[str, Any]) -> Json:
    return {name: read_value(int, (form.get(name) or [""])[-1], present=True) for name in LIMITS}


def _extend(live: RoomView, form: Mapping[str, Any]) -> Json:
    minutes = read_value(int, (form.get("minutes") or [""])[-1], present=True)
    if live.now.event is None or not isinstance(minutes, int) or not 1 <= minutes <= EXTEND_MAX:
        raise Refused(
            ApiFault(Code.INVALID, f"minutes: must be a number from 1 to {EXTEND_MAX}", "/minutes")
        )
    return {"event_end_time": plain_moment(live.now.event.event_end_ms + minutes * MINUTE_MS)}


def _message(target: ActionTarget) -> ConfigChange:
    """A language that is left blank gets the message of all others."""
    texts = tuple(
        LocalMessage(language, text)
        for language in LANGUAGES
        if (text := target.text(f"message_{language}"))
    )
    if not target.text("message") and not texts:
        return operations.end(target.zone_id, target.room_id, MESSAGE)
    return target.begin(MESSAGE, text=target.text("message"), texts=texts)


def _hold(target: ActionTarget) -> ConfigChange:
    return target.begin(HOLD, minutes=target.number("minutes") if target.text("minutes") else None)


def taken_over(live: RoomView) -> bool:
    return "capacity" in live.now.room.operated


def _release(target: ActionTarget) -> ConfigChange:
    """Ends the hold, whether it is an operation or a setting of a room of the store."""

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        room = rooms.room_of(known, target.zone_id, target.room_id)
        found = known.operations.get(room.id)
        changes: list[Change] = []
        if found and found.record.of(HOLD):
            changes += operations.end(target.zone_id, room.id, HOLD)(known, at).changes
        if room.record.queue_all and not room.read_only:
            setting = rooms.change(target.zone_id, room.id, {"queue_all": False}, whole=False)
            changes += setting(known, at).changes
        return PlannedChange(changes, lambda _after: None)

    return plan


def _end(live: RoomView, form: Mapping[str, Any]) -> Json:
    event = live.now.event
    now_ms = int(form["now_ms"])
    if event is None or live.now.phase is not Phase.RUNNING:
        return {"suspended": True}
    return {
        "event_end_time": plain_moment(
            max(event.event_start_ms + EVENT_LEAST_MS, now_ms // 1000 * 1000)
        )
    }


ACTIONS: Mapping[str, LiveAction] = {
    one.name: one
    for one in (
        LiveAction(
            "limits",
            "1",
            "Change limits",
            "Change the limits",
            "Visitors who are inside stay, also when the limits are lower. Those who wait keep"
            " their places.",
            "Change the limits",
            "primary",
            lambda live: not taken_over(live),
            _limits,
            LIMITS,
        ),
        LiveAction(
            "let-in",
            "2",
            "Let more in",
            "Let more visitors in now",
            "Raises both limits for one minute, then restores them. Nobody is removed afterwards."
            " Make sure your site can handle it.",
            "Let them in",
            "primary",
            lambda live: live.word in ("queueing", "open"),
            lambda _live, _form: {},
            (),
            plan=lambda target: target.begin(ADMIT, count=target.number("count")),
            undoable=False,
        ),
        LiveAction(
            "hold",
            "3",
            "Hold everybody",
            "Hold all new visitors",
            "Every new visitor waits from now on, however much room there is. People inside stay.",
            "Hold all new visitors",
            "danger",
            lambda live: not live.now.room.queue_all,
            lambda _live, _form: {},
            (),
            plan=_hold,
        ),
        LiveAction(
            "release",
            "3",
            "Let visitors in again",
            "Let visitors in again",
            "New visitors are let in again as the limits allow, in the order in which they wait.",
            "Let visitors in again",
            "primary",
            lambda live: live.now.room.queue_all,
            lambda _live, _form: {},
            (),
            plan=_release,
        ),
        LiveAction(
            "reject",
            "4",
            "Reject new visitors",
            "Reject new visitors",
            "New and waiting visitors see a “closed” page. People inside stay.",
            "Reject new visitors",
            "danger",
            lambda live: live.now.room.queueing_method != "reject",
            lambda _live, _form: {"queueing_method": "reject"},
            ("queueing_method",),
        ),
        LiveAction(
            "accept",
            "4",
            "Accept visitors again",
            "Accept visitors again",
            "New visitors are let in as the limits allow; the others wait, first come, first"
            " served.",
            "Accept visitors again",
            "primary",
            lambda live: live.now.room.queueing_method == "reject",
            lambda _live, _form: {"queueing_method": "fifo"},
            ("queueing_method",),
        ),
        LiveAction(
            "message",
            "5",
            "Post a message",
            "Post a message",
            "Shown on the waiting page from its next refresh, in every language, in place of the"
            " messages in the settings. Leave it blank to remove it: then those are shown again.",
            "Show the message",
            "primary",
            lambda live: not live.now.room.custom_page_html,
            lambda _live, _form: {},
            (),
            plan=_message,
        ),
        LiveAction(
            "extend",
            "6",
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
            "7",
            "End the event",
            "End the event now",
            "The room goes back to its own settings at once. Visitors keep their places and"
            " sessions.",
            "End the event now",
            "danger",
            lambda live: live.now.event is not None,
            _end,
            ("event_end_time", "suspended"),
            on_event=True,
        ),
        LiveAction(
            "take-over",
            "0",
            "Take over the limit",
            "Take over the limit",
            "The limit of active visitors stays where you set it, however fast the site answers,"
            " until the room follows its origin again.",
            "Take over",
            "primary",
            lambda live: live.now.room.capacity == "follow",
            lambda _live, _form: {},
            (),
            plan=lambda target: target.begin(TAKE_OVER, count=target.number("count")),
        ),
        LiveAction(
            "follow",
            "0",
            "Follow the origin again",
            "Follow the origin again",
            "greenroom sets the limit of active visitors again, from how fast the site answers,"
            " beginning with the current one.",
            "Follow the origin",
            "primary",
            taken_over,
            lambda _live, _form: {},
            (),
            plan=lambda target: operations.end(target.zone_id, target.room_id, TAKE_OVER),
        ),
        LiveAction(
            "end-sessions",
            "8",
            "End all sessions",
            "End all sessions of the room",
            "Everyone on the site goes to the back of the line on their next click. Open connections"
            " are closed within five seconds; places free up in about six. The limits hold"
            " throughout.",
            "End all sessions",
            "danger",
            lambda _: True,
            lambda _live, _form: {},
            (),
            plan=lambda target: target.begin(END_SESSIONS, count=target.active),
            typed=True,
            undoable=False,
        ),
        LiveAction(
            "suspend",
            "9",
            "Suspend the room",
            "Suspend the room",
            "Every visitor goes straight to your application from now on, also all who wait, and"
            " nothing limits them.",
            "Suspend the room",
            "danger",
            lambda live: live.word != "suspended",
            lambda _live, _form: {"suspended": True},
            ("suspended",),
        ),
        LiveAction(
            "resume",
            "9",
            "Resume the room",
            "Resume the room",
            "The limits apply again. Visitors whose sessions have ended meanwhile join the line"
            " like new ones.",
            "Resume the room",
            "primary",
            lambda live: live.word == "suspended",
            lambda _live, _form: {"suspended": False},
            ("suspended",),
        ),
    )
}
