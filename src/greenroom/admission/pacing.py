"""How evenly admissions follow each other: a crowd that comes after a quiet time does not reach the
origin all at once.

Theory. While people wait the coordinator hands permits out at an even pace, but in a quiet time
they are leased ahead of need, and a whole minute's worth would be spent within a second. So each
ledger lets one visitor in per gap, and saves up a second of them, or four, at most (a token bucket,
kept as one moment: when all that was spent would have been earned). The gap comes from the
coordinator: PACE_FACTOR times the even pace of the room, divided by share of arrivals or of
permits, whichever is more, and never less than an even part of it or of ten a second. Passthrough
is not paced, nor are a visitor whose session was elsewhere, and requests that cannot wait
(`provisional`). None of these uses the pace up: else a room that let everybody pass would hold its
visitors up for an hour when it lets in in order again.

Pacing never allows an admission that a permit does not; it can only put one off. So no limit rests
on it.
"""

PACE_FACTOR = 2.0
"""Times the even pace. While people wait permits come up to twice as fast as on the mean, when the
minute before was quiet.
"""
SAVED_US = 1_000_000
SAVED_VISITORS = 4
"""Where the gap is long: visitors who come at random come in twos and threes, also to one of twenty
data centers in a quiet room.
"""
FLOOR_TOLERANCE = 1.01
LEAST_PER_S, LEAST_HERE_PER_S = 10.0, 1.0
"""Small rooms are hardly paced: ten admissions a second in all data centers together are no burst
for any origin.
"""


def gap_us(per_minute: int, share: float, data_centers: int) -> int:
    """Microseconds between two admissions of a data center with this share of the next ones."""
    paced_per_s = PACE_FACTOR * per_minute / 60 * max(share, 1 / data_centers)
    return int(1_000_000 / max(paced_per_s, LEAST_PER_S / data_centers, LEAST_HERE_PER_S))


def saved_us(gap_us: int) -> int:
    """How much may be saved up: a second, or four admissions."""
    return max(SAVED_US, SAVED_VISITORS * gap_us)


def part_per_minute(gap_us: int, per_minute: int, data_centers: int) -> float | None:
    """What of `per_minute` a data center with this gap has; None: the gap is the longest one and
    says nothing.
    """
    if gap_us <= 0 or 1_000_000 / gap_us <= FLOOR_TOLERANCE * max(
        LEAST_PER_S / data_centers, LEAST_HERE_PER_S
    ):
        return None
    return min(float(per_minute), 60_000_000 / PACE_FACTOR / gap_us)


def wait_us(spent_until_us: int, gap_us: int, place: int, now_ms: int) -> int:
    """How long the pace alone delays the admission at this place, counted from 1, if those before
    come in time.
    """
    return max(0, spent_until_us - now_ms * 1000) + place * gap_us - saved_us(gap_us)


def allowed(spent_until_us: int, gap_us: int, now_ms: int) -> int:
    """How many may be let in at this moment; `spent_until_us`: see `spent`."""
    return (saved_us(gap_us) - max(0, spent_until_us - now_ms * 1000)) // gap_us


def spent(spent_until_us: int, gap_us: int, now_ms: int) -> int:
    """One more was let in: when everything that was spent will have been earned."""
    return max(spent_until_us, now_ms * 1000) + gap_us
