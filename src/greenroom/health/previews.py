"""Previews of unsaved checks: probed by this process for ten minutes, never stored."""

from collections.abc import Callable

from greenroom.health.alerts import Placed
from greenroom.health.monitor import HealthMonitor
from greenroom.health.outcome import Nothing
from greenroom.health.probes import CannotProbe
from greenroom.health.rules.roster import LOCAL
from greenroom.health.runner import Probe, ProbeRunner
from greenroom.model.health_check import HealthCheck
from greenroom.model.probe import ProbeResult, Report

PREVIEWS_MAX = 100

PREVIEW_MS = 10 * 60_000

TRIES_MAX = 20
"""Tries at the same time; each ends by the timeout of its check."""


class PreviewChecks:
    """Belongs to one event loop."""

    def __init__(self, probe: Probe, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._probe = probe
        self._trying = 0
        self._made: dict[str, tuple[int, Placed]] = {}
        self.monitor = HealthMonitor(now_ms, Nothing())
        self.monitor.hear(LOCAL, "", PREVIEW_MS)
        self._runner = ProbeRunner("preview", probe, self._report, now_ms)

    def add(self, check: HealthCheck, zone_id: str) -> int:
        now_ms = self._now_ms()
        if len(self._made) >= PREVIEWS_MAX:
            del self._made[next(iter(self._made))]
        self._made[check.id] = now_ms, Placed(check, zone_id)
        self._plan()
        return now_ms

    async def once(self, check: HealthCheck) -> ProbeResult:
        """One probe. Raises CannotProbe."""
        if self._trying >= TRIES_MAX:
            raise CannotProbe(f"{TRIES_MAX} checks are being tried at the moment")
        self._trying += 1
        try:
            return await self._probe(check)
        finally:
            self._trying -= 1

    def get(self, check_id: str, zone_id: str) -> tuple[int, HealthCheck] | None:
        found = self._made.get(check_id)
        return (found[0], found[1].check) if found and found[1].zone_id == zone_id else None

    def remove(self, check_id: str) -> None:
        if self._made.pop(check_id, None):
            self._plan()

    def sweep(self) -> None:
        over = [
            key for key, (made_ms, _) in self._made.items() if self._now_ms() - made_ms > PREVIEW_MS
        ]
        for key in over:
            self.remove(key)
        self.monitor.sweep()

    async def run(self) -> None:
        await self._runner.run()

    def _plan(self) -> None:
        placed = {key: found for key, (_, found) in self._made.items()}
        self.monitor.configure(placed)
        self._runner.plan({key: found.check for key, found in placed.items()})

    def _report(self, check: HealthCheck, at_ms: int, result: ProbeResult) -> None:
        self.monitor.take(LOCAL, [Report(check.id, at_ms, result)])
