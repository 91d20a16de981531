"""Newcomers who are not in the line yet, because their tickets or reports have not come. In the last
`FULL_S` arrivals are assumed to continue as before, counting those with a permit: in the first
seconds of a crowd permits leased ahead cover nearly everybody in the reports, and none who come next.
A rise counts at once as far as it exceeds chance.
"""

from collections.abc import Mapping, Sequence
from math import sqrt

FULL_S = 4
RATE_S = 6
CHANCE = 2.0
READ_S = 10


def with_newcomers(
    ahead: Sequence[tuple[int, int]],
    newest: Mapping[int, int],
    made_s: int,
    coming: Mapping[int, int],
) -> tuple[tuple[int, int], ...]:
    """`ahead`: (second, people who came by its end). `newest`: the same people by second; `coming`
    includes those with a permit.
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
