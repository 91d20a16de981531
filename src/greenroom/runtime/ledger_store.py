"""The ledgers of all rooms: restored, ticked, flushed, kept across reloads, closed with their room."""

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
from greenroom.errors import InvalidConfig, StorageFailed
from greenroom.keys.ticket_keys import KeyRing
from greenroom.ledgers.journal import Damage, LateJournal
from greenroom.ledgers.memory import SNAPSHOT_RECORDS, MemoryLedger, TickLoop
from greenroom.ledgers.port import LedgerPort
from greenroom.model.fields import with_unit
from greenroom.model.room import Room
from greenroom.model.visit import TICKET_ID_BYTES, Outcome, make_key
from greenroom.runtime.clock import MonotonicClock
from greenroom.runtime.data_dir import DataDir
from greenroom.runtime.entropy import Entropy
from greenroom.runtime.loops import WorkPieces

JOURNAL_LEAST_BYTES = 1 << 20
"""Read in milliseconds."""

JOURNAL_GROWTH = 3
"""Keeps the disk bounded and the start within a second."""

TOLD_BYTES = 16 << 20

RoomsAt = Callable[[int], Iterable[Room]]

log = structlog.get_logger(__name__)


class OpenRoom(Protocol):
    @property
    def ledger(self) -> LedgerPort: ...

    def figures(self, now_ms: int) -> Figures: ...


class ProcessLedgerStore(Protocol):
    """What `prepare` gave is only valid for the store that gave it."""

    @property
    def open(self) -> Mapping[str, OpenRoom]: ...

    async def exchange_keys(self) -> None:
        """Before the key ring is read."""

    def exchanges_keys(self) -> bool:
        """Whether other machines would learn of a new key before it seals."""

    async def restore(self, rooms: RoomsAt) -> None:
        """Raises StorageFailed."""

    async def run(self) -> None: ...

    async def prepare(self, rooms: RoomsAt) -> dict[str, Any]:
        """Visitors are served meanwhile. Raises StorageFailed, having changed nothing. Not called
        again before `take_over` or `discard`.
        """

    def discard(self, prepared: Mapping[str, Any]) -> None: ...

    def take_over(self, rooms: Iterable[Room], prepared: Mapping[str, Any]) -> None: ...

    def keep_figures_fresh(self) -> None:
        """So that figures are fresh for a while."""

    def sync_state(self) -> SyncState | None:
        """None where the process is its own coordinator."""

    async def give_up(self, data_center: str) -> None: ...

    def looks(self, now_ms: int) -> Iterable[RoomLook]: ...

    def halted(self) -> Mapping[str, str]:
        """Room name -> why its ledger cannot be written."""

    def closed(self, prepared: Mapping[str, Any] | None = None) -> Mapping[str, str]:
        """Room id -> why its ledger could not be opened; the room holds its visitors, and `prepare`
        tries again.
        """

    async def flush(self) -> None:
        """Raises StorageFailed."""

    async def close(self) -> None: ...


class ClosedJournal:
    """Nothing can be written, so no visitor is admitted."""

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

    def sync(self) -> None: ...

    def compact(self, _payloads: Iterable[bytes], _since: int | None = None) -> None: ...

    def close(self) -> None: ...


RoomJournal = LateJournal | ClosedJournal


@dataclass(slots=True)
class LocalRoom:
    ledger: MemoryLedger
    journal: RoomJournal
    flushed: int = 0
    """A room where nothing happened costs nothing."""

    def figures(self, now_ms: int) -> Figures:
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
        return self.journal.size > max(
            JOURNAL_LEAST_BYTES, JOURNAL_GROWTH * self.ledger.live_bytes()
        )


class LocalLedgerStore:
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

    async def exchange_keys(self) -> None: ...

    def exchanges_keys(self) -> bool:
        return True

    async def restore(self, rooms: RoomsAt) -> None:
        """With a clock that is behind none of the journals."""
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
        await self._loop.run()

    async def prepare(self, rooms: RoomsAt) -> dict[str, LocalRoom]:
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
        for room_id, ledgers in prepared.items():
            if self.open.get(room_id) is not ledgers:
                ledgers.journal.close()

    def take_over(self, rooms: Iterable[Room], prepared: Mapping[str, LocalRoom]) -> None:
        """Ledgers of other rooms wait on the disk for their return."""
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

    def keep_figures_fresh(self) -> None: ...

    def sync_state(self) -> SyncState | None:
        return None

    async def give_up(self, data_center: str) -> None: ...

    def halted(self) -> Mapping[str, str]:
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
        """Compacts where history has piled up. Raises StorageFailed after every room had its
        turn.
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
                f"restored   room {room.name}: {with_unit(len(memory.sessions), 'sessions')},"
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
    """Counts as many units as the journal may have lost as taken, so that the limits hold, and
    writes them down.
    """
    entropy = Entropy()
    lost = (
        sum(damage.length // RECORD.size for damage in journal.damage)
        if journal.damage
        else room.total_active_users
    )
    records = stand_ins(lost, room, now_ms, lambda: entropy.take(TICKET_ID_BYTES))
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


TEND_S = 1.0
"""A power cut can take what came in between."""


async def tend(
    ring: KeyRing, ledgers: ProcessLedgerStore, now_ms: Callable[[], int], data: str
) -> None:
    failure, halted = "", set[str]()
    while True:
        await asyncio.sleep(TEND_S)
        found = "; ".join(
            [
                *_failure_of_keys(ring, now_ms(), ledgers.exchanges_keys()),
                *await _failure_of_ledgers(ledgers),
            ]
        )
        if found and found != failure:
            log.error("data_directory_failed", reason=found)
        reasons = ledgers.halted()
        for name in reasons.keys() - halted:
            log.error("admissions_stopped", room=name, reason=found or reasons[name], data=data)
        for name in halted - reasons.keys():
            log.info("admissions_resumed", room=name)
        failure, halted = found, set(reasons)


def _failure_of_keys(ring: KeyRing, now_ms: int, rotates: bool) -> list[str]:
    try:
        ring.tend(now_ms, rotates=rotates)
    except (StorageFailed, InvalidConfig) as error:
        return [str(error)]
    return []


async def _failure_of_ledgers(ledgers: ProcessLedgerStore) -> list[str]:
    # Also when something is wrong with the keys: journals that are not flushed are lost with the
    # power, and grow without end.
    try:
        await ledgers.flush()
    except (StorageFailed, InvalidConfig) as error:
        return [str(error)]
    return []
