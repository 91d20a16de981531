"""Counts of a ledger for analytics that no request shows. No decision depends on them."""

from typing import NamedTuple

STAYS_MAX = 100_000
"""About 4 MB."""


class Taken(NamedTuple):
    """`stays_ms`: from admission to last activity. `abandoned`: places of visitors who did not come
    back. `dropped`: stays not collected in time.
    """

    stays_ms: list[int]
    abandoned: int
    dropped: int


class VisitTally:
    __slots__ = ("_abandoned", "_dropped", "_stays")

    def __init__(self) -> None:
        self._stays: list[int] = []
        self._abandoned = self._dropped = 0

    def stayed(self, time_ms: int) -> None:
        if len(self._stays) < STAYS_MAX:
            self._stays.append(time_ms)
        else:
            self._dropped += 1

    def abandoned(self, places: int = 1) -> None:
        self._abandoned += places

    def take(self) -> Taken:
        taken = Taken(self._stays, self._abandoned, self._dropped)
        self._stays = []
        self._abandoned = self._dropped = 0
        return taken
