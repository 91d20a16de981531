import asyncio
from collections.abc import Callable

from greenroom.decision.room_table import RoomTable
from greenroom.model.clock import Clock

REST_MOST_MS = 250
REST_LEAST_MS = 1


async def keep_time(
    table: Callable[[], RoomTable], clock: Clock, on_error: Callable[[BaseException], None]
) -> None:
    """Starts and ends events on time in rooms without requests."""
    while True:
        now_ms = clock.now_ms()
        rest_ms = table().turn(now_ms, on_error) - now_ms
        await asyncio.sleep(max(REST_LEAST_MS, min(REST_MOST_MS, rest_ms)) / 1000)
