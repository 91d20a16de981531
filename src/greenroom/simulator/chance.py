"""Random numbers: streams that the caller makes, so that every run can be repeated exactly.

Each part of a scenario draws from a stream of its own name. So the crowd stays the same when only
the network or the algorithm changes, and two algorithms can be compared on the very same visitors.
"""

from collections.abc import Callable, Sequence
from math import log
from typing import Protocol, TypeVar

Item = TypeVar("Item")


class RandomDraw(Protocol):
    """A stream of random numbers; `random.Random` is one."""

    def random(self) -> float:
        """At least 0 and less than 1."""

    def getrandbits(self, count: int, /) -> int:
        """So many random bits."""


Streams = Callable[[str], RandomDraw]
"""Makes the stream of this name; the same name gives the same numbers within one seed."""


def exponential(draw: RandomDraw, mean: float) -> float:
    """Times between things that know nothing of each other."""
    return -mean * log(1.0 - draw.random())


def pareto(draw: RandomDraw, mean: float, shape: float = 1.5) -> float:
    """A heavy tail: most are short, a few are very long. At most 100 times the mean."""
    low = mean * (shape - 1) / shape
    return min(100 * mean, float(low / (1.0 - draw.random()) ** (1 / shape)))


def between(draw: RandomDraw, low: int, high: int) -> int:
    """A whole number from low to high, both included."""
    return low + int(draw.random() * (high - low + 1))


def choice(draw: RandomDraw, items: Sequence[Item]) -> Item:
    """One of them."""
    return items[int(draw.random() * len(items))]


def weighted(draw: RandomDraw, sums: Sequence[float]) -> int:
    """An index, by ascending sums of weights."""
    point = draw.random() * sums[-1]
    low, high = 0, len(sums) - 1
    while low < high:
        middle = (low + high) // 2
        if sums[middle] > point:
            high = middle
        else:
            low = middle + 1
    return low
