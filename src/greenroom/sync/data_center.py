"""Keeps the ledgers of one data center in step with the coordinator, whichever process that is.

In each data center one process at a time holds the sync lock. It reads the reports of all rooms that are due, sends them to the leader as
one batch, waits for the answer and gives it to the ledgers, and only then reads the next reports: an answer is never newer than the
report it answers. If no process holds the leader lease, the process that sends a batch takes it, so a missing coordinator is noticed by
those who need one.

A process without the sync lock passes its visitors' permit requests on to the one that holds it.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from zlib import crc32

import msgspec

from greenroom.admission.messages.sync import SyncDown
from greenroom.errors import StorageFailed
from greenroom.model.room import Room
from greenroom.ports import LedgerStore
from greenroom.stores.redis.leader_lease import RedisLeaderLease
from greenroom.stores.redis.sync_lock import LOCK_MS, PermitRequest, RedisSyncLock
from greenroom.sync.batch import ReportBatch, answer_of, encode
from greenroom.sync.leader_loop import LeaderLoop
from greenroom.sync.schedule import SLOT_MS, SLOTS_MOST, SyncSchedule

LOOK_S = 0.5
"""How often a process without the turn looks whether it is free, and one with it takes it again."""

ANSWER_MS = 2_000
"""An answer that takes longer counts as lost. Twice that, and a data center counts as cut off."""

KNOCK_S = 0.5
"""Without an answer for so long, whoever waits looks whether the office is empty."""

RETRY_S = 0.25
BORROW_S = 1.0
"""A visitor waits no longer than this for permits from elsewhere."""


class Contact(msgspec.Struct, frozen=True):
    """How a data center stands with the coordinator, as one process knows it."""

    data_center: str
    syncing: bool  # this process syncs
    leader: bool  # this process is the coordinator
    holder: str  # of the leader lease, as far as known
    answered_age_ms: int | None  # since the newest answer; None: this process has never had one
    batches: int  # brought, since the start
    unanswered: int  # of those


class DataCenterSync:
    """One process's part in one data center."""

    def __init__(
        self,
        name: str,
        process: str,
        ledgers: LedgerStore,
        rooms: Callable[[], Mapping[str, Room]],
        leader_lease: RedisLeaderLease,
        turn: RedisSyncLock,
        host: LeaderLoop,
        on_error: Callable[[BaseException], None],
    ) -> None:
        """`process` names this process among all of the world; `rooms` gives the rooms that are open here, by id."""
        self.name, self.process = name, process
        self._ledgers, self._rooms = ledgers, rooms
        self._leader_lease, self._turn, self._leader_loop = leader_lease, turn, host
        self._on_error = on_error
        self._schedule = SyncSchedule(crc32(name.encode()) % (SLOT_MS * SLOTS_MOST))
        self._mine_until = 0.0
        self._holder = ""
        self._answered: float | None = None
        self._letters = self._unanswered = 0
        self._number = time.time_ns() // 1_000_000  # letters of different processes are told apart
        self._wished = asyncio.Event()
        self._borrowers: dict[str, asyncio.Future[None]] = {}
        self._far_borrowers: dict[str, asyncio.Task[None]] = {}
        self._thankful: set[str] = set()
        self._term: asyncio.Task[None] | None = None

    @property
    def mine(self) -> bool:
        """Whether this process has the turn."""
        return time.monotonic() < self._mine_until

    def contact(self) -> Contact:
        """For operators."""
        age_ms = None if self._answered is None else int((time.monotonic() - self._answered) * 1000)
        return Contact(self.name, self.mine, self._leader_loop.term is not None, self._holder, age_ms, self._letters, self._unanswered)

    async def run(self) -> None:
        """Until cancelled; then the turn and the office are given to whoever comes next."""
        loops = [asyncio.create_task(loop()) for loop in (self._keep_turn, self._sync, self._listen)]
        try:
            await asyncio.gather(*loops)
        finally:
            for task in (*loops, *self._far_borrowers.values()):
                task.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            await asyncio.shield(self._hand_over())

    async def borrow(self, room_id: str, want: int) -> None:
        """See `ports.Borrow`."""
        if self.mine:
            future = self._borrowers.get(room_id)
            if future is None:
                future = self._borrowers[room_id] = asyncio.get_running_loop().create_future()
            self._schedule.wish(room_id, want)
            self._wished.set()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.shield(future), BORROW_S)
            return
        task = self._far_borrowers.get(room_id)
        if task is None:
            task = self._far_borrowers[room_id] = asyncio.create_task(self._borrow_far(room_id, want))
        await asyncio.shield(task)

    # -- loops ---------------------------------------------------------------------------------------------------------------------

    async def _keep_turn(self) -> None:
        while True:
            asked = time.monotonic()
            try:
                mine = await self._turn.take()
                self._mine_until = asked + LOCK_MS / 1000 if mine else 0.0
            except StorageFailed as error:
                self._on_error(error)
            await asyncio.sleep(LOOK_S)

    async def _sync(self) -> None:
        while True:
            if not self.mine:
                await asyncio.sleep(RETRY_S)
                continue
            room_ids = self._rooms().keys()
            wants = self._schedule.due(_now_ms(), room_ids)
            if wants:
                await self._exchange(wants)
            else:
                self._wished.clear()
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._wished.wait(), min(self._schedule.rest_ms(_now_ms(), room_ids) / 1000, LOOK_S))

    async def _listen(self) -> None:
        """Wishes of the other processes."""
        while True:
            if not self.mine:
                await asyncio.sleep(RETRY_S)
                continue
            try:
                for wish in await self._turn.wishes(LOOK_S):
                    self._take(wish)
            except StorageFailed as error:
                self._on_error(error)
                await asyncio.sleep(RETRY_S)

    def _take(self, wish: PermitRequest) -> None:
        self._thankful.add(wish.process)
        self._schedule.wish(wish.room_id, wish.want)
        self._wished.set()

    # -- one exchange ----------------------------------------------------------------------------------------------------------------

    async def _exchange(self, wants: Mapping[str, int]) -> None:
        borrowers = [self._borrowers.pop(room_id) for room_id in wants if room_id in self._borrowers]
        thankful, self._thankful = self._thankful, set()
        try:
            await self._write_and_read(wants)
        except StorageFailed as error:
            self._on_error(error)
            await asyncio.sleep(RETRY_S)
        finally:
            for borrower in borrowers:
                if not borrower.done():
                    borrower.set_result(None)
        if thankful:
            with suppress(StorageFailed):
                await self._turn.fulfil(thankful)

    async def _write_and_read(self, wants: Mapping[str, int]) -> None:
        self._schedule.keep(self._rooms())
        ups = await self._ledgers.sync_up(wants)
        if not ups:
            return
        for room_id, up in ups.items():
            self._schedule.told(room_id, up, _now_ms())
        self._number += 1
        self._letters += 1
        await self._bring(encode(ReportBatch(self._number, ups)))
        downs = await self._answer()
        if downs is None:
            self._unanswered += 1
            return
        await self._ledgers.sync_down(downs)
        self._answered = time.monotonic()

    async def _answer(self) -> Mapping[str, SyncDown] | None:
        """The answer to the newest letter. One to an earlier letter is of no use any more: counters are absolute."""
        until = time.monotonic() + ANSWER_MS / 1000
        while (left := until - time.monotonic()) > 0:
            sealed = await self._leader_lease.answer(self.name, min(left, KNOCK_S))
            if sealed is None:
                await self._bring(b"")
                continue
            try:
                answer = answer_of(sealed)
            except ValueError as error:
                self._on_error(error)
                continue
            if answer.number == self._number:
                return answer.rooms
        return None

    async def _bring(self, batch: bytes) -> None:
        """And takes office if nobody holds it."""
        delivery = await self._leader_lease.bring(self.name, batch, self.process)
        self._holder = delivery.holder
        if delivery.term and (self._term is None or self._term.done()):
            self._term = asyncio.create_task(self._leader_loop.serve(delivery.term))

    async def _borrow_far(self, room_id: str, want: int) -> None:
        try:
            await self._turn.wish(room_id, want, BORROW_S)
        except StorageFailed as error:
            self._on_error(error)
        finally:
            del self._far_borrowers[room_id]

    async def _hand_over(self) -> None:
        await self._leader_loop.resign()
        if self._term:
            self._term.cancel()
            await asyncio.gather(self._term, return_exceptions=True)
        with suppress(StorageFailed):
            await self._turn.give_away()


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
