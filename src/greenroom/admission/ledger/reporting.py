"""What a ledger has reported: report numbers, changed seconds of the line, arrival rate; and when it
may request permits.
"""

from collections.abc import Mapping
from math import ceil

RATE_MS = 10_000
AHEAD_S = 0.5
BACK_OFF_MS = 500


class Borrowing:
    __slots__ = ("_again_ms", "_number")

    def __init__(self) -> None:
        self._number = 0  # of the report that asked
        self._again_ms = 0

    def asks(self, number: int, want: int) -> None:
        if want:
            self._number = number

    def answered(self, number: int, permits: int, now_ms: int) -> None:
        if number == self._number and permits <= 0:
            self._again_ms = now_ms + BACK_OFF_MS

    def amount(self, arrivals_per_s: float, now_ms: int) -> int:
        return max(1, ceil(AHEAD_S * arrivals_per_s)) if self.rested(now_ms) else 0

    def rested(self, now_ms: int) -> bool:
        return now_ms >= self._again_ms


class Reporting:
    """Of one epoch."""

    __slots__ = (
        "_reported_ms",
        "_untold",
        "arrivals_per_s",
        "borrowing",
        "newcomers",
        "number",
        "whole",
    )

    def __init__(self, now_ms: int) -> None:
        self.number = 0
        self.whole = True
        """Whether the next report is complete, because the coordinator may not know the line."""
        self.newcomers = 0
        self.arrivals_per_s = 0.0
        self.borrowing = Borrowing()
        self._reported_ms = now_ms
        self._untold: set[int] = set()  # arrival seconds whose count the coordinator may not know

    def begin_epoch(self, now_ms: int) -> None:
        """Keeps the arrival rate."""
        self.number, self.whole = 0, True
        self.borrowing = Borrowing()
        self._reported_ms = now_ms

    def begin(self, now_ms: int, want: int, changed: set[int]) -> None:
        """Empties `changed`, the seconds of the line to report."""
        passed_ms = now_ms - self._reported_ms
        if passed_ms > 0:
            rate = self.newcomers * 1000 / passed_ms
            self.arrivals_per_s += (rate - self.arrivals_per_s) * passed_ms / (passed_ms + RATE_MS)
            self.newcomers, self._reported_ms = 0, now_ms
        self.number += 1
        self.borrowing.asks(self.number, want)
        self._untold |= changed
        changed.clear()

    def seconds(self, waiting: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
        if self.whole:
            return tuple(waiting.items())
        return tuple([(second, waiting.get(second, 0)) for second in self._untold])

    def answered(self, number: int, afresh: bool) -> bool:
        """Returns whether that report is the newest. `afresh`: the next one must be complete."""
        if number != self.number:
            return False
        self._untold.clear()
        self.whole = afresh
        return True
