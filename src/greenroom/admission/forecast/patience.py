"""Who joins and who gives up: arrivals in line per second, the rate of giving up, and the share
that is never seen again.
"""

from collections import deque

FADE_MS = 600_000
SEEN_S = 15_000.0
"""The rate is zero until this many seconds of waiting were observed."""
UNSEEN_S = 14.0
"""Half of the 20 s until the next try, the grace, and a report."""
STRAY_S = 20
"""Who gives up sooner never tries again and is a stray; these first seconds of waiting do not count
here.
"""
MOST_PER_S = 1 / 60
REMEMBERED_MS = 600_000
ARRIVAL_STEP_MS = 5_000


class Patience:
    __slots__ = (
        "_at_ms",
        "_joined",
        "_joins",
        "_lost",
        "_marks",
        "_strays",
        "_waited_s",
        "_waiting",
    )

    def __init__(self, now_ms: int) -> None:
        self._at_ms = now_ms
        self._waited_s = self._lost = self._strays = self._joins = 0.0
        self._joined = 0
        self._waiting: deque[tuple[int, float]] = (
            deque()
        )  # (when, seconds waited until then), not yet in `_waited_s`
        self._marks: deque[tuple[int, int]] = deque([(now_ms, 0)])

    def pass_time(self, waiting: int, now_ms: int) -> None:
        passed_ms = max(0, now_ms - self._at_ms)
        self._at_ms = max(now_ms, self._at_ms)
        fade = 0.5 ** (passed_ms / FADE_MS)
        self._waited_s *= fade
        self._waiting.append((now_ms, waiting * passed_ms / 1000))
        while self._waiting and now_ms - self._waiting[0][0] >= UNSEEN_S * 1000:
            self._waited_s += self._waiting.popleft()[1]
        self._lost, self._strays, self._joins = (
            self._lost * fade,
            self._strays * fade,
            self._joins * fade,
        )
        if now_ms - self._marks[-1][0] >= ARRIVAL_STEP_MS:
            self._marks.append((now_ms, self._joined))
            while len(self._marks) > 2 and now_ms - self._marks[1][0] >= REMEMBERED_MS:
                self._marks.popleft()

    def count(self, joined: int, lost: int, strays: int) -> None:
        self._joined += joined
        self._joins += joined
        self._lost += lost - strays
        self._strays += strays

    @property
    def giving_up_per_s(self) -> float:
        """Without strays and those who come back. Losses show UNSEEN_S late, so they are compared
        with the waiting until then.
        """
        return min(MOST_PER_S, max(0.0, self._lost) / (self._waited_s + SEEN_S))

    @property
    def stray_share(self) -> float:
        return min(1.0, max(0.0, self._strays) / (self._joins + 10))

    def joining_per_s(self, over_ms: int) -> float:
        since_ms, joined = self._marks[0]
        for mark_ms, count in reversed(self._marks):
            since_ms, joined = mark_ms, count
            if self._at_ms - mark_ms >= over_ms:
                break
        return (self._joined - joined) * 1000 / max(over_ms, self._at_ms - since_ms)
