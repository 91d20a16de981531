"""Quantiles of latencies from counts in buckets that grow by GROWTH: a quantile is within 2 % of a
measured value, and sketches add up. Least, greatest and sum are exact.
"""

from collections.abc import Iterable
from math import ceil, log

import msgspec

GROWTH = 1.04
LEAST_MS = 0.01
"""Times have two decimals."""

_LOG = log(GROWTH)


class Sketch(msgspec.Struct, array_like=True):
    """Of positive times in milliseconds."""

    least: float = 0.0
    greatest: float = 0.0
    sum: float = 0.0
    counts: dict[int, int] = {}

    @classmethod
    def of(cls, values: Iterable[float]) -> "Sketch":
        made = cls()
        for value in values:
            made.record(value)
        return made

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    def record(self, value: float) -> None:
        bucket = ceil(log(max(value, LEAST_MS)) / _LOG)
        self._widen(value, value, value)
        self.counts[bucket] = self.counts.get(bucket, 0) + 1

    def add(self, other: "Sketch") -> None:
        if not other.counts:
            return
        self._widen(other.least, other.greatest, other.sum)
        counts = self.counts
        for bucket, count in other.counts.items():
            counts[bucket] = counts.get(bucket, 0) + count

    def _widen(self, least: float, greatest: float, total: float) -> None:
        self.least = min(self.least, least) if self.counts else least
        self.greatest = max(self.greatest, greatest)
        self.sum += total

    @property
    def mean(self) -> float:
        return self.sum / self.count if self.counts else 0.0

    def quantile(self, percent: float) -> float:
        """0 without values."""
        rank, seen = max(1, ceil(percent / 100 * self.count)), 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= rank:
                middle = 2 * GROWTH**bucket / (GROWTH + 1)
                return round(min(max(middle, self.least), self.greatest), 2)
        return 0.0
