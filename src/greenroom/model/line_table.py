"""The line table: which arrival has how many visitors ahead, the same for all who wait; each finds
its place in it.

It names no visitor. `admission.queueing.line_table` makes it, `decision.shared_table` sends it.
"""

import msgspec

CHECK_IN_S = 60
"""Longest time between two check-ins of a page that reads the table, which wakes it when its turn
comes.
"""

LOOK_S = 10
"""Between two reads by a page."""

FRESH_MS = 1_000
"""How long one table is sent to all."""

AT_ONCE_PER_S = 5_000
"""Requested check-ins: where more are due at once, they are spread."""
SPREAD_LEAST_S, SPREAD_MOST_S = 2, 60

KNOTS_MAX = 64
"""However long the line: two kilobytes."""


class Knot(msgspec.Struct, frozen=True, gc=False):
    """`wait_s` is the median wait from this place, -1: unknown."""

    arrival_ms: int
    ahead: int
    wait_s: float


class LineTable(msgspec.Struct, frozen=True, gc=False):
    """One room's line in one data center. Times are on the coordinator's clock, like keys.

    `due` visitors should check in now, those who arrived up to `up_to_ms`: their permits are there,
    or will be before they look again. `open` is false while no visitor is let in. Knots are in
    order; the last one is the last in line.
    """

    made_ms: int
    waiting: int
    open: bool
    due: int
    up_to_ms: int
    knots: tuple[Knot, ...]

    @property
    def spread_s(self) -> int:
        return min(SPREAD_MOST_S, max(SPREAD_LEAST_S, self.due // AT_ONCE_PER_S))
