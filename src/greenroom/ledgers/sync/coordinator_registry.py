"""The coordinators of all rooms, without clock, network or randomness. Rows: `=` is when the newest
row was written, `~` in which life of the server, `room` a room's own row, `room|data center` that of
one data center in it. Where rows may be outdated or missing, nothing is granted in the room before
every data center has reported what it holds.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import msgspec

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.coordinator.data_center import DataCenter
from greenroom.admission.coordinator.memory import (
    CenterRow,
    Mark,
    RoomRow,
    StoredCoordinator,
    center_row,
    mark_of,
    recalled,
    room_row,
    worth_writing,
)
from greenroom.admission.forecast.forecast import THINK_MS
from greenroom.admission.lease import CUT_OFF_MS
from greenroom.admission.messages.room_summary import period_ms
from greenroom.ledgers.sync.batch import AnswerBatch, encode, report_of
from greenroom.model.room import Room

CLOCK_ROW, LIFE_ROW = "=", "~"
_clock = msgspec.msgpack.Decoder(int)
_room_row = msgspec.msgpack.Decoder(RoomRow)
_center_row = msgspec.msgpack.Decoder(CenterRow)


DORMANT_MS = 3_600_000
"""By then every session is over, and every process has the same rooms."""


def _is_readable(name: str, row: bytes) -> bool:
    decoder = _clock if name == CLOCK_ROW else _center_row if "|" in name else _room_row
    try:
        decoder.decode(row)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Dormant:
    since_ms: int
    stored: StoredCoordinator


class LostUnits(NamedTuple):
    held: int
    returning: int
    free_ms: int
    """0: there are none."""


class CoordinatorRegistry:
    def __init__(self, getrandbits: Callable[[int], int]) -> None:
        self.coordinators: dict[str, Coordinator] = {}
        self.heard_ms: dict[str, int] = {}
        self.now_ms = 0
        self._getrandbits = getrandbits
        self._life = encode("")
        self._rooms: dict[str, Room] = {}
        self._data_centers: tuple[str, ...] = ()
        self._dormant: dict[str, Dormant] = {}
        # name of a row -> room id, data center or ''
        self._touched: dict[str, tuple[str, str]] = {}
        self._writing: list[tuple[DataCenter, Mark]] = []
        self._forgotten: dict[str, None] = {}

    # -- what is written down ----------------------------------------------------------------------

    def restore(self, rows: Mapping[str, bytes], now_ms: int, life: str) -> list[str]:
        """Returns the names of damaged rows. They count as lost, and all rows as outdated."""
        self._life = encode(life)
        damaged = [
            name for name, row in rows.items() if name != LIFE_ROW and not _is_readable(name, row)
        ]
        rows = {name: row for name, row in rows.items() if name not in damaged}
        complete = rows.get(LIFE_ROW) == self._life and not damaged
        written_ms = _clock.decode(rows[CLOCK_ROW]) if CLOCK_ROW in rows else now_ms
        self.now_ms = max(now_ms, written_ms)
        ledgers: dict[str, dict[str, CenterRow]] = {}
        for name, row in rows.items():
            room_id, bar, data_center = name.partition("|")
            if bar:
                ledgers.setdefault(room_id, {})[data_center] = _center_row.decode(row)
        for room_id in rows.keys() - {CLOCK_ROW, LIFE_ROW}:
            if "|" not in room_id:
                room = _room_row.decode(rows[room_id])
                rows_of = ledgers.get(room_id, {})
                stored = StoredCoordinator(room, rows_of, self.now_ms - written_ms, complete)
                self._dormant[room_id] = Dormant(self.now_ms, stored)
        return damaged

    def rows(self) -> dict[str, bytes]:
        """Rows changed since the last `written`: to be saved before an answer is sent."""
        rows = {CLOCK_ROW: encode(self.now_ms), LIFE_ROW: self._life}
        self._writing.clear()
        for name, (room_id, data_center) in self._touched.items():
            coordinator = self.coordinators.get(room_id)
            if coordinator is None:
                continue
            if not data_center:
                rows[name] = encode(room_row(coordinator))
                continue
            center = coordinator.data_centers.get(data_center)
            if center is None:
                self._forgotten[name] = None
                continue
            rows[name] = encode(center_row(center, coordinator.transfers.on_the_way(data_center)))
            self._writing.append((center, mark_of(center)))
        return rows

    def forgotten(self) -> list[str]:
        return list(self._forgotten)

    def written(self) -> None:
        for center, mark in self._writing:
            center.marked = mark
        self._writing.clear()
        self._touched.clear()
        self._forgotten.clear()

    # -- what operators change ---------------------------------------------------------------------

    def configure(
        self, rooms: Iterable[Room], data_centers: Iterable[str], now_ms: int, fence_ms: int = 0
    ) -> None:
        """`fence_ms` 0 disables the fence."""
        self.now_ms = max(self.now_ms, now_ms)
        wanted, names = {room.id: room for room in rooms}, tuple(dict.fromkeys(data_centers))
        moved = names != self._data_centers
        self._data_centers = names
        for room_id in self.coordinators.keys() - wanted.keys():
            self._put_away(room_id)
        for room_id, room in wanted.items():
            coordinator = self.coordinators.get(room_id)
            if coordinator is None:
                coordinator = self.coordinators[room_id] = self._begin(room)
                spread = crc32(room_id.encode())  # over batches
                coordinator.forecaster.due_ms += spread % THINK_MS
                coordinator.summaries.due_ms += spread % period_ms(len(names))
            elif moved:
                coordinator.enlist(names, self.now_ms)
            elif room == self._rooms[room_id] and coordinator.fence_ms == fence_ms:
                continue
            coordinator.fence_ms = fence_ms
            coordinator.configure(room)
            self._touch(room_id, coordinator)
        self._rooms = wanted
        self._forget_dormant()

    def _begin(self, room: Room) -> Coordinator:
        dormant = self._dormant.pop(room.id, None)
        if dormant is None:
            return Coordinator(self._data_centers, room, self.now_ms)
        return recalled(room, self._data_centers, dormant.stored, self.now_ms)

    def _put_away(self, room_id: str) -> None:
        coordinator = self.coordinators.pop(room_id)
        rows = {
            name: center_row(center, coordinator.transfers.on_the_way(name))
            for name, center in coordinator.data_centers.items()
        }
        self._dormant[room_id] = Dormant(
            self.now_ms, StoredCoordinator(room_row(coordinator), rows)
        )

    def _forget_dormant(self) -> None:
        for room_id, dormant in list(self._dormant.items()):
            if not dormant.stored.complete or self.now_ms - dormant.since_ms > DORMANT_MS:
                del self._dormant[room_id]
                for name in (
                    room_id,
                    *(f"{room_id}|{data_center}" for data_center in dormant.stored.rows),
                ):
                    self._forgotten[name] = None

    def _touch(self, room_id: str, coordinator: Coordinator) -> None:
        self._touched |= {
            f"{room_id}|{name}": (room_id, name) for name in coordinator.data_centers
        } | {room_id: (room_id, "")}
        for name in self._touched:
            self._forgotten.pop(name, None)

    # -- what data centers report ------------------------------------------------------------------

    def answer(self, data_center: str, batch: bytes, now_ms: int) -> bytes | None:
        """None: the data center is not on the list, or the batch is no report."""
        if data_center not in self._data_centers:
            return None
        try:
            report = report_of(batch)
        except ValueError:
            return None
        self.now_ms = now_ms = max(self.now_ms, now_ms)
        if report.dead:
            self._give_up(data_center, now_ms)
            return None
        self.heard_ms[data_center] = now_ms
        rooms = {}
        for room_id, up in report.rooms.items():
            coordinator = self.coordinators.get(room_id)
            if coordinator is None or up.data_center != data_center:
                continue
            doubted, forgotten = bool(coordinator.doubted), coordinator.forgotten
            rooms[room_id] = coordinator.sync(up, now_ms, self._getrandbits(64))
            # a stored row with too many doubts does no harm
            if (doubted and not coordinator.doubted) or coordinator.forgotten != forgotten:
                self._touched[room_id] = (room_id, "")
            moves = up.moves
            # a session that moves changes both data centers
            both = moves and (moves.gifts or moves.kept or moves.claims or moves.unknown)
            for name in coordinator.data_centers if both else (data_center,):
                center = coordinator.data_centers[name]
                if worth_writing(mark_of(center), center.marked):
                    self._touched[f"{room_id}|{name}"] = (room_id, name)
        return encode(AnswerBatch(report.number, rooms))

    def _give_up(self, data_center: str, now_ms: int) -> None:
        if now_ms - self.heard_ms.get(data_center, 0) < CUT_OFF_MS:
            return  # it has reported since the operator saw it silent
        for room_id, coordinator in self.coordinators.items():
            coordinator.give_up(data_center, now_ms)
            self._touched[f"{room_id}|{data_center}"] = (room_id, data_center)

    def lost(self, data_center: str) -> LostUnits:
        held = returning = free_ms = 0
        for coordinator in self.coordinators.values():
            center = coordinator.data_centers.get(data_center)
            if center is not None:
                held += center.held
                returning += center.orphans
                free_ms = max(free_ms, center.orphans_until_ms if center.orphans else 0)
        return LostUnits(held, returning, free_ms)
