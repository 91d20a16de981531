"""Limits that follow an origin: every process reports measurements, the leader steps the law, every
process applies the result.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import structlog

from greenroom.capacity.exported import Exported, accepted_push
from greenroom.capacity.histogram import Histogram
from greenroom.capacity.measurement import Measurement, ProbeFigures, ProcessReport
from greenroom.capacity.room_capacity import CapacityNote, CapacityState, limit_in_force
from greenroom.capacity.sources import (
    ANSWERS,
    FORGOTTEN_MS,
    HEALTH_CHECK,
    PROMETHEUS,
    source_of,
)
from greenroom.capacity.steering import NOT_MEASURED, CapacitySteering, sources_of
from greenroom.capacity.window import WINDOW_MS
from greenroom.config_file.process_config import ProcessConfig
from greenroom.config_file.shared import SharedLedgers, process_name
from greenroom.configuration.layers import UnitFault
from greenroom.configuration.operations import note_capacity
from greenroom.decision.decision_counts import DecisionCounts
from greenroom.decision.room_schedule import RoomSchedule
from greenroom.decision.room_table import RoomTable
from greenroom.errors import StorageFailed
from greenroom.gateway.documents import SeesAnswers
from greenroom.health.rules.votes import UNHEALTHY
from greenroom.model.clock import Clock
from greenroom.model.probe import ProbeResult
from greenroom.model.room import Room
from greenroom.notifier import Wake
from greenroom.outbound import Guard
from greenroom.runtime.health import ProcessHealth
from greenroom.runtime.ledger_store import ProcessLedgerStore
from greenroom.runtime.prometheus import PrometheusFigures
from greenroom.web.stores import ConfigStore

if TYPE_CHECKING:
    from greenroom.ledgers.redis.capacity import RedisCapacity

TICK_S = 1.0
OVERLOADED_S = 1.0
"""An event loop this late measures itself, not origins."""
SCALING_MS = 60_000
"""An instance that was started has no caches yet."""
NOTE_RETRY_S = 5.0

log = structlog.get_logger(__name__)


class OneProcess:
    """Where a process is alone; `RedisCapacity` is between all, and raises StorageFailed."""

    def __init__(self) -> None:
        self._reports: dict[str, ProcessReport] = {}
        self._states: Mapping[str, CapacityState] = {}

    async def report(self, report: ProcessReport, name: str = "") -> None:
        self._reports[name] = report

    async def withdraw(self, process: str = "") -> None:
        self._reports.pop(process, None)

    async def reports(self) -> Mapping[str, ProcessReport]:
        return self._reports

    async def publish(self, states: Mapping[str, CapacityState]) -> None:
        self._states = states

    async def states(self) -> Mapping[str, CapacityState]:
        return self._states

    async def close(self) -> None: ...


def exchange_of(shared: SharedLedgers | None) -> "OneProcess | RedisCapacity":
    """Make it inside the event loop."""
    if shared is None:
        return OneProcess()
    from greenroom.ledgers.redis.capacity import RedisCapacity
    from greenroom.ledgers.redis.leases import TIMEOUT_S

    return RedisCapacity(shared.global_redis.client(TIMEOUT_S), process_name())


class ProcessCapacity:
    def __init__(
        self,
        shared: SharedLedgers | None,
        ledgers: ProcessLedgerStore,
        counts: DecisionCounts,
        store: ConfigStore,
        clock: Clock,
        guard: Guard,
        health: ProcessHealth,
    ) -> None:
        """`store` takes the audit log's entries; `guard` is of requests to Prometheus."""
        self._exchange = exchange_of(shared)
        self._ledgers = ledgers
        self._counts = counts
        self._store = store
        self._now_ms = clock.now_ms
        self._prometheus = PrometheusFigures(guard, clock.now_ms)
        self._health = health
        self._probes = ProbeFigures()
        health.service.probed = self._probed
        self._steering: CapacitySteering | None = None
        """None: another process steers."""
        self._states: Mapping[str, CapacityState] = {}
        self._notes: dict[str, tuple[Room, CapacityNote]] = {}
        self._missing: set[str] = set()
        self._noted = Wake()
        self._stepped_ms = self._bounded_ms = 0
        self._reported = False
        self._instances: dict[str, tuple[int, int]] = {}
        self._answers: SeesAnswers | None = None
        """None: this process sees no answers of origins."""

    def measure(self, answers: SeesAnswers | None) -> None:
        self._answers = answers

    def of(self, room_id: str) -> tuple[CapacityState | None, int]:
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
            if reason := self._prometheus.reasons.get(room.id):
                yield UnitFault(f"room {room.name}", f"capacity_metrics: {reason}")

    async def push(self, room: Room, found: Mapping[str, Exported]) -> None:
        """Figures about the room's origin, by instance. Raises FiguresRefused or StorageFailed."""
        known = await self._exchange.reports()
        for name, report in accepted_push(room, found, known, self._now_ms()).items():
            await self._exchange.report(report, name)

    def apply_limits(self, table: RoomTable) -> None:
        modes = {room_id: schedule.now.room.capacity for room_id, schedule in table.rooms.items()}
        self._states = {
            room_id: state
            for room_id, state in self._states.items()
            if modes.get(room_id, "fixed") != "fixed" and state.mode in ("fixed", modes[room_id])
        }  # a room that was taken over just now has none
        for room_id, schedule in table.rooms.items():
            limit = limit_in_force(schedule.now.room, self._states.get(room_id))
            schedule.follow_origin(limit.sessions, limit.stopped)

    async def run(self, table: Callable[[], RoomTable]) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._run(table))
            tasks.create_task(self._keep_notes())
            tasks.create_task(self._prometheus.run())

    def configure(self, config: ProcessConfig) -> None:
        self._prometheus.guard.policy = config.sending.outbound
        self._prometheus.logins = config.prometheus_logins

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
                if self._reported:
                    self.apply_limits(table())  # it may have changed meanwhile
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
        self._bound_in_flight(steered, overloaded)
        if not steered:
            self._steering = None
            self._states, self._prometheus.rooms = {}, {}
            if self._reported:
                self._reported = False
                await self._exchange.withdraw()
            return
        await self._exchange.report(self._measured(steered, overloaded))
        self._reported = True
        await self._report_probes(steered)
        now_ms, sync = self._now_ms(), self._ledgers.sync_state()
        if sync is not None and not sync.leader:
            self._steering = None
            self._prometheus.rooms = {}
        elif now_ms - self._stepped_ms >= WINDOW_MS:
            self._stepped_ms = now_ms
            await self._step(steered, now_ms)
        self._states = await self._exchange.states()

    def _bound_in_flight(self, steered: Mapping[str, RoomSchedule], overloaded: bool) -> None:
        """Every process bounds its own connections, by what it sees itself."""
        now_ms = self._now_ms()
        if self._answers is None or now_ms - self._bounded_ms < WINDOW_MS:
            return
        self._bounded_ms = now_ms
        rooms = [schedule.now.room for schedule in steered.values()]
        objectives = {room.id: room.objective_ms for room in rooms if room.capacity == "follow"}
        if not (objectives and overloaded):  # who is late measures itself: the bound stays
            self._answers.bound_in_flight(objectives)

    def _measured(self, steered: Mapping[str, RoomSchedule], overloaded: bool) -> ProcessReport:
        now_ms, sync = self._now_ms(), self._ledgers.sync_state()
        speaks = sync is None or sync.syncing
        answers = self._answers
        pending = answers.pending_documents() if answers else {}
        rooms = {}
        for room_id in steered:
            seen = answers.documents.judged(room_id) if answers else None
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
        source = ANSWERS.name if answers else ""
        return ProcessReport(at_ms=now_ms, rooms=rooms, overloaded=overloaded, source=source)

    def _probed(self, check_id: str, result: ProbeResult) -> None:
        for room_id in self._states:
            if check_id in self._health.checks_of(room_id):
                self._probes.probed(room_id, result, self._now_ms())

    async def _report_probes(self, steered: Mapping[str, RoomSchedule]) -> None:
        self._probes.keep(set(steered))
        if not self._health.service.leads:
            return
        answers = self._answers is not None
        for room_id, schedule in steered.items():
            room, now_ms = schedule.now.room, self._now_ms()
            checks = self._health.checks_of(room_id)
            if source_of(room, answers=answers, checked=bool(checks)) is HEALTH_CHECK:
                unhealthy = self._health.origin_of(room) == UNHEALTHY
                interval_ms = self._health.longest_interval_ms(checks)
                report = self._probes.report(room_id, interval_ms, unhealthy, now_ms)
                if report is not None:
                    await self._exchange.report(report, f"{HEALTH_CHECK.name}:{room_id}")

    async def _step(self, steered: Mapping[str, RoomSchedule], now_ms: int) -> None:
        reports = {**await self._exchange.reports(), **self._prometheus.reports()}
        for process, report in reports.items():
            if now_ms - report.at_ms >= FORGOTTEN_MS:
                await self._exchange.withdraw(process)
        rooms = {room_id: schedule.now.room for room_id, schedule in steered.items()}
        checked = {room_id for room_id in rooms if self._health.checks_of(room_id)}
        sources = sources_of(rooms, reports, checked, self._states)
        self._prometheus.rooms = {
            room_id: room for room_id, room in rooms.items() if sources[room_id] is PROMETHEUS
        }
        steering = self._steering = self._steering or CapacitySteering()
        done = steering.step(rooms, reports, sources, self._states, now_ms)
        for room_id in steering.missing.keys() - self._missing:  # once, until it is measured again
            name, reason = rooms[room_id].name, steering.missing[room_id]
            log.warning("capacity_not_measured", room=name, reason=reason)
        self._missing = set(steering.missing)
        for room, note in done.notes:
            self._notes[room.id] = room, note
            self._noted.set()
            log.info("capacity_changed", room=room.name, sessions=note.sessions, reason=note.reason)
        await self._exchange.publish(done.states)

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
