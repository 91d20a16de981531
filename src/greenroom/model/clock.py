"""The clock, and the growth of counters in its last minute."""

from collections import deque
from typing import Protocol

MINUTE_MS = 60_000


class Clock(Protocol):
    """Unix time that never runs backwards within a process, nor across a restart that kept its
    data.
    """

    def now_ms(self) -> int: ...


class LastMinute:
    """Samples of counters that only grow; a decrease is a restart from 0."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, tuple[float, ...]]] = deque()

    def add(self, now_ms: int, *counters: float) -> None:
        seen = self._seen
        if seen and any(now < before for now, before in zip(counters, seen[-1][1], strict=True)):
            seen.clear()
        seen.append((now_ms, counters))
        while len(seen) > 1 and seen[1][0] <= now_ms - MINUTE_MS:
            seen.popleft()

    @property
    def span_ms(self) -> int:
        return self._seen[-1][0] - self._seen[0][0] if self._seen else 0

    def growth(self) -> tuple[float, ...]:
        """Needs a sample."""
        first, last = self._seen[0][1], self._seen[-1][1]
        return tuple(now - before for now, before in zip(last, first, strict=True))
