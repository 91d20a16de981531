"""How many requests may be in flight to one origin: the inner loop of limits that follow it.

Theory. Beyond its knee an origin only answers later, never more. By Little's law as many requests
are in flight as their rate times their mean time, so with `n` in flight and a mean of twice what the
objective wants, half of `n` keeps the rate and has that mean. What is beyond it waits in greenroom,
where what matters can go first.
"""

from collections import deque
from dataclasses import dataclass

from greenroom.capacity.histogram import Histogram
from greenroom.capacity.law import (
    CUT_LEAST,
    CUT_MOST,
    ERRORS_BAD,
    FAR,
    GOOD,
    MEAN_WANTED,
    QUANTILE,
    USELESS,
    more_than,
)

FLOOR = 32
"""Requests that are always allowed: of these the least share of a ticket, 8, is its usual quarter."""
SAMPLES_LEAST = 20
WINDOWS = 2
GROWTH = 1.1
"""A window, while the bound binds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightWindow:
    """What one process saw of one origin. Times are without the wait for a connection."""

    documents: Histogram
    pending: Histogram = Histogram()
    """Ages of documents that are not answered yet."""
    failed: int = 0
    peak: int
    """Most requests of any kind in flight at once: lent to, and no answer begun."""


class FlightLaw:
    """One origin's law in one process."""

    def __init__(self) -> None:
        self.bound: int | None = None
        """None: nothing but the operator's limit."""
        self._recent: deque[FlightWindow] = deque(maxlen=WINDOWS)
        self._cut_from = (0, 0.0)
        """In flight, and mean time, at the first cut since all was well."""
        self._before: int | None = None
        """The bound before that cut."""
        self._useless = False

    def step(self, window: FlightWindow, objective_ms: int, most: int) -> int | None:
        """Call it for each WINDOW_MS. `most` is the operator's limit."""
        if self.bound is not None and self.bound >= most:
            self.bound = None
        self._recent.append(window)
        found = window.pending.slower_than(objective_ms)
        for one in self._recent:
            found += one.documents
        failed = sum(one.failed for one in self._recent)
        total = found.total + failed
        slow = found.slower_than(objective_ms).total
        bad = more_than(1 - QUANTILE, slow, found.total)
        failing = more_than(ERRORS_BAD, failed, total)
        if total < SAMPLES_LEAST:
            if not (bad or failing):  # or what waits here, and is no document, would starve
                self._grow(window, most)
        elif bad:
            self._cut(found.mean_ms, objective_ms, most)
        elif found.quantile_ms(QUANTILE) <= GOOD * objective_ms and not failing:
            self._cut_from, self._useless = (0, 0.0), False
            self._grow(window, most)
        return self.bound

    def _grow(self, window: FlightWindow, most: int) -> None:
        if self.bound is not None and window.peak >= self.bound:
            self._set(max(self.bound + 1, int(self.bound * GROWTH)), most)

    def _cut(self, mean_ms: float, objective_ms: int, most: int) -> None:
        if self._useless:
            return
        peak = max(one.peak for one in self._recent)
        used = peak if self.bound is None else min(peak, self.bound)
        first_used, first_ms = self._cut_from
        if first_used and used <= FAR * first_used and mean_ms > USELESS * first_ms:
            self._useless = True  # load is not the cause
            self._set(self._before or most, most)
            return
        if not first_used:
            self._cut_from, self._before = (used, mean_ms), self.bound
        kept = MEAN_WANTED * objective_ms / mean_ms
        self._set(int(used * min(1 - CUT_LEAST, max(1 - CUT_MOST, kept))), most)

    def _set(self, bound: int, most: int) -> None:
        bound = max(FLOOR, bound)
        self.bound = bound if bound < most else None
        self._recent.clear()
