"""For whom a ledger keeps a permit: a visitor in front who tries rarely (a phone that sleeps).

Where permits come often, the gateway holds the answer of such a visitor (`decision.late_try`).
Where they come more rarely, others would take every one of them between two tries. So the place is
kept until the next try, which takes about as long as the one before, and with it the permit that
comes next. It costs one unused permit in a ledger at most.
"""

from greenroom.admission.queueing.line import GRACE_MS
from greenroom.model.visit import Outcome

HELD_MS: int = 18_000
"""So long an answer is held, also of a visitor whose turn is expected within this time; pages give
a request twenty seconds.
"""

AGAIN_MS: int = 1_000

GAP_MAX_MS = 180_000
"""Visitors who try more rarely are not waited for: a permit that is kept is of no use to others."""

_MORE_PERCENT = 115


def is_due(outcome: Outcome) -> bool:
    """Whether a waiting visitor will probably be admitted while the answer is held."""
    estimate = outcome.estimate
    return outcome.called or (estimate is not None and estimate.p50_s * 1_000 <= HELD_MS)


def kept_ms(gap_ms: int) -> int:
    return min(gap_ms, GAP_MAX_MS) * _MORE_PERCENT // 100 + GRACE_MS


def is_rare(entered_per_s: float) -> bool:
    """Whether a visitor whose answer is held will probably see no permit: fewer than one of those
    in line enters meanwhile.
    """
    return entered_per_s * HELD_MS < 1_000
