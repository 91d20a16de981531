"""The ledger of one room inside this process: pure books, their own coordinator, a clock, and a journal that remembers.

Nobody hears of anything before it is in the journal. When the disk refuses, the newest admission is undone and nobody is let in from
then on; everything else goes on in memory. Each second the disk is tried again, and when it takes a note, the whole room is written
down afresh before admissions go on. So the file never has a hole: it is either complete or not written.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from greenroom.admission.coordinator import Coordinator
from greenroom.admission.laws import problems
from greenroom.admission.ledger import Ledger
from greenroom.admission.records import NOBODY, NOTE, RECORD, Memory, pack, remember, snapshot
from greenroom.errors import StorageFailed
from greenroom.model.room import Room
from greenroom.model.visit import Outcome, Standing
from greenroom.ports import Clock, Journal

HERE = "here"
"""The name of the only data center."""

DRY_MS = 50
"""At most one extra sync in this time when permits ran out: cheap, but not free, and a flood asks for it with every request."""

SYNC_LEAST_MS, SYNC_MOST_MS = 250, 1_500
RETRY_MS = 1_000
"""How often a disk that refused is tried again."""

SNAPSHOT_RECORDS = 40_000
"""Records in one payload of a snapshot: just under a megabyte."""

Then = Callable[[Outcome], None]


class Gauges(msgspec.Struct, frozen=True):
    """A room at one moment."""

    active: int
    waiting: int  # real places
    called: int
    permits: int  # unused
    admitted_last_minute: int
    storage_failed: bool


class MemoryLedger:
    """Answers every operation at once. Not for several threads."""

    def __init__(self, room: Room, clock: Clock, getrandbits: Callable[[int], int], journal: Journal | None = None) -> None:
        """An empty room. `getrandbits(64)` gives 64 random bits; without a journal nothing survives this process."""
        now_ms = clock.now_ms()
        self._room = room
        self._now_ms = clock.now_ms
        self._getrandbits = getrandbits
        self._journal = journal
        self.books = Ledger(room, HERE, now_ms, now_ms)
        self.coordinator = Coordinator([HERE], room, now_ms)
        self._retry_ms = 0
        self._dry_ms = self._tick_ms = now_ms
        self._exchange(now_ms)

    @classmethod
    def restore(
        cls, room: Room, clock: Clock, getrandbits: Callable[[int], int], journal: Journal | None, records: Iterable[bytes] | Memory
    ) -> "MemoryLedger":
        """A room that remembers: `records` are its payloads from the journal, oldest first, or what `remember` made of them.

        The clock must not be behind `Memory.latest_ms`. Raises ValueError for payloads that are not records.
        """
        memory = records if isinstance(records, Memory) else remember(records)
        ledger = cls(room, clock, getrandbits, journal)
        now_ms = clock.now_ms()
        ledger.books = Ledger(room, HERE, now_ms, now_ms)
        ledger.coordinator = Coordinator([HERE], room, now_ms)
        ledger.books.restore(memory, now_ms)
        ledger._write_log()
        ledger._exchange(now_ms)
        return ledger

    # -- the Ledger port ------------------------------------------------------------------------------------------------------

    def arrive(self, ticket_id: bytes, key: int, then: Then) -> None:  # noqa: ARG002 - a newcomer's key counts when the ticket comes back
        """See `ports.Ledger`."""
        now_ms = self._now_ms()
        books = self.books
        if now_ms >= self._dry_ms and books.wants_permits():
            self._exchange(now_ms)
        luck = self._getrandbits(64)
        outcome = books.arrive(ticket_id, now_ms, luck)
        then(self._written(outcome, now_ms, luck) if books.log else outcome)

    def poll(self, ticket_id: bytes, key: int, then: Then) -> None:
        """See `ports.Ledger`."""
        now_ms = self._now_ms()
        books = self.books
        if now_ms >= self._dry_ms and books.wants_permits():
            self._exchange(now_ms)
        luck = self._getrandbits(64)
        outcome = books.poll(ticket_id, key, now_ms, luck)
        then(self._written(outcome, now_ms, luck) if books.log else outcome)

    def peek(self, ticket_id: bytes, key: int, then: Then) -> None:
        """See `ports.Ledger`."""
        then(self.books.peek(ticket_id, key, self._now_ms(), self._getrandbits(64)))

    def view(self, ticket_id: bytes, then: Then) -> None:
        """See `ports.Ledger`."""
        books = self.books
        outcome = books.view(ticket_id, self._now_ms())
        if books.log:
            self._write_log()
        then(outcome)

    def visit(self, ticket_id: bytes, key: int, home: str, renewed_ms: int, then: Then) -> None:  # noqa: ARG002 - there is no other one
        """See `ports.Ledger`: one process is one data center."""
        then(Outcome(Standing.GONE))

    def leave(self, ticket_id: bytes, key: int = 0) -> None:  # noqa: ARG002 - this ledger finds the place by its id
        """See `ports.Ledger`."""
        self.books.leave(ticket_id, self._now_ms())
        self._write_log()

    def configure(self, room: Room) -> None:
        """See `ports.Ledger`."""
        now_ms = self._now_ms()
        self._room = room
        self.books.configure(room, now_ms)
        self.coordinator.configure(room)
        self.tick()

    def before(self, key: int, then: Callable[[Sequence[bytes]], None]) -> None:
        """See `ports.Ledger`."""
        self.books.sweep(self._now_ms())
        self._write_log()
        then([ticket_id for ticket_id, theirs in self.books.line.in_order() if theirs < key])

    def rekey(self, keys: Mapping[bytes, int], then: Callable[[bool], None]) -> None:
        """See `ports.Ledger`."""
        self.books.rekey(keys)
        then(self._write_log())

    # -- for the process around it --------------------------------------------------------------------------------------------

    @property
    def room(self) -> Room:
        """The settings in force."""
        return self._room

    @property
    def storage_failed(self) -> bool:
        """Whether nobody is let in because nothing can be written down."""
        return self.books.halted

    def tick(self) -> int:
        """Everything that time alone brings about: ends of sessions, ghosts, new permits, another trial of the disk.

        Returns when to tick next, in milliseconds of the clock.
        """
        now_ms = self._now_ms()
        books = self.books
        books.sweep(now_ms)
        self._write_log()
        if books.halted and now_ms >= self._retry_ms:
            self._try_again(now_ms)
        self._exchange(now_ms)
        return self._tick_ms

    def gauges(self) -> Gauges:
        """Counts of this moment; active may include sessions that ended within the last quarter of a second."""
        books = self.books
        books.lease.trim(self._now_ms())
        return Gauges(len(books.sessions.inside), len(books.line), books.called, books.lease.permits, len(books.lease.window), books.halted)

    def snapshot(self) -> Iterator[bytes]:
        """Payloads that stand for everything written so far; taken at this moment, whenever they are read."""
        memory = self.books.memory(self._now_ms())
        memory.spent = dict(memory.spent)
        return _payloads(memory)

    def live_bytes(self) -> int:
        """About how long a snapshot is, cheaply."""
        books = self.books
        records = 1 + len(books.line) + len(books.sessions.inside) + len(books.sessions.spent) + len(books.lease.window)
        return records * RECORD.size

    def problems(self) -> list[str]:
        """Which laws of conservation do not hold; always empty."""
        return problems(self.coordinator, [self.books])

    # -- inside -----------------------------------------------------------------------------------------------------------------

    def _exchange(self, now_ms: int) -> None:
        """A sync; in one process the messages are handed over. Once more when the answer called something back."""
        books = self.books
        for _ in range(3):
            books.apply(self.coordinator.sync(books.report(now_ms), now_ms, self._getrandbits(64)), now_ms)
            if not books.lease.surplus:
                break
        rate = max(books.arrivals_per_s, self._room.new_users_per_minute / 60 if books.line.slots else 0.0)
        pause_ms = min(SYNC_MOST_MS, max(SYNC_LEAST_MS, 500 / rate)) if rate > 0 else SYNC_MOST_MS
        self._dry_ms, self._tick_ms = now_ms + DRY_MS, now_ms + int(pause_ms)

    def _written(self, outcome: Outcome, now_ms: int, luck: int) -> Outcome:
        """The answer once it is written down, or the answer when it cannot be."""
        if self._write_log():
            return outcome
        if outcome.standing is Standing.ADMITTED:
            return self.books.undo(now_ms, luck)
        return msgspec.structs.replace(outcome, storage_failed=True, estimate=None) if outcome.standing is Standing.WAITING else outcome

    def _write_log(self) -> bool:
        books = self.books
        if not books.log:
            return True
        records = books.log.copy()
        books.log.clear()
        if self._journal is None:
            return True
        if books.halted:  # the room is written down afresh when the disk is back
            return False
        try:
            for start in range(0, len(records), SNAPSHOT_RECORDS):  # a draw moves everybody at once
                self._journal.append(b"".join(records[start : start + SNAPSHOT_RECORDS]))
        except StorageFailed:
            books.halted = True
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
        self.books.halted = False


def _payloads(memory: Memory) -> Iterator[bytes]:
    records = snapshot(memory)
    while payload := b"".join(islice(records, SNAPSHOT_RECORDS)):
        yield payload
