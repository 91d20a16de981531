"""The scale of forecasts, from how those of a minute ago came true."""

from collections import deque

AFTER_MS = 60_000
"""The sliding minute repeats its lumps, which cancel out over a minute."""
WEIGHT = 12.0
"""A single forecast proves little: a wave two seconds late looks like a line that hardly moves."""
FADE = 0.97
"""Per forecast (10 s)."""
LOWEST, HIGHEST = 0.5, 1.5


class Track:
    __slots__ = ("_expected", "_open", "_realised")

    def __init__(self) -> None:
        self._expected = self._realised = 0.0
        self._open: deque[tuple[int, int, float]] = deque()

    @property
    def scale(self) -> float:
        return min(HIGHEST, max(LOWEST, (self._realised + WEIGHT) / (self._expected + WEIGHT)))

    def expect(self, now_ms: int, admitted: int, in_a_minute: float) -> None:
        """`in_a_minute`: before scaling."""
        self._open.append((now_ms, admitted, in_a_minute))

    def check(self, now_ms: int, admitted: int) -> None:
        """Forecasts count alike, whatever their size."""
        while self._open and now_ms - self._open[0][0] >= AFTER_MS:
            made_ms, before, expected = self._open.popleft()
            expected *= (now_ms - made_ms) / AFTER_MS
            if expected >= 1:
                self._expected = self._expected * FADE + 1
                self._realised = self._realised * FADE + min(
                    HIGHEST, max(LOWEST, (admitted - before) / expected)
                )

    def forget(self) -> None:
        self._open.clear()
