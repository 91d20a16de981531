"""The forecast as sent. Fifo: `people[i]` of those without a permit are in (or have given up) within
`seconds[i]`. Random: `people[i]` is the cumulated hazard, and a share 1 - exp(-people) of all present
is in. Seconds count from the making of the table; an ageing table is read further along.
"""

from bisect import bisect_left
from collections.abc import Sequence
from math import log

import msgspec

OFFSET_S = 20.0
"""Waits are compared as (wait + 20 s): all are uncertain by two or three seconds."""
LEADS_S = (15.0, 120.0, 540.0, 2_220.0)
"""A factor of four apart, with OFFSET_S (see WIDEST), and interpolated: short waits, which come true
sooner, teach the longer ones.
"""
WIDEST = 1.2
"""Between two of LEADS_S widths fall by less than log 4, so no visitor gets a shorter estimate than
those ahead.
"""
UNDECIDED_S = 25.0
"""One refresh and the grace."""
SHARES = (0.25, 0.5, 0.75, 0.95)
HAZARDS = tuple(-log(1 - share) for share in SHARES)

BELIEVED_S = 86_400.0
TAIL_GROWTH = 1.2
FINE_STEPS = 12
COARSENING = 1.06
"""Knots are a step apart for twelve steps, then 6 %: about 70 for half an hour, 90 for a day."""

Widths = tuple[float, float, float, float]


class WaitTable(msgspec.Struct, frozen=True, array_like=True):
    made_ms: int  # on the coordinator's clock
    people: tuple[float, ...]  # ascending, as long as `seconds`
    seconds: tuple[float, ...]
    widths: tuple[Widths, ...]  # fifo: one for each of LEADS_S; random: one, of hazards
    random: bool = False
    # False: nothing was learnt yet, and a measured rate may know more
    learnt: bool = True
    strays_per_s: float = 0.0  # people who join and are never seen again
    change: str = ""  # one of model.visit.CHANGES
    since_ms: int = 0  # visitors who joined before then see the change
    # (arrival second, people elsewhere without a permit who came before its end), ascending
    ahead: tuple[tuple[int, int], ...] = ()
    permit_s: float = 0.0  # from a permit to the admission with it


def between(knots: Sequence[float], values: Sequence[float], at: float) -> float | None:
    """None beyond the last, the first value before the first."""
    index = bisect_left(knots, at, 1)
    if index >= len(knots):
        return None
    part = (max(at, knots[0]) - knots[index - 1]) / (knots[index] - knots[index - 1])
    return values[index - 1] + part * (values[index] - values[index - 1])


def next_knot(step: int) -> float:
    return step * COARSENING if step >= FINE_STEPS else step + 1


FIRST_LEAD_S = LEADS_S[0] + OFFSET_S
LAST_LEAD = len(LEADS_S) - 1
LOG_4 = log(4)


def place_of(seconds: float) -> tuple[int, float]:
    """By logarithm."""
    at = log((seconds + OFFSET_S) / FIRST_LEAD_S) / LOG_4
    if at <= 0.0:
        return 0, 0.0
    if at >= LAST_LEAD:
        return LAST_LEAD - 1, 1.0
    index = int(at)
    return index, at - index


def width_at(widths: Sequence[Widths], seconds: float) -> Widths:
    if len(widths) == 1:
        return widths[0]
    index, part = place_of(seconds)
    p25, p50, p75, p95 = [
        less + part * (more - less)
        for less, more in zip(widths[index], widths[index + 1], strict=True)
    ]
    return p25, p50, p75, p95
