"""When to ask the coordinator for permits while newcomers, or requests that cannot wait, do;
because the lease ran dry.
"""

from math import ceil

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
