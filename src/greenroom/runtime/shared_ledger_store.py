import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import structlog
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
)

from greenroom.admission.ledger.tally import Taken
from greenroom.admission.messages.room_summary import CenterFigures
from greenroom.analytics.collector.sampler import RoomLook, wait_seconds
from greenroom.config_file.shared import SharedLedgers
from greenroom.configuration.state import SyncState, TripState
from greenroom.decision.room_view import CenterView, Figures
from greenroom.errors import StorageFailed
from greenroom.ledgers.memory import Gauges
from greenroom.ledgers.redis.clock import ServerClock
from greenroom.ledgers.redis.key_exchange import KeyExchange
from greenroom.ledgers.redis.ledger import RedisLedger
from greenroom.ledgers.redis.ledger_store import TIMEOUT_S, RedisLedgerStore
from greenroom.ledgers.redis.wire import Unreachable
from greenroom.model.room import Room
from greenroom.model.visit import TICKET_ID_BYTES, Estimate, Outcome, make_key
from greenroom.notifier import ended
from greenroom.runtime.data_center_membership import DataCenterMembership
from greenroom.runtime.entropy import Entropy
from greenroom.runtime.ledger_store import RoomsAt
from greenroom.runtime.loops import OnError, WorkPieces

AGAIN_S = 60.0

CAUSES: tuple[tuple[type[Exception], str, str], ...] = (
    (OutOfMemoryError, "OOM", "out of memory: the server has reached its maxmemory"),
    (BusyLoadingError, "LOADING", "loading: the server has just started and reads its data"),
    (ReadOnlyError, "READONLY", "read-only: the server is a replica"),
    (AuthenticationError, "NOAUTH", "not signed in: the server wants another password or user"),
    (AuthorizationError, "NOAUTH", "not signed in: the server wants another password or user"),
    (NoPermissionError, "NOPERM", "not allowed: the user of greenroom lacks a permission"),
    (
        Exception,
        "MISCONF",
        "not saving: the server cannot write its data to its disk and refuses changes",
    ),
)
"""(class of the error or its cause, or the reply's first word; meaning)."""

OTHER = "no answer, or a refusal"


def cause_of(failure: BaseException) -> str:
    error: BaseException | None = failure
    while error is not None:
        for kind, word, meaning in CAUSES:
            if (kind is not Exception and isinstance(error, kind)) or str(error).startswith(word):
                return meaning
        error = error.__cause__
    return OTHER


def is_failure_of_redis(error: BaseException) -> bool:
    """An unreadable answer is an error of greenroom."""
    while isinstance(error, (Unreachable, StorageFailed)) and error.__cause__ is not None:
        error = error.__cause__
    return isinstance(error, (Unreachable, StorageFailed, RedisError, OSError))


class RedisFailures:
    """Failures of Redis as one log event a minute for each cause, without traceback."""

    def __init__(
        self, name: str, on_error: OnError, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """`on_error` receives everything that is no failure of Redis."""
        self._name = name
        self._on_error = on_error
        self._now_s = now_s
        self._told_s: dict[str, float] = {}

    def __call__(self, error: BaseException) -> None:
        if not is_failure_of_redis(error):
            self._on_error(error)
            return
        cause, now_s = cause_of(error), self._now_s()
        if now_s >= self._told_s.get(cause, float("-inf")) + AGAIN_S:
            self._told_s[cause] = now_s
            log.error("redis_failed", redis=self._name, cause=cause, reason=str(error))


LOOK_S = 1.0
"""Reading a room costs Redis 20 us."""

ASKED_S = 60.0

KNOWN_S = 5 * LOOK_S
"""An estimate comes after the look that asked for it."""

EXCHANGE_S = 2.0
"""Well within the 15 s after which a new key seals."""

EXCHANGED_S = 3 * EXCHANGE_S

NOTHING = Gauges(0, 0, 0, 0, 0, False)

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class SharedRoom:
    ledger: RedisLedger
    owner: "SharedLedgerStore"
    gauges: Gauges = NOTHING
    estimate: Estimate | None = None

    def figures(self, now_ms: int) -> Figures:  # noqa: ARG002 - as they were at the last look
        """Of the last look, with other data centers."""
        found = Figures(
            active=self.gauges.active,
            waiting=self.gauges.waiting,
            last_minute=self.gauges.admitted_last_minute,
            permits_unused=self.gauges.permits,
            estimate=self.estimate,
            storage_failed=self.owner.failing,
            confirms=self.gauges.confirms,
        )
        elsewhere = self.ledger.reader.elsewhere
        if elsewhere is None:
            return found
        looked_ms = self.owner.looked_ms
        others = [_center(one, looked_ms) for one in elsewhere.figures(looked_ms)]
        return found.with_others(self.owner.data_center, others)


def _center(found: CenterFigures, line_ms: int) -> CenterView:
    age_s = max(0, line_ms - found.heard_ms) / 1000 if found.heard_ms else None
    return CenterView(
        found.name,
        found.active,
        found.waiting,
        found.last_minute,
        found.permits,
        age_s,
        found.silent,
    )


class SharedLedgerStore:
    def __init__(
        self,
        shared: SharedLedgers,
        data_centers: Callable[[], Sequence[str]],
        data: Path,
        clock: ServerClock,
        say: Callable[[str], None],
        on_error: Callable[[BaseException], None],
    ) -> None:
        """Make it inside the event loop."""
        self.open: Mapping[str, SharedRoom] = {}
        self.failing = False
        self.data_center = shared.data_center
        self.looked_ms = 0
        """Coordinator time. An idle process looks rarely, so the age of its data says nothing about
        other data centers.
        """
        self._reason = ""
        self._say = say
        self._asked_s = float("-inf")
        self._looked_s = float("-inf"), float("-inf")  # the look before the last, and the last
        self._counting = False  # whether analytics want what the ledgers counted
        self._tallies: dict[str, Taken] = {}
        self._exchange_s = 0.0
        self._exchanged_s = float("-inf")
        self._rooms: tuple[Room, ...] = ()
        self._clock = clock
        self._name = str(shared.redis)
        self._failed = RedisFailures(self._name, on_error)
        both = (
            self._name
            if shared.redis == shared.global_redis
            else f"{self._name} or {shared.global_redis}"
        )
        self._client = shared.redis.client(TIMEOUT_S)
        self._ledgers = RedisLedgerStore(
            self._client, shared.data_center, clock, Entropy().bits, on_failure=self._report_failure
        )
        self.membership = DataCenterMembership(
            shared, self._ledgers, self._open_rooms, data_centers, RedisFailures(both, on_error)
        )
        self._ledgers.borrow = self.membership.borrow
        self._global = shared.global_redis.client(TIMEOUT_S)
        self._keys = KeyExchange(self._global, data)

    async def exchange_keys(self) -> None:
        await self._read_clock()
        with contextlib.suppress(StorageFailed):
            await self._keys.begin(self._clock.now_ms())
            self._exchanged_s = time.monotonic()

    async def _read_clock(self) -> None:
        """Before a key or an event goes by it."""
        began_s = time.monotonic()
        with contextlib.suppress(RedisError, OSError):
            seconds, micros = await self._client.time()
            took_ms = int((time.monotonic() - began_s) * 1000) + 1
            self._clock.hear(seconds * 1000 + micros // 1000, took_ms)

    def exchanges_keys(self) -> bool:
        return time.monotonic() - self._exchanged_s < EXCHANGED_S

    async def restore(self, rooms: RoomsAt) -> None:
        # A Redis that cannot be reached is no reason not to begin: visitors are held until it can.
        self.take_over((), await self.prepare(rooms))
        await self._look()
        self._say(
            f"ledgers    {self._name}{'' if not self.failing else '  (no answer yet: visitors are held until it answers)'}"
        )

    async def run(self) -> None:
        looking = asyncio.create_task(self._keep_looking())
        try:
            await self.membership.run()
        finally:
            await ended([looking])

    async def prepare(self, rooms: RoomsAt) -> dict[str, SharedRoom]:
        wanted: dict[str, SharedRoom] = {}
        pieces = WorkPieces()
        try:
            for room in rooms(self._clock.now_ms()):
                wanted[room.id] = self.open.get(room.id) or self._opened(room)
                await pieces.breathe()
        except BaseException:
            self.discard(wanted)
            raise
        return wanted

    def discard(self, prepared: Mapping[str, SharedRoom]) -> None:
        for room_id in prepared.keys() - self.open.keys():
            self._ledgers.forget(room_id)

    def take_over(self, rooms: Iterable[Room], prepared: Mapping[str, SharedRoom]) -> None:
        for room_id in self.open.keys() - prepared.keys():
            self._ledgers.forget(room_id)
        self.open = prepared
        for room in rooms:
            if prepared[room.id].ledger.room != room:
                prepared[room.id].ledger.configure(room)

    def sync_state(self) -> SyncState | None:
        batcher = self._ledgers.batcher
        trips = TripState(batcher.questions, batcher.trips, batcher.failed, batcher.seconds)
        known = self.failing or time.monotonic() - self._looked_s[0] < KNOWN_S
        return msgspec.structs.replace(self.membership.state(), trips=trips, figures_known=known)

    async def give_up(self, data_center: str) -> None:
        await self.membership.give_up(data_center)

    def looks(self, now_ms: int) -> Iterator[RoomLook]:  # noqa: ARG002 - as they were at the last look
        self._counting = telling = self.membership.state().syncing and not self.failing
        for found in self.open.values():
            room, gauges = found.ledger.room, found.gauges
            wait_s = wait_seconds(found.estimate) if gauges.waiting else 0
            tally = self._tallies.pop(room.id, None)
            yield (
                RoomLook(room, gauges.active, gauges.waiting, wait_s, tally)
                if telling
                else RoomLook(room, tally=tally)
            )

    def halted(self) -> Mapping[str, str]:
        if not self.failing:
            return {}
        return {
            room.ledger.room.name: f"{self._name}: {self._reason or 'no answer'}"
            for room in self.open.values()
        }

    def closed(self, _prepared: Mapping[str, SharedRoom] | None = None) -> Mapping[str, str]:
        """None: Redis opens them all, or `halted` says why not."""
        return {}

    async def flush(self) -> None:
        # Nothing is kept here but the keys of tickets.
        if time.monotonic() >= self._exchange_s and not self.failing:
            self._exchange_s = time.monotonic() + EXCHANGE_S
            await self._keys.run(self._clock.now_ms())
            self._exchanged_s = time.monotonic()

    async def close(self) -> None:
        await self._ledgers.close()
        await self.membership.close()
        for client in (self._client, self._global):
            with contextlib.suppress(RedisError, OSError):
                await client.aclose()
        self.open = {}

    def keep_figures_fresh(self) -> None:
        self._asked_s = time.monotonic()

    # -- inside ------------------------------------------------------------------------------------

    def _opened(self, room: Room) -> SharedRoom:
        return SharedRoom(self._ledgers.ledger(room), self)

    def _open_rooms(self) -> tuple[Room, ...]:
        """The same object as long as nothing has changed."""
        found = tuple([room.ledger.room for room in self.open.values()])
        if found != self._rooms:
            self._rooms = found
        return self._rooms

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await (self._look() if self._wanted() else self._ping())
            except Exception as error:
                self._failed(error)

    def _wanted(self) -> bool:
        # A failure goes on until a look ends it: keys are not exchanged meanwhile.
        return (
            self.failing
            or self.membership.state().syncing
            or time.monotonic() - self._asked_s < ASKED_S
        )

    async def _ping(self) -> None:
        # Where no visitor asks and no room is read, this notices that Redis is gone.
        try:
            await self._client.ping()
        except (RedisError, OSError):
            await self._look()

    async def _look(self) -> None:
        found = await self._ledgers.gauges()
        if self.open:
            self.failing = not found
            self._reason = self._reason if self.failing else ""
        self._looked_s = self._looked_s[1], time.monotonic()
        self.looked_ms = self._clock.now_ms()
        for room_id, gauges in found.items():
            room = self.open.get(room_id)
            if room is not None:
                room.gauges = gauges
                self._ask_estimate(room)
        if self._counting and not self.failing:
            self._counting = False
            self._tallies |= await self._ledgers.tallies()

    def _ask_estimate(self, room: SharedRoom) -> None:
        # For a visitor who joins the line now: an unused id, so nothing changes.

        def told(outcome: Outcome) -> None:
            room.estimate = outcome.estimate

        room.ledger.peek(bytes(TICKET_ID_BYTES), make_key(self._clock.now_ms(), -1), told)

    def _report_failure(self, failure: Exception | None) -> None:
        self.failing = failure is not None
        self._reason = f"{cause_of(failure)} ({failure})" if failure else ""
        if failure is not None:
            self._failed(failure)
