"""How forecasts of a minute have come true: what they are scaled by from now on."""

from collections import deque

AFTER_MS = 60_000
"""Forecasts are checked after a minute: the sliding minute repeats its lumps, and they cancel out
over a whole one.
"""
WEIGHT = 12.0
"""Forecasts are believed at first as if twelve had come true exactly: one says little, because a
wave that comes two seconds late at the end of its minute looks like a line that hardly moves."""
FADE = 0.97
"""Of a forecast against the next one, ten seconds later: half is forgotten after four minutes."""
LOWEST, HIGHEST = 0.5, 1.5


class Track:
    """Expected and actual admissions, over minutes with a line all the time."""

    __slots__ = ("_expected", "_open", "_realised")

    def __init__(self) -> None:
        self._expected = self._realised = 0.0
        self._open: deque[tuple[int, int, float]] = deque()

    @property
    def scale(self) -> float:
        """Realised by expected."""
        return min(HIGHEST, max(LOWEST, (self._realised + WEIGHT) / (self._expected + WEIGHT)))

    def expect(self, now_ms: int, admitted: int, in_a_minute: float) -> None:
        """So many more than the `admitted` until now are expected within a minute, before
        scaling.
        """
        self._open.append((now_ms, admitted, in_a_minute))

    def check(self, now_ms: int, admitted: int) -> None:
        """What has come of the forecasts of a minute ago; each counts alike, however many it was
        about.
        """
        while self._open and now_ms - self._open[0][0] >= AFTER_MS:
            made_ms, before, expected = self._open.popleft()
            expected *= (now_ms - made_ms) / AFTER_MS
            if expected >= 1:
                self._expected = self._expected * FADE + 1
                self._realised = self._realised * FADE + min(
                    HIGHEST, max(LOWEST, (admitted - before) / expected)
                )

    def forget(self) -> None:
        """The line is over, or other data centers are heard: what comes of open forecasts says
        nothing of the pace.
        """
        self._open.clear()
