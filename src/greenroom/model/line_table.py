"""The table of the line: how many visitors are ahead of each arrival time. The same for all who wait;
it names no visitor.
"""

import msgspec

CHECK_IN_S = 60

LOOK_S = 10

FRESH_MS = 1_000

AT_ONCE_PER_S = 5_000
"""More due visitors are spread."""
SPREAD_LEAST_S, SPREAD_MOST_S = 2, 60

KNOTS_MAX = 64


class Knot(msgspec.Struct, frozen=True, gc=False):
    arrival_ms: int
    ahead: int
    wait_s: float


class LineTable(msgspec.Struct, frozen=True, gc=False):
    """Times are on the coordinator's clock. `due` visitors, who arrived by `up_to_ms`, should check in
    now. Not `open`: nobody is admitted.
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
