"""When to ask the coordinator for permits while newcomers, or requests that cannot wait, do;
because the lease ran dry.
"""

from math import ceil

AHEAD_S = 0.5
"""A lease that ran dry is refilled for this long."""
BACK_OFF_MS = 500
"""After a call that brought nothing no newcomer waits for another one for so long."""


class Borrowing:
    """One call at a time for all newcomers of the moment, and a rest after one that brought
    nothing.
    """

    __slots__ = ("_again_ms", "_number")

    def __init__(self) -> None:
        self._number = 0  # of the report that asked
        self._again_ms = 0

    def asks(self, number: int, want: int) -> None:
        """The report of this number asks for so many permits."""
        if want:
            self._number = number

    def answered(self, number: int, permits: int, now_ms: int) -> None:
        """The report of this number was answered, and so many permits are here now."""
        if number == self._number and permits <= 0:
            self._again_ms = now_ms + BACK_OFF_MS

    def amount(self, arrivals_per_s: float, now_ms: int) -> int:
        """How many permits to ask for; 0 while backing off."""
        return max(1, ceil(AHEAD_S * arrivals_per_s)) if self.rested(now_ms) else 0

    def rested(self, now_ms: int) -> bool:
        """Whether the rest after a call that brought nothing is over."""
        return now_ms >= self._again_ms
