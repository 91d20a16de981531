# ruff: noqa: ARG002 - every method is asked in the same words, and each listens to what it needs
"""Queueing methods: whose turn it is, one class per method, in the table QUEUEING_METHODS.

A visitor is *called* when a permit is there or will be by the next try, and is asked to try every
two seconds. `lookahead` is the number of permits expected within one such try (admissions per
second times the measured gap between tries). It keeps permits from being unused; it lets a visitor
overtake others by at most that many places, and the first in line by OVERTAKING_MS.
"""

from abc import abstractmethod
from collections.abc import Iterator
from math import ceil

from greenroom.admission.queueing.line import Line
from greenroom.model.visit import arrival_ms_of

OVERTAKING_MS = 2_000
"""Beyond the available permits, look-ahead reaches visitors who came at most this much later than
the first in line here: about the gap between two tries. Without this bound the called visitors draw
lots, and the first may try in vain three or four times while others happen to come just when a
permit does.
"""
GUESSES = 32
"""Guesses of one call. Each call spends one permit at most, so draws keep up, and a call stays
short when nearly all are drawn.
"""


class QueueingMethod:
    open: bool = True
    """Whether visitors are admitted at all."""
    overdraws: bool = False
    """Whether visitors are admitted without a permit."""
    draws: bool = False
    """Whether `call` does anything."""

    @abstractmethod
    def call(self, line: Line, permits: int, lookahead: float, random_bits: int) -> None:
        """Draws the visitors who are due."""

    @abstractmethod
    def called(self, slot: int, rank: int, permits: int, lookahead: float) -> bool:
        """Whether this waiter should try every two seconds."""

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
        """Whether this waiter, who is trying now, may spend a permit. `first_ms`: arrival of the
        first in line.
        """

    @abstractmethod
    def forget(self, slot: int) -> None: ...


class Fifo(QueueingMethod):
    """The oldest first, without draws: a call depends only on the rank, so a returning ghost has
    its old place at once.
    """

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
        """Rounded down: where permits are rare nobody overtakes. Elsewhere by OVERTAKING_MS at
        most.
        """
        arrival_ms = arrival_ms_of(key)
        near = rank < permits or (
            rank < permits + int(lookahead) and arrival_ms <= first_ms + OVERTAKING_MS
        )
        return near and (horizon_ms is None or arrival_ms <= horizon_ms)

    def forget(self, slot: int) -> None: ...


class Random(QueueingMethod):
    """A draw among all present at the time of the draw; a number drawn at joining would be unfair
    to early comers.
    """

    draws = True

    def __init__(self) -> None:
        self.drawn: set[int] = set()
        self._everybody = False

    def call(self, line: Line, permits: int, lookahead: float, random_bits: int) -> None:
        """Each draw gives every present, undrawn waiter the same chance; when it reaches all, none
        is needed.
        """
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
    """Everybody at once, counted; beyond the limits without a permit."""

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
    """Nobody. Places stay, because their tickets stay valid and the room may open again."""

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
    """GUESSES numbers in [0, 1) that look independent: two subtracted congruential generators
    (L'Ecuyer, 1988).

    Every step is exact in double precision, so a program that has no other numbers draws the same.
    """
    first, second = (
        (random_bits & 0xFFFFFFFF) % 2147483562 + 1,
        (random_bits >> 32) % 2147483398 + 1,
    )
    for _ in range(GUESSES):
        first, second = first * 40014 % 2147483563, second * 40692 % 2147483399
        yield (first - second) % 2147483562 / 2147483562
