"""Health checks in one process, which leads (probes, takes reports, decides) or follows. The leader
renews a lease in the health store. While the store is unreachable no process can take over, so the
leader continues and writes later.
"""

import asyncio
import contextlib
import hashlib
import secrets
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec
import structlog

from greenroom.errors import AgentNameTaken, AgentRefused, StorageFailed
from greenroom.health.alerts import Placed, PutAlerts
from greenroom.health.monitor import AGENTS_MAX, HealthMonitor
from greenroom.health.outcome import Pending
from greenroom.health.previews import PreviewChecks
from greenroom.health.rules.condition import Condition
from greenroom.health.rules.memory import HealthMemory
from greenroom.health.rules.roster import LOCAL, Agent
from greenroom.health.runner import Probe, ProbeRunner, RunnerFigures
from greenroom.health.store import HealthStore
from greenroom.model.health_check import HealthCheck
from greenroom.model.probe import (
    AgentOrders,
    AgentReport,
    ProbeReport,
    ProbeResult,
    Report,
)
from greenroom.notifier import LAST_WORK_S, Wake, ended

WRITE_S = 1.0


class HealthWriter:
    """Writes the monitor's data every WRITE_S, and at once for an alert. An alert is written with
    its condition, then handed on, then crossed out; after a crash it is handed on again.
    """

    def __init__(
        self, store: HealthStore, put_alerts: PutAlerts, now_ms: Callable[[], int]
    ) -> None:
        self._store = store
        self._put_alerts = put_alerts
        self._now_ms = now_ms
        self._wake = Wake()
        self._report_failure = ""
        self._alerts_waiting = True
        self.pending = Pending(self._wake.set)

    async def run(self) -> None:
        """Runs until cancelled, then writes what is left."""
        try:
            while True:
                await self.write()
                await self._wake.rest(WRITE_S)
        finally:
            await asyncio.shield(self.write())

    async def write(self) -> None:
        """Never raises: what cannot be written waits."""
        batch = self.pending.take()
        try:
            if batch:
                self._alerts_waiting = self._alerts_waiting or bool(batch.alerts)
                await asyncio.to_thread(self._store.save, batch, self._now_ms())
                batch = None
            if self._alerts_waiting:
                self._alerts_waiting = await asyncio.to_thread(self._hand_on)
        except StorageFailed as error:
            if batch:
                self.pending.give_back(batch)
            if str(error) != self._report_failure:
                log.error("health_store_write_failed", reason=str(error))
            self._report_failure = str(error)
        else:
            if self._report_failure:
                log.info("health_store_write_recovered")
            self._report_failure = ""

    def _hand_on(self) -> bool:
        waiting = self._store.alerts()
        if waiting:
            self._put_alerts([alert for _, alert in waiting])
            self._store.handed_on([number for number, _ in waiting])
        return bool(waiting)


TAKEN_MS = 12_000


class _Session(NamedTuple):
    id: str
    number: int
    heard_ms: int


class AgentSessions:
    """Recognizes duplicate batches, and two programs that use one agent name."""

    def __init__(self) -> None:
        self._known: dict[str, _Session] = {}

    def again(self, name: str, session: str, number: int, now_ms: int) -> bool:
        """Raises AgentNameTaken while another agent uses the name."""
        known = self._known.get(name)
        if known and known.id != session and now_ms - known.heard_ms < TAKEN_MS:
            raise AgentNameTaken(
                f"another agent reports as {name!r}; give each its own name, or wait"
                f" {TAKEN_MS // 1000} s after a crash"
            )
        repeated = known is not None and known.id == session and number <= known.number
        self._known[name] = _Session(
            session, max(number, known.number) if known and repeated else number, now_ms
        )
        return repeated

    def forget(self, name: str) -> None:
        self._known.pop(name, None)


TERM_MS = 15_000
RENEW_S = 5.0
FOLLOW_S = 2.0

REPORT_EVERY_MS = 5_000

log = structlog.get_logger(__name__)


class HealthService:
    def __init__(
        self,
        store: HealthStore,
        put_alerts: PutAlerts,
        now_ms: Callable[[], int],
        probe: Probe,
        *,
        holder: str = "",
    ) -> None:
        """`holder` must be the same after a restart, or the process would wait for its own
        lease.
        """
        self._store = store
        self._now_ms = now_ms
        self._here: str | None = ""
        self._holder = holder or secrets.token_hex(8)
        self._seen = HealthMemory()
        self._placed: Mapping[str, Placed] = {}
        self.leads = False
        self.remembers = asyncio.Event()
        self._configured = Wake()
        self._writer = HealthWriter(store, put_alerts, now_ms)
        self._runner = ProbeRunner(LOCAL, probe, self._report, now_ms)
        self._monitor = self._new_monitor()
        self.previews = PreviewChecks(probe, now_ms)
        self._sessions = AgentSessions()
        self._told: dict[str, tuple[int, str, list[HealthCheck]]] = {}
        self.probed: Callable[[str, ProbeResult], None] = lambda _check_id, _result: None
        """Notified of every probe while this process leads."""

    # -- for the rest of the process ---------------------------------------------------------------

    def configure(self, placed: Mapping[str, Placed], here: str | None = "") -> None:
        """`here`: the region of local probes, empty for all; None disables them."""
        moved, self._here = here != self._here, here
        changed, self._placed = placed != self._placed, placed
        self._configured.set()
        if self.leads and moved:
            self._place_own_agent()
        if self.leads and changed:
            self._monitor.configure(placed)

    def _place_own_agent(self) -> None:
        if self._here is None:
            self._monitor.leave(LOCAL)
        else:
            self._monitor.hear(LOCAL, self._here, REPORT_EVERY_MS)

    def condition(self, check_id: str) -> Condition | None:
        if self.previews.monitor.condition(check_id):
            return self.previews.monitor.condition(check_id)
        return (
            self._monitor.condition(check_id) if self.leads else self._seen.conditions.get(check_id)
        )

    def regions(self, check_id: str) -> Mapping[str, str]:
        """The empty name is greenroom's own agent for all regions. Only the leader knows."""
        return self.previews.monitor.regions(check_id) or (
            self._monitor.regions(check_id) if self.leads else {}
        )

    @property
    def placed(self) -> Mapping[str, Placed]:
        return self._placed

    @property
    def figures(self) -> RunnerFigures:
        return self._runner.figures

    @property
    def dropped(self) -> int:
        return self._writer.pending.lost

    # -- for agents --------------------------------------------------------------------------------

    def hear(self, name: str, report: AgentReport) -> AgentOrders:
        """Raises AgentRefused. Belongs to the event loop, as `leave`."""
        if not self.leads:
            raise AgentRefused(
                "another process runs the health checks; report there, or try again in a moment"
            )
        now_ms = self._now_ms()
        again = self._sessions.again(name, report.session, report.number, now_ms)
        if not self._monitor.hear(name, report.region, REPORT_EVERY_MS):
            raise AgentRefused(f"there are {AGENTS_MAX} agents already")
        if not again:
            reports = [_dated(found, now_ms) for found in report.reports]
            self._monitor.take(name, reports)
            for found in reports:
                self.probed(found.check_id, found.result)
        return self._orders(name, report.checks)

    def _orders(self, name: str, known: str) -> AgentOrders:
        kept = self._told.get(name)
        if kept is None or kept[0] != self._monitor.plan_number:
            checks = sorted(self._monitor.assigned(name).values(), key=lambda check: check.id)
            revision = hashlib.sha256(msgspec.json.encode(checks)).hexdigest()[:16]
            kept = self._told[name] = self._monitor.plan_number, revision, checks
        _, revision, checks = kept
        return AgentOrders(REPORT_EVERY_MS / 1000, revision, None if revision == known else checks)

    def leave(self, name: str) -> None:
        self._told.pop(name, None)
        self._sessions.forget(name)
        self._monitor.leave(name)

    def agents(self) -> list[tuple[Agent, bool]]:
        lost = self._monitor.lost()
        return [(agent, agent.name in lost) for agent in self._monitor.agents()]

    @property
    def history(self) -> HealthStore:
        return self._store

    # -- loops -------------------------------------------------------------------------------------

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.previews.run())
            tasks.create_task(_every_second(self.previews.sweep))
            tasks.create_task(self._lead_or_follow())

    async def _lead_or_follow(self) -> None:
        while not self._placed:  # an installation without checks needs no lease, and no database
            await self._configured.rest()
        while True:
            try:
                if await asyncio.to_thread(self._store.acquire, self._holder, TERM_MS):
                    await self._lead()
                else:
                    self._seen = await asyncio.to_thread(self._store.load)
                    self.remembers.set()
            except StorageFailed as error:
                log.warning("health_store_unreachable", reason=str(error))
            await asyncio.sleep(FOLLOW_S)

    async def _lead(self) -> None:
        memory = await asyncio.to_thread(self._store.load)
        self._monitor, self._told = self._new_monitor(), {}
        self._monitor.load(memory)
        self.leads = True
        self._place_own_agent()
        self._monitor.configure(self._placed)
        self.remembers.set()
        log.info("health_lease_acquired", checks=len(self._placed))
        loops = [
            self._runner.run(),
            self._writer.run(),
            _every_second(lambda: self._monitor.sweep()),
        ]
        tasks = [asyncio.create_task(loop) for loop in loops]
        try:
            await self._prolong()
        finally:
            self.leads = False
            await ended(tasks, LAST_WORK_S)
            with contextlib.suppress(StorageFailed):
                await asyncio.shield(asyncio.to_thread(self._store.release, self._holder))
            self._seen = memory
        log.warning("health_lease_lost")

    async def _prolong(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            with contextlib.suppress(StorageFailed):
                if not await asyncio.to_thread(self._store.acquire, self._holder, TERM_MS):
                    return

    def _new_monitor(self) -> HealthMonitor:
        return HealthMonitor(self._now_ms, self._writer.pending, self._replan)

    def _replan(self) -> None:
        self._runner.plan(self._monitor.assigned(LOCAL) if self.leads else {})

    def _report(self, check: HealthCheck, at_ms: int, result: ProbeResult) -> None:
        self._monitor.take(LOCAL, [Report(check.id, at_ms, result)])
        self.probed(check.id, result)


def _dated(found: ProbeReport, now_ms: int) -> Report:
    facts = {name: getattr(found, name) for name in ProbeResult.__struct_fields__}
    return Report(
        found.check_id, now_ms - found.age_ms, ProbeResult(**{**facts, "reason": str(found.reason)})
    )


async def _every_second(do: Callable[[], None]) -> None:
    while True:
        do()
        await asyncio.sleep(1.0)
