"""Keeping a permit for a visitor in front who tries rarely (a phone that sleeps).

Where permits come often, the gateway answers such a visitor late (`decision.late_try`). Where they
come rarely, others would take every one between two tries. So the place is kept until the next try,
which takes about as long as the last, and with it the next permit: at most one unused permit per
ledger.
"""

from greenroom.admission.queueing.line import GRACE_MS
from greenroom.model.visit import Outcome

HELD_MS: int = 18_000
"""Longest long poll; pages give a request twenty seconds."""

AGAIN_MS: int = 1_000

GAP_MAX_MS = 180_000
"""No permit is kept for visitors who try more rarely."""

_MORE_PERCENT = 115


def is_due(outcome: Outcome) -> bool:
    """Whether a waiting visitor will probably be admitted during a long poll."""
    estimate = outcome.estimate
    return outcome.called or (estimate is not None and estimate.p50_s * 1_000 <= HELD_MS)


def kept_ms(gap_ms: int) -> int:
    return min(gap_ms, GAP_MAX_MS) * _MORE_PERCENT // 100 + GRACE_MS


def is_rare(entered_per_s: float) -> bool:
    """Whether fewer than one visitor in line enters during a long poll."""
    return entered_per_s * HELD_MS < 1_000
