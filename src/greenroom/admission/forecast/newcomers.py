"""Newcomers who are not in the line yet: their tickets have not come back, or no report of them has.

A visitor of this second is behind everybody who came before, but a table knows only places that are real and reported: a ticket comes back
after two seconds and a half at most, a report of it a second and a half later, and the table itself is read for two seconds more. So
behind `FULL_S` arrivals are assumed to continue as in the seconds before: a visitor who gets an estimate has arrived, so others arrive too.
"""

from collections.abc import Mapping, Sequence

FULL_S = 4
"""Everybody who came longer ago is in the reports."""
RATE_S = 6
"""Newcomers a second are those of so many whole seconds."""
READ_S = 10
"""A table is read for so long; behind that the line is taken to be no longer."""


def with_newcomers(ahead: Sequence[tuple[int, int]], newest: Mapping[int, int], made_s: int) -> tuple[tuple[int, int], ...]:
    """`ahead` (second, people who came by its end) with newcomers; `newest`: the same people by second, those of the last seconds."""
    full_s = made_s - FULL_S
    unsure = sum([count for second, count in newest.items() if second > full_s])
    sure = max(0, ahead[-1][1] - unsure)
    begun_s = max(ahead[0][0], full_s - RATE_S)
    rate = sum([newest.get(second, 0) for second in range(begun_s + 1, full_s + 1)]) / max(1, full_s - begun_s)
    found = [knot for knot in ahead if knot[0] < full_s]
    found.append((full_s, sure))
    known = sure
    for second in range(full_s + 1, made_s + 1):
        known += newest.get(second, 0)
        found.append((second, max(found[-1][1], known, int(sure + rate * (second - full_s)))))
    found.append((made_s + READ_S, found[-1][1] + int(rate * READ_S)))
    return tuple(found)
