# ruff: noqa: ARG002 - every method is asked in the same words, and each listens to what it needs
"""Whose turn it is: one class per queueing method, in the table QUEUEING_METHODS.

*Called* means: a permit is there or will be by the time of the next try, so the visitor is asked to
try every two seconds. `lookahead` is how many permits are expected within one such try (admissions
per second times the measured gap between tries). Looking ahead keeps permits from being unused; it
lets a visitor overtake others by at most that many places, and the first in line by OVERTAKING_MS.
"""

from abc import abstractmethod
from collections.abc import Iterator
from math import ceil

from greenroom.admission.queueing.line import Line
from greenroom.model.visit import arrival_ms_of

OVERTAKING_MS = 2_000
"""Beyond the permits that are there, look-ahead reaches visitors who came at most so much later
than the first in line here: about the gap between two tries. Without this bound the called visitors
draw lots, and the first may try in vain three or four times while others happen to come just when a
permit does."""
GUESSES = 32
"""Guesses of one call: each call spends one permit at most, so draws keep up, and a call stays
short when nearly all are drawn.
"""


class QueueingMethod:
    """How one method hands out turns."""

    open: bool = True
    """Whether visitors are let in at all."""
    overdraws: bool = False
    """Whether people are let in without a permit."""
    draws: bool = False
    """Whether `call` does anything."""

    @abstractmethod
    def call(self, line: Line, permits: int, lookahead: float, random_bits: int) -> None:
        """Draws the visitors who have to be drawn now."""

    @abstractmethod
    def called(self, slot: int, rank: int, permits: int, lookahead: float) -> bool:
        """Whether this waiter should try every two seconds."""

    @abstractmethod
    def count(self, waiting: int, permits: int, lookahead: float) -> int:
        """How many are called."""

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
        """Whether this waiter, who is trying now, may spend a permit. `first_ms`: when the first in
        line came.
        """

    @abstractmethod
    def forget(self, slot: int) -> None:
        """A waiter left the line."""


class Fifo(QueueingMethod):
    """The oldest first. There are no draws: a call depends only on the rank, so a ghost that
    returns has its old place at once.
    """

    def call(self, line: Line, permits: int, lookahead: float, random_bits: int) -> None:
        """Nothing to draw."""

    def called(self, slot: int, rank: int, permits: int, lookahead: float) -> bool:
        """The first as many as there are or will be permits, and always the very first."""
        return rank <= permits or rank - permits < lookahead

    def count(self, waiting: int, permits: int, lookahead: float) -> int:
        """As above."""
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
        """Rounded down: where permits are rare no visitor overtakes another. Elsewhere by
        OVERTAKING_MS at most.
        """
        arrival_ms = arrival_ms_of(key)
        near = rank < permits or (
            rank < permits + int(lookahead) and arrival_ms <= first_ms + OVERTAKING_MS
        )
        return near and (horizon_ms is None or arrival_ms <= horizon_ms)

    def forget(self, slot: int) -> None:
        """Nothing was noted."""


class Random(QueueingMethod):
    """A draw among all who are present at the time of the draw; a number drawn at joining would be
    unfair to early comers.
    """

    draws = True

    def __init__(self) -> None:
        self.drawn: set[int] = set()
        self._everybody = False

    def call(self, line: Line, permits: int, lookahead: float, random_bits: int) -> None:
        """Each draw gives every present waiter who has not been drawn the same chance; when it
        reaches for all, none is needed.
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
        """The drawn visitors."""
        return self._everybody or slot in self.drawn

    def count(self, waiting: int, permits: int, lookahead: float) -> int:
        """All who were drawn."""
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
        """The drawn visitors."""
        return self._everybody or slot in self.drawn

    def forget(self, slot: int) -> None:
        """A draw dies with the place."""
        self.drawn.discard(slot)


class Passthrough(Fifo):
    """Everybody, at once, counted; beyond the limits without a permit."""

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
        """Always."""
        return True


class Reject(Fifo):
    """None. Real places stay, because their tickets stay valid and the room may open again."""

    open = False

    def called(self, slot: int, rank: int, permits: int, lookahead: float) -> bool:
        """Never."""
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
        """Never."""
        return False


QUEUEING_METHODS: dict[str, type[QueueingMethod]] = {
    "fifo": Fifo,
    "random": Random,
    "passthrough": Passthrough,
    "reject": Reject,
}


def shares(random_bits: int) -> Iterator[float]:
    """GUESSES numbers in [0, 1) that look independent: two congruential generators, subtracted
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
