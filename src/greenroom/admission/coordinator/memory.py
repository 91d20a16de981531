"""A coordinator's stored state, as rows. A row is written before any answer that depends on it is
sent. An older row counts more as held, never less. The line is not stored: ledgers report it again
(`SyncDown.afresh`). The next coordinator shifts times by the age of the newest row, so machines'
clocks may differ.
"""

from collections.abc import Mapping, Sequence

import msgspec

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.coordinator.data_center import NUMBERS_AHEAD, DataCenter
from greenroom.admission.coordinator.fence import NEVER_MS
from greenroom.admission.coordinator.forgotten import Forgotten
from greenroom.model.room import Room

ROW_CELL_MS = 1_000
"""Rounded up."""


class RoomRow(msgspec.Struct, frozen=True, array_like=True):
    total: int  # the limit that all units add up to
    doubted: tuple[str, ...]  # data centers that may hold more than their rows say
    doubted_until_ms: int
    forgotten_until_ms: int = 0
    forgotten: bool = False


class CenterRow(msgspec.Struct, frozen=True, array_like=True):
    epoch: int
    heard: int
    answered: int
    granted: int
    returned_permits: int
    returned_freed: int
    used: int
    over: int
    settled: int
    acknowledged: int
    orphans: int
    orphans_until_ms: int
    disconnected_rate: int  # the largest that may be in force
    leaving: tuple[tuple[int, int], ...]  # (second in which they leave the minute, admissions)
    retired: bool = False
    moved_in: int = 0
    moved_out: int = 0
    # (id, last renewal) of sessions booked to it and not known to be taken over
    on_the_way: tuple[tuple[bytes, int], ...] = ()
    seen: int = 0  # granted units that have arrived there
    fence_ms: int = 0  # the longest that may be in force; 0: never
    sources: tuple[str, ...] = ()  # of each that is on the way, which gift it is
    life_ms: int = 0  # the longest possible session there


class StoredCoordinator(msgspec.Struct, frozen=True):
    """`passed_ms`: age of the newest row. Not `complete`: newer rows may be lost, so nothing is
    granted before every data center has reported what it holds.
    """

    room: RoomRow
    rows: Mapping[str, CenterRow]
    passed_ms: int = 0
    complete: bool = True


DISCONNECTED_MARGIN = 1.25
"""A little growth needs no new row."""

Mark = tuple[int, ...]
"""The fields whose change needs a new row, the rate last; older values of the rest count more."""


def mark_of(center: DataCenter) -> Mark:
    return (
        center.granted, center.acknowledged, center.epoch, center.returned_permits,
        center.returned_freed, center.used, center.over, center.settled, center.orphans,
        center.retired, center.moved_in, center.moved_out, _fence_ms(center),
        center.disconnected_rates[0][1] if center.disconnected_rates else 0,
    )  # fmt: skip


def worth_writing(now: Mark, before: Mark) -> bool:
    return (
        not before or now[:-1] != before[:-1] or now[-1] > int(before[-1] * DISCONNECTED_MARGIN) + 1
    )


def center_row(center: DataCenter, on_the_way: tuple[tuple[bytes, int, str], ...]) -> CenterRow:
    leaving: dict[int, int] = {}
    for when_ms, count in center.leaving:
        second = -(-when_ms // ROW_CELL_MS)
        leaving[second] = leaving.get(second, 0) + count
    return CenterRow(
        center.epoch, center.heard, center.answered, center.granted, center.returned_permits,
        center.returned_freed, center.used, center.over, center.settled, center.acknowledged,
        center.orphans, center.orphans_until_ms,
        int(center.disconnected_rates[0][1] * DISCONNECTED_MARGIN) + 1 if center.disconnected_rates else 0,
        tuple(leaving.items()), center.retired, center.moved_in, center.moved_out,
        tuple([(ticket_id, renewed_ms) for ticket_id, renewed_ms, _ in on_the_way]),
        center.seen, _fence_ms(center), tuple([source for _, _, source in on_the_way]),
        center.life_ms,
    )  # fmt: skip


def _fence_ms(center: DataCenter) -> int:
    fence_ms = center.fences.longest_ms
    return 0 if fence_ms == NEVER_MS else fence_ms


def room_row(coordinator: Coordinator) -> RoomRow:
    return RoomRow(
        coordinator.total,
        tuple(sorted(coordinator.doubted)),
        coordinator.doubted_until_ms,
        *coordinator.forgotten,
    )


def recalled(
    room: Room, names: Sequence[str], stored: StoredCoordinator, now_ms: int
) -> Coordinator:
    known, rows, passed_ms = stored.room, stored.rows, stored.passed_ms
    coordinator = Coordinator((), room, now_ms)
    for name, row in rows.items():
        center = coordinator.data_centers[name] = DataCenter(name)
        _fill(center, row, passed_ms)
        center.fall_silent(now_ms)
        if row.on_the_way:
            sources = row.sources or ("",) * len(row.on_the_way)
            on_the_way = [
                (ticket_id, renewed_ms + passed_ms, source)
                for (ticket_id, renewed_ms), source in zip(row.on_the_way, sources, strict=True)
            ]
            coordinator.transfers.recall(name, on_the_way, coordinator.doubted_until_ms)
    if stored.complete:
        coordinator.doubted_until_ms = known.doubted_until_ms + passed_ms
    coordinator.forgotten = Forgotten(
        known.forgotten_until_ms + passed_ms if known.forgotten_until_ms else 0, known.forgotten
    )
    listed = [name for name, row in rows.items() if not row.retired]
    coordinator.reckon(known.total, known.doubted if stored.complete else (*names, *listed))
    coordinator.configure(room)
    coordinator.enlist(names, now_ms)
    return coordinator


_AS_STORED = (
    "epoch", "heard", "answered", "granted", "returned_permits", "returned_freed", "used", "over",
    "settled", "acknowledged", "orphans", "retired", "moved_in", "moved_out", "seen", "life_ms",
)  # fmt: skip


def _fill(center: DataCenter, row: CenterRow, passed_ms: int) -> None:
    center.recalled = True
    for name in _AS_STORED:
        setattr(center, name, getattr(row, name))
    center.orphans_until_ms = row.orphans_until_ms + passed_ms
    newest = row.answered + NUMBERS_AHEAD  # the row may be older than the newest answer
    center.allow_disconnected_rate(newest, row.disconnected_rate)
    center.fences.say(newest, row.fence_ms)
    for second, count in row.leaving:
        center.admit(second * ROW_CELL_MS + passed_ms, count)
