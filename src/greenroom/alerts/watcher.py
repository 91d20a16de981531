"""Raises alerts about this process: one picture a second, judged by pure rules."""

import asyncio
from collections.abc import Callable

import structlog

from greenroom.alerts.rules.conditions import Picture, conditions, speaks_for
from greenroom.alerts.rules.tracker import Tracker
from greenroom.alerts.store import SqlOutbox, StoreOutage
from greenroom.errors import StorageFailed
from greenroom.model.alert import Alert

LOOK_S = 1.0
UNSENT_MAX = 10_000
"""An hour of everything failing; the oldest are dropped."""

log = structlog.get_logger(__name__)


class Watcher:
    def __init__(
        self,
        look: Callable[[], Picture],
        store: SqlOutbox,
        now_ms: Callable[[], int],
    ) -> None:
        self._look = look
        self._store = store
        self._now_ms = now_ms
        self._tracker = Tracker()
        self._unsent: list[Alert] = []
        self._spoke_for_rooms = False
        self._ready = False
        self._outage = StoreOutage("alerts_waiting", "alerts_resumed")

    async def run(self) -> None:
        while True:
            await self.look_once()
            await asyncio.sleep(LOOK_S)

    async def look_once(self) -> None:
        picture = self._look()
        if not self._ready or (picture.speaks_for_rooms and not self._spoke_for_rooms):
            self._ready = await self._adopt()
        self._spoke_for_rooms = picture.speaks_for_rooms
        if not self._ready:
            return  # what goes on is not known, so nothing can be said to begin
        self._unsent += self._tracker.step(conditions(picture), speaks_for(picture), self._now_ms())
        if self._unsent:
            await self._put()

    async def _adopt(self) -> bool:
        try:
            self._tracker.adopt(await asyncio.to_thread(self._store.open_incidents))
        except StorageFailed as error:
            self._outage.failed(error)
            return False
        self._outage.answered()
        return True

    async def _put(self) -> None:
        del self._unsent[:-UNSENT_MAX]
        try:
            if any(alert.state == "start" for alert in self._unsent):
                self._unsent = self._tracker.without_open(
                    self._unsent, await asyncio.to_thread(self._store.open_incidents)
                )
            await asyncio.to_thread(self._store.put, tuple(self._unsent), self._now_ms())
        except StorageFailed as error:
            self._outage.failed(error)
        else:
            self._outage.answered()
            for alert in self._unsent:
                log.info(
                    "alert",
                    alert_type=alert.type,
                    state=alert.state,
                    correlation_id=alert.correlation_id,
                    text=alert.text,
                )
            self._unsent.clear()
