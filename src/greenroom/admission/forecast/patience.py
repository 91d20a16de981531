"""Arrivals in line per second, the rate of giving up, and the share of strays: visitors who are never
seen again.
"""

from collections import deque
from collections.abc import Iterable

FADE_MS = 600_000
SEEN_S = 15_000.0
"""Observed waiting that weighs as much as the strays do."""
UNSEEN_S = 14.0
"""Half of the 20 s until the next try, the grace, and a report."""
FIRST_S, SOON_S = 22.0, 10.0
"""From arrival to the second try. A visitor whose last try was within SOON_S is a stray."""
REPORTED_S = 4.0
"""The grace, and a report."""
SPREAD = 0.4
"""Part of the interval between two tries over which a crowd's tries are spread."""
IN_STEP = 12
"""After this many tries a crowd's tries come at any moment."""
MOST_PER_S = 1 / 60
STRAYS_SAY_PER_S = 1 / 1_800
"""The highest rate that strays imply: requests without cookies are strays too."""
REMEMBERED_MS = 600_000
ARRIVAL_STEP_MS = 5_000


def first_of(every_s: float) -> float:
    return max(SOON_S, min(FIRST_S, 2 + every_s))


def judged_s(age_s: float, every_s: float) -> float:
    """How much of the waiting of a visitor who arrived `age_s` ago has been observed: giving up would
    be known. Known one interval between two tries at a time, so for a crowd in steps, and for its
    strays not at all.
    """
    steps = (age_s - first_of(every_s) - REPORTED_S) / every_s - 1 + SPREAD / 2
    if steps <= 0.0:
        return 0.0
    whole = int(steps)
    part = (steps - whole) / SPREAD
    return every_s * (whole + (part if part < 1.0 else 1.0))


class Patience:
    __slots__ = (
        "_at_ms",
        "_joined",
        "_joins",
        "_judged_ms",
        "_lost",
        "_marks",
        "_rows",
        "_strays",
        "_waited_s",
    )

    def __init__(self, now_ms: int) -> None:
        self._at_ms = self._judged_ms = now_ms
        self._waited_s = self._lost = self._strays = self._joins = 0.0
        self._joined = 0
        self._rows: dict[int, float] = {}
        """Arrival second -> observed waiting of each visitor."""
        self._marks: deque[tuple[int, int]] = deque([(now_ms, 0)])

    def judge(self, waiting: Iterable[tuple[int, int, float]], entered: int, now_ms: int) -> None:
        """`waiting`: (arrival second, waiters, seconds between two tries). All waiting of those who
        `entered` from the front since the last call counts, as their losses did.
        """
        now_s, before_s = now_ms / 1000, self._judged_ms / 1000
        self._judged_ms = max(now_ms, self._judged_ms)
        passed_s = now_s - before_s
        if passed_s > 0:
            rows, longest_s = self._rows, 0.0
            self._rows = {}
            for second, count, every_s in waiting:
                age_s = now_s - second
                row_s = rows.get(second)
                judged = passed_s
                if row_s is None or age_s < IN_STEP * every_s:
                    earlier_s = judged_s(age_s - passed_s, every_s)
                    if row_s is None:
                        row_s = earlier_s
                    if age_s < IN_STEP * every_s:
                        judged = judged_s(age_s, every_s) - earlier_s
                self._waited_s += count * judged
                self._rows[second] = row_s + judged
                if every_s > longest_s:
                    longest_s = every_s
            if self._rows:
                first = min(self._rows)
                left_s = now_s - first - first_of(longest_s) - self._rows[first]
                self._waited_s += entered * max(0.0, left_s)

    def pass_time(self, now_ms: int) -> None:
        passed_ms = max(0, now_ms - self._at_ms)
        self._at_ms = max(now_ms, self._at_ms)
        fade = 0.5 ** (passed_ms / FADE_MS)
        self._waited_s *= fade
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
        """Without strays and visitors who come back. Before enough waiting was observed, at the rate
        of strays in their first seconds.
        """
        strays_per_s = min(STRAYS_SAY_PER_S, self.stray_share / FIRST_S)
        return min(
            MOST_PER_S,
            (max(0.0, self._lost) + SEEN_S * strays_per_s) / (self._waited_s + SEEN_S),
        )

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
