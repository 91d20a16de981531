"""The health checks of a process without the rest of it: a real store, an origin that a test
switches, and a sink that keeps alerts.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from greenroom.errors import StorageFailed
from greenroom.health.alerts import Placed
from greenroom.health.service import HealthService
from greenroom.health.store import HealthStore, default_url
from greenroom.model.alert import Alert
from greenroom.model.health_check import HealthCheck, effective
from greenroom.model.probe import ProbeResult, Reason
from greenroom.runtime.clock import MonotonicClock

PATIENCE_S = 30.0
CLOCK = MonotonicClock()


def a_check(id: str = "c1", **fields) -> HealthCheck:
    return HealthCheck(
        **effective(
            {"id": id, "name": id, "address": "origin.example.com", "interval": 1, **fields}
        )
    )


def placed(*checks: HealthCheck) -> dict[str, Placed]:
    return {check.id: Placed(check, "z1", "example.com") for check in checks}


@dataclass
class Origin:
    """Answers probes at once, as the test wishes."""

    up: bool = True
    probes: int = 0

    async def probe(self, _check: HealthCheck) -> ProbeResult:
        self.probes += 1
        return (
            ProbeResult(code=200, address="192.0.2.1", rtt_ms=5.0)
            if self.up
            else ProbeResult(Reason.TCP_FAILED, address="192.0.2.1")
        )


@dataclass
class Sink:
    """Refuses while it is `broken`."""

    broken: bool = False
    kept: list[Alert] = field(default_factory=list)

    def put(self, alerts: Sequence[Alert]) -> None:
        if self.broken:
            raise StorageFailed("the outbox is full")
        self.kept += [
            alert
            for alert in alerts
            if alert.identity not in {known.identity for known in self.kept}
        ]

    def events(self) -> list[tuple[str, str]]:
        return [(alert.state, str(alert.data["reason"])) for alert in self.kept]


async def until(true: Callable[[], object], what: str = "it") -> None:
    end = monotonic() + PATIENCE_S
    while not true():
        assert monotonic() < end, f"{what} did not happen within {PATIENCE_S} s"
        await asyncio.sleep(0.02)  # until the service has done it


@contextlib.asynccontextmanager
async def serving(
    folder: Path, origin: Origin, sink: Sink, holder: str = "a", checks: Sequence[HealthCheck] = ()
) -> AsyncIterator[HealthService]:
    """A service that runs meanwhile."""
    store = HealthStore(default_url(folder))
    service = HealthService(store, sink.put, CLOCK.now_ms, origin.probe, holder=holder)
    service.configure(placed(*checks))
    task = asyncio.create_task(service.run())
    try:
        yield service
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        store.close()
