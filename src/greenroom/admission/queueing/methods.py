# ruff: noqa: ARG002 - every method is asked in the same words, and each listens to what it needs
"""Queueing methods: whose turn it is. A *called* visitor (*due* in the documents) tries every two
seconds, because a permit is there or will be by the next try. `lookahead`: permits expected within
one such try. It keeps permits from being unused, and lets a visitor overtake by at most that many
places, and the first in line by OVERTAKING_MS.
"""

from abc import abstractmethod
from math import ceil

from greenroom.model.visit import arrival_ms_of

OVERTAKING_MS = 2_000
"""About the gap between two tries. Without this bound the first may try in vain three or four times
while others happen to come just when a permit does.
"""


class QueueingMethod:
    open: bool = True
    overdraws: bool = False
    lots: bool = False

    @abstractmethod
    def called(self, waiting: int, rank: int, permits: int, lookahead: float) -> bool: ...

    @abstractmethod
    def count(self, waiting: int, permits: int, lookahead: float) -> int: ...

    @abstractmethod
    def turn(
        self,
        waiting: int,
        rank: int,
        key: int,
        permits: int,
        lookahead: float,
        horizon_ms: int | None,
        first_ms: int,
        joins: bool,
    ) -> bool:
        """Whether this waiter, who is trying now, may spend a permit. `first_ms`: arrival of the
        first in line; `joins`: this try took the place of a newcomer.
        """


class Fifo(QueueingMethod):
    """The oldest first. A call depends only on the rank, so a returning ghost has its old place at
    once.
    """

    def called(self, waiting: int, rank: int, permits: int, lookahead: float) -> bool:
        return rank <= permits or rank - permits < lookahead

    def count(self, waiting: int, permits: int, lookahead: float) -> int:
        return min(waiting, permits + max(1, ceil(lookahead)))

    def turn(
        self,
        waiting: int,
        rank: int,
        key: int,
        permits: int,
        lookahead: float,
        horizon_ms: int | None,
        first_ms: int,
        joins: bool,
    ) -> bool:
        """Rounded down: where permits are rare nobody overtakes."""
        arrival_ms = arrival_ms_of(key)
        near = rank < permits or (
            rank < permits + int(lookahead) and arrival_ms <= first_ms + OVERTAKING_MS
        )
        return near and (horizon_ms is None or arrival_ms <= horizon_ms)


class Random(QueueingMethod):
    """A permit goes to whoever tries next. All try equally often, whenever they came, so each try
    has the same chance.
    """

    lots = True

    def called(self, waiting: int, rank: int, permits: int, lookahead: float) -> bool:
        """Whether there are permits for all."""
        return waiting <= permits + lookahead

    def count(self, waiting: int, permits: int, lookahead: float) -> int:
        return waiting if waiting <= permits + lookahead else 0

    def turn(
        self,
        waiting: int,
        rank: int,
        key: int,
        permits: int,
        lookahead: float,
        horizon_ms: int | None,
        first_ms: int,
        joins: bool,
    ) -> bool:
        """The try that takes a place is one more than others have: who threw the ticket away and
        came again every two seconds would have ten tries to one.
        """
        return not joins or waiting <= permits


class Passthrough(Fifo):
    overdraws = True

    def turn(
        self,
        waiting: int,
        rank: int,
        key: int,
        permits: int,
        lookahead: float,
        horizon_ms: int | None,
        first_ms: int,
        joins: bool,
    ) -> bool:
        return True


class Reject(Fifo):
    """Places stay: the room may open again."""

    open = False

    def called(self, waiting: int, rank: int, permits: int, lookahead: float) -> bool:
        return False

    def turn(
        self,
        waiting: int,
        rank: int,
        key: int,
        permits: int,
        lookahead: float,
        horizon_ms: int | None,
        first_ms: int,
        joins: bool,
    ) -> bool:
        return False


QUEUEING_METHODS: dict[str, type[QueueingMethod]] = {
    "fifo": Fifo,
    "random": Random,
    "passthrough": Passthrough,
    "reject": Reject,
}
