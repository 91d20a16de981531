"""One room's ledger in Redis, shared by many processes; without an answer from Redis no visitor is
admitted.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from greenroom.admission.ledger.barred_places import PENDING_MS
from greenroom.admission.ledger.provisional import CALLS as PROVISIONAL_CALLS
from greenroom.admission.ledger_time import Expectation
from greenroom.ledgers.port import TableThen, Then, nobody
from greenroom.ledgers.redis.answers import (
    ARRIVE,
    EXPECTED,
    EXTEND,
    FAIL,
    KEEP,
    LEAVE,
    MOVE,
    PASS,
    PEEK,
    POLL,
    QUESTION,
    RECLAIM,
    REENTER,
    VIEW,
    VISIT,
    VISIT_MORE,
    Reader,
    settings_of,
)
from greenroom.ledgers.redis.clock import ServerClock
from greenroom.ledgers.redis.library import Library
from greenroom.ledgers.redis.wire import Command, Unreachable, Wire
from greenroom.model.room import Room
from greenroom.model.visit import Outcome, Standing, Ticket

TRIP_MAX = 1_024
"""About 10 ms of work there and 5 ms here."""

GATHERED_MAX = 20_000
"""About 10 MB; more are answered at once as if Redis did not."""

CALL_WORK = 60
"""In units of a microsecond or two: a call stays below 0.2 ms."""
WORK = {
    ARRIVE: 4, PASS: 8, VIEW: 5, LEAVE: 15, PEEK: 15, POLL: 20, VISIT: 20, KEEP: 8, MOVE: 20, EXTEND: 20,
    RECLAIM: 20, FAIL: 10, REENTER: 20,
}  # fmt: skip
"""As measured (bench/redis_ledger.py)."""

MOVE_AGAIN_S = 0.3
MOVE_MOST_MS = 2 * PENDING_MS + 2_000

HELD_REFRESH_MS = 5_000
"""Spreads retries."""


LedgerRequest = tuple[bytes, Then, int]
"""A question, who wants the answer, and how often it may still wait for permits."""


class RequestBatcher:
    """Sends the questions of one event-loop iteration together; meanwhile the next batch collects. When
    Redis does not answer, all who wait are held.
    """

    def __init__(
        self,
        wire: Wire,
        on_trip: Callable[[float], None],
        on_failure: Callable[[Exception | None], None],
    ) -> None:
        """`on_trip`: seconds of each round trip. `on_failure`: every failure, and None when it is
        over.
        """
        self._wire = wire
        self._on_trip = on_trip
        self._on_failure = on_failure
        self.questions = self.trips = self.failed = 0
        self.seconds = 0.0
        self._sources: dict[RedisLedger, None] = {}
        self._trip: asyncio.Task[None] | None = None
        self._well = True

    def call(self, source: "RedisLedger") -> None:
        self._sources[source] = None
        if self._trip is None:
            self._trip = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """Everybody is answered."""
        if self._trip:
            self._trip.cancel()
            await asyncio.gather(self._trip, return_exceptions=True)
        self._give_up(Unreachable("closed"))
        await self._wire.close()

    async def _work(self) -> None:
        try:
            while self._sources:
                await self._travel()
        finally:
            self._trip = None

    async def _travel(self) -> None:
        sent: list[tuple[Command, Callable[[Any], None]]] = []
        for source in list(self._sources):
            sent += source.commands(TRIP_MAX)
            if source.idle:
                del self._sources[source]
            if len(sent) >= TRIP_MAX:
                break
        if not sent:
            return
        self.trips += 1
        began_s = time.monotonic()
        try:
            replies: Iterable[Any] = await self._wire.exchange([command for command, _ in sent])
        except BaseException as error:
            reason = error if isinstance(error, Unreachable) else Unreachable(repr(error))
            self.failed += 1
            self._say(reason)
            for _, taken in sent:
                taken(reason)
            self._give_up(
                reason
            )  # they came while there was no answer: another try would only make them wait as long again
            if not isinstance(error, Unreachable):
                raise
            return
        took_s = time.monotonic() - began_s
        self.seconds += took_s
        failure: Exception | None = None
        for (_, taken), reply in zip(sent, replies, strict=True):
            if isinstance(reply, Exception):
                failure = reply
            try:
                taken(reply)
            except (
                Exception
            ) as error:  # one failing callback must not prevent the answers of the others
                failure = error
        self._on_trip(took_s)
        self._say(failure)

    def _say(self, failure: Exception | None) -> None:
        if failure is not None or not self._well:
            self._on_failure(failure)
        self._well = failure is None

    def _give_up(self, error: Exception) -> None:
        sources, self._sources = list(self._sources), {}
        for source in sources:
            source.give_up(error)


class LedgerServices(Protocol):
    """What a ledger uses of its store (`ledger_store`, which imports this module)."""

    data_center: str
    clock: ServerClock
    library: Library
    getrandbits: Callable[[int], int]
    batcher: RequestBatcher

    def heard(self, server_ms: int) -> None: ...

    def run_dry(self, room_id: str, want: Callable[[], int], then: Callable[[], None]) -> bool:
        """Calls `want` when the request is made, and `then` once afterwards. False: there is no
        coordinator.
        """

    def later(self, rest_s: float, then: Callable[[], None]) -> None: ...

    def before(self, room_id: str, key: int, then: Callable[[Sequence[bytes]], None]) -> None: ...

    def rekey(
        self, room_id: str, keys: Mapping[bytes, int], then: Callable[[bool], None]
    ) -> None: ...


class RedisLedger:
    def __init__(self, room: Room, place: bytes, store: LedgerServices) -> None:
        """`place`: the name of the ledger in Redis."""
        self.place = place
        self.reader = Reader(room, on_line=True)
        self._room = room
        self._data_center = store.data_center
        self._settings = settings_of(room)
        self._said = False  # whether Redis knows these settings
        function = store.library.function
        self._handle, self._configure = function("handle"), function("configure")
        self._line_table = function("line_table")
        self._batcher = store.batcher
        self._now_ms, self._steady_ms = store.clock.now_ms, store.clock.steady_ms
        self._expectation = Expectation()
        self._getrandbits = store.getrandbits
        self._store = store
        self._asked: list[LedgerRequest] = []
        self._dry: list[LedgerRequest] = []
        self._dry_passes = 0  # how many of these are requests that cannot wait
        # whether the newest permit request was for newcomers too
        self._for_newcomers = False
        self._tables: list[TableThen] = []

    # -- the Ledger port ---------------------------------------------------------------------------

    def arrive(self, ticket_id: bytes, key: int, then: Then) -> None:
        self._ask(QUESTION.pack(ARRIVE, ticket_id, key, self._getrandbits(64)), then)

    def arrive_provisionally(self, ticket_id: bytes, key: int, then: Then) -> None:
        self._ask(QUESTION.pack(PASS, ticket_id, key, 0), then, PROVISIONAL_CALLS)

    def poll(self, ticket_id: bytes, key: int, then: Then) -> None:
        self._ask(QUESTION.pack(POLL, ticket_id, key, self._getrandbits(64)), then)

    def peek(self, ticket_id: bytes, key: int, then: Then) -> None:
        self._ask(QUESTION.pack(PEEK, ticket_id, key, self._getrandbits(64)), then)

    def reclaim(self, ticket_id: bytes, key: int, then: Then) -> None:
        self._ask(QUESTION.pack(RECLAIM, ticket_id, key, self._getrandbits(64)), then)

    def view(self, ticket_id: bytes, then: Then) -> None:
        self._ask(QUESTION.pack(VIEW, ticket_id, 0, 0), then)

    def visit(self, ticket: Ticket, home: str, then: Then) -> None:
        name, renewed_ms = home.encode(), ticket.checked_ms - self.reader.line_ahead_ms
        served_ms, here = renewed_ms + ticket.refresh_ms, home == self._data_center
        question = QUESTION.pack(VISIT, ticket.id, ticket.key, self._getrandbits(64))
        more = VISIT_MORE.pack(renewed_ms, served_ms, here, len(name))
        self._ask(question + more + name, then)

    def keep(self, ticket_id: bytes, gap_ms: int) -> None:
        """Lost when Redis does not answer."""
        self._ask(QUESTION.pack(KEEP, ticket_id, gap_ms, 0), nobody)

    def line_table(self, then: TableThen) -> None:
        self._tables.append(then)
        self._batcher.call(self)

    def leave(self, ticket_id: bytes, key: int = 0, then: Then = nobody) -> None:
        """Lost when Redis does not answer: the session then ends by itself."""
        self._ask(QUESTION.pack(LEAVE, ticket_id, key, 0), then)

    def move(self, old: bytes, new: bytes, absent: bool, then: Then) -> None:
        """Among several data centers the answer comes when all of them have given theirs."""
        question = QUESTION.pack(MOVE, old, absent, self._getrandbits(32)) + new
        until_ms = self._steady_ms() + MOVE_MOST_MS

        def answered(outcome: Outcome) -> None:
            if not outcome.searching:
                then(outcome)
            elif self._steady_ms() < until_ms:
                self._store.later(MOVE_AGAIN_S, lambda: self._ask(question, answered))
            else:
                then(Outcome(Standing.WAITING, storage_failed=True))

        self._ask(question, answered)

    def extend(self, ticket_id: bytes, times: int, then: Then) -> None:
        self._ask(QUESTION.pack(EXTEND, ticket_id, times, 0), then)

    def fail(self, ticket_id: bytes, then: Then) -> None:
        self._ask(QUESTION.pack(FAIL, ticket_id, 0, 0), then)

    def reenter(self, ticket_id: bytes, key: int, then: Then) -> None:
        self._ask(QUESTION.pack(REENTER, ticket_id, key, self._getrandbits(64)), then)

    def configure(self, room: Room) -> None:
        """Sent until Redis has taken it; the later settings count."""
        self._room = room
        self._settings = settings_of(room)
        self._said = False
        self.reader.configure(room)
        self._batcher.call(self)

    # -- for the store around it -------------------------------------------------------------------

    @property
    def room(self) -> Room:
        return self._room

    @property
    def settings(self) -> bytes:
        """With the time expected there."""
        return self._settings + EXPECTED.pack(*self._expectation.at(self._steady_ms()))

    def hear_time(self, now_ms: int) -> None:
        self._expectation.hear(now_ms, self._steady_ms())

    def line_ms(self, now_ms: int) -> int:
        """On the coordinator's clock."""
        return now_ms + self.reader.line_ahead_ms

    @property
    def idle(self) -> bool:
        return not self._asked and not self._tables and self._said

    def commands(self, limit: int) -> list[tuple[Command, Callable[[Any], None]]]:
        asked, self._asked = self._asked[:limit], self._asked[limit:]
        found = [] if self._said else [self._saying()]
        for part in _calls(asked):
            questions = b"".join([question for question, _, _ in part])
            command = (
                "FCALL",
                self._handle,
                1,
                self.place,
                self.settings,
                questions,
                self.reader.forecast,
                self.reader.summary,
            )
            found.append((command, lambda reply, part=part: self._answer(part, reply)))  # type: ignore[misc]
        if self._tables:
            tables, self._tables = self._tables, []
            reader = self.reader
            known = (reader.forecast, reader.summary)
            table = ("FCALL", self._line_table, 1, self.place, self.settings, *known)
            found.append((table, lambda reply: self._answer_tables(tables, reply)))
        return found

    def give_up(self, error: Exception) -> None:  # noqa: ARG002 - they are held for any reason
        asked, self._asked = self._asked, []
        tables, self._tables = self._tables, []
        self._hold(asked)
        for then in tables:
            then(None)

    def before(self, key: int, then: Callable[[Sequence[bytes]], None]) -> None:
        # Repeated until there is an answer: a draw without those who are there would be none.
        self._store.before(self._room.id, key, then)

    def rekey(self, keys: Mapping[bytes, int], then: Callable[[bool], None]) -> None:
        self._store.rekey(self._room.id, keys, then)

    # -- inside ------------------------------------------------------------------------------------

    def _ask(self, question: bytes, then: Then, calls: int = 1) -> None:
        if len(self._asked) >= GATHERED_MAX:
            self._hold([(question, then, calls)])
            return
        self._batcher.questions += 1
        self._asked.append((question, then, calls))
        self._batcher.call(self)

    def _saying(self) -> tuple[Command, Callable[[Any], None]]:
        settings = self._settings
        # unless a reply says otherwise: so that an idle ledger does not ask again and again
        self._said = True

        def heard(reply: Any) -> None:
            if isinstance(reply, Exception) and settings == self._settings:
                self._said = False

        return ("FCALL", self._configure, 1, self.place, self.settings), heard

    def _answer(self, asked: list[LedgerRequest], reply: Any) -> None:
        if isinstance(reply, Exception):
            self._hold(asked)
            return
        try:
            answers = list(zip(asked, self.reader.read(*reply), strict=True))
        except (
            Exception
        ) as error:  # not an expected answer: the visitor is held, and the error is reported
            self._hold(asked)
            raise Unreachable(f"not an answer: {error}") from error
        self.hear_time(self.reader.now_ms)
        dry: list[tuple[LedgerRequest, Outcome]] = []
        for one, (outcome, could_borrow) in answers:
            if could_borrow and one[2] and self._may_wait(one[0]):
                dry.append((one, outcome))
            else:
                one[1](outcome)
        self._store.heard(self.reader.now_ms + self.reader.line_ahead_ms)
        if dry:
            self._wait_for_permits(dry)

    def _answer_tables(self, tables: list[TableThen], reply: Any) -> None:
        table = None
        try:
            table = None if isinstance(reply, Exception) else self.reader.line_table(*reply)
        except Exception as error:
            raise Unreachable(f"not an answer: {error}") from error
        finally:
            for then in tables:
                then(table)
        self.hear_time(self.reader.now_ms)

    def _wait_for_permits(self, dry: list[tuple[LedgerRequest, Outcome]]) -> None:
        asking = bool(self._dry)
        self._dry += [one for one, _ in dry]
        if not asking and not self._store.run_dry(self._room.id, self._wanted, self._ask_again):
            self._dry, self._dry_passes = [], 0
            for (_, then, _), outcome in dry:
                then(outcome)

    def _may_wait(self, question: bytes) -> bool:
        """However many come, no more permits are requested."""
        if question[0] != PASS:
            return True
        if self._dry_passes >= self.reader.passes_left:
            return False
        self._dry_passes += 1
        return True

    def _wanted(self) -> int:
        self._for_newcomers = len(self._dry) > self._dry_passes
        return max(1, self.reader.want, self._dry_passes)

    def _ask_again(self) -> None:
        # Newcomers first: where they met a call that was made for others, it costs them nothing.
        dry, self._dry, self._dry_passes = self._dry, [], 0
        for question, then, calls in dry:
            if question[0] != PASS:
                self._ask(question, then, calls - self._for_newcomers)
        for question, then, calls in dry:
            if question[0] == PASS:
                self._ask(question, then, calls - 1)

    def _hold(self, asked: Iterable[LedgerRequest]) -> None:
        now_ms = self._now_ms()
        for _, then, _ in asked:
            refresh_ms = HELD_REFRESH_MS * (768 + self._getrandbits(9)) >> 10
            then(
                Outcome(
                    Standing.WAITING,
                    attempted_ms=now_ms,
                    refresh_ms=refresh_ms,
                    storage_failed=True,
                )
            )


def _calls(asked: list[LedgerRequest]) -> Iterator[list[LedgerRequest]]:
    """Parts of CALL_WORK at most."""
    work = start = 0
    for place, one in enumerate(asked):
        work += WORK[one[0][0]]
        if work > CALL_WORK:
            yield asked[start:place]
            start, work = place, WORK[one[0][0]]
    if start < len(asked):
        yield asked[start:]
