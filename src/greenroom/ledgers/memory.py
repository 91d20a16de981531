"""The ledger of one room inside this process. No answer is given before its record is in the journal.
When the disk refuses, the newest admission is undone and admissions stop; each second the disk is
tried again, and the whole room is written before admissions continue. So the file is either complete
or not written.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.laws import problems
from greenroom.admission.ledger.failing import fail, reenter
from greenroom.admission.ledger.ledger import SWEEP_SLICE, Ledger
from greenroom.admission.ledger.moving import move, move_back, take_turn
from greenroom.admission.ledger.tally import Taken
from greenroom.admission.records import NOBODY, NOTE, RECORD, LedgerMemory, pack, remember, snapshot
from greenroom.errors import StorageFailed
from greenroom.ledgers.port import TableThen, Then, nobody
from greenroom.model.clock import Clock
from greenroom.model.record import replace
from greenroom.model.room import Room
from greenroom.model.visit import Outcome, Standing, Ticket

HERE = "here"

DRY_MS = 50
"""Between two syncs of a ledger without permits: a flood would cause one per request."""

SYNC_LEAST_MS, SYNC_MOST_MS = 250, 1_500
RETRY_MS = 1_000

SNAPSHOT_RECORDS = 40_000
"""Just under a megabyte."""


class Journal(Protocol):
    """`append` returns when the record survives kill -9."""

    def append(self, records: bytes) -> None:
        """Raises StorageFailed, having written nothing readable."""


class Gauges(NamedTuple):
    active: int
    waiting: int  # real places
    called: int
    permits: int  # unused
    admitted_last_minute: int
    storage_failed: bool
    confirms: bool = False


class MemoryLedger:
    def __init__(
        self,
        room: Room,
        clock: Clock,
        getrandbits: Callable[[int], int],
        journal: Journal | None = None,
    ) -> None:
        """Without a journal nothing survives this process."""
        now_ms = clock.now_ms()
        self._room = room
        self._now_ms = clock.now_ms
        self._getrandbits = getrandbits
        self._journal = journal
        self.ledger = Ledger(room, HERE, now_ms, now_ms)
        self.coordinator = Coordinator([HERE], room, now_ms)
        self._retry_ms = 0
        self._dry_ms = self._tick_ms = now_ms
        self._behind = False  # the last tick left something over
        self._exchange(now_ms)

    @classmethod
    def restore(
        cls,
        room: Room,
        clock: Clock,
        getrandbits: Callable[[int], int],
        journal: Journal | None,
        records: Iterable[bytes] | LedgerMemory,
    ) -> "MemoryLedger":
        """`records`: from the journal, oldest first; ValueError if they are none. The clock must not
        be behind `LedgerMemory.latest_ms`.
        """
        memory = records if isinstance(records, LedgerMemory) else remember(records)
        ledger = cls(room, clock, getrandbits, journal)
        now_ms = clock.now_ms()
        ledger.ledger = Ledger(room, HERE, now_ms, now_ms)
        ledger.coordinator = Coordinator([HERE], room, now_ms)
        ledger.ledger.restore(memory, now_ms)
        ledger._write_log()
        ledger._exchange(now_ms)
        return ledger

    # -- the Ledger port ---------------------------------------------------------------------------

    def arrive(self, ticket_id: bytes, key: int, then: Then) -> None:  # noqa: ARG002 - a newcomer's key counts when the ticket comes back
        then(self.arrive_now(ticket_id, self._now_ms()))

    def arrive_provisionally(self, ticket_id: bytes, key: int, then: Then) -> None:  # noqa: ARG002 - there is no place to take
        now_ms = self._now_ms()
        ledger = self.ledger
        if now_ms >= self._dry_ms and ledger.wants_permits():
            self._exchange(now_ms)
        outcome = ledger.arrive_provisionally(ticket_id, now_ms)
        then(self._written(outcome, now_ms, self._getrandbits(64)) if ledger.log else outcome)

    def poll(self, ticket_id: bytes, key: int, then: Then) -> None:
        then(self.poll_now(ticket_id, key, self._now_ms()))

    def peek(self, ticket_id: bytes, key: int, then: Then) -> None:
        then(self.peek_now(ticket_id, key, self._now_ms()))

    def reclaim(self, ticket_id: bytes, key: int, then: Then) -> None:
        then(self.ledger.reclaim(ticket_id, key, self._now_ms(), self._getrandbits(64)))

    def view(self, ticket_id: bytes, then: Then) -> None:
        then(self.view_now(ticket_id, self._now_ms()))

    def visit(self, ticket: Ticket, home: str, then: Then) -> None:  # noqa: ARG002 - there is no other data center
        then(Outcome(Standing.GONE))

    def keep(self, ticket_id: bytes, gap_ms: int) -> None:
        # not stored: a restart gives all waiters a whole refresh
        self.ledger.keep(ticket_id, gap_ms, self._now_ms())

    def line_table(self, then: TableThen) -> None:
        table = self.ledger.line_table(self._now_ms())
        self._write_log()
        then(table)

    def leave(self, ticket_id: bytes, key: int = 0, then: Then = nobody) -> None:  # noqa: ARG002 - this ledger finds the place by its id
        was = self.ledger.leave(ticket_id, self._now_ms())
        if self.ledger.lease.freed:
            # the next newcomer gets the unit at once; each freed unit was an admission, so no flood
            self._dry_ms = 0
        self._write_log()
        then(Outcome(was))

    def move(self, old: bytes, new: bytes, absent: bool, then: Then) -> None:
        ledger = self.ledger
        moved = Standing.WAITING
        if not ledger.halted:
            moved = move(ledger, old, new, absent, self._now_ms())
            if self._write_log():
                take_turn(ledger, new, self._now_ms())
                self._write_log()
                then(Outcome(moved))
                return
            if moved is not Standing.GONE:
                move_back(ledger, old, new)
        then(Outcome(Standing.WAITING, storage_failed=True))

    def extend(self, ticket_id: bytes, times: int, then: Then) -> None:
        outcome = self.ledger.extend(ticket_id, times, self._now_ms())
        self._write_log()
        then(outcome)

    def fail(self, ticket_id: bytes, then: Then) -> None:
        outcome = fail(self.ledger, ticket_id, self._now_ms())
        self._write_log()
        then(outcome)

    def reenter(self, ticket_id: bytes, key: int, then: Then) -> None:
        now_ms, ledger = self._now_ms(), self.ledger
        if now_ms >= self._dry_ms and ledger.wants_permits():
            self._exchange(now_ms)
        random_bits = self._getrandbits(64)
        outcome = reenter(ledger, ticket_id, key, now_ms, random_bits)
        then(self._written(outcome, now_ms, random_bits) if ledger.log else outcome)

    def configure(self, room: Room) -> None:
        now_ms = self._now_ms()
        self._room = room
        self.ledger.configure(room, now_ms)
        self.coordinator.configure(room)
        self._behind = False  # the coordinator must get it now
        self.tick()

    def before(self, key: int, then: Callable[[Sequence[bytes]], None]) -> None:
        self.ledger.sweep(self._now_ms())
        self._write_log()
        then([ticket_id for ticket_id, theirs in self.ledger.line.in_order() if theirs < key])

    def rekey(self, keys: Mapping[bytes, int], then: Callable[[bool], None]) -> None:
        self.ledger.rekey(keys)
        then(self._write_log())

    # -- the PromptLedger port ---------------------------------------------------------------------

    def arrive_now(self, ticket_id: bytes, now_ms: int, told: bool = True) -> Outcome:
        ledger = self.ledger
        if now_ms >= self._dry_ms and ledger.wants_permits():
            self._exchange(now_ms)
        draw = self._getrandbits
        random_bits = draw(64)
        outcome = ledger.arrive(ticket_id, now_ms, random_bits, told)
        return self._written(outcome, now_ms, random_bits) if ledger.log else outcome

    def poll_now(self, ticket_id: bytes, key: int, now_ms: int) -> Outcome:
        ledger = self.ledger
        if now_ms >= self._dry_ms and ledger.wants_permits():
            self._exchange(now_ms)
        draw = self._getrandbits
        random_bits = draw(64)
        outcome = ledger.poll(ticket_id, key, now_ms, random_bits)
        return self._written(outcome, now_ms, random_bits) if ledger.log else outcome

    def peek_now(self, ticket_id: bytes, key: int, now_ms: int) -> Outcome:
        return self.ledger.peek(ticket_id, key, now_ms, self._getrandbits(64))

    def view_now(self, ticket_id: bytes, now_ms: int) -> Outcome:
        ledger = self.ledger
        outcome = ledger.view(ticket_id, now_ms)
        if ledger.log:
            self._write_log()
        return outcome

    # -- for the process around it -----------------------------------------------------------------

    @property
    def room(self) -> Room:
        return self._room

    @property
    def storage_failed(self) -> bool:
        return self.ledger.halted

    def tick(self) -> int:
        """Returns when to tick next: now, if more is due, so that visitors are served in between."""
        now_ms = self._now_ms()
        ledger = self.ledger
        more = ledger.sweep(now_ms, SWEEP_SLICE)
        self._write_log()
        if ledger.halted and now_ms >= self._retry_ms:
            self._try_again(now_ms)
        if now_ms >= self._tick_ms or not self._behind:
            self._exchange(now_ms)
        self._behind = more
        return now_ms if more else self._tick_ms

    def gauges(self) -> Gauges:
        """May include sessions that ended in the last quarter of a second."""
        ledger, now_ms = self.ledger, self._now_ms()
        ledger.lease.trim(now_ms)
        return Gauges(
            len(ledger.sessions.inside), len(ledger.line), ledger.called, ledger.lease.permits, len(ledger.lease.window), ledger.halted,
            ledger.confirms_newcomers(now_ms),
        )  # fmt: skip

    def tally(self) -> Taken:
        return self.ledger.tally(self._now_ms())

    def snapshot(self) -> Iterator[bytes]:
        memory = self.ledger.memory(self._now_ms())
        memory.spent = dict(memory.spent)
        return _payloads(memory)

    def live_bytes(self) -> int:
        ledger = self.ledger
        records = (
            1
            + len(ledger.line)
            + 2 * len(ledger.sessions.inside)
            + len(ledger.sessions.spent)
            + len(ledger.failures.rows)
            + len(ledger.lease.window)
        )
        return records * RECORD.size

    def problems(self) -> list[str]:
        return problems(self.coordinator, [self.ledger])

    # -- inside ------------------------------------------------------------------------------------

    def _exchange(self, now_ms: int) -> None:
        """A sync inside one process."""
        ledger = self.ledger
        for _ in range(3):
            ledger.apply(
                self.coordinator.sync(ledger.report(now_ms), now_ms, self._getrandbits(64)), now_ms
            )
            if not ledger.lease.surplus:
                break
        rate = max(
            ledger.arrivals_per_s,
            self._room.new_users_per_minute / 60 if ledger.line.slots else 0.0,
        )
        pause_ms = min(SYNC_MOST_MS, max(SYNC_LEAST_MS, 500 / rate)) if rate > 0 else SYNC_MOST_MS
        self._dry_ms, self._tick_ms = now_ms + DRY_MS, now_ms + int(pause_ms)

    def _written(self, outcome: Outcome, now_ms: int, random_bits: int) -> Outcome:
        if self._write_log():
            return outcome
        if outcome.standing is Standing.ADMITTED:
            return self.ledger.undo(now_ms, random_bits)
        return (
            replace(outcome, storage_failed=True, estimate=None)
            if outcome.standing is Standing.WAITING
            else outcome
        )

    def _write_log(self) -> bool:
        ledger = self.ledger
        if not ledger.log:
            return True
        records = ledger.log.copy()
        ledger.log.clear()
        if self._journal is None:
            return True
        if ledger.halted:  # the whole room is written when the disk is back
            return False
        try:
            for start in range(0, len(records), SNAPSHOT_RECORDS):  # a draw changes every place
                self._journal.append(b"".join(records[start : start + SNAPSHOT_RECORDS]))
        except StorageFailed:
            ledger.halted = True
            self._retry_ms = self._now_ms() + RETRY_MS
            return False
        return True

    def _try_again(self, now_ms: int) -> None:
        self._retry_ms = now_ms + RETRY_MS
        if self._journal is None:
            return
        try:
            self._journal.append(pack(NOTE, NOBODY, 0))
            for payload in self.snapshot():
                self._journal.append(payload)
        except StorageFailed:
            return
        self.ledger.halted = False


def _payloads(memory: LedgerMemory) -> Iterator[bytes]:
    records = snapshot(memory)
    while payload := b"".join(islice(records, SNAPSHOT_RECORDS)):
        yield payload


REST_LEAST_MS, REST_MOST_MS = 10, 250
"""A new room is noticed within a quarter of a second; requests are served in between."""

WORK_MS = 5


class TickLoop:
    """Lets time pass in the ledgers of a process."""

    def __init__(
        self,
        ledgers: Callable[[], Mapping[str, MemoryLedger]],
        clock: Clock,
        on_error: Callable[[BaseException], None],
    ) -> None:
        self._ledgers = ledgers
        self._now_ms = clock.now_ms
        self._on_error = on_error
        self._due: dict[str, int] = {}

    async def run(self) -> None:
        while True:
            await asyncio.sleep(await self.tick_due() / 1000)

    async def tick_due(self) -> int:
        """Returns how many ms to rest."""
        ledgers = self._ledgers()
        self._due = {room_id: self._due.get(room_id, 0) for room_id in ledgers}
        began_ms = self._now_ms()
        for room_id, ledger in ledgers.items():
            now_ms = self._now_ms()
            if now_ms >= self._due[room_id]:
                try:
                    self._due[room_id] = ledger.tick()
                except Exception as error:
                    self._on_error(error)
                    self._due[room_id] = now_ms + REST_MOST_MS
            if now_ms - began_ms >= WORK_MS:
                await asyncio.sleep(0)
                began_ms = self._now_ms()
        rest_ms = min(self._due.values(), default=0) - self._now_ms()
        return max(REST_LEAST_MS, min(REST_MOST_MS, rest_ms)) if ledgers else REST_MOST_MS
