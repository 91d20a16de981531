"""The ledgers of all rooms: restored at the start, ticked, flushed, kept across reloads, closed
when a room is removed.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import structlog

from greenroom.admission.records import RECORD, SESSION, LedgerMemory, remember, stand_ins
from greenroom.analytics.collector.sampler import RoomLook, wait_seconds
from greenroom.configuration.state import SyncState
from greenroom.decision.room_view import Figures
from greenroom.errors import StorageFailed
from greenroom.ledgers.journal import Damage
from greenroom.ledgers.late_journal import LateJournal
from greenroom.ledgers.memory import SNAPSHOT_RECORDS, MemoryLedger
from greenroom.ledgers.port import LedgerPort
from greenroom.ledgers.sync.tick_loop import TickLoop
from greenroom.model.room import Room
from greenroom.model.visit import TICKET_ID_BYTES, Outcome, make_key
from greenroom.runtime.clock import MonotonicClock
from greenroom.runtime.data_dir import DataDir
from greenroom.runtime.entropy import Entropy
from greenroom.runtime.work_pieces import WorkPieces

JOURNAL_LEAST_BYTES = 1 << 20
"""A smaller journal is not worth compacting: it is read in milliseconds."""

JOURNAL_GROWTH = 3
"""Times what is alive in it that a journal may reach: keeps the disk bounded and the start within a
second.
"""

TOLD_BYTES = 16 << 20
"""Journals above this take a moment to read, and the start says so."""

RoomsAt = Callable[[int], Iterable[Room]]
"""The rooms as their ledgers are told, at a moment of Unix milliseconds."""

log = structlog.get_logger(__name__)


class OpenRoom(Protocol):
    """One open room, wherever its ledger is."""

    @property
    def ledger(self) -> LedgerPort:
        """Answers its visitors."""

    def figures(self, now_ms: int) -> Figures:
        """Its ledger at this moment, or nearly."""


class ProcessLedgerStore(Protocol):
    """All open rooms of a process: in memory (`LocalLedgerStore`) or in Redis
    (`SharedLedgerStore`).

    What `prepare` gave is only valid for the store that gave it.
    """

    @property
    def open(self) -> Mapping[str, OpenRoom]:
        """By room id."""

    async def exchange_keys(self) -> None:
        """Before the key ring is read: takes in the keys of other machines, where there are any."""

    def exchanges_keys(self) -> bool:
        """Whether other machines, where there are any, would hear of a new key before it seals."""

    async def restore(self, rooms: RoomsAt) -> None:
        """Opens these rooms as they are remembered. Raises StorageFailed."""

    async def run(self) -> None:
        """Until cancelled: time passes."""

    async def prepare(self, rooms: RoomsAt) -> dict[str, Any]:
        """The ledgers of these rooms; visitors are served meanwhile. Raises StorageFailed, having
        changed nothing.

        Between this and `take_over` or `discard` it is not called again.
        """

    def discard(self, prepared: Mapping[str, Any]) -> None:
        """Closes the rooms that `prepare` opened and that were not used."""

    def take_over(self, rooms: Iterable[Room], prepared: Mapping[str, Any]) -> None:
        """From now on these rooms are open, with these settings."""

    def asked(self) -> None:
        """Notes that figures are wanted by someone outside, so that they are fresh for a while."""

    def sync_state(self) -> SyncState | None:
        """How this process stands with the coordinator of all data centers; None where it is its
        own.
        """

    async def give_up(self, data_center: str) -> None: ...

    def looks(self, now_ms: int) -> Iterable[RoomLook]: ...

    def halted(self) -> Mapping[str, str]:
        """Names of the rooms whose admissions are stopped because the ledger cannot be written,
        with the reason.
        """

    def closed(self, prepared: Mapping[str, Any] | None = None) -> Mapping[str, str]:
        """Ids of the open rooms, or of those prepared, whose ledger could not be opened, with the
        reason. They hold their visitors, and `prepare` tries again.
        """

    async def flush(self) -> None:
        """Onto the disk itself. Raises StorageFailed."""

    async def close(self) -> None:
        """Puts everything away."""


class ClosedJournal:
    """In the place of one that cannot be opened: nothing can be written, so no visitor is let in."""

    size = 0
    damage: tuple[Damage, ...] = ()
    emptied = False

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason

    def append(self, _payload: bytes) -> None:
        raise StorageFailed(self.reason)

    def replay(self) -> Iterator[bytes]:
        return iter(())

    def sync(self) -> None:
        """There is nothing to flush."""

    def compact(self, _payloads: Iterable[bytes], _since: int | None = None) -> None:
        """There is nothing to replace."""

    def close(self) -> None:
        """It is."""


RoomJournal = LateJournal | ClosedJournal


@dataclass(slots=True)
class LocalRoom:
    """One room's ledger, its journal, and how its requests were answered so far."""

    ledger: MemoryLedger
    journal: RoomJournal
    flushed: int = 0
    """Size of the journal when it was last flushed: a room where nothing happened costs nothing."""

    def figures(self, now_ms: int) -> Figures:
        """The ledger at this moment."""
        gauges = self.ledger.gauges()
        found: list[Outcome] = []
        self.ledger.peek(
            bytes(TICKET_ID_BYTES), make_key(now_ms, -1), found.append
        )  # an unused id: changes nothing, gives the estimate
        return Figures(
            active=gauges.active,
            waiting=gauges.waiting,
            last_minute=gauges.admitted_last_minute,
            permits_unused=gauges.permits,
            estimate=found[0].estimate,
            journal_bytes=self.journal.size,
            storage_failed=gauges.storage_failed,
            confirms=gauges.confirms,
        )

    def wants_compacting(self) -> bool:
        """Whether most of the journal is history."""
        return self.journal.size > max(
            JOURNAL_LEAST_BYTES, JOURNAL_GROWTH * self.ledger.live_bytes()
        )


class LocalLedgerStore:
    """All open rooms by id. `run` makes time pass in them."""

    def __init__(
        self,
        data: DataDir,
        clock: MonotonicClock,
        say: Callable[[str], None],
        on_error: Callable[[BaseException], None],
    ) -> None:
        self.open: Mapping[str, LocalRoom] = {}
        self._data = data
        self._clock = clock
        self._say = say
        self._on_error = on_error
        self._ledgers: dict[str, MemoryLedger] = {}
        self._loop = TickLoop(lambda: self._ledgers, clock, on_error)

    async def exchange_keys(self) -> None:
        """One process has no others."""

    def exchanges_keys(self) -> bool:
        """There is none to tell."""
        return True

    async def restore(self, rooms: RoomsAt) -> None:
        """Opens these rooms as the journals remember them, with a clock that is behind none of
        them.
        """
        journals: dict[str, RoomJournal] = {}
        try:
            for room in rooms(self._clock.now_ms()):
                journals[room.id] = self._journal(room)
            size = sum(journal.size for journal in journals.values())
            if size > TOLD_BYTES:
                self._say(f"restoring: reading {size >> 20} MB of journals ...")
            memories = {}
            for room_id, journal in journals.items():
                try:
                    memories[room_id] = await asyncio.to_thread(_read, journal)
                except Exception as error:
                    journals[room_id] = self._closed(journal, error)
                    memories[room_id] = LedgerMemory()
        except BaseException:
            for journal in journals.values():
                journal.close()
            raise
        self._clock.catch_up(max((memory.latest_ms for memory in memories.values()), default=0))
        self._use(
            {
                room.id: self._restored(room, journals[room.id], memories[room.id])
                for room in rooms(self._clock.now_ms())
            }
        )
        self._data.drop_old_journals(self.open)

    async def run(self) -> None:
        """Until cancelled: sessions end, ghosts are swept, permits are leased."""
        await self._loop.run()

    async def prepare(self, rooms: RoomsAt) -> dict[str, LocalRoom]:
        """See ProcessLedgerStore: those at hand, and new ones opened."""
        wanted: dict[str, LocalRoom] = {}
        pieces = WorkPieces()
        try:
            for room in rooms(self._clock.now_ms()):
                known = self.open.get(room.id)
                if known is None or isinstance(known.journal, ClosedJournal):
                    known = await self._opened(room)
                wanted[room.id] = known
                await pieces.breathe()
        except BaseException:
            self.discard(wanted)
            raise
        return wanted

    def discard(self, prepared: Mapping[str, LocalRoom]) -> None:
        """Closes the rooms that `prepare` opened and that were not used."""
        for room_id, ledgers in prepared.items():
            if self.open.get(room_id) is not ledgers:
                ledgers.journal.close()

    def take_over(self, rooms: Iterable[Room], prepared: Mapping[str, LocalRoom]) -> None:
        """From now on these rooms are open, with these settings; those of the others wait on the
        disk for their return.
        """
        for room_id, ledgers in self.open.items():
            if prepared.get(room_id) is not ledgers:
                ledgers.journal.close()
        self._use(prepared)
        for room in rooms:
            if prepared[room.id].ledger.room != room:
                prepared[room.id].ledger.configure(room)

    def looks(self, now_ms: int) -> Iterator[RoomLook]:
        for found in self.open.values():
            gauges = found.ledger.gauges()
            wait_s = wait_seconds(found.figures(now_ms).estimate) if gauges.waiting else 0
            yield RoomLook(
                found.ledger.room, gauges.active, gauges.waiting, wait_s, found.ledger.tally()
            )

    def asked(self) -> None:
        """Figures are always fresh."""

    def sync_state(self) -> SyncState | None:
        """Nothing to synchronize."""
        return None

    async def give_up(self, data_center: str) -> None:
        """There is no other data center."""

    def halted(self) -> Mapping[str, str]:
        """Names of the rooms whose admissions are stopped because the ledger cannot be written,
        with the reason.
        """
        return {
            found.ledger.room.name: "the journal is not writable"
            for found in self.open.values()
            if found.ledger.storage_failed
        }

    def closed(self, prepared: Mapping[str, LocalRoom] | None = None) -> Mapping[str, str]:
        return {
            room_id: found.journal.reason
            for room_id, found in (self.open if prepared is None else prepared).items()
            if isinstance(found.journal, ClosedJournal)
        }

    async def flush(self) -> None:
        """Onto the disk itself, and compacted where history has piled up. Raises StorageFailed
        after every room had its turn.
        """
        failed: StorageFailed | None = None
        for room_id, ledgers in list(self.open.items()):
            try:
                await self._flush(ledgers)
            except StorageFailed as error:
                if self.open.get(room_id) is ledgers:
                    failed = error
        if failed:
            raise failed

    async def _flush(self, ledgers: LocalRoom) -> None:
        if not ledgers.ledger.storage_failed and ledgers.wants_compacting():
            payloads, since = ledgers.ledger.snapshot(), ledgers.journal.size
            await asyncio.to_thread(ledgers.journal.compact, payloads, since)
        size = ledgers.journal.size
        if size != ledgers.flushed:
            await asyncio.to_thread(ledgers.journal.sync)
            ledgers.flushed = size

    async def close(self) -> None:
        """Everything onto the disk, and closed."""
        for ledgers in self.open.values():
            with contextlib.suppress(
                StorageFailed
            ):  # what was acknowledged is in the file; only a power cut could still take it
                if ledgers.journal.size != ledgers.flushed:
                    ledgers.journal.sync()
            ledgers.journal.close()
        self._use({})

    def _use(self, rooms: Mapping[str, LocalRoom]) -> None:
        self.open = rooms
        self._ledgers = {room_id: ledgers.ledger for room_id, ledgers in rooms.items()}

    async def _opened(self, room: Room) -> LocalRoom:
        journal = self._journal(room)
        try:
            memory = await asyncio.to_thread(_read, journal) if journal.size else _read(journal)
            return self._restored(room, journal, memory)
        except Exception as error:
            return self._restored(room, self._closed(journal, error), LedgerMemory())
        except BaseException:
            journal.close()
            raise

    def _journal(self, room: Room) -> RoomJournal:
        path = self._data.journal(room.id)
        try:
            return LateJournal(path)
        except Exception as error:
            return self._closed(ClosedJournal(path, ""), error)

    def _closed(self, journal: RoomJournal, error: Exception) -> ClosedJournal:
        """One room's journal is never a reason to stop the others."""
        journal.close()
        if not isinstance(error, (StorageFailed, OSError)):
            self._on_error(error)
        return ClosedJournal(journal.path, str(error) or repr(error))

    def _restored(self, room: Room, journal: RoomJournal, memory: LedgerMemory) -> LocalRoom:
        if journal.damage or journal.emptied:
            _make_up_for_lost(room, journal, memory, self._clock.now_ms())
        if memory.sessions or memory.places:
            self._say(
                f"restored   room {room.name}: {len(memory.sessions)} sessions,"
                f" {len(memory.places)} in line"
            )
        ledger = MemoryLedger.restore(room, self._clock, Entropy().bits, journal, memory)
        if isinstance(journal, ClosedJournal):
            ledger.ledger.halted = True
        return LocalRoom(ledger, journal)


def _read(journal: RoomJournal) -> LedgerMemory:
    try:
        payloads = list(journal.replay())
        return remember(payloads, holes=bool(journal.damage))
    except ValueError as error:
        raise StorageFailed(f"{journal.path}: {error}") from None


def _make_up_for_lost(room: Room, journal: RoomJournal, memory: LedgerMemory, now_ms: int) -> None:
    """Tells what the journal has lost, and keeps as many units taken as that may have been, so that
    the limits hold.

    They are written down too: the next start finds a journal without damage.
    """
    entropy = Entropy()
    lost = (
        sum(damage.length // RECORD.size for damage in journal.damage)
        if journal.damage
        else room.total_active_users
    )
    records = stand_ins(memory, lost, room, now_ms, lambda: entropy.take(TICKET_ID_BYTES))
    held = sum(record[0] == SESSION for record in records)
    for damage in journal.damage:
        log.error(
            "journal_damaged",
            room=room.name,
            file=str(journal.path),
            offset=damage.offset,
            length=damage.length,
            damage=str(damage),
        )
    if journal.emptied:
        log.error("journal_emptied", room=room.name, file=str(journal.path))
    log.warning(
        "units_held",
        room=room.name,
        lost_at_most=lost,
        units=held,
        seconds=room.session_ms // 1000,
        kept=len(memory.sessions),
    )
    for start in range(0, len(records), SNAPSHOT_RECORDS):
        payload = b"".join(records[start : start + SNAPSHOT_RECORDS])
        memory.replay(payload)
        with contextlib.suppress(
            StorageFailed
        ):  # then nothing can be written, so no visitor is let in anyway
            journal.append(payload)
