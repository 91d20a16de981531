"""The one real clock: Unix time that never runs backwards, neither within a process nor across its restarts."""

import time

_monotonic_s = time.monotonic


class MonotonicClock:
    """Milliseconds since 1970, read once from the wall and counted from there by the monotonic clock.

    So a wall clock that is stepped while the process runs changes nothing. `not_before_ms` is the latest time in the journals
    of the process before: a wall clock that was stepped back in between must not make a visitor's session longer, nor
    put newcomers in front of those who wait.
    """

    def __init__(self, not_before_ms: int = 0) -> None:
        self._offset_ms = time.time_ns() // 1_000_000 - int(time.monotonic() * 1000)
        self.catch_up(not_before_ms)

    def now_ms(self) -> int:
        """Whole milliseconds."""
        return (
            int(_monotonic_s() * 1000) + self._offset_ms
        )  # exact to the millisecond for 285,000 years; nanoseconds cost three times as much

    def catch_up(self, not_before_ms: int) -> None:
        """Steps forward to this time if it is ahead; only while nothing is served yet."""
        behind_ms = not_before_ms - self.now_ms()
        if behind_ms > 0:
            self._offset_ms += behind_ms
