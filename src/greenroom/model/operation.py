"""Live operations: what operators do to a room during a sale. Stored beside its settings, so that
rooms of a configuration file have them too, and ending one restores the settings.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.branding import Branding, LocalMessage, message_problems
from greenroom.model.fields import check_value, spec, specs
from greenroom.model.room import LANGUAGES, LIMIT_MAX, Room

HOLD, ADMIT, MESSAGE, END_SESSIONS = "hold", "admit", "message", "end_sessions"
TAKE_OVER = "take_over"
OPERATIONS = (HOLD, ADMIT, MESSAGE, END_SESSIONS, TAKE_OVER)

ADMIT_MS = 60_000
"""As long as the window of `new_users_per_minute`, so exactly `count` exceed the limits, once."""

ADMIT_MOST = 100_000


@dataclass(frozen=True, kw_only=True)
class Operation:
    """`until_ms` 0: until somebody ends it."""

    kind: str = spec("what was done", choices=OPERATIONS)
    author: str = spec("who did it", "", high=300)
    start_ms: int = spec("when it began", low=0)
    until_ms: int = spec("when it ends; 0: when somebody ends it", 0, low=0)
    count: int = spec(
        "how many more visitors are admitted, may be active, or whose sessions were ended",
        0,
        low=0,
        high=LIMIT_MAX,
    )
    text: str = spec("message to waiting visitors", "", high=500)
    texts: tuple[LocalMessage, ...] = spec("the message in other languages", (), high=100)

    def lasts(self, now_ms: int) -> bool:
        return not self.until_ms or now_ms < self.until_ms


@dataclass(frozen=True, kw_only=True)
class RoomOperations:
    """All of one room, at most one of each kind."""

    id: str  # the room's
    name: str = ""  # the room's when it was written, for the audit log
    operations: tuple[Operation, ...] = ()

    def __post_init__(self) -> None:
        problems = [one for found in self.operations for one in _problems(found)]
        kinds = [found.kind for found in self.operations]
        if len(set(kinds)) < len(kinds):
            problems.append(Problem("operations", "must have each kind once at most"))
        if problems:
            raise InvalidConfig(problems)

    def of(self, kind: str) -> Operation | None:
        return next((found for found in self.operations if found.kind == kind), None)


def operated(room: Room, found: RoomOperations | None) -> Room:
    """The room with its operations in effect; `admission.schedule` ends those with an end."""
    if found is None:
        return room
    changed: dict[str, Any] = {}
    names = []
    for one in found.operations:
        if one.kind == HOLD:
            changed |= {"hold_until_ms": one.until_ms} if one.until_ms else {"queue_all": True}
            names.append("queue_all")
        elif one.kind == ADMIT and one.until_ms > room.let_in_until_ms:
            changed |= {"let_in": one.count, "let_in_until_ms": one.until_ms}
        elif one.kind == MESSAGE:
            changed["branding"] = replace(room.branding, message=one.text)
            changed["branding_messages"] = one.texts
        elif one.kind == TAKE_OVER and room.capacity == "follow":
            changed["capacity"] = "fixed"
            changed["total_active_users"] = min(room.total_active_users, max(1, one.count))
            names += ["capacity", "total_active_users"]
        elif one.kind == END_SESSIONS:
            changed["sessions_ended_ms"] = max(room.sessions_ended_ms, one.start_ms)
    return replace(room, **changed, operated=tuple(names))


def _problems(found: Operation) -> Iterable[Problem]:
    rules, text = specs(Operation), specs(Branding)["message"]
    checked = [
        check_value(name, getattr(found, name), kind, rules[name])
        for name, kind in (("kind", str), ("start_ms", int), ("until_ms", int), ("count", int))
    ]
    checked.append(check_value("message", found.text, str, text))
    yield from filter(None, checked)
    yield from message_problems(found.texts, LANGUAGES, "messages")
