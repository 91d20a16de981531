"""Syncs the ledgers of one data center with the coordinator. The process with the sync lock submits
the reports of all due rooms as one batch, and applies the answer before it reads the next reports: an
answer is never newer than its report. If nobody holds the leader lease, whoever submits a batch takes
it.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

from greenroom.admission.messages.sync import SyncDown
from greenroom.admission.sync_schedule import ANSWER_MS, BORROW_MS, SyncSchedule, phase_ms
from greenroom.errors import StorageFailed
from greenroom.ledgers.coordination import (
    LOCK_MS,
    LeaderLease,
    LedgerStore,
    PermitRequest,
    SyncLock,
)
from greenroom.ledgers.sync.batch import ReportBatch, answer_of, encode
from greenroom.ledgers.sync.leader_loop import LeaderLoop
from greenroom.model.room import Room
from greenroom.notifier import Wake, ended

LOCK_RETRY_S = 0.5

CHECK_LEADER_S = 0.5

RETRY_S = 0.25
FAREWELL_S = 2.0
"""The fence replaces a farewell that is not received."""


class Contact(msgspec.Struct, frozen=True):
    data_center: str
    syncing: bool  # this process syncs
    leader: bool  # this process is the coordinator
    holder: str  # of the leader lease, as far as known
    answered_age_ms: int | None  # of the newest answer; None: this process has had none
    batches: int  # submitted since the start
    unanswered: int


class DataCenterSync:
    def __init__(
        self,
        name: str,
        process: str,
        ledgers: LedgerStore,
        rooms: Callable[[], Mapping[str, Room]],
        leader_lease: LeaderLease,
        lock: SyncLock,
        leader_loop: LeaderLoop,
        on_error: Callable[[BaseException], None],
    ) -> None:
        """`process` is unique worldwide."""
        self.name, self.process = name, process
        self._ledgers, self._rooms = ledgers, rooms
        self._leader_lease, self._lock, self._leader_loop = leader_lease, lock, leader_loop
        self._on_error = on_error
        self._schedule = SyncSchedule(phase_ms(name))
        self._locked_until = 0.0
        self._holder = ""
        self._answered: float | None = None
        self._batches = self._unanswered = 0
        self._number = time.time_ns() // 1_000_000  # differs between processes
        self._requested = Wake()
        self._borrowers: dict[str, asyncio.Future[None]] = {}
        self._far_borrowers: dict[str, asyncio.Task[None]] = {}
        # processes whose permit requests have not been acknowledged
        self._requesters: set[str] = set()

    @property
    def locked(self) -> bool:
        return time.monotonic() < self._locked_until

    def contact(self) -> Contact:
        age_ms = None if self._answered is None else int((time.monotonic() - self._answered) * 1000)
        return Contact(
            self.name,
            self.locked,
            self._leader_loop.term is not None,
            self._holder,
            age_ms,
            self._batches,
            self._unanswered,
        )

    async def run(self) -> None:
        """When cancelled, the last process says farewell; lock and lease are released."""
        loops = [
            asyncio.create_task(loop()) for loop in (self._keep_lock, self._sync, self._listen)
        ]
        try:
            await asyncio.gather(*loops)
        finally:
            await ended([*loops, *self._far_borrowers.values()])
            await asyncio.shield(self._release())

    async def borrow(self, room_id: str, want: int) -> None:
        if self.locked:
            future = self._borrowers.get(room_id)
            if future is None:
                future = self._borrowers[room_id] = asyncio.get_running_loop().create_future()
            self._schedule.request(room_id, want)
            self._requested.set()
            with suppress(asyncio.TimeoutError):
                async with asyncio.timeout(BORROW_MS / 1000):
                    await asyncio.shield(future)
            return
        task = self._far_borrowers.get(room_id)
        if task is None:
            task = self._far_borrowers[room_id] = asyncio.create_task(
                self._borrow_far(room_id, want)
            )
        await asyncio.shield(task)

    async def give_up(self, data_center: str) -> None:
        """An operator states that nothing runs there. Raises StorageFailed."""
        delivery = await self._leader_lease.submit(
            data_center, encode(ReportBatch(0, {}, dead=True)), self.process
        )
        if delivery.term:
            self._leader_loop.begin(delivery.term)

    # -- loops -------------------------------------------------------------------------------------

    async def _keep_lock(self) -> None:
        while True:
            asked = time.monotonic()
            try:
                locked = await self._lock.acquire()
                self._locked_until = asked + LOCK_MS / 1000 if locked else 0.0
            except StorageFailed as error:
                self._on_error(error)
            await asyncio.sleep(LOCK_RETRY_S)

    async def _sync(self) -> None:
        while True:
            if not self.locked:
                await asyncio.sleep(RETRY_S)
                continue
            room_ids = self._rooms().keys()
            wants = self._schedule.due(_now_ms(), room_ids)
            if wants:
                await self._sync_rooms(wants)
            else:
                rest_s = self._schedule.rest_ms(_now_ms(), room_ids) / 1000
                await self._requested.rest(min(rest_s, LOCK_RETRY_S))

    async def _listen(self) -> None:
        while True:
            if not self.locked:
                await asyncio.sleep(RETRY_S)
                continue
            try:
                for request in await self._lock.permit_requests(LOCK_RETRY_S):
                    self._accept(request)
            except StorageFailed as error:
                self._on_error(error)
                await asyncio.sleep(RETRY_S)

    def _accept(self, request: PermitRequest) -> None:
        self._requesters.add(request.process)
        self._schedule.request(request.room_id, request.want)
        self._requested.set()

    # -- one exchange ------------------------------------------------------------------------------

    async def _sync_rooms(self, wants: Mapping[str, int]) -> None:
        borrowers = [
            self._borrowers.pop(room_id) for room_id in wants if room_id in self._borrowers
        ]
        requesters, self._requesters = self._requesters, set()
        try:
            await self._exchange(wants)
        except StorageFailed as error:
            self._on_error(error)
            await asyncio.sleep(RETRY_S)
        finally:
            for borrower in borrowers:
                if not borrower.done():
                    borrower.set_result(None)
        if requesters:
            with suppress(StorageFailed):
                await self._lock.acknowledge(requesters)

    async def _exchange(self, wants: Mapping[str, int]) -> None:
        self._schedule.keep(self._rooms())
        ups = await self._ledgers.sync_up(wants)
        if not ups:
            return
        for room_id, up in ups.items():
            self._schedule.record(room_id, up, _now_ms())
        self._number += 1
        self._batches += 1
        await self._submit(encode(ReportBatch(self._number, ups)))
        downs = await self._answer()
        if downs is None:
            self._unanswered += 1
            return
        await self._ledgers.sync_down(downs)
        for room_id, down in downs.items():
            self._schedule.answered(room_id, down)
        self._answered = time.monotonic()

    async def _answer(self) -> Mapping[str, SyncDown] | None:
        """Skips answers to earlier batches: counters are absolute."""
        until = time.monotonic() + ANSWER_MS / 1000
        while (left := until - time.monotonic()) > 0:
            encoded = await self._leader_lease.next_answer(self.name, min(left, CHECK_LEADER_S))
            if encoded is None:
                await self._submit(b"")
                continue
            try:
                answer = answer_of(encoded)
            except ValueError as error:
                self._on_error(error)
                continue
            if answer.number == self._number:
                return answer.rooms
        return None

    async def _submit(self, batch: bytes) -> None:
        delivery = await self._leader_lease.submit(self.name, batch, self.process)
        self._holder = delivery.holder
        if delivery.term:
            self._leader_loop.begin(delivery.term)

    async def _borrow_far(self, room_id: str, want: int) -> None:
        try:
            await self._lock.request_permits(room_id, want, BORROW_MS / 1000)
        except StorageFailed as error:
            self._on_error(error)
        finally:
            del self._far_borrowers[room_id]

    async def _release(self) -> None:
        with suppress(StorageFailed, asyncio.TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                await self._say_farewell()
        await self._leader_loop.resign()

    async def _say_farewell(self) -> None:
        """The last process reports that only sessions are left."""
        if not await self._lock.leave():
            return
        ups = await self._ledgers.farewell()
        if ups:
            await self._leader_lease.submit(
                self.name, encode(ReportBatch(self._number + 1, ups)), ""
            )


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
