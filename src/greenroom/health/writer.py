"""Writes the monitor's data every second, and at once for an alert. An alert is written with its
condition, then handed on, then crossed out; after a crash it is handed on again.
"""

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from greenroom.errors import StorageFailed
from greenroom.health.alerts import AlertSink
from greenroom.health.outcome import Pending
from greenroom.health.rules.memory import HealthStore
from greenroom.notifier import Wake

WRITE_S = 1.0

log = structlog.get_logger(__name__)


class HealthWriter:
    def __init__(
        self, store: HealthStore, sink: AlertSink | None, now_ms: Callable[[], int]
    ) -> None:
        self._store = store
        self._sink = sink
        self._now_ms = now_ms
        self._wake = Wake()
        self._report_failure = ""
        self._alerts_waiting = True
        self.pending = Pending(self._wake.set)

    async def run(self) -> None:
        """Until cancelled, then writes what is left."""
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
            if batch and self._sink is None:
                batch = msgspec.structs.replace(batch, alerts=())
            if batch:
                self._alerts_waiting = self._alerts_waiting or bool(batch.alerts)
                await asyncio.to_thread(self._store.save, batch, self._now_ms())
                batch = None
            if self._sink and self._alerts_waiting:
                self._alerts_waiting = await asyncio.to_thread(self._hand_on, self._sink)
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

    def _hand_on(self, sink: AlertSink) -> bool:
        waiting = self._store.alerts()
        if waiting:
            sink.put([alert for _, alert in waiting])
            self._store.handed_on([number for number, _ in waiting])
        return bool(waiting)
