"""The table of the line: which arrival has how many visitors ahead, the same for all who wait, so
that each finds its own place in it.

It names no visitor: moments of arrival, numbers of people, waits. How it is made is in
`admission.queueing.line_table`, how it is sent in `decision.shared_table`.
"""

import msgspec

CHECK_IN_S = 60
"""Longest time between two check-ins of a visitor whose page reads the table: the table wakes it
when its turn comes.
"""

LOOK_S = 10
"""How often a page reads the table."""

FRESH_MS = 1_000
"""How long one table is sent to all who ask."""

AT_ONCE_PER_S = 5_000
"""Check-ins a second that are asked for: where more are due at once, they are spread."""
SPREAD_LEAST_S, SPREAD_MOST_S = 2, 60

KNOTS_MAX = 64
"""Knots of a table, however long the line: two kilobytes."""


class Knot(msgspec.Struct, frozen=True, gc=False):
    """One place in line. `wait_s` is the median wait from there, -1 when it is not known."""

    arrival_ms: int
    ahead: int
    wait_s: float


class LineTable(msgspec.Struct, frozen=True, gc=False):
    """One room's line in one data center. Times are on the coordinator's clock, like keys.

    `due` is how many visitors should check in now, those who arrived up to `up_to_ms`: their
    permits are there, or will be before they look again. `open` is false while no visitor is let
    in. Knots are in order; the last one is the last in line.
    """

    made_ms: int
    waiting: int
    open: bool
    due: int
    up_to_ms: int
    knots: tuple[Knot, ...]

    @property
    def spread_s(self) -> int:
        """Over how many seconds those who should check in now are spread."""
        return min(SPREAD_MOST_S, max(SPREAD_LEAST_S, self.due // AT_ONCE_PER_S))
