"""Everybody in line, in order of key, with exact ranks. Keys are in sorted stretches of about a
thousand (`partial_sums`); everything else about a waiter is in columns indexed by slot. The wheel
may hold stale entries of a slot: only the one at `_filed` counts.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from math import sqrt

from greenroom.admission.queueing.partial_sums import PartialSums
from greenroom.admission.timer_wheel import CELL_BITS, Wheel
from greenroom.model.visit import TIE_BITS, arrival_ms_of

GRACE_MS = 3_000
"""Longer than a slow network delays a check-in."""

FOREVER_MS = 1 << 62

CHANCE = 2.0

STRETCH_MAX = 2_000
"""An insert moves 16 KB at most."""


class Line:
    """Ranks count from 0; times are milliseconds."""

    __slots__ = (
        "_filed",
        "_free",
        "_kept_slot",
        "_kept_until_ms",
        "_lows",
        "_pardoned_ms",
        "_sizes",
        "_stretches",
        "_wheel",
        "attempted",
        "changed",
        "ids",
        "keys",
        "refresh",
        "seconds",
        "slots",
    )

    def __init__(self) -> None:
        self.slots: dict[bytes, int] = {}
        self.ids: list[bytes | None] = []
        self.keys = array("Q")
        self.attempted = array("q")
        self.refresh = array("l")
        self.seconds: dict[int, int] = {}
        self.changed: set[int] = set()
        self._filed = array("q")
        self._free: list[int] = []
        self._kept_slot = self._kept_until_ms = -1
        self._pardoned_ms = 0
        self._wheel: Wheel[int] = Wheel()
        # keys in order, and their slots
        self._stretches: list[tuple[array[int], array[int]]] = []
        self._lows: list[int] = []
        self._sizes = PartialSums()

    def __len__(self) -> int:
        return len(self.slots)

    def join(self, ticket_id: bytes, key: int, now_ms: int, refresh_ms: int) -> int:
        """Returns the slot; the id must be new."""
        slot = self._settle(ticket_id, key)
        self.expect(slot, now_ms, refresh_ms)
        self._insert(key, slot)
        self._count(key, 1)
        return slot

    def expect(self, slot: int, now_ms: int, refresh_ms: int) -> None:
        """The visitor is a ghost only after the refresh and the grace."""
        self.attempted[slot] = now_ms
        self.refresh[slot] = refresh_ms
        due_ms = now_ms + refresh_ms + GRACE_MS
        if due_ms < self._filed[slot]:
            self._file(slot, due_ms)

    def keep(self, slot: int, until_ms: int, now_ms: int) -> None:
        """Keeps one place at a time: the first one until its time is over."""
        if self._kept_slot in (-1, slot) or self._kept_until_ms < now_ms:
            self._kept_slot, self._kept_until_ms = slot, until_ms
            if self._filed[slot] > until_ms:  # kept for longer before
                self._file(slot, until_ms)

    @property
    def kept(self) -> bytes | None:
        return self.ids[self._kept_slot] if self._kept_slot >= 0 else None

    def fill(self, places: Iterable[tuple[bytes, int]], now_ms: int, refresh_ms: int) -> None:
        for ticket_id, key in places:
            self.expect(self._settle(ticket_id, key), now_ms, refresh_ms)
            self._count(key, 1)
        self._arrange()

    def rekey(self, keys: Mapping[bytes, int]) -> list[bytes]:
        """Returns the ids whose key changed."""
        moved = [
            (ticket_id, self.slots[ticket_id], key)
            for ticket_id, key in keys.items()
            if ticket_id in self.slots
        ]
        moved = [(ticket_id, slot, key) for ticket_id, slot, key in moved if self.keys[slot] != key]
        for _, slot, key in moved:
            self._count(self.keys[slot], -1)
            self.keys[slot] = key
            self._count(key, 1)
        if moved:
            self._arrange()
        return [ticket_id for ticket_id, _, _ in moved]

    def rename(self, old: bytes, new: bytes) -> None:
        slot = self.slots[new] = self.slots.pop(old)
        self.ids[slot] = new

    def remove(self, ticket_id: bytes) -> int:
        slot = self.slots.pop(ticket_id)
        self.ids[slot] = None
        self._filed[slot] = FOREVER_MS
        self._free.append(slot)
        if slot == self._kept_slot:
            self._kept_slot = -1
        key = self.keys[slot]
        self._count(key, -1)
        index, place = self._find(key, slot)
        keys, slots = self._stretches[index]
        del keys[place], slots[place]
        if not keys:
            del self._stretches[index], self._lows[index]
            self._sizes.remove(index)
        else:
            self._lows[index] = keys[0]
            self._sizes.add(index, -1)
        return slot

    def rank(self, key: int) -> int:
        index = bisect_left(self._lows, key) - 1
        if index < 0:
            return 0
        return self._sizes.before(index) + bisect_left(self._stretches[index][0], key)

    def at(self, rank: int) -> int:
        index, rest = self._sizes.find(rank)
        return self._stretches[index][1][rest]

    def places(self, ranks: Iterable[int]) -> list[tuple[int, int]]:
        """Ranks must ascend and be in the line."""
        found: list[tuple[int, int]] = []
        for rank in ranks:
            index, rest = self._sizes.find(rank)
            found.append((arrival_ms_of(self._stretches[index][0][rest]), rank))
        return found

    def in_order(self) -> Iterable[tuple[bytes, int]]:
        for keys, slots in self._stretches:
            for key, slot in zip(keys, slots, strict=True):
                ticket_id = self.ids[slot]
                if ticket_id is not None:
                    yield ticket_id, key

    @property
    def first_ms(self) -> int:
        """The line must not be empty."""
        return self._lows[0] >> TIE_BITS

    def unseen(self, second: int) -> int:
        """Estimated newcomers whose tickets have not come back. Tickets take up to 2.5 s, so of the
        second before last half are missing. A new crowd counts at once as far as one second's
        arrivals exceed chance.
        """
        counts = self.seconds
        lately = [counts.get(second - age, 0) for age in range(6)]
        most = max(lately)
        before, since = sum(lately[3:]), sum(lately[:3])
        return max(0, max(before * 5 // 6, int((most - CHANCE * sqrt(most)) * 5 / 2)) - since)

    def sweep(self, now_ms: int, patience_ms: int, limit: int) -> list[tuple[bytes, int]]:
        """Removes visitors who are refresh + grace + patience late, among at most `limit` examined.
        Returns their (id, slot).
        """
        gone: list[tuple[bytes, int]] = []
        cell = now_ms >> CELL_BITS
        if self._pardoned_ms >> CELL_BITS >= cell:
            return gone
        for slot in self._wheel.due(now_ms, limit):
            ticket_id = self.ids[slot]
            if ticket_id is None or self._filed[slot] >> CELL_BITS >= cell:
                continue
            due_ms = self.attempted[slot] + self.refresh[slot] + GRACE_MS + patience_ms
            if slot == self._kept_slot:
                due_ms = max(due_ms, self._kept_until_ms)
            if due_ms >> CELL_BITS >= cell:
                self._file(slot, due_ms)
            else:
                gone.append((ticket_id, self.remove(ticket_id)))
        return gone

    def overdue(self, now_ms: int) -> bool:
        return self._pardoned_ms >> CELL_BITS < now_ms >> CELL_BITS and self._wheel.overdue(now_ms)

    def pardon(self, until_ms: int) -> None:
        self._pardoned_ms = until_ms
        for slot in self.slots.values():
            if self._filed[slot] > until_ms:
                self._file(slot, until_ms)

    def _file(self, slot: int, due_ms: int) -> None:
        self._filed[slot] = due_ms
        self._wheel.file(due_ms, slot)

    def _settle(self, ticket_id: bytes, key: int) -> int:
        if self._free:
            slot = self._free.pop()
            self.ids[slot], self.keys[slot] = ticket_id, key
        else:
            slot = len(self.ids)
            self.ids.append(ticket_id)
            self.keys.append(key)
            self.attempted.append(0)
            self.refresh.append(0)
            self._filed.append(FOREVER_MS)
        self.slots[ticket_id] = slot
        return slot

    def _arrange(self) -> None:
        slots = array("I", sorted(self.slots.values(), key=self.keys.__getitem__))
        keys = array("Q", [self.keys[slot] for slot in slots])
        size = STRETCH_MAX // 2
        self._stretches = [
            (keys[start : start + size], slots[start : start + size])
            for start in range(0, len(slots), size)
        ]
        self._lows = [stretch[0][0] for stretch in self._stretches]
        self._sizes = PartialSums(len(stretch[0]) for stretch in self._stretches)

    def _insert(self, key: int, slot: int) -> None:
        index = max(0, bisect_right(self._lows, key) - 1)
        last = index == len(self._lows) - 1
        if not self._lows or (
            last
            and len(self._stretches[index][0]) >= STRETCH_MAX
            and key >= self._stretches[index][0][-1]
        ):
            self._place(len(self._lows), array("Q", (key,)), array("I", (slot,)))
            return
        keys, slots = self._stretches[index]
        place = bisect_right(keys, key)
        keys.insert(place, key)
        slots.insert(place, slot)
        self._lows[index] = keys[0]
        self._sizes.add(index, 1)
        if len(keys) > STRETCH_MAX:
            half = len(keys) // 2
            self._sizes.add(index, half - len(keys))
            self._place(index + 1, keys[half:], slots[half:])
            del keys[half:], slots[half:]

    def _place(self, index: int, keys: "array[int]", slots: "array[int]") -> None:
        self._stretches.insert(index, (keys, slots))
        self._lows.insert(index, keys[0])
        self._sizes.insert(index, len(keys))

    def _find(self, key: int, slot: int) -> tuple[int, int]:
        """Equal keys may continue in the next stretch."""
        index = max(0, bisect_left(self._lows, key) - 1)
        place = bisect_left(self._stretches[index][0], key)
        while True:
            slots = self._stretches[index][1]
            while place < len(slots):
                if slots[place] == slot:
                    return index, place
                place += 1
            index, place = index + 1, 0

    def _count(self, key: int, change: int) -> None:
        second = (key >> TIE_BITS) // 1000
        count = self.seconds.get(second, 0) + change
        if count:
            self.seconds[second] = count
        else:
            del self.seconds[second]
        self.changed.add(second)
