"""Spreads a crowd that comes after a quiet time, when a whole minute's permits are leased ahead.

A token bucket, stored as the moment when everything spent would have been earned. The coordinator
sets the gap: PACE_FACTOR times the room's even pace, divided by share of arrivals or of permits.
Passthrough, moved sessions and requests that cannot wait are not paced and use none of the pace up.
Pacing can only delay an admission, so no limit rests on it.
"""

PACE_FACTOR = 1.5
SAVED_US = 1_000_000
SAVED_VISITORS = 6
"""Random arrivals come in clumps, also at one of twenty data centers."""
FLOOR_TOLERANCE = 1.01
LEAST_PER_S, LEAST_HERE_PER_S = 10.0, 1.0
"""In all data centers together, and in one: small rooms are hardly paced."""


def gap_us(per_minute: int, share: float, data_centers: int) -> int:
    paced_per_s = PACE_FACTOR * per_minute / 60 * max(share, 1 / data_centers)
    return int(1_000_000 / max(paced_per_s, LEAST_PER_S / data_centers, LEAST_HERE_PER_S))


def saved_us(gap_us: int) -> int:
    return max(SAVED_US, SAVED_VISITORS * gap_us)


def part_per_minute(gap_us: int, per_minute: int, data_centers: int) -> float | None:
    """None: the gap is the longest one and says nothing."""
    if gap_us <= 0 or 1_000_000 / gap_us <= FLOOR_TOLERANCE * max(
        LEAST_PER_S / data_centers, LEAST_HERE_PER_S
    ):
        return None
    return min(float(per_minute), 60_000_000 / PACE_FACTOR / gap_us)


def wait_us(spent_until_us: int, gap_us: int, place: int, now_ms: int) -> int:
    """`place`: from 1, if those ahead come in time."""
    return max(0, spent_until_us - now_ms * 1000) + place * gap_us - saved_us(gap_us)


def allowed(spent_until_us: int, gap_us: int, now_ms: int) -> int:
    return (saved_us(gap_us) - max(0, spent_until_us - now_ms * 1000)) // gap_us


def spent(spent_until_us: int, gap_us: int, now_ms: int) -> int:
    return max(spent_until_us, now_ms * 1000) + gap_us
