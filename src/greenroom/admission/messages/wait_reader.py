"""Reads the newest wait table for a visitor, further along as it ages."""

from bisect import bisect_left, bisect_right
from math import exp, log, sqrt

from greenroom.admission.messages.wait_table import (
    HAZARDS,
    OFFSET_S,
    UNDECIDED_S,
    WaitTable,
    between,
    width_at,
)
from greenroom.admission.timer_wheel import CELL_BITS
from greenroom.model.record import replace
from greenroom.model.visit import Estimate

STALE_MS = 4_000
"""Older tables widen: by a factor of two in a minute."""
STALE_WIDENS_MS = 60_000
LINE_OVER_MS = 10_000
SPREAD = (-1, 0, 1, 1)


class WaitReader:
    """Arrival times are on the coordinator's clock; `now_ms` is local."""

    __slots__ = (
        "_columns",
        "_gone",
        "_line_ahead_ms",
        "_made_ms",
        "_random",
        "_read",
        "_seconds",
        "_stale",
        "age_s",
        "decides",
        "wait_table",
    )

    def __init__(self) -> None:
        self.wait_table: WaitTable | None = None
        self._made_ms = self._line_ahead_ms = 0
        self._read = -1
        self._gone = 0.0
        self.age_s = 0.0
        self.decides = False
        self._stale = 0
        self._columns: tuple[list[float], ...] = ()
        self._seconds: list[int] = []
        self._random: Estimate | None = None

    def take(self, wait_table: WaitTable, line_ms: int, now_ms: int) -> None:
        """`line_ms`: when it was sent, on the coordinator's clock."""
        self.wait_table = wait_table
        self._line_ahead_ms = line_ms - now_ms
        self._made_ms = min(now_ms, wait_table.made_ms - self._line_ahead_ms)
        self._seconds = [second for second, _ in wait_table.ahead]
        self._stale, self._columns = 0, ()
        self._read = -1
        self.age_s = 0.0
        self.decides = wait_table.learnt

    def current(self, now_ms: int) -> bool:
        return self.wait_table is not None and now_ms - self._made_ms < LINE_OVER_MS

    def expect(self, random: bool) -> None:
        if self.wait_table and self.wait_table.random != random:
            self.wait_table = None
            self.decides = False

    def fifo(self, before: float, arrival_ms: int, now_ms: int) -> Estimate | None:
        """`before`: rank among those here without a permit, from 1. None: unknown."""
        wait_table = self.wait_table
        if wait_table is None:
            return None
        if now_ms >> CELL_BITS != self._read:
            self._advance(wait_table, now_ms)
        if self._seconds and (elsewhere := self._elsewhere(wait_table, arrival_ms)):
            # `before` is of now; `elsewhere` is of when the table was made, however old reports
            # were, as the coordinator knows its own permits; since then both shrank alike
            gone = self._gone
            root = sqrt((before + gone - elsewhere) ** 2 + 4 * before * elsewhere)
            before = (before + elsewhere - gone + root) / 2
        before -= 0.5  # the n-th admission is in the middle of the n-th gap
        undecided_s = UNDECIDED_S - (now_ms + self._line_ahead_ms - arrival_ms) / 1000
        if undecided_s > 0:
            before -= wait_table.strays_per_s * min(undecided_s, UNDECIDED_S)
        count = self._gone + (before if before > 0.0 else 0.0)
        people = wait_table.people
        index = bisect_left(people, count, 1)
        if index == len(people):
            return None
        low, middle, high, top = self._columns or self._widened(wait_table)
        below, passed_s = index - 1, self.age_s
        part = (count - people[below]) / (people[index] - people[below])
        p25_s = low[below] + part * (low[index] - low[below]) - passed_s
        p50_s = middle[below] + part * (middle[index] - middle[below]) - passed_s
        p75_s = high[below] + part * (high[index] - high[below]) - passed_s
        most_s = top[below] + part * (top[index] - top[below]) - passed_s
        if p25_s < 0.0 or p50_s < 0.0 or p75_s < 0.0 or most_s < 0.0:
            p25_s, p50_s, p75_s, most_s = (
                max(0.0, p25_s),
                max(0.0, p50_s),
                max(0.0, p75_s),
                max(0.0, most_s),
            )
        return Estimate(p25_s, p50_s, p75_s, most_s, self._change(wait_table, arrival_ms))

    def random(self, arrival_ms: int, now_ms: int) -> Estimate | None:
        wait_table = self.wait_table
        if wait_table is None:
            return None
        if now_ms >> CELL_BITS != self._read:
            self._advance(wait_table, now_ms)
            self._random = self._quantiles(wait_table)
        found, change = self._random, self._change(wait_table, arrival_ms)
        return found if found is None or not change else replace(found, change=change)

    def _change(self, wait_table: WaitTable, arrival_ms: int) -> str:
        if self._stale:
            return "stale"
        return wait_table.change if arrival_ms <= wait_table.since_ms else ""

    def _elsewhere(self, wait_table: WaitTable, arrival_ms: int) -> float:
        ahead, second = wait_table.ahead, arrival_ms / 1000 - 1
        index = bisect_right(self._seconds, second)
        if index == 0:
            return 0.0
        start, count = ahead[index - 1]
        if index == len(ahead):
            return float(count)
        end, more = ahead[index]
        return count + (more - count) * (second - start) / (end - start)

    def _advance(self, wait_table: WaitTable, now_ms: int) -> None:
        self._read = now_ms >> CELL_BITS
        age_ms = max(0, now_ms - self._made_ms)
        self.age_s = age_ms / 1000
        # permits of now are used this much later
        at_s = self.age_s + wait_table.permit_s
        gone = between(wait_table.seconds, wait_table.people, at_s)
        self._gone = wait_table.people[-1] if gone is None else gone
        stale = -(-max(0, age_ms - STALE_MS) * 10 // STALE_WIDENS_MS)
        if stale != self._stale:
            self._stale, self._columns = stale, ()

    def _widened(self, wait_table: WaitTable) -> tuple[list[float], ...]:
        """Computed when a visitor asks: most tables of a room without a line are never read."""
        self._columns = _columns(wait_table, self._stale / 10 * log(2))
        return self._columns

    def _quantiles(self, wait_table: WaitTable) -> Estimate | None:
        waits: list[float] = []
        wider = self._stale / 10 * log(2)
        for hazard, width, sign in zip(HAZARDS, wait_table.widths[0], SPREAD, strict=True):
            wait_s = between(
                wait_table.people,
                wait_table.seconds,
                self._gone + hazard * exp(width + sign * wider),
            )
            if wait_s is None and len(waits) < len(HAZARDS) - 1:
                return None
            waits.append(0.0 if wait_s is None else max(0.0, wait_s - self.age_s))
        p25_s, p50_s, p75_s, most_s = waits
        return Estimate(p25_s, p50_s, p75_s, max(p75_s, most_s))


def _columns(wait_table: WaitTable, wider: float) -> tuple[list[float], ...]:
    widths = [width_at(wait_table.widths, seconds) for seconds in wait_table.seconds]
    return tuple(
        [
            (seconds + OFFSET_S) * exp(width[which] + sign * wider) - OFFSET_S
            for seconds, width in zip(wait_table.seconds, widths, strict=True)
        ]
        for which, sign in enumerate(SPREAD)
    )
