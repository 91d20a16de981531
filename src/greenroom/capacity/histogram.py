"""Histograms of latencies with fixed bounds, so that those of several processes add up."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

BOUNDS_MS = (
    5, 10, 25, 50, 75, 100, 150, 200, 250, 300, 400, 500, 600, 700, 800, 900, 1_000, 1_200, 1_500,
    1_750, 2_000, 2_500, 3_000, 4_000, 5_000, 7_500, 10_000, 15_000, 20_000, 30_000, 60_000,
)  # fmt: skip
"""Upper bounds, inclusive; one more bucket has all that took longer."""

BUCKETS = len(BOUNDS_MS) + 1


@dataclass(frozen=True, slots=True)
class Histogram:
    counts: tuple[int, ...] = (0,) * BUCKETS
    sum_ms: float = 0.0

    def __post_init__(self) -> None:
        if len(self.counts) != BUCKETS or min(self.counts) < 0:
            raise ValueError(f"counts: must be {BUCKETS} numbers of at least 0")

    @classmethod
    def of(cls, latencies_ms: Iterable[float]) -> "Histogram":
        counts, sum_ms = [0] * BUCKETS, 0.0
        for latency_ms in latencies_ms:
            counts[bisect_left(BOUNDS_MS, latency_ms)] += 1
            sum_ms += latency_ms
        return cls(tuple(counts), sum_ms)

    def __add__(self, other: "Histogram") -> "Histogram":
        counts = tuple(map(int.__add__, self.counts, other.counts))
        return Histogram(counts, self.sum_ms + other.sum_ms)

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def mean_ms(self) -> float:
        return self.sum_ms / max(1, self.total)

    def quantile_ms(self, share: float) -> float:
        """Interpolated within its bucket; 0 without samples, the last bound beyond it."""
        rank, before = share * self.total, 0
        for place, count in enumerate(self.counts[:-1]):
            if count and before + count >= rank:
                low = BOUNDS_MS[place - 1] if place else 0
                return low + (BOUNDS_MS[place] - low) * (rank - before) / count
            before += count
        return float(BOUNDS_MS[-1]) if self.counts[-1] else 0.0

    def slower_than(self, latency_ms: float) -> "Histogram":
        """Only the buckets that begin at this latency or later."""
        first = bisect_left(BOUNDS_MS, latency_ms) + 1
        counts = (0,) * min(first, BUCKETS) + self.counts[first:]
        sum_ms = float(sum(map(int.__mul__, BOUNDS_MS[first - 1 :], counts[first:])))
        return Histogram(counts, sum_ms)
