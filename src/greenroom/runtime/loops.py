"""Endless loops and long work in the event loop of a process."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

from greenroom.notifier import LAST_WORK_S, ended

if TYPE_CHECKING:  # commands that print should not load the decision service
    from greenroom.decision.room_table import RoomTable
    from greenroom.model.clock import Clock

OnError = Callable[[BaseException], None]

Say = Callable[[str], None]

REST_S = 1.0
TURN_LEAST_MS, TURN_MOST_MS = 1, 250

WORK_S = 0.005
"""After this much work requests are served first."""


@contextlib.asynccontextmanager
async def beside(
    on_error: Callable[[BaseException], None], *loops: Callable[[], Awaitable[None]]
) -> AsyncIterator[None]:
    """Restarts a loop that fails."""

    async def endless(loop: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await loop()
            except Exception as error:
                on_error(error)
            await asyncio.sleep(REST_S)

    tasks = [asyncio.create_task(endless(loop)) for loop in loops]
    try:
        yield
    finally:
        await ended(tasks, LAST_WORK_S)


async def keep_time(table: Callable[[], "RoomTable"], clock: "Clock", on_error: OnError) -> None:
    """Starts and ends events on time in rooms without requests."""
    while True:
        now_ms = clock.now_ms()
        rest_ms = table().turn(now_ms, on_error) - now_ms
        await asyncio.sleep(max(TURN_LEAST_MS, min(TURN_MOST_MS, rest_ms)) / 1000)


class WorkPieces:
    """Long work inside the event loop. It must not work on what a request changes."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    async def breathe(self) -> None:
        if time.monotonic() - self._began_s >= WORK_S:
            await asyncio.sleep(0)
            self._began_s = time.monotonic()
