"""When each room of a data center syncs: every clamp(0.5 / rate, 0.25 s, 1.5 s), in slots that all
rooms share, so that many rooms make few batches. A permit request is due at once. While the
coordinator asks for complete reports a room is due in every slot.
"""

from collections.abc import Iterable
from zlib import crc32

from greenroom.admission.messages.sync import SyncDown, SyncUp

SLOT_MS = 250
SLOTS_MOST = 6
BATCHES_PER_S = 4.5
BURST_MS = 500
"""Lets a permit request follow a batch at once."""
ANSWER_MS = 2_000
"""A later answer counts as lost."""
BORROW_MS = 1_000
PACE_MS = 2_000


def phase_ms(data_center: str) -> int:
    return crc32(data_center.encode()) % (SLOT_MS * SLOTS_MOST)


class SyncSchedule:
    """Milliseconds of any clock that does not run backwards."""

    def __init__(self, phase_ms: int) -> None:
        """0 to 1499."""
        self._phase_ms = phase_ms
        self._every: dict[str, int] = {}  # room -> slots from one sync to the next: 1, 2, 3 or 6
        self._last: dict[str, int] = {}  # room -> slot of its newest sync
        self._wants: dict[str, int] = {}
        self._afresh: dict[str, None] = {}  # rooms whose next report shall be complete
        # room -> admissions so far, when, and recent admissions per second
        self._entries: dict[str, tuple[int, int, float]] = {}
        self._paid_ms = float("-inf")

    def due(self, now_ms: int, room_ids: Iterable[str]) -> dict[str, int]:
        """Room -> permits requested; they count as synced. Empty when it is too early for a
        batch.
        """
        if now_ms < self._paid_ms:
            return {}
        slot = self._slot(now_ms)
        last, wants = self._last, self._wants
        due = {}
        for room_id in room_ids:
            if room_id in wants or slot >= self._next(room_id):
                due[room_id] = wants.get(room_id, 0)
                last[room_id] = slot
        self._wants = {}
        if due:
            self._paid_ms = max(self._paid_ms, now_ms - BURST_MS) + 1000 / BATCHES_PER_S
        return due

    def request(self, room_id: str, want: int) -> None:
        self._wants[room_id] = max(self._wants.get(room_id, 0), want)

    def record(self, room_id: str, up: SyncUp, now_ms: int) -> None:
        admitted, then_ms, per_s = self._entries.get(room_id, (up.admitted, now_ms, 0.0))
        passed_ms = now_ms - then_ms
        if passed_ms > 0:
            newer = max(0, up.admitted - admitted) * 1000 / passed_ms
            per_s += (newer - per_s) * passed_ms / (passed_ms + PACE_MS)
        self._entries[room_id] = up.admitted, now_ms, per_s
        rate = max(up.arrivals_per_s, per_s)
        slots = 500 / SLOT_MS / rate if rate > 0 else SLOTS_MOST
        self._every[room_id] = (
            1 if slots < 2 else 2 if slots < 3 else 3 if slots < SLOTS_MOST else SLOTS_MOST
        )

    def answered(self, room_id: str, down: SyncDown) -> None:
        if down.afresh:
            self._afresh[room_id] = None
        else:
            self._afresh.pop(room_id, None)

    def keep(self, room_ids: Iterable[str]) -> None:
        wanted = set(room_ids)
        for known in (self._every, self._last, self._wants, self._entries, self._afresh):
            for room_id in known.keys() - wanted:
                known.pop(room_id)

    def rest_ms(self, now_ms: int, room_ids: Iterable[str]) -> int:
        slot = min(
            (self._next(one) for one in room_ids),
            default=self._slot(now_ms) + 1,
        )
        due_ms = 0.0 if self._wants else slot * SLOT_MS + self._phase_ms
        return max(0, int(max(due_ms, self._paid_ms) - now_ms) + 1)

    def _slot(self, now_ms: int) -> int:
        return (now_ms - self._phase_ms) // SLOT_MS

    def _next(self, room_id: str) -> int:
        """Rooms of one interval are due in the same slot."""
        every = 1 if room_id in self._afresh else self._every.get(room_id, 1)
        return (self._last.get(room_id, -SLOTS_MOST) // every + 1) * every
