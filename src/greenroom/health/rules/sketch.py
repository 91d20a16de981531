"""Quantiles of latencies from counts in buckets that grow by GROWTH: a quantile is within 4 % of a
measured value, and sketches add up. Least, greatest and sum are exact.

All counts are one integer with LANE bits for each bucket, so that a sum of two sketches is one
addition: a page adds twenty thousand.
"""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from math import ceil, log

import msgspec

GROWTH = 1.08
LEAST_MS = 0.01
"""Times have two decimals."""
LANE = 32
BUCKETS = 260
"""Up to a day."""

_LOG = log(GROWTH)


class SketchBytes(msgspec.Struct, array_like=True, frozen=True):
    """The stored form: the lanes from the first that is not empty."""

    least: float
    greatest: float
    sum: float
    first: int
    lanes: bytes


class Sketch:
    """Of positive times in milliseconds."""

    __slots__ = ("counts", "greatest", "least", "sum")

    def __init__(self) -> None:
        self.least = self.greatest = self.sum = 0.0
        self.counts = 0

    @classmethod
    def of(cls, values: Iterable[float]) -> "Sketch":
        made = cls()
        for value in values:
            made.record(value)
        return made

    @classmethod
    def opened(cls, kept: SketchBytes) -> "Sketch":
        made = cls()
        made.least, made.greatest, made.sum = kept.least, kept.greatest, kept.sum
        made.counts = int.from_bytes(kept.lanes, "little") << kept.first * LANE
        return made

    def kept(self) -> SketchBytes:
        first = max(0, (self.counts & -self.counts).bit_length() - 1) // LANE
        lanes = self.counts >> first * LANE
        found = lanes.to_bytes(-(-lanes.bit_length() // 8), "little")
        return SketchBytes(self.least, self.greatest, self.sum, first, found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sketch) and self.kept() == other.kept()

    __hash__ = None  # type: ignore[assignment]

    @property
    def count(self) -> int:
        return sum(self._lanes())

    def _lanes(self) -> memoryview:
        return memoryview(self.counts.to_bytes(BUCKETS * LANE // 8, "little")).cast("I")

    def record(self, value: float) -> None:
        bucket = min(BUCKETS - 1, ceil(log(max(value, LEAST_MS) / LEAST_MS) / _LOG))
        self._widen(value, value, value)
        self.counts += 1 << bucket * LANE

    def add(self, other: "Sketch") -> None:
        if other.counts:
            self._widen(other.least, other.greatest, other.sum)
            self.counts += other.counts

    def _widen(self, least: float, greatest: float, total: float) -> None:
        if not self.counts or least < self.least:
            self.least = least
        if greatest > self.greatest:
            self.greatest = greatest
        self.sum += total

    @property
    def mean(self) -> float:
        return self.sum / self.count if self.counts else 0.0

    def quantile(self, percent: float) -> float:
        """0 without values."""
        if not self.counts:
            return 0.0
        seen = list(accumulate(self._lanes()))
        bucket = bisect_left(seen, max(1, ceil(percent / 100 * seen[-1])))
        middle = LEAST_MS * 2 * GROWTH**bucket / (GROWTH + 1)
        return round(min(max(middle, self.least), self.greatest), 2)
