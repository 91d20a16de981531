# ruff: noqa: ARG002 - every method is asked in the same words, and each listens to what it needs
"""Queueing methods: whose turn it is. A *called* visitor tries every two seconds, because a permit
is there or will be by the next try. `lookahead`: permits expected within one such try. It keeps
permits from being unused, and lets a visitor overtake by at most that many places, and the first in
line by OVERTAKING_MS.
"""

from abc import abstractmethod
from collections.abc import Iterator
from math import ceil

from greenroom.admission.queueing.line import Line
from greenroom.model.visit import arrival_ms_of

OVERTAKING_MS = 2_000
"""About the gap between two tries. Without this bound the first may try in vain three or four times
while others happen to come just when a permit does.
"""
GUESSES = 32
"""Each call spends one permit at most, so draws keep up."""


class QueueingMethod:
    open: bool = True
    overdraws: bool = False
    draws: bool = False

    @abstractmethod
    def call(self, line: Line, permits: int, lookahead: float, random_bits: int) -> None: ...

    @abstractmethod
    def called(self, slot: int, rank: int, permits: int, lookahead: float) -> bool: ...

    @abstractmethod
    def count(self, waiting: int, permits: int, lookahead: float) -> int: ...

    @abstractmethod
    def turn(
        self,
        slot: int,
        rank: int,
        key: int,
        permits: int,
        lookahead: float,
        horizon_ms: int | None,
        first_ms: int,
    ) -> bool:
        """`first_ms`: arrival of the first in line."""

    @abstractmethod
    def forget(self, slot: int) -> None: ...


class Fifo(QueueingMethod):
    """A returning ghost has its old place at once."""

    def call(self, line: Line, permits: int, lookahead: float, random_bits: int) -> None: ...

    def called(self, slot: int, rank: int, permits: int, lookahead: float) -> bool:
        return rank <= permits or rank - permits < lookahead

    def count(self, waiting: int, permits: int, lookahead: float) -> int:
        return min(waiting, permits + max(1, ceil(lookahead)))

    def turn(
        self,
        slot: int,
        rank: int,
        key: int,
        permits: int,
        lookahead: float,
        horizon_ms: int | None,
        first_ms: int,
    ) -> bool:
        """Rounded down: where permits are rare nobody overtakes."""
        arrival_ms = arrival_ms_of(key)
        near = rank < permits or (
            rank < permits + int(lookahead) and arrival_ms <= first_ms + OVERTAKING_MS
        )
        return near and (horizon_ms is None or arrival_ms <= horizon_ms)

    def forget(self, slot: int) -> None: ...


class Random(QueueingMethod):
    """A draw among all present; a number drawn at joining would be unfair to early comers."""

    draws = True

    def __init__(self) -> None:
        self.drawn: set[int] = set()
        self._everybody = False

    def call(self, line: Line, permits: int, lookahead: float, random_bits: int) -> None:
        """Each present, undrawn waiter has the same chance."""
        wanted = permits + ceil(lookahead) - len(self.drawn)
        self._everybody = wanted + len(self.drawn) >= len(line)
        if self._everybody or wanted <= 0:
            return
        for share in shares(random_bits):
            slot = line.at(int(share * len(line)))
            if slot not in self.drawn:
                self.drawn.add(slot)
                wanted -= 1
                if not wanted:
                    return

    def called(self, slot: int, rank: int, permits: int, lookahead: float) -> bool:
        return self._everybody or slot in self.drawn

    def count(self, waiting: int, permits: int, lookahead: float) -> int:
        return waiting if self._everybody else len(self.drawn)

    def turn(
        self,
        slot: int,
        rank: int,
        key: int,
        permits: int,
        lookahead: float,
        horizon_ms: int | None,
        first_ms: int,
    ) -> bool:
        return self._everybody or slot in self.drawn

    def forget(self, slot: int) -> None:
        self.drawn.discard(slot)


class Passthrough(Fifo):
    overdraws = True

    def turn(
        self,
        slot: int,
        rank: int,
        key: int,
        permits: int,
        lookahead: float,
        horizon_ms: int | None,
        first_ms: int,
    ) -> bool:
        return True


class Reject(Fifo):
    """Places stay: the room may open again."""

    open = False

    def called(self, slot: int, rank: int, permits: int, lookahead: float) -> bool:
        return False

    def turn(
        self,
        slot: int,
        rank: int,
        key: int,
        permits: int,
        lookahead: float,
        horizon_ms: int | None,
        first_ms: int,
    ) -> bool:
        return False


QUEUEING_METHODS: dict[str, type[QueueingMethod]] = {
    "fifo": Fifo,
    "random": Random,
    "passthrough": Passthrough,
    "reject": Reject,
}


def shares(random_bits: int) -> Iterator[float]:
    """Two subtracted congruential generators (L'Ecuyer, 1988). Every step is exact in double
    precision, so Lua draws the same.
    """
    first, second = (
        (random_bits & 0xFFFFFFFF) % 2147483562 + 1,
        (random_bits >> 32) % 2147483398 + 1,
    )
    for _ in range(GUESSES):
        first, second = first * 40014 % 2147483563, second * 40692 % 2147483399
        yield (first - second) % 2147483562 / 2147483562
