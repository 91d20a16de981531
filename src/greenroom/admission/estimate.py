"""The published formulas for waits. Fifo: people ahead without a permit, divided by the measured
admissions per minute. Random: ln(1 - p) / ln(1 - P) minutes, P being the chance within a minute.

None means unknown: limits bound the rate only from above. But where free capacity suffices for the
whole line only the sliding minute delays it, and that is known.
"""

from collections.abc import Sequence
from math import log

from greenroom.model.visit import Estimate

WINDOW_MS = 60_000
QUARTILES = (0.25, 0.5, 0.75)
LONGEST_S = 30 * 24 * 3600.0

AT_ONCE = Estimate(0.0, 0.0, 0.0)


def fifo_estimate(without_permit: int, per_minute: float | None) -> Estimate | None:
    """`without_permit` includes the visitor; 0 or less: a permit is there."""
    if without_permit <= 0:
        return AT_ONCE
    if not per_minute or per_minute <= 0:
        return None
    return exactly(without_permit * 60 / per_minute)


def random_estimate(waiting: int, per_minute: float | None) -> Estimate | None:
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
    """`window`: admissions of the last 60 s, oldest first. Visitors beyond what the minute still has
    room for wait until as many admissions have left the window, and everybody as long as pacing
    spreads them.
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
    """For permits that come at the rate of `coordinator.pace`. `per_minute`: this data center's part
    of the limit; `here`: visitors with a permit. None: beyond this minute.
    """
    before = here + admitted
    if before + without_permit > per_minute:
        return None
    return exactly(
        60 * log((2 * per_minute - admitted) / (2 * per_minute - before - without_permit))
    )


def exactly(seconds: float) -> Estimate:
    seconds = min(LONGEST_S, seconds)
    return Estimate(seconds, seconds, seconds)
