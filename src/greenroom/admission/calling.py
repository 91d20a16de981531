# ruff: noqa: ARG002 - every method is asked in the same words, and each listens to what it needs
"""Whose turn it is: one class per queueing method, in the table CALLINGS.

*Called* means: a permit is there or will be by the time of the next try, so the visitor is asked to try every two seconds. `look` is
how many permits are expected within one such try (admissions per second times the measured gap between tries). Calling ahead
keeps permits from lying idle; it is what lets somebody step in front of a neighbour, and by no more than that many places.
"""

from math import ceil
from typing import Protocol

from greenroom.admission.line import Line
from greenroom.model.visit import arrival_ms_of

_WORD = (1 << 64) - 1


class Calling(Protocol):
    """How one method hands out turns."""

    open: bool
    """Whether anybody is let in at all."""
    overdraws: bool
    """Whether people are let in without a permit."""

    def call(self, line: Line, permits: int, look: float, luck: int) -> None:
        """Draws whoever has to be drawn now."""

    def called(self, slot: int, rank: int, permits: int, look: float) -> bool:
        """Whether this waiter should try every two seconds."""

    def count(self, waiting: int, permits: int, look: float) -> int:
        """How many are called."""

    def turn(self, slot: int, rank: int, key: int, permits: int, look: float, horizon_ms: int | None) -> bool:
        """Whether this waiter, who is trying now, may spend a permit."""

    def forget(self, slot: int) -> None:
        """A waiter left the line."""


class Fifo:
    """The oldest first. Nobody is drawn: being called is a matter of rank, so a ghost that comes back is in its old place at once."""

    open = True
    overdraws = False

    def call(self, line: Line, permits: int, look: float, luck: int) -> None:
        """Nothing to draw."""

    def called(self, slot: int, rank: int, permits: int, look: float) -> bool:
        """The first as many as there are or will be permits, and always the very first."""
        return rank < permits + max(1, ceil(look))

    def count(self, waiting: int, permits: int, look: float) -> int:
        """As above."""
        return min(waiting, permits + max(1, ceil(look)))

    def turn(self, slot: int, rank: int, key: int, permits: int, look: float, horizon_ms: int | None) -> bool:
        """Rounded down: where permits are rare nobody steps in front of anybody."""
        return rank < permits + int(look) and (horizon_ms is None or arrival_ms_of(key) <= horizon_ms)

    def forget(self, slot: int) -> None:
        """Nothing was noted."""


class Random:
    """A draw among all who are present at the time of the draw; a number drawn at joining would be unfair to early comers."""

    open = True
    overdraws = False

    def __init__(self) -> None:
        self.drawn: set[int] = set()

    def call(self, line: Line, permits: int, look: float, luck: int) -> None:
        """Each draw gives every present waiter who has not been drawn the same chance."""
        wanted = min(permits + ceil(look), len(line)) - len(self.drawn)
        for _ in range(wanted):
            luck, slot = self._draw(line, luck)
            self.drawn.add(slot)

    def called(self, slot: int, rank: int, permits: int, look: float) -> bool:
        """Whoever was drawn."""
        return slot in self.drawn

    def count(self, waiting: int, permits: int, look: float) -> int:
        """All who were drawn."""
        return len(self.drawn)

    def turn(self, slot: int, rank: int, key: int, permits: int, look: float, horizon_ms: int | None) -> bool:
        """Whoever was drawn."""
        return slot in self.drawn

    def forget(self, slot: int) -> None:
        """A draw dies with the place."""
        self.drawn.discard(slot)

    def _draw(self, line: Line, luck: int) -> tuple[int, int]:
        undrawn = len(line) - len(self.drawn)
        if undrawn * 8 < len(line):  # guessing would take long
            left = [slot for slot in line.slots.values() if slot not in self.drawn]
            luck = mixed(luck)
            return luck, left[luck * undrawn >> 64]
        while True:
            luck = mixed(luck)
            slot = line.at(luck * len(line) >> 64)
            if slot not in self.drawn:
                return luck, slot


class Passthrough(Fifo):
    """Everybody, at once, counted; beyond the limits without a permit."""

    overdraws = True

    def turn(self, slot: int, rank: int, key: int, permits: int, look: float, horizon_ms: int | None) -> bool:
        """Always."""
        return True


class Reject(Fifo):
    """Nobody. Places that are real stay, because their tickets stay valid and the room may open again."""

    open = False

    def called(self, slot: int, rank: int, permits: int, look: float) -> bool:
        """Never."""
        return False

    def turn(self, slot: int, rank: int, key: int, permits: int, look: float, horizon_ms: int | None) -> bool:
        """Never."""
        return False


CALLINGS: dict[str, type[Calling]] = {"fifo": Fifo, "random": Random, "passthrough": Passthrough, "reject": Reject}


def mixed(luck: int) -> int:
    """The next of a row of 64-bit numbers that look independent (the finaliser of splitmix64 over a Weyl step)."""
    luck = (luck + 0x9E3779B97F4A7C15) & _WORD
    luck = ((luck ^ luck >> 30) * 0xBF58476D1CE4E5B9) & _WORD
    luck = ((luck ^ luck >> 27) * 0x94D049BB133111EB) & _WORD
    return luck ^ luck >> 31
