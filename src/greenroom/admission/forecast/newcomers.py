"""Newcomers who are not in the line yet: their tickets have not come back, or no report of them
has.

A visitor of this second is behind everybody who came before, but a table knows only places that are
real and reported: a ticket comes back after two seconds and a half at most, a report of it a second
and a half later, and the table itself is read for two seconds more. So behind `FULL_S` arrivals are
assumed to continue as in the seconds before: a visitor who gets an estimate has arrived, so others
arrive too. Those who have a permit count in that pace: in the first seconds of a crowd permits that
were leased ahead cover nearly everybody in the reports, and none of those who come next. For the
same reason the mean of some seconds would be too low then, so a rise counts at once as far as it is
more than chance: no second ever seems to have had more visitors than it had.
"""

from collections.abc import Mapping, Sequence
from math import sqrt

FULL_S = 4
"""Earlier visitors are all in the reports."""
RATE_S = 6
"""Whole seconds over which newcomers per second are counted."""
CHANCE = 2.0
"""Of a count n, this times its root may be chance."""
READ_S = 10
"""A table is read for this long; beyond it the line is assumed to be no longer."""


def with_newcomers(
    ahead: Sequence[tuple[int, int]],
    newest: Mapping[int, int],
    made_s: int,
    coming: Mapping[int, int],
) -> tuple[tuple[int, int], ...]:
    """Adds newcomers to `ahead` (second, people who came by its end).

    `newest`: the same people by second, the last seconds; `coming`: those and all who have a
    permit.
    """
    full_s = made_s - FULL_S
    unsure = sum([count for second, count in newest.items() if second > full_s])
    sure = max(0, ahead[-1][1] - unsure)
    begun_s = max(min(ahead[0][0], min(coming, default=made_s) - 1), full_s - RATE_S)
    rate = sum([coming.get(second, 0) for second in range(begun_s + 1, full_s + 1)]) / max(
        1, full_s - begun_s
    )
    two = max([coming[second] + coming.get(second - 1, 0) for second in coming], default=0)
    rate = max(rate, (two - CHANCE * sqrt(two)) / 2)
    found = [knot for knot in ahead if knot[0] < full_s]
    found.append((full_s, sure))
    known = sure
    for second in range(full_s + 1, made_s + 1):
        known += newest.get(second, 0)
        found.append((second, max(found[-1][1], known, int(sure + rate * (second - full_s)))))
    found.append((made_s + READ_S, found[-1][1] + int(rate * READ_S)))
    return tuple(found)
