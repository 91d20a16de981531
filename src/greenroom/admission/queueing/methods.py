# ruff: noqa: ARG002 - every method has the same parameters and uses what it needs
"""Queueing methods: whose turn it is.

A *called* visitor (*due* in the documents) tries every two seconds, because a permit is there or
will be by the next try. `lookahead`: permits expected within one such try. It keeps permits from
being unused, and lets a visitor overtake by at most that many places, and the first in line by
OVERTAKING_MS.
"""

from abc import abstractmethod
from math import ceil

import msgspec

from greenroom.model.visit import arrival_ms_of

OVERTAKING_MS = 2_000
"""About the gap between two tries. Without this bound the first may try in vain three or four times
while others happen to come just when a permit does.
"""


class PermitAttempt(msgspec.Struct, frozen=True, gc=False):
    """A visitor in line tries to spend a permit."""

    waiting: int
    rank: int
    key: int
    permits: int
    lookahead: float
    horizon_ms: int | None
    first_ms: int  # arrival of the first in line
    joins: bool  # it took the place of a newcomer


class QueueingMethod:
    open: bool = True
    overdraws: bool = False
    lots: bool = False

    @abstractmethod
    def called(self, waiting: int, rank: int, permits: int, lookahead: float) -> bool: ...

    @abstractmethod
    def count(self, waiting: int, permits: int, lookahead: float) -> int: ...

    @abstractmethod
    def admits(self, attempt: PermitAttempt) -> bool: ...


class Fifo(QueueingMethod):
    """The oldest first. A call depends only on the rank, so a ghost that returns has its old place
    at once.
    """

    def called(self, waiting: int, rank: int, permits: int, lookahead: float) -> bool:
        return rank <= permits or rank - permits < lookahead

    def count(self, waiting: int, permits: int, lookahead: float) -> int:
        return min(waiting, permits + max(1, ceil(lookahead)))

    def admits(self, attempt: PermitAttempt) -> bool:
        arrival_ms, rank, permits = arrival_ms_of(attempt.key), attempt.rank, attempt.permits
        near = rank < permits or (
            # rounded down: where permits are rare nobody overtakes
            rank < permits + int(attempt.lookahead)
            and arrival_ms <= attempt.first_ms + OVERTAKING_MS
        )
        return near and (attempt.horizon_ms is None or arrival_ms <= attempt.horizon_ms)


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

    def admits(self, attempt: PermitAttempt) -> bool:
        """The try that takes a place is an extra one: a visitor who threw the ticket away and came
        again every two seconds would have ten tries to one.
        """
        return not attempt.joins or attempt.waiting <= attempt.permits


class Passthrough(Fifo):
    overdraws = True

    def admits(self, attempt: PermitAttempt) -> bool:
        return True


class Reject(Fifo):
    """Places stay: the room may open again."""

    open = False

    def called(self, waiting: int, rank: int, permits: int, lookahead: float) -> bool:
        return False

    def admits(self, attempt: PermitAttempt) -> bool:
        return False


QUEUEING_METHODS: dict[str, type[QueueingMethod]] = {
    "fifo": Fifo,
    "random": Random,
    "passthrough": Passthrough,
    "reject": Reject,
}
