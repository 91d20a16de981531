"""Whether expected waits have changed so much that people want to know why."""

LEAST_S = 60.0
LEAST_PART = 0.25
AFTER_MS = 60_000
OLDEST_MS = 240_000


def drifted(expected_s: float, now_s: float) -> str:
    """One of model.visit.CHANGES, or empty."""
    change_s = now_s - expected_s
    if abs(change_s) < max(LEAST_S, LEAST_PART * max(0.0, expected_s)):
        return ""
    return "slower" if change_s > 0 else "faster"
