"""Operator actions during a run (CHANGES). Actions overlap: a room is its own settings, then those
of the active actions in order.
"""

from collections.abc import Callable
from dataclasses import replace

from greenroom.admission.schedule import Effective
from greenroom.capacity.room_capacity import CapacityState
from greenroom.model.room import Room
from greenroom.simulator.scenario import Fault

RoomChange = Callable[[Room, Room, Fault], Room]


def _capacity(room: Room, own: Room, action: Fault) -> Room:
    return replace(
        room, total_active_users=max(1, int(own.total_active_users * action.amount / 100))
    )


def _rate(room: Room, own: Room, action: Fault) -> Room:
    return replace(
        room, new_users_per_minute=max(1, int(own.new_users_per_minute * action.amount / 100))
    )


def _limits(room: Room, own: Room, action: Fault) -> Room:
    return _rate(_capacity(room, own, action), own, action)


def _let_in(room: Room, _: Room, action: Fault) -> Room:
    total, per_minute = (
        limit + int(action.amount) for limit in (room.total_active_users, room.new_users_per_minute)
    )
    return replace(room, total_active_users=total, new_users_per_minute=per_minute)


CHANGES: dict[str, RoomChange] = {
    "limits": _limits,
    "capacity": _capacity,
    "rate": _rate,
    "method": lambda room, own, _: replace(
        room, queueing_method="random" if own.queueing_method == "fifo" else "fifo"
    ),
    "passthrough": lambda room, _, __: replace(room, queueing_method="passthrough"),
    "reject": lambda room, _, __: replace(room, queueing_method="reject"),
    "queue all": lambda room, _, __: replace(room, queue_all=True),
    "suspended": lambda room, _, __: replace(room, suspended=True),
    "session duration": lambda room, _, action: replace(room, session_duration=int(action.amount)),
    "renewal": lambda room, own, _: replace(
        room, disable_session_renewal=not own.disable_session_renewal
    ),
    "confirm newcomers": lambda room, _, action: replace(room, confirm_newcomers=action.amount > 0),
    "pacing": lambda room, own, _: replace(room, pace_admissions=not own.pace_admissions),
    "provisional sessions": lambda room, own, _: replace(
        room, provisional_sessions=not own.provisional_sessions
    ),
    "let in": _let_in,
    "pre-queue": lambda room, _, __: replace(room, queue_all=True),
}


class OperatedRoom:
    def __init__(self, room: Room) -> None:
        self.followed: CapacityState | None = None
        self._own = room
        self._actions: list[Fault] = []
        self._ended_ms = 0

    def begin(self, action: Fault) -> None:
        self._actions.append(action)

    def end(self, action: Fault) -> None:
        self._actions.remove(action)

    def end_sessions(self, now_ms: int) -> None:
        self._ended_ms = now_ms

    @property
    def in_force(self) -> Room:
        if self.followed is None:
            return self.room
        let_in = sum(int(action.amount) for action in self._actions if action.kind == "let in")
        return Effective(
            self.room,
            capacity=max(1, self.followed.limit),
            let_in=let_in,
            origin_slow=self.followed.stopped,
        ).ledger_room

    @property
    def room(self) -> Room:
        room = self._own
        for action in self._actions:
            room = CHANGES[action.kind](room, self._own, action)
        return replace(room, sessions_ended_ms=self._ended_ms)


def admits(room: Room) -> bool:
    return room.queueing_method in ("fifo", "random") and not room.queue_all and not room.suspended


def unlimited(room: Room) -> bool:
    return room.suspended or (room.queueing_method == "passthrough" and not room.queue_all)


# The limits that must hold after an operator has changed them. A raised limit holds at once. A
# lowered one may not be in force until every data center has *followed*. From then on at most as
# many visitors are active as the new limit allows, or as were active before; and a minute and one
# second later at most as many are admitted within a minute.

UNLIMITED = 1 << 60
MINUTE_MS = 61_000


class LimitsInForce:
    def __init__(self, total: int, per_minute: int) -> None:
        self.total, self.per_minute = total, per_minute
        self._most = total
        self._old: list[tuple[int, int, int, int]] = []
        """(total, per minute, when changed, until when the latter is in force; 0: not followed yet)."""

    @property
    def behind(self) -> bool:
        return any(not until_ms for *_, until_ms in self._old)

    def change(self, total: int, per_minute: int, now_ms: int) -> None:
        if (total, per_minute) != (self.total, self.per_minute):
            self._old.append((self.total, self.per_minute, now_ms, 0))
            self.total, self.per_minute = total, per_minute
            self._most = max(self._most, total)

    def follow(self, now_ms: int, follows: Callable[[int], bool]) -> None:
        """`follows`: whether every data center has followed the changes made before a time."""
        self._old = [
            (total, per_minute, at_ms, until_ms or (now_ms + MINUTE_MS) * follows(at_ms))
            for total, per_minute, at_ms, until_ms in self._old
        ]

    def ebb(self, in_use: int, now_ms: int) -> None:
        """Where the limit was lowered, never more again."""
        self._old = [one for one in self._old if not one[3] or now_ms <= one[3]]
        behind = [total for total, *_, until_ms in self._old if not until_ms]
        self._most = max(self.total, *behind, min(self._most, in_use))

    @property
    def most_active(self) -> int:
        return self._most

    @property
    def most_per_minute(self) -> int:
        return max([self.per_minute, *(one[1] for one in self._old)])
