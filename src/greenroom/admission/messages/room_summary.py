"""The other data centers' figures, and how many wait there before an arrival. No admission depends on
it.

A place in the whole line counts the visitors of earlier seconds, and in the same second those of data
centers that come first in it (`coordinator.summaries`). So once reports are in, the places of all
data centers are a permutation of 1 to n.
"""

from bisect import bisect_right

import msgspec
from msgspec import structs

from greenroom.model.visit import arrival_ms_of


class CenterFigures(msgspec.Struct, frozen=True, array_like=True):
    """`name` is empty for all others together. `last_minute`: admissions of 60 s. `permits`: not known
    to be used. `heard_ms`: of the newest report, on the coordinator's clock; 0: none. `silent`: the
    figures are from then.
    """

    name: str
    active: int
    waiting: int
    last_minute: int
    permits: int
    heard_ms: int
    silent: bool = False


class RoomSummary(msgspec.Struct, frozen=True, array_like=True):
    made_ms: int  # on the coordinator's clock
    others: tuple[CenterFigures, ...]
    # (arrival second, people elsewhere before own arrivals of that second), ascending
    ahead: tuple[tuple[int, int], ...] = ()
    data_centers: int = 2
    settled_ms: int = 0  # earlier arrivals in reachable data centers are counted in `ahead`


def period_ms(data_centers: int) -> int:
    """How often a summary is made: with 15 data centers as often as a quiet room syncs, with 300
    every 7.2 s.
    """
    return 100 * min(data_centers, 15) + 20 * max(0, data_centers - 15)


WINDOW_MS = 60_000
STALE_MS = 4_000
"""Without a newer summary all others count as silent, as for the coordinator."""


class Elsewhere:
    __slots__ = ("_counts", "_seconds", "silent", "summary", "waiting")

    def __init__(self, summary: RoomSummary) -> None:
        self.summary = summary
        self.waiting = sum([one.waiting for one in summary.others])
        self.silent = any(one.silent for one in summary.others)
        self._seconds = [second for second, _ in summary.ahead]
        self._counts = [count for _, count in summary.ahead]

    def ahead(self, key: int) -> int:
        """How many wait elsewhere before this key, interpolated."""
        seconds, counts = self._seconds, self._counts
        if not seconds:
            return 0
        second = arrival_ms_of(key) // 1000
        index = bisect_right(seconds, second)
        if index == 0:
            return 0
        before = counts[index - 1]
        if index == len(seconds):
            return before
        start = seconds[index - 1]
        return before + (counts[index] - before) * (second - start) // (seconds[index] - start)

    def figures(self, line_ms: int) -> tuple[CenterFigures, ...]:
        """As of `line_ms`, on the coordinator's clock, by when old admissions have left the minute."""
        others, known = self.summary.others, self.summary.data_centers
        stale = line_ms - self.summary.made_ms > STALE_MS + period_ms(known)
        return tuple(
            [
                structs.replace(
                    one,
                    silent=one.silent or stale,
                    last_minute=one.last_minute if line_ms - one.heard_ms < WINDOW_MS else 0,
                )
                for one in others
            ]
        )

    def about(self, key: int) -> bool:
        """Whether reports are missing that may put more visitors before this key."""
        return self.silent or arrival_ms_of(key) > self.summary.settled_ms
