"""Runs probes when they are due, concurrently, each check at most once at a time."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

import structlog

from greenroom.health.probes import CannotProbe
from greenroom.health.rules.schedule import next_due_ms
from greenroom.model.health_check import HealthCheck
from greenroom.model.probe import ProbeResult
from greenroom.notifier import Wake, ended

SOON_MAX = 100

SOON_STEP_MS = 20


class DueCheck(NamedTuple):
    check: HealthCheck
    due_ms: int


class Timetable:
    """A check that is still being probed is not due again: its turn is skipped and counted."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._checks: dict[str, HealthCheck] = {}
        self._generation: dict[str, int] = {}
        self._heap: list[tuple[int, str, int]] = []
        self._running: set[str] = set()
        self._count = 0
        self.skipped = 0

    @property
    def running(self) -> int:
        return len(self._running)

    def __len__(self) -> int:
        return len(self._checks)

    def plan(self, checks: Mapping[str, HealthCheck], now_ms: int) -> None:
        """An unchanged check keeps its place."""
        wanted = {key: check for key, check in checks.items() if not check.suspended}
        fresh = [key for key, check in wanted.items() if self._checks.get(key) != check]
        for key in self._checks.keys() - wanted.keys():
            self._generation.pop(key, None)
        self._checks = wanted
        for number, key in enumerate(fresh):
            self._count += 1
            self._generation[key] = self._count
            place_ms = next_due_ms(key, self._agent, wanted[key].interval * 1000, now_ms)
            soon_ms = now_ms + number * SOON_STEP_MS
            heapq.heappush(
                self._heap,
                (min(soon_ms, place_ms) if len(fresh) <= SOON_MAX else place_ms, key, self._count),
            )

    def next_ms(self) -> int | None:
        while self._heap and self._generation.get(self._heap[0][1]) != self._heap[0][2]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now_ms: int, most: int) -> list[DueCheck]:
        """Due checks, in order; they count as running from here on."""
        found: list[DueCheck] = []
        while len(found) < most and (due_ms := self.next_ms()) is not None and due_ms <= now_ms:
            _, key, generation = heapq.heappop(self._heap)
            check = self._checks[key]
            heapq.heappush(
                self._heap,
                (
                    self._following(check, max(due_ms, now_ms - check.interval * 1000)),
                    key,
                    generation,
                ),
            )
            if key in self._running:
                self.skipped += 1
                continue
            self._running.add(key)
            found.append(DueCheck(check, due_ms))
        return found

    def ended(self, check_id: str) -> None:
        self._running.discard(check_id)

    def _following(self, check: HealthCheck, after_ms: int) -> int:
        """At least half an interval after a probe out of turn."""
        interval_ms = check.interval * 1000
        due_ms = next_due_ms(check.id, self._agent, interval_ms, after_ms)
        return (
            due_ms
            if due_ms - after_ms >= interval_ms // 2
            else next_due_ms(check.id, self._agent, interval_ms, due_ms)
        )


PROBES_AT_ONCE = 3_000
"""Ten thousand checks a minute on unresponsive servers are 2,500. Each takes a socket and about 30
KB.
"""

log = structlog.get_logger(__name__)

Probe = Callable[[HealthCheck], Awaitable[ProbeResult]]
ReportProbe = Callable[[HealthCheck, int, ProbeResult], None]


class RunnerFigures(NamedTuple):
    checks: int = 0
    running: int = 0
    probes: int = 0
    skipped: int = 0
    failed: int = 0
    late_ms: int = 0


class ProbeRunner:
    """Probes the checks of one agent in one event loop."""

    def __init__(
        self,
        agent: str,
        probe: Probe,
        report: ReportProbe,
        now_ms: Callable[[], int],
    ) -> None:
        self._table = Timetable(agent)
        self._probe = probe
        self._report = report
        self._now_ms = now_ms
        self._wake = Wake()
        self._tasks: set[asyncio.Task[None]] = set()
        self._probes = self._failed = 0
        self._late = [(0, 0), (0, 0)]  # (minute, greatest delay) of the last minute and of this one

    @property
    def figures(self) -> RunnerFigures:
        minute = self._now_ms() // 60_000
        late_ms = max((late for at, late in self._late if at >= minute - 1), default=0)
        return RunnerFigures(
            len(self._table),
            self._table.running,
            self._probes,
            self._table.skipped,
            self._failed,
            late_ms,
        )

    def plan(self, checks: Mapping[str, HealthCheck]) -> None:
        self._table.plan(checks, self._now_ms())
        self._wake.set()

    async def run(self) -> None:
        try:
            while True:
                for due in self._table.take(self._now_ms(), PROBES_AT_ONCE - len(self._tasks)):
                    task = asyncio.create_task(self._one(due))
                    self._tasks.add(task)
                    task.add_done_callback(self._ended)
                await self._rest()
        finally:
            await ended(self._tasks.copy())

    def _ended(self, task: asyncio.Task[None]) -> None:
        if len(self._tasks) >= PROBES_AT_ONCE:
            self._wake.set()
        self._tasks.discard(task)

    async def _rest(self) -> None:
        next_ms = self._table.next_ms()
        full = len(self._tasks) >= PROBES_AT_ONCE
        wait_s = None if next_ms is None or full else max(0, next_ms - self._now_ms()) / 1000
        await self._wake.rest(wait_s)

    async def _one(self, due: DueCheck) -> None:
        began_ms = self._now_ms()
        self._note_delay(began_ms, began_ms - due.due_ms)
        try:
            result = await self._probe(due.check)
        except CannotProbe as error:
            self._failed += 1
            # the 1st, 2nd, 4th, 8th ...: a lack that lasts must not fill the log
            if self._failed & (self._failed - 1) == 0:
                log.error(
                    "probe_not_possible",
                    check=due.check.name,
                    reason=str(error),
                    times=self._failed,
                )
        else:
            self._probes += 1
            self._report(due.check, began_ms, result)
        finally:
            self._table.ended(due.check.id)

    def _note_delay(self, now_ms: int, late_ms: int) -> None:
        minute = now_ms // 60_000
        if self._late[1][0] != minute:
            self._late = [self._late[1], (minute, late_ms)]
        elif late_ms > self._late[1][1]:
            self._late[1] = (minute, late_ms)
