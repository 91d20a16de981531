"""The background of all rooms: time passes in their ledgers, and their journal is kept short."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Protocol

from greenroom.ports import Clock
from greenroom.stores.memory import MemoryLedger
from greenroom.stores.shared_journal import RoomJournal

REST_LEAST_MS, REST_MOST_MS = 10, 250
"""A new room is seen within a quarter of a second, and requests always get their turn."""

TURN_MS = 5
"""After this much work in one go requests get their turn."""

COMPACT_LEAST_BYTES = 8 << 20
"""A journal below this is read in a third of a second: not worth rewriting."""
COMPACT_GROWTH = 2
"""A journal of more than this many times what is alive is rewritten: work stays proportional to what was written."""
COMPACT_RETRY_MS = 30_000


class CompactableJournal(Protocol):
    """What `stores.journal.FileJournal` offers; `compact` may run in another thread while others append."""

    @property
    def size(self) -> int:
        """Bytes."""

    def append(self, payload: bytes) -> None:
        """See `ports.Journal`."""

    def compact(self, payloads: Iterable[bytes], since: int | None = None) -> None:
        """Replaces everything up to `since` bytes; raises StorageFailed."""


class SyncLoop:
    """Ticks the ledgers of all rooms, each when it asks for it."""

    def __init__(
        self,
        rooms: Callable[[], Mapping[str, MemoryLedger]],
        clock: Clock,
        journal: CompactableJournal | None,
        on_error: Callable[[BaseException], None],
    ) -> None:
        """`rooms` gives the current ledgers by room id; `on_error` is told what went wrong, and the loop goes on."""
        self._rooms = rooms
        self._now_ms = clock.now_ms
        self._journal = journal
        self._on_error = on_error
        self._due: dict[str, int] = {}
        self._compact_ms = 0
        self._compaction: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Until cancelled; a compaction that has begun is finished first."""
        try:
            while True:
                rest_ms = await self.turn()
                await asyncio.sleep(rest_ms / 1000)
        finally:
            if self._compaction:
                await self._compaction

    async def turn(self) -> int:
        """Ticks every room that is due, compacts when worth it; milliseconds to rest."""
        rooms = self._rooms()
        self._due = {name: self._due.get(name, 0) for name in rooms}
        began_ms = self._now_ms()
        for name, ledger in rooms.items():
            now_ms = self._now_ms()
            if now_ms >= self._due[name]:
                try:
                    self._due[name] = ledger.tick()
                except Exception as error:
                    self._on_error(error)
                    self._due[name] = now_ms + REST_MOST_MS
            if now_ms - began_ms >= TURN_MS:
                await asyncio.sleep(0)
                began_ms = self._now_ms()
        self._compact_when_worth_it(rooms)
        rest_ms = min(self._due.values(), default=0) - self._now_ms()
        return max(REST_LEAST_MS, min(REST_MOST_MS, rest_ms)) if rooms else REST_MOST_MS

    def _compact_when_worth_it(self, rooms: Mapping[str, MemoryLedger]) -> None:
        journal, now_ms = self._journal, self._now_ms()
        if journal is None or now_ms < self._compact_ms or journal.size < COMPACT_LEAST_BYTES:
            return
        live_bytes = sum(ledger.live_bytes() for ledger in rooms.values())
        if journal.size < COMPACT_GROWTH * live_bytes or (self._compaction and not self._compaction.done()):
            return
        since = journal.size
        payloads = chain.from_iterable([RoomJournal(journal, name).wrapped(ledger.snapshot()) for name, ledger in rooms.items()])
        self._compaction = asyncio.create_task(self._compact(journal, payloads, since))

    async def _compact(self, journal: CompactableJournal, payloads: Iterable[bytes], since: int) -> None:
        try:
            await asyncio.to_thread(journal.compact, payloads, since)
        except Exception as error:
            self._on_error(error)
            self._compact_ms = self._now_ms() + COMPACT_RETRY_MS
