"""What analytics want to know of a ledger and no request tells: how long visitors stayed, and how
many stayed away from the line.

Nothing here takes part in any decision. Uncollected entries are limited, and the rest is counted.
"""

from typing import NamedTuple

STAYS_MAX = 100_000
"""Stays that wait to be taken, about 4 MB; they are taken every few seconds, where analytics run.
"""


class Taken(NamedTuple):
    """What happened since the last look. `stays_ms`: sessions that ended, each from admission to
    the visitor's last activity.

    `abandoned`: places in line that were lost because the visitor did not come back. `dropped`:
    stays that were not collected in time.
    """

    stays_ms: list[int]
    abandoned: int
    dropped: int


class VisitTally:
    """Of one ledger."""

    __slots__ = ("_abandoned", "_dropped", "_stays")

    def __init__(self) -> None:
        self._stays: list[int] = []
        self._abandoned = self._dropped = 0

    def stayed(self, time_ms: int) -> None:
        """A session ended."""
        if len(self._stays) < STAYS_MAX:
            self._stays.append(time_ms)
        else:
            self._dropped += 1

    def abandoned(self) -> None:
        """A place was lost."""
        self._abandoned += 1

    def take(self) -> Taken:
        """Everything since the last time."""
        taken = Taken(self._stays, self._abandoned, self._dropped)
        self._stays = []
        self._abandoned = self._dropped = 0
        return taken
