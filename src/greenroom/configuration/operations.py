"""Live operations on a room of the store or the file, kept as `RoomOperations` beside it: who began
one, when, and when it ends. Ending one restores the settings. An extension.
"""

from collections.abc import Sequence
from typing import Any

from greenroom.configuration import rooms
from greenroom.configuration.rooms import room_of
from greenroom.errors import InvalidConfig
from greenroom.model.branding import LocalMessage
from greenroom.model.change import AuditEntry, Put, Remove
from greenroom.model.configuration import Configuration
from greenroom.model.fields import plural, with_unit
from greenroom.model.operation import (
    ADMIT,
    ADMIT_MOST,
    ADMIT_MS,
    END_SESSIONS,
    HOLD,
    MESSAGE,
    OPERATIONS,
    TAKE_OVER,
    Operation,
    RoomOperations,
)
from greenroom.model.room import LIMIT_MAX, Room
from greenroom.web.api_schema import ApiSchema, computed, read_as
from greenroom.web.api_shapes import Json, Plain, Several, Shown
from greenroom.web.config_service import ChangeContext, ConfigChange, PlannedChange
from greenroom.web.refusals import ApiFault, Code, Refused, faults_of, not_found, refuse_if
from greenroom.web.stores import ConfigStore
from greenroom.web.time_format import moment as written

CAPACITY, CAPACITY_AUTHOR = "capacity", "greenroom"
"""Kind and author of the audit log's entries about rooms that follow their origin."""

HOLD_MINUTES_MOST = 7 * 24 * 60

_WHOLE = Plain(int)
_TIME = {"type": "string", "format": "date-time"}

ROOM_OPERATION = ApiSchema(
    (
        computed("kind", "what was done", Shown({"type": "string", "enum": list(OPERATIONS)})),
        computed("author", "who did it", Shown({"type": "string"})),
        computed("start_time", "when it began", Shown(_TIME)),
        computed(
            "end_time",
            "when it ends by itself; null: when somebody ends it",
            Shown({**_TIME, "type": ["string", "null"]}),
        ),
        computed(
            "minutes", "how long a hold lasts; left out: until it is ended", _WHOLE, writable=True
        ),
        computed(
            "count",
            "how many more visitors `admit` lets in, or how many may be active with `take_over`",
            _WHOLE,
            writable=True,
        ),
        computed("message", "text of a message", Plain(str), writable=True),
        computed("messages", "it in other languages", Several(LocalMessage), writable=True),
    )
)


def lasting(known: Configuration, room_id: str, now_ms: int) -> list[Operation]:
    entry = known.operations.get(room_id)
    found = entry.record.operations if entry else ()
    return [one for one in found if one.lasts(now_ms) and one.kind != END_SESSIONS]


def show(known: Configuration, room_id: str) -> list[Json]:
    entry = known.operations.get(room_id)
    return [_shown(one) for one in (entry.record.operations if entry else ())]


def _shown(one: Operation) -> Json:
    more: Json = {}
    if one.kind in (ADMIT, TAKE_OVER):
        more["count"] = one.count
    if one.kind == MESSAGE:
        more["message"] = one.text
        more["messages"] = [{"language": it.language, "text": it.text} for it in one.texts]
    return {
        "kind": one.kind,
        "author": one.author,
        "start_time": written(one.start_ms),
        "end_time": written(one.until_ms) if one.until_ms else None,
        **more,
    }


def begin_as_sent(
    zone_id: str, room_id: str, kind: str, author: str, document: Any
) -> ConfigChange:
    """`document` is the body of the API's call."""

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        if kind not in OPERATIONS:
            raise not_found("kind of operation", kind)
        values, faults = read_as(ROOM_OPERATION, document)
        most_visitors = LIMIT_MAX if kind == TAKE_OVER else ADMIT_MOST
        for name, most in (("minutes", HOLD_MINUTES_MOST), ("count", most_visitors)):
            if values.get(name) is not None:
                faults += _number_faults(name, values[name], most)
        text = values.get("message", "")
        if not isinstance(text, str):
            faults.append(ApiFault(Code.INVALID, "message: must be text", "/message"))
        refuse_if(faults)
        begun = begin(
            zone_id,
            room_id,
            kind,
            author,
            minutes=values.get("minutes"),
            count=values.get("count"),
            text=text,
            texts=values.get("messages", ()),
        )
        return begun(known, at)

    return plan


def begin(
    zone_id: str,
    room_id: str,
    kind: str,
    author: str,
    *,
    minutes: Any = None,
    count: Any = None,
    text: str = "",
    texts: Sequence[LocalMessage] = (),
) -> ConfigChange:
    """`minutes`: how long a hold lasts; None: until it is ended. `count`: visitors who are admitted
    or whose sessions end. Raises Refused with every fault.
    """

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        room_of(known, zone_id, room_id)
        until_ms = 0
        if kind == HOLD and minutes is not None:
            until_ms = at.now_ms + _number("minutes", minutes, HOLD_MINUTES_MOST) * 60_000
        if kind == ADMIT:
            number = _number("count", count, ADMIT_MOST)
            _refuse_second_admission(known, room_id, at.now_ms)
            return _put(known, room_id, _made(kind, author, at.now_ms, ADMIT_MS, count=number))
        if kind == TAKE_OVER:
            return _take_over(known, room_id, author, count, at.now_ms)
        if kind == MESSAGE and not text.strip() and not texts:
            raise Refused(ApiFault(Code.INVALID, "message: must not be empty", "/message"))
        start_ms = at.now_ms
        if kind == END_SESSIONS:  # ledgers ignore a time that does not grow
            start_ms = max(start_ms, known.room_in_operation(room_id).sessions_ended_ms + 1)
        lasts_ms = until_ms - start_ms if until_ms else 0
        ended = min(count, ADMIT_MOST) if kind == END_SESSIONS and count else 0
        more = {"text": text.strip(), "texts": tuple(texts), "count": ended}
        return _put(known, room_id, _made(kind, author, start_ms, lasts_ms, **more))

    return plan


def end_sessions(zone_id: str, room_id: str, author: str) -> ConfigChange:
    """Returns the room, as the API's call for it always did."""

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        planned = begin(zone_id, room_id, END_SESSIONS, author)(known, at)
        return planned._replace(
            answer=lambda after: rooms.show(after, after.rooms[room_id], at.now_ms)
        )

    return plan


def end(zone_id: str, room_id: str, kind: str) -> ConfigChange:
    """Ends a hold, an admission of more visitors, a message or a limit that was taken over. Raises
    Refused without one.
    """

    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        room_of(known, zone_id, room_id)
        entry = known.operations.get(room_id)
        if kind not in OPERATIONS or kind == END_SESSIONS or not entry or not entry.record.of(kind):
            raise not_found("operation", kind)
        return _written(
            known, room_id, [one for one in entry.record.operations if one.kind != kind]
        )

    return plan


def note_capacity(store: ConfigStore, room: Room, sessions: int, reason: str, now_ms: int) -> None:
    """Writes only an audit entry: a revision for each step of the law would make operators' forms
    stale. Raises StorageFailed.
    """
    after = {"room": room.name, "active_visitors": sessions, "reason": reason}
    store.note(CAPACITY, room.id, author=CAPACITY_AUTHOR, now_ms=now_ms, after=after)


def noted_capacity(store: ConfigStore, room_id: str) -> int | None:
    """The newest. Raises StorageFailed."""
    found = store.audit(1, about=(CAPACITY, room_id))
    return found[0].after["active_visitors"] if found and found[0].after else None


def _take_over(
    known: Configuration, room_id: str, author: str, count: Any, now_ms: int
) -> PlannedChange:
    room = known.rooms[room_id].record
    if room.capacity != "follow":
        raise Refused(
            ApiFault(
                Code.INVALID,
                f"take_over: only a room with capacity follow can be taken over, not {room.capacity}",
            )
        )
    number = _number("count", count, room.total_active_users)
    return _put(known, room_id, _made(TAKE_OVER, author, now_ms, 0, count=number))


def _number(name: str, value: Any, most: int) -> int:
    refuse_if(_number_faults(name, value, most))
    return int(value)


def _number_faults(name: str, value: Any, most: int) -> list[ApiFault]:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
        return []
    return [ApiFault(Code.INVALID, f"{name}: must be a number from 1 to {most}", f"/{name}")]


def _refuse_second_admission(known: Configuration, room_id: str, now_ms: int) -> None:
    room = known.room_in_operation(room_id)
    left_ms = room.let_in_until_ms - now_ms
    if left_ms > 0:
        reason = (
            f"count: {room.let_in} more {plural(room.let_in, 'visitor is', 'visitors are')} let in"
            f" already; wait {with_unit(-(-left_ms // 1000), 'seconds')}"
        )
        raise Refused(ApiFault(Code.INVALID, reason, "/count"))


def _made(kind: str, author: str, start_ms: int, lasts_ms: int, **more: Any) -> Operation:
    until_ms = start_ms + lasts_ms if lasts_ms else 0
    return Operation(kind=kind, author=author[:300], start_ms=start_ms, until_ms=until_ms, **more)


def _put(known: Configuration, room_id: str, made: Operation) -> PlannedChange:
    entry = known.operations.get(room_id)
    others = [one for one in (entry.record.operations if entry else ()) if one.kind != made.kind]
    return _written(known, room_id, [*others, made])


def _written(known: Configuration, room_id: str, operations: Sequence[Operation]) -> PlannedChange:
    name = known.rooms[room_id].record.name
    if not operations:
        return PlannedChange([Remove("operation", room_id)], lambda _after: [])
    try:
        record = RoomOperations(id=room_id, name=name, operations=tuple(operations))
    except InvalidConfig as error:
        raise Refused(*faults_of(error.problems, Code.INVALID)) from None
    return PlannedChange([Put(record)], lambda after: show(after, room_id))


def operation_changes(entry: AuditEntry) -> list[tuple[str, Json | None, Json | None]]:
    """(kind, before, after) of what differs in an entry of the audit log."""
    before, after = (
        {one["kind"]: one for one in (values or {}).get("operations", ())}
        for values in (entry.before, entry.after)
    )
    kinds = dict.fromkeys([*before, *after])
    return [
        (kind, before.get(kind), after.get(kind))
        for kind in kinds
        if before.get(kind) != after.get(kind)
    ]


def in_words(kind: str, after: Json | None, room: str) -> str:
    """What somebody did, after their name: “put shop on hold”."""
    if kind == HOLD:
        return f"put {room} on hold" if after else f"ended the hold of {room}"
    if kind == ADMIT:
        count = after["count"] if after else 0
        return f"admitted {count:,} more {plural(count, 'visitor')} to {room}" if after else ""
    if kind == MESSAGE:
        return (
            f"posted a message in {room}: “{after['text']}”"
            if after
            else f"removed the message of {room}"
        )
    if kind == TAKE_OVER:
        return (
            f"took over the limit of {room}: {after['count']:,} active {plural(after['count'], 'visitor')}"
            if after
            else f"let {room} follow its origin again"
        )
    people = (after or {}).get("count", 0)
    number = f" ({people:,} {plural(people, 'visitor')})" if people else ""
    return f"ended all sessions in {room}{number}" if after else ""
