"""The one real clock: Unix time that never runs backwards, neither within a process nor across its
restarts.
"""

import asyncio
import time
from collections.abc import Callable

import structlog

LOOK_S = 10.0

DIFFERS_MS = 5_000
"""Log only larger differences: machines that share a Redis may differ by a second or two."""

log = structlog.get_logger(__name__)

_monotonic_s = time.monotonic


class MonotonicClock:
    """Milliseconds since 1970, read once from the wall clock and counted from there by the
    monotonic clock, so stepping the wall clock changes nothing.

    `not_before_ms` is the latest time in the earlier journals: a wall clock stepped back between
    two runs must not lengthen a session, nor put newcomers in front of those who wait.
    """

    def __init__(self, not_before_ms: int = 0) -> None:
        self._offset_ms = time.time_ns() // 1_000_000 - int(time.monotonic() * 1000)
        self.catch_up(not_before_ms)

    def now_ms(self) -> int:
        return (
            int(_monotonic_s() * 1000) + self._offset_ms
        )  # exact to the millisecond for 285,000 years; nanoseconds cost three times as much

    def catch_up(self, not_before_ms: int) -> None:
        """Steps forward to this time if it is ahead. Call it before anything is served."""
        behind_ms = not_before_ms - self.now_ms()
        if behind_ms > 0:
            self._offset_ms += behind_ms


def ahead_of_wall_ms(now_ms: int) -> int:
    """Negative when greenroom's time is behind."""
    return now_ms - time.time_ns() // 1_000_000


class ClockWatch:
    """Logs when the wall clock was stepped: events then begin at another time than people read on
    their clocks.

    A machine that starts before its time was set, or slept, is behind; one whose journal was
    written under a clock that was ahead stays ahead until that time has come. Following the wall
    clock would end sessions early, or lengthen them.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._told_ms = 0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """One look. What was said is said again only when it has changed by as much."""
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
