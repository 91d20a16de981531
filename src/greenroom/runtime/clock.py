"""The one real clock: Unix time that never runs backwards, within a process and across its
restarts.
"""

import asyncio
import time
from collections.abc import Callable

import structlog

LOOK_S = 10.0

DIFFERS_MS = 5_000
"""Machines that share a Redis may differ by a second or two."""

log = structlog.get_logger(__name__)

_monotonic_s = time.monotonic


class MonotonicClock:
    """Read once from the wall clock and counted by the monotonic clock."""

    def __init__(self) -> None:
        self._offset_ms = time.time_ns() // 1_000_000 - int(time.monotonic() * 1000)

    def now_ms(self) -> int:
        return (
            int(_monotonic_s() * 1000) + self._offset_ms
        )  # exact to the millisecond for 285,000 years; nanoseconds cost three times as much

    def catch_up(self, not_before_ms: int) -> None:
        """Call it with the latest time of the journals before serving: a wall clock stepped back
        must not lengthen a session.
        """
        behind_ms = not_before_ms - self.now_ms()
        if behind_ms > 0:
            self._offset_ms += behind_ms


def ahead_of_wall_ms(now_ms: int) -> int:
    return now_ms - time.time_ns() // 1_000_000


class ClockWatch:
    """Logs steps of the wall clock. Following one would end sessions early, or lengthen them."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._told_ms = 0

    async def run(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Logs again only when the difference has changed by as much."""
        ahead_ms = ahead_of_wall_ms(self._now_ms())
        if abs(ahead_ms - self._told_ms) < DIFFERS_MS and (
            not self._told_ms or abs(ahead_ms) >= DIFFERS_MS
        ):
            return
        self._told_ms = ahead_ms if abs(ahead_ms) >= DIFFERS_MS else 0
        if self._told_ms:
            log.warning(
                "clock_differs",
                seconds_ahead=round(ahead_ms / 1000),
                effect="events begin by the clock of greenroom",
            )
        else:
            log.info("clock_agrees")
