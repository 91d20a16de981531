"""Operator actions during a run (CHANGES). Actions overlap: a room is its own settings, then those
of the active actions in order.
"""

from collections.abc import Callable
from dataclasses import replace

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
    def room(self) -> Room:
        room = self._own
        for action in self._actions:
            room = CHANGES[action.kind](room, self._own, action)
        return replace(room, sessions_ended_ms=self._ended_ms)


def admits(room: Room) -> bool:
    return room.queueing_method in ("fifo", "random") and not room.queue_all and not room.suspended


def unlimited(room: Room) -> bool:
    return room.suspended or (room.queueing_method == "passthrough" and not room.queue_all)
