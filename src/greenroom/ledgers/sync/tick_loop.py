"""Lets time pass in a process's in-memory ledgers."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from greenroom.model.clock import Clock

REST_LEAST_MS, REST_MOST_MS = 10, 250
"""A new room is seen within a quarter of a second, and requests are served in between."""

WORK_MS = 5


class TimedLedger(Protocol):
    def tick(self) -> int:
        """Returns when to call next, in milliseconds of its clock."""


class TickLoop:
    def __init__(
        self,
        ledgers: Callable[[], Mapping[str, TimedLedger]],
        clock: Clock,
        on_error: Callable[[BaseException], None],
    ) -> None:
        """`on_error` receives errors, and the loop goes on."""
        self._ledgers = ledgers
        self._now_ms = clock.now_ms
        self._on_error = on_error
        self._due: dict[str, int] = {}

    async def run(self) -> None:
        while True:
            await asyncio.sleep(await self.tick_due() / 1000)

    async def tick_due(self) -> int:
        """Returns milliseconds to rest."""
        ledgers = self._ledgers()
        self._due = {room_id: self._due.get(room_id, 0) for room_id in ledgers}
        began_ms = self._now_ms()
        for room_id, ledger in ledgers.items():
            now_ms = self._now_ms()
            if now_ms >= self._due[room_id]:
                try:
                    self._due[room_id] = ledger.tick()
                except Exception as error:
                    self._on_error(error)
                    self._due[room_id] = now_ms + REST_MOST_MS
            if now_ms - began_ms >= WORK_MS:
                await asyncio.sleep(0)
                began_ms = self._now_ms()
        rest_ms = min(self._due.values(), default=0) - self._now_ms()
        return max(REST_LEAST_MS, min(REST_MOST_MS, rest_ms)) if ledgers else REST_MOST_MS
