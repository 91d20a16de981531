"""Samples every room a few times a minute: gauges, limits, and what only the ledger knows."""

from collections.abc import Callable, Iterable, Iterator
from math import ceil, isfinite
from typing import Protocol

import msgspec

from greenroom.admission.ledger.tally import Taken
from greenroom.analytics.recorder import Recorder
from greenroom.analytics.rollup import RoomLimits, RoomTarget
from greenroom.capacity.room_capacity import CapacityState
from greenroom.model.room import Room
from greenroom.model.visit import Estimate


class RoomLook(msgspec.Struct, frozen=True):
    """`room` has the settings in force; None: not sampled from here."""

    room: Room
    active: int | None = None
    queued: int | None = None
    wait_s: int | None = None
    tally: Taken | None = None
    target: RoomTarget | None = None


class Rooms(Protocol):
    def looks(self, now_ms: int) -> Iterable[RoomLook]:
        """Takes the tallies: the next call returns only what came after."""


def wait_seconds(estimate: Estimate | None) -> int | None:
    return ceil(estimate.p50_s) if estimate is not None and isfinite(estimate.p50_s) else None


def sample(recorder: Recorder, looks: Iterable[RoomLook], now_ms: int) -> None:
    for look in looks:
        room = look.room
        if look.tally is not None:
            recorder.stayed(room.id, look.tally.stays_ms, now_ms)
            recorder.counted(room.id, "abandoned", look.tally.abandoned, now_ms)
        if look.active is not None and look.queued is not None:
            recorder.looked(room.id, look.active, look.queued, look.wait_s, now_ms)
        if look.target is not None:
            recorder.targeted(room.id, look.target)
        recorder.limited(
            room.id,
            RoomLimits(
                now_ms, room.total_active_users, room.new_users_per_minute, room.session_duration
            ),
        )


CapacityOf = Callable[[str], tuple[CapacityState | None, int]]
"""Room id -> (state, number of the origin's instances)."""


class WithTargets:
    def __init__(self, rooms: Rooms, capacity_of: CapacityOf) -> None:
        self._rooms = rooms
        self._capacity_of = capacity_of

    def looks(self, now_ms: int) -> Iterator[RoomLook]:
        for look in self._rooms.looks(now_ms):
            state, _ = self._capacity_of(look.room.id)
            if state is None or state.mode == "fixed":
                yield look
                continue
            limit = state.limit if state.mode == "follow" else look.room.total_active_users
            stopped, unmeasured = state.stopped, state.unmeasured(now_ms)
            target = RoomTarget(now_ms, state.sessions, limit, stopped, unmeasured)
            yield msgspec.structs.replace(look, target=target)
