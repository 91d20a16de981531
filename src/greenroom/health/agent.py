"""A probe agent on another machine. A change of result is reported at once, the rest every few
seconds. While greenroom is unreachable it keeps probing; when its memory is full it drops the
oldest results.
"""

import asyncio
import contextlib
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import structlog

from greenroom.errors import GreenroomError
from greenroom.health.runner import Probe, ProbeRunner
from greenroom.model.health_check import HealthCheck
from greenroom.model.probe import REPORTS_MAX, AgentOrders, AgentReport, ProbeReport, ProbeResult
from greenroom.notifier import LAST_WORK_S, ended

KEPT_MAX = 100_000
"""About 40 MB."""

FIRST_REPORT_S = 1.0
GATHER_S = 0.1
"""When an origin fails, all of its checks change at once."""

RETRY_S = 3.0

log = structlog.get_logger(__name__)


class ReportFailed(GreenroomError):
    """`hopeless`: wrong token or region, no retry helps."""

    def __init__(self, reason: str, *, hopeless: bool = False) -> None:
        super().__init__(reason)
        self.hopeless = hopeless


Send = Callable[[AgentReport], Awaitable[AgentOrders]]


class _Kept(NamedTuple):
    check_id: str
    at_ms: int
    result: ProbeResult


class ProbeAgent:
    def __init__(
        self, name: str, region: str, send: Send, probe: Probe, now_ms: Callable[[], int]
    ) -> None:
        self._region = region
        self._send = send
        self._now_ms = now_ms
        self._session = secrets.token_hex(8)
        self._number = 0
        self._revision = ""
        self._every_s = FIRST_REPORT_S
        self._kept: deque[_Kept] = deque()
        self._unsent: AgentReport | None = None
        self._taken = 0  # results at the beginning of `_kept` that are in the batch under way
        self._ok: dict[str, bool] = {}
        self._changed = asyncio.Event()
        self._runner = ProbeRunner(name, probe, self._found, now_ms)
        self._failing = False
        self.dropped = 0

    async def run(self) -> None:
        probing = asyncio.create_task(self._runner.run())
        try:
            while True:
                await self._report()
                await self._rest()
        finally:
            await ended([probing], LAST_WORK_S)

    def _found(self, check: HealthCheck, at_ms: int, result: ProbeResult) -> None:
        if len(self._kept) >= KEPT_MAX:
            del self._kept[self._taken]
            self.dropped += 1
        self._kept.append(_Kept(check.id, at_ms, result))
        if self._ok.get(check.id) is not result.ok:
            self._ok[check.id] = result.ok
            self._changed.set()

    async def _rest(self) -> None:
        if self._failing:
            await asyncio.sleep(RETRY_S)
            return
        if len(self._kept) >= REPORTS_MAX and self._unsent is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._every_s):
                await self._changed.wait()
                await asyncio.sleep(GATHER_S)
        self._changed.clear()

    async def _report(self) -> None:
        # A batch that may have arrived is sent again unchanged, so that greenroom recognizes it.
        if self._unsent is None:
            self._number += 1
            self._taken = min(len(self._kept), REPORTS_MAX)
        self._unsent = self._batch()
        try:
            orders = await self._send(self._unsent)
        except ReportFailed as error:
            if error.hopeless:
                raise
            log.warning("report_failed", reason=str(error), waiting=len(self._kept))
            self._failing = True
            return
        self._failing = False
        for _ in range(self._taken):
            self._kept.popleft()
        self._unsent, self._taken = None, 0
        self._every_s = orders.report_every_s
        self._obey(orders)

    def _batch(self) -> AgentReport:
        now_ms = self._now_ms()
        reports = [
            ProbeReport(kept.check_id, max(0, now_ms - kept.at_ms), **_facts(kept.result))
            for kept in islice(self._kept, self._taken)
        ]
        return AgentReport(self._region, self._session, self._number, self._revision, reports)

    def _obey(self, orders: AgentOrders) -> None:
        self._revision = orders.revision
        if orders.checks is not None:
            checks: Mapping[str, HealthCheck] = {check.id: check for check in orders.checks}
            self._ok = {key: ok for key, ok in self._ok.items() if key in checks}
            self._runner.plan(checks)
            log.info("checks_received", checks=len(checks))


def _facts(result: ProbeResult) -> dict[str, Any]:
    return msgspec.structs.asdict(result)
