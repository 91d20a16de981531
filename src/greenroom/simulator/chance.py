"""Random numbers from named streams: a change of the network or the algorithm keeps the crowd."""

from collections.abc import Callable, Sequence
from math import log
from typing import Protocol, TypeVar

Item = TypeVar("Item")


class RandomDraw(Protocol):
    def random(self) -> float: ...

    def getrandbits(self, count: int, /) -> int: ...


Streams = Callable[[str], RandomDraw]


def exponential(draw: RandomDraw, mean: float) -> float:
    return -mean * log(1.0 - draw.random())


PARETO_SHAPE = 1.5


def pareto(draw: RandomDraw, mean: float) -> float:
    """A heavy tail, at most 100 times the mean."""
    low = mean * (PARETO_SHAPE - 1) / PARETO_SHAPE
    return min(100 * mean, float(low / (1.0 - draw.random()) ** (1 / PARETO_SHAPE)))


def between(draw: RandomDraw, low: int, high: int) -> int:
    return low + int(draw.random() * (high - low + 1))


def choice(draw: RandomDraw, items: Sequence[Item]) -> Item:
    return items[int(draw.random() * len(items))]


def weighted(draw: RandomDraw, sums: Sequence[float]) -> int:
    point = draw.random() * sums[-1]
    low, high = 0, len(sums) - 1
    while low < high:
        middle = (low + high) // 2
        if sums[middle] > point:
            high = middle
        else:
            low = middle + 1
    return low
