"""Rooms whose limit follows their origin: every process reports what it measured, the one that leads
steps the law, and every process applies what came of it.
"""

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import structlog

from greenroom.capacity.histogram import Histogram
from greenroom.capacity.measurement import FORGOTTEN_MS, Measurement, ProcessReport, WindowMeter
from greenroom.capacity.room_capacity import (
    CapacityNote,
    CapacityState,
    RoomCapacity,
    first_capacity,
)
from greenroom.capacity.window import WINDOW_MS, Window
from greenroom.config.shared import Shared
from greenroom.configuration.layers import UnitFault
from greenroom.configuration.operations import note_capacity
from greenroom.decision.decision_counts import DecisionCounts
from greenroom.decision.room_schedule import RoomSchedule
from greenroom.decision.room_table import RoomTable
from greenroom.errors import StorageFailed
from greenroom.gateway.documents import SeesAnswers
from greenroom.model.clock import Clock
from greenroom.model.room import Room
from greenroom.notifier import Wake
from greenroom.runtime.ledger_store import ProcessLedgerStore
from greenroom.web.stores import ConfigStore

if TYPE_CHECKING:
    from greenroom.ledgers.redis.capacity import RedisCapacity

TICK_S = 1.0
OVERLOADED_S = 1.0
"""An event loop that wakes up this much too late does not measure origins but itself."""
SCALING_MS = 60_000
"""An instance that was started has no caches yet."""
NOTE_RETRY_S = 5.0
NOT_MEASURED = (
    "capacity: must be fixed here: no greenroom process forwards this room's requests, so how fast"
    " its origin answers is not known (greenroom decide and native passes do not measure it)"
)

log = structlog.get_logger(__name__)


class OneProcess:
    """Where a process is alone; `RedisCapacity` is between all, and raises StorageFailed."""

    def __init__(self) -> None:
        self._reports: dict[str, ProcessReport] = {}
        self._states: Mapping[str, CapacityState] = {}

    async def report(self, report: ProcessReport) -> None:
        self._reports[""] = report

    async def withdraw(self, process: str = "") -> None:
        self._reports.pop(process, None)

    async def reports(self) -> Mapping[str, ProcessReport]:
        return self._reports

    async def publish(self, states: Mapping[str, CapacityState]) -> None:
        self._states = states

    async def states(self) -> Mapping[str, CapacityState]:
        return self._states

    async def close(self) -> None: ...


def exchange_of(shared: Shared | None) -> "OneProcess | RedisCapacity":
    """Make it inside the event loop."""
    if shared is None:
        return OneProcess()
    from greenroom.ledgers.redis.capacity import RedisCapacity
    from greenroom.ledgers.redis.leases import TIMEOUT_S

    process = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
    return RedisCapacity(shared.global_redis.client(TIMEOUT_S), process)


class ProcessCapacity:
    def __init__(
        self,
        shared: Shared | None,
        ledgers: ProcessLedgerStore,
        counts: DecisionCounts,
        store: ConfigStore,
        clock: Clock,
    ) -> None:
        """`store` takes the audit log's entries."""
        self._exchange = exchange_of(shared)
        self._ledgers = ledgers
        self._counts = counts
        self._store = store
        self._now_ms = clock.now_ms
        self._meter = WindowMeter()
        self._rooms: dict[str, RoomCapacity] = {}
        self._states: Mapping[str, CapacityState] = {}
        self._notes: dict[str, tuple[Room, CapacityNote]] = {}
        self._noted = Wake()
        self._stepped_ms = 0
        self._reported = False
        self._instances: dict[str, tuple[int, int]] = {}
        """How many, and when that last changed."""
        self._answers: SeesAnswers | None = None
        """None: this process sees no answers of origins."""

    def measure(self, answers: SeesAnswers | None) -> None:
        self._answers = answers

    def of(self, room_id: str) -> tuple[CapacityState | None, int]:
        """Its state, and how many instances its origin has."""
        return self._states.get(room_id), self._instances.get(room_id, (0, 0))[0]

    def count_instances(self, room_id: str, instances: int) -> None:
        before = self._instances.get(room_id)
        if before is None:
            self._instances[room_id] = instances, 0
        elif before[0] != instances:
            self._instances[room_id] = instances, self._now_ms()

    def faults(self, rooms: tuple[Room, ...]) -> Iterator[UnitFault]:
        for room in rooms:
            state = self._states.get(room.id)
            if room.capacity != "fixed" and state is not None and state.mode == "fixed":
                yield UnitFault(f"room {room.name}", NOT_MEASURED)

    def hold_rooms(self, table: RoomTable) -> None:
        for room_id, schedule in table.rooms.items():
            room = schedule.now.room
            if room.capacity != "follow":
                schedule.follow_origin(None, slow=False)
                continue
            state = self._states.get(room_id)
            if state is None:
                schedule.follow_origin(first_capacity(room), slow=False)
            elif state.mode == "fixed":
                schedule.follow_origin(None, slow=False)
            elif state.mode == "follow":
                schedule.follow_origin(max(1, state.limit), slow=state.stopped)

    async def run(self, table: Callable[[], RoomTable]) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._run(table))
            tasks.create_task(self._keep_notes())

    async def close(self) -> None:
        with contextlib.suppress(StorageFailed):
            if self._reported:
                await self._exchange.withdraw()
        await self._exchange.close()

    # -- inside ------------------------------------------------------------------------------------

    async def _run(self, table: Callable[[], RoomTable]) -> None:
        loop = asyncio.get_running_loop()
        late_s = 0.0
        while True:
            due_s = loop.time() + TICK_S
            try:
                await self._tick(table(), overloaded=late_s >= OVERLOADED_S)
            except StorageFailed as error:  # what was applied last holds
                log.warning("capacity_not_exchanged", reason=str(error))
            await asyncio.sleep(max(TICK_S / 4, due_s - loop.time()))
            late_s = loop.time() - due_s

    async def _tick(self, table: RoomTable, *, overloaded: bool) -> None:
        steered = {
            room_id: schedule
            for room_id, schedule in table.rooms.items()
            if schedule.now.room.capacity != "fixed"
        }
        for room_id in self._instances.keys() - table.rooms.keys():
            del self._instances[room_id]
        if not steered:
            self._rooms.clear()
            self._states = {}
            if self._reported:
                self._reported = False
                await self._exchange.withdraw()
            return
        await self._exchange.report(self._measured(steered, overloaded))
        self._reported = True
        now_ms, sync = self._now_ms(), self._ledgers.sync_state()
        if sync is not None and not sync.leader:
            self._rooms.clear()
        elif now_ms - self._stepped_ms >= WINDOW_MS:
            self._stepped_ms = now_ms
            await self._step(steered, now_ms)
        found = await self._exchange.states()
        self._states = {room_id: state for room_id, state in found.items() if room_id in steered}
        self.hold_rooms(table)

    def _measured(self, steered: Mapping[str, RoomSchedule], overloaded: bool) -> ProcessReport:
        now_ms, sync = self._now_ms(), self._ledgers.sync_state()
        speaks = sync is None or sync.syncing
        answers = self._answers
        pending = answers.pending_documents() if answers else {}
        rooms = {}
        for room_id in steered:
            seen = answers.documents.of(room_id) if answers else None
            ledger = self._ledgers.open.get(room_id) if speaks else None
            figures = ledger.figures(now_ms).here if ledger else None
            rooms[room_id] = Measurement(
                documents=seen.histogram if seen else Histogram(),
                failed=seen.failed if seen else 0,
                admitted=self._counts.of(room_id).get("admitted", 0),
                pending=pending.get(room_id, Histogram()),
                active=figures.active if figures else 0,
                waiting=figures.waiting if figures else 0,
                scaling=now_ms - self._instances.get(room_id, (0, 0))[1] < SCALING_MS,
            )
        return ProcessReport(
            at_ms=now_ms, rooms=rooms, overloaded=overloaded, measures=answers is not None
        )

    async def _step(self, steered: Mapping[str, RoomSchedule], now_ms: int) -> None:
        reports = await self._exchange.reports()
        for process, report in reports.items():
            if now_ms - report.at_ms >= FORGOTTEN_MS:
                await self._exchange.withdraw(process)
        if not any(report.measures for report in reports.values()):
            self._rooms.clear()
            await self._exchange.publish(
                {room_id: _fixed(one.now.room, now_ms) for room_id, one in steered.items()}
            )
            return
        windows = self._meter.windows(reports, now_ms) or {}
        states = {}
        for room_id, schedule in steered.items():
            window = windows.get(room_id)
            capacity = self._capacity(schedule.now.room, window, now_ms)
            state = states[room_id] = capacity.step(window, now_ms)
            note = capacity.note(state, now_ms)
            if note is not None:
                self._notes[room_id] = schedule.now.room, note
                self._noted.set()
                log.info(
                    "capacity_changed", room=schedule.now.room.name, sessions=note.sessions,
                    reason=note.reason,
                )  # fmt: skip
        for room_id in self._rooms.keys() - steered.keys():
            del self._rooms[room_id]
        await self._exchange.publish(states)

    def _capacity(self, room: Room, window: Window | None, now_ms: int) -> RoomCapacity:
        found = self._rooms.get(room.id)
        if found is None or found.mode != room.capacity:
            last = self._states.get(room.id)
            if last is not None and last.mode != room.capacity:
                last = None
            found = RoomCapacity(room, last, window.active if window else 0, now_ms)
            self._rooms[room.id] = found
        found.configure(room)
        return found

    async def _keep_notes(self) -> None:
        while True:
            await self._noted.rest()
            while self._notes:
                room_id, found = next(iter(self._notes.items()))
                room, note = found
                try:
                    await asyncio.to_thread(
                        note_capacity, self._store, room, note.sessions, note.reason, self._now_ms()
                    )
                except StorageFailed as error:
                    log.warning("capacity_not_noted", reason=str(error))
                    await asyncio.sleep(NOTE_RETRY_S)
                else:
                    if self._notes.get(room_id) is found:
                        del self._notes[room_id]


def _fixed(room: Room, now_ms: int) -> CapacityState:
    return CapacityState(
        mode="fixed",
        sessions=room.total_active_users,
        limit=room.total_active_users,
        stopped=False,
        reason=NOT_MEASURED,
        measured_ms=now_ms,
    )
