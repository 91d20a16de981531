"""Which settings hold now: the room's own, or the room's overlaid by the event whose time it is."""

from collections.abc import Iterable
from dataclasses import replace
from enum import IntEnum

import msgspec

from greenroom.model.event import OVERRIDES, Event
from greenroom.model.room import Room


class Phase(IntEnum):
    """Where a room stands on its calendar."""

    IDLE = 0  # no event: the room's own settings
    PREQUEUE = 1  # the event's settings, every newcomer held
    RUNNING = 2  # the event's settings


class Effective(msgspec.Struct, frozen=True):
    """The settings that hold until `until_ms` (None: until somebody changes them), and why."""

    room: Room
    phase: Phase = Phase.IDLE
    event: Event | None = None
    until_ms: int | None = None

    @property
    def ledger_room(self) -> Room:
        """The room as the ledger is told: a pre-queue holds everybody, whatever the method, like queue_all."""
        return replace(self.room, queue_all=True) if self.phase is Phase.PREQUEUE else self.room


def effective(room: Room, events: Iterable[Event], now_ms: int) -> Effective:
    """The settings at `now_ms`. Suspended events do not count; nulls of an event are the room's values as they are now."""
    until_ms = None
    for event in events:
        if event.suspended or event.event_end_ms <= now_ms:
            continue
        if event.opens_ms <= now_ms:
            overlay = {name: value for name in OVERRIDES if (value := getattr(event, name)) is not None}
            phase = Phase.PREQUEUE if now_ms < event.event_start_ms else Phase.RUNNING
            ends_ms = event.event_start_ms if phase is Phase.PREQUEUE else event.event_end_ms
            return Effective(replace(room, **overlay), phase, event, ends_ms)
        until_ms = event.opens_ms if until_ms is None else min(until_ms, event.opens_ms)
    return Effective(room, until_ms=until_ms)
