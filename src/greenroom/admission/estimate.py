"""Wait estimates: the published formulas, and the one case that can be computed exactly.

Fifo: people ahead, oneself included, who have no permit yet, divided by the measured admissions per
minute. Random: with P the chance to be let in within a minute, the minutes after which a share p of
visitors are in, ln(1 - p) / ln(1 - P).

Unknown values are None and shown as unknown. Before the line has been measured the limits alone
give no honest figure: they bound the rate from above, so the wait only from below, and active
visitors decide when they leave. One case is different: when free capacity suffices for all visitors
in line, only the sliding minute delays them, and when it has room again follows from admissions
that have already happened.
"""

from collections.abc import Sequence
from math import log

from greenroom.model.visit import Estimate

WINDOW_MS = 60_000
QUARTILES = (0.25, 0.5, 0.75)
LONGEST_S = 30 * 24 * 3600.0
"""A month: a longer estimate has no meaning, and pages need not print it."""

AT_ONCE = Estimate(0.0, 0.0, 0.0)


def fifo_estimate(without_permit: int, per_minute: float | None) -> Estimate | None:
    """For a visitor when `without_permit` people, oneself included, have no permit yet (0 or less:
    a permit is there).
    """
    if without_permit <= 0:
        return AT_ONCE
    if not per_minute or per_minute <= 0:
        return None
    return exactly(without_permit * 60 / per_minute)


def random_estimate(waiting: int, per_minute: float | None) -> Estimate | None:
    """For any of `waiting` visitors when each admission is drawn among all of them."""
    if not per_minute or per_minute <= 0:
        return None
    chance = per_minute / max(1, waiting)
    if chance >= 1:
        return AT_ONCE
    p25_s, p50_s, p75_s = (
        min(LONGEST_S, 60 * log(1 - share) / log(1 - chance)) for share in QUARTILES
    )
    return Estimate(p25_s, p50_s, p75_s)


def minute_estimate(
    without_permit: int, new_users_per_minute: int, window: Sequence[int], now_ms: int
) -> Estimate:
    """When only new_users_per_minute holds people back; `window` are the admissions of the last 60
    s, oldest first.

    The n-th without a permit waits until the n-th admission beyond what the minute still has room
    for has left the window, and at least as long as pacing spreads them (twice the average rate at
    most).
    """
    if without_permit <= 0:
        return AT_ONCE
    paced_s = without_permit * 30 / new_users_per_minute
    beyond = without_permit - 1 - (new_users_per_minute - len(window))
    if beyond < 0:
        return exactly(paced_s)
    minutes, place = divmod(beyond, new_users_per_minute)
    leaves_ms = window[place] + WINDOW_MS - now_ms if place < len(window) else WINDOW_MS
    return exactly(max(paced_s, minutes * 60 + max(0, leaves_ms) / 1000))


def crowd_estimate(
    without_permit: int, here: int, per_minute: float, admitted: int
) -> Estimate | None:
    """After a quiet time, while capacity is free: permits come at `(new_users_per_minute + what is
    left of it) / 60` a second.

    Of the limit a minute `per_minute` is for this data center, which has let in `admitted` within
    the minute; `here` visitors have a permit. None: beyond this minute.
    """
    before = here + admitted
    if before + without_permit > per_minute:
        return None
    return exactly(
        60 * log((2 * per_minute - admitted) / (2 * per_minute - before - without_permit))
    )


def exactly(seconds: float) -> Estimate:
    """One number, and no interval."""
    seconds = min(LONGEST_S, seconds)
    return Estimate(seconds, seconds, seconds)
