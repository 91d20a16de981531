"""Everybody who waits without a permit anywhere, by arrival second. A change touches only its own
seconds and the few that permits cover, so the cost does not grow with the number of data centers.
"""

from bisect import bisect_left, insort
from typing import NamedTuple


class Reach(NamedTuple):
    sure: int  # its waiters before the edge: each gets a permit
    edge_s: int | None  # the arrival second in which permits run out; None: they do not
    edge_mine: int  # its waiters of that second
    edge_all: int  # all waiters of that second
    edge_permits: int  # permits for those


class Tally:
    __slots__ = ("counts", "order")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.order: list[int] = []

    def add(self, second: int, change: int) -> None:
        counts = self.counts
        before = counts.get(second, 0)
        after = before + change
        if after:
            counts[second] = after
            if not before:
                if not self.order or second > self.order[-1]:
                    self.order.append(second)
                else:
                    insort(self.order, second)
        elif before:
            del counts[second]
            del self.order[bisect_left(self.order, second)]


class LineShare:
    __slots__ = ("covered", "waiters")

    def __init__(self) -> None:
        self.waiters = Tally()
        self.covered: dict[int, int] = {}


class WholeLine:
    __slots__ = ("_all", "_shares")

    def __init__(self) -> None:
        self._all = Tally()
        self._shares: dict[str, LineShare] = {}

    @property
    def seconds(self) -> dict[int, int]:
        return self._all.counts

    def show(self, name: str, seconds: dict[int, int]) -> None:
        self.hide(name)
        share = self._shares[name] = LineShare()
        for second, count in sorted(seconds.items()):
            share.waiters.add(second, count)
            self._all.add(second, count)

    def hide(self, name: str) -> None:
        share = self._shares.pop(name, None)
        if share:
            for second, count in share.waiters.counts.items():
                self._all.add(second, share.covered.get(second, 0) - count)

    def move(self, name: str, second: int, change: int) -> None:
        """Call `cover` before any query."""
        share = self._shares[name]
        share.waiters.add(second, change)
        self._all.add(second, change)

    def cover(self, name: str, permits: int) -> None:
        share, add = self._shares[name], self._all.add
        before, after = share.covered, {}
        counts = share.waiters.counts
        for second in share.waiters.order:
            if permits <= 0:
                break
            after[second] = min(permits, counts[second])
            permits -= after[second]
        if before != after:
            for second, count in before.items():
                if after.get(second) != count:
                    add(second, count)
            for second, count in after.items():
                if before.get(second) != count:
                    add(second, -count)
        share.covered = after

    def reach(self, name: str, permits: int) -> Reach:
        """The part of a data center when the oldest waiters get the permits."""
        counts = self._all.counts
        edge_s = None
        for second in self._all.order:
            if counts[second] > permits:
                edge_s = second
                break
            permits -= counts[second]
        share = self._shares[name]
        waiters, covered = share.waiters.counts, share.covered
        sure = 0
        for second in share.waiters.order:
            if edge_s is not None and second >= edge_s:
                break
            sure += waiters[second] - covered.get(second, 0)
        if edge_s is None:
            return Reach(sure, None, 0, 1, 0)
        return Reach(
            sure, edge_s, waiters.get(edge_s, 0) - covered.get(edge_s, 0), counts[edge_s], permits
        )


def rounded(part: int, whole: int, random_bits: int) -> int:
    """`part / whole`, rounded at random so that the mean is exact."""
    quotient, rest = divmod(part, whole)
    return quotient + (random_bits % whole < rest)
