"""What follows from the reports of all processes and sources, where the coordinator is: the state of
every room whose limit is suggested or follows its origin. A process that takes over begins anew.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from greenroom.capacity.measurement import ProcessReport, WindowMeter
from greenroom.capacity.room_capacity import CapacityNote, CapacityState, RoomCapacity
from greenroom.capacity.sources import ANSWERS, NO_SOURCE, Source, source_of
from greenroom.capacity.window import Window
from greenroom.model.room import Room

NOT_MEASURED = f"capacity: {NO_SOURCE}"


class Steered(NamedTuple):
    states: dict[str, CapacityState]
    notes: list[tuple[Room, CapacityNote]]
    """For the audit log."""
    windows: Mapping[str, Window | None]


def sources_of(
    rooms: Mapping[str, Room],
    reports: Mapping[str, ProcessReport],
    checked: Collection[str],
    last: Mapping[str, CapacityState],
) -> dict[str, Source | None]:
    """`checked`: rooms with a health check on their origin."""
    answers = any(report.source == ANSWERS.name for report in reports.values())
    found: dict[str, Source | None] = {}
    for room_id, room in rooms.items():
        source, state = source_of(room, answers=answers, checked=room_id in checked), None
        if source is None:
            state = last.get(room_id)
        if state is not None and state.mode == room.capacity:
            source = ANSWERS  # was measured, is silent: the limit holds
        found[room_id] = source
    return found


class CapacitySteering:
    def __init__(self) -> None:
        self.missing: dict[str, str] = {}
        """Why rooms were not measured in the last step."""
        self._meter = WindowMeter()
        self._rooms: dict[str, RoomCapacity] = {}

    def step(
        self,
        rooms: Mapping[str, Room],
        reports: Mapping[str, ProcessReport],
        sources: Mapping[str, Source | None],
        last: Mapping[str, CapacityState],
        now_ms: int,
    ) -> Steered:
        """Call it for each WINDOW_MS, with the states of the `last` step, of whichever process."""
        meter = self._meter
        windows = meter.windows(reports, now_ms, sources)
        self.missing = {key: why for key, why in meter.missing.items() if key in rooms}
        for room_id in self._rooms.keys() - rooms.keys():
            del self._rooms[room_id]
        states: dict[str, CapacityState] = {}
        notes = []
        for room_id, room in rooms.items():
            if sources[room_id] is None:
                self._rooms.pop(room_id, None)
                states[room_id] = _fixed(room, now_ms)
                continue
            if room_id in meter.unchanged and room_id in last:
                states[room_id] = last[room_id]  # until something new is known, or silence
                continue
            window = windows.get(room_id)
            capacity = self._capacity(room_id, room, window, last.get(room_id), now_ms)
            missing = meter.missing.get(room_id, "no measurements")
            state = states[room_id] = capacity.step(window, now_ms, missing)
            if (note := capacity.note(state, now_ms)) is not None:
                notes.append((room, note))
        return Steered(states, notes, windows)

    def _capacity(
        self,
        room_id: str,
        room: Room,
        window: Window | None,
        last: CapacityState | None,
        now_ms: int,
    ) -> RoomCapacity:
        found = self._rooms.get(room_id)
        if found is None or found.mode != room.capacity:
            if last is not None and last.mode != room.capacity:
                last = None
            found = RoomCapacity(room, last, window.active if window else 0, now_ms)
            self._rooms[room_id] = found
        found.configure(room)
        return found


def _fixed(room: Room, now_ms: int) -> CapacityState:
    return CapacityState(
        mode="fixed",
        sessions=room.total_active_users,
        limit=room.total_active_users,
        stopped=False,
        reason=NOT_MEASURED,
        measured_ms=now_ms,
    )
