"""A room's settings, now and later: its own, overlaid by the current event."""

import dataclasses
from collections.abc import Iterable, Sequence
from enum import IntEnum

import msgspec

from greenroom.model.event import OVERRIDES, Event
from greenroom.model.record import replace
from greenroom.model.room import LIMIT_MAX, Room


class Phase(IntEnum):
    IDLE = 0  # no event: the room's own settings
    PREQUEUE = 1  # the event's settings, all new visitors held
    RUNNING = 2  # the event's settings


class Effective(msgspec.Struct, frozen=True):
    """The settings until `until_ms` (None: until an operator changes them)."""

    room: Room
    phase: Phase = Phase.IDLE
    event: Event | None = None
    until_ms: int | None = None
    # its origin is unhealthy, and the room holds new visitors because of that
    origin_down: bool = False
    # active visitors that the origin can take, where the room follows it
    capacity: int | None = None
    # more visitors that an operator admits now; `room` has the raised limits
    let_in: int = 0
    # the room follows its origin, which is too slow or failing, so nobody is admitted
    origin_slow: bool = False
    # the waiting page's text about both (`Held.origin_stops`)
    origin_stops: str = ""

    @property
    def phase_ends_ms(self) -> int | None:
        if self.event is None:
            return None
        return (
            self.event.event_start_ms if self.phase is Phase.PREQUEUE else self.event.event_end_ms
        )

    @property
    def holds_nobody(self) -> bool:
        passes = self.room.queueing_method == "passthrough" and not self.room.queue_all
        return (
            passes
            and not (self.origin_down or self.origin_slow)
            and self.phase is not Phase.PREQUEUE
        )

    @property
    def active_limit(self) -> int:
        """At most `total_active_users`. An operator's `let_in` may exceed `capacity`."""
        if self.capacity is None:
            return self.room.total_active_users
        return min(self.room.total_active_users, self.capacity + self.let_in)

    @property
    def turns_away(self) -> bool:
        return (
            self.room.queueing_method == "reject"
            and not self.room.queue_all
            and self.phase is not Phase.PREQUEUE
        )

    @property
    def ledger_room(self) -> Room:
        """A pre-queue and an origin that is unhealthy or too slow hold like queue_all."""
        holds = self.phase is Phase.PREQUEUE or (
            (self.origin_down or self.origin_slow) and not self.turns_away
        )
        limit = self.active_limit
        if not holds and limit == self.room.total_active_users:
            return self.room
        return dataclasses.replace(
            self.room, total_active_users=limit, queue_all=holds or self.room.queue_all
        )


def effective(room: Room, events: Iterable[Event], now_ms: int) -> Effective:
    """An event's nulls take the room's current values. Suspended events do not count, nor does any
    event of a suspended room. A hold with an end holds all new visitors.
    """
    found = _scheduled(room, events, now_ms)
    if now_ms < room.hold_until_ms:
        held = dataclasses.replace(found.room, queue_all=True)
        found = replace(found, room=held, until_ms=_first(found.until_ms, room.hold_until_ms))
    if now_ms >= room.let_in_until_ms:
        return found
    total, minute = (
        min(LIMIT_MAX, limit + room.let_in)
        for limit in (found.room.total_active_users, found.room.new_users_per_minute)
    )
    until_ms = _first(found.until_ms, room.let_in_until_ms)
    raised = dataclasses.replace(found.room, total_active_users=total, new_users_per_minute=minute)
    return replace(found, room=raised, until_ms=until_ms, let_in=room.let_in)


def _first(known_ms: int | None, other_ms: int) -> int:
    return other_ms if known_ms is None else min(known_ms, other_ms)


def _scheduled(room: Room, events: Iterable[Event], now_ms: int) -> Effective:
    until_ms = None
    for event in events if not room.suspended else ():
        if event.suspended or event.event_end_ms <= now_ms:
            continue
        if event.opens_ms <= now_ms:
            overlay = {
                name: value for name in OVERRIDES if (value := getattr(event, name)) is not None
            }
            if event.shuffle_at_event_start or overlay.get("queueing_method", "fifo") != "fifo":
                overlay["line_table"] = False  # there an arrival has no place in line
            phase = Phase.PREQUEUE if now_ms < event.event_start_ms else Phase.RUNNING
            ends_ms = event.event_start_ms if phase is Phase.PREQUEUE else event.event_end_ms
            return Effective(dataclasses.replace(room, **overlay), phase, event, ends_ms)
        until_ms = event.opens_ms if until_ms is None else min(until_ms, event.opens_ms)
    return Effective(room, until_ms=until_ms)


def course(room: Room, events: Sequence[Event], now_ms: int) -> list[tuple[int, Effective]]:
    """(from when, settings), at least one. An event that shuffles begins with its pre-queue even
    when that is over, so that every process makes the draw between the two.
    """
    stages = [(now_ms, effective(room, events, now_ms))]
    first = stages[0][1]
    if (
        first.phase is Phase.RUNNING
        and first.event is not None
        and first.event.shuffle_at_event_start
    ):
        start_ms = first.event.event_start_ms
        stages = [
            (now_ms, replace(first, phase=Phase.PREQUEUE, until_ms=start_ms)),
            (start_ms, first),
        ]
    while (until_ms := stages[-1][1].until_ms) is not None:
        stages.append((until_ms, effective(room, events, until_ms)))
    return stages
