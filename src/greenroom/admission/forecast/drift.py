"""Whether expected waits have changed so much that people want to know why."""

LEAST_S = 60.0
LEAST_PART = 0.25
"""Less than a minute, or than this part of the wait, is no news."""
AFTER_MS = 60_000
"""Forecasts are compared with those this much older: visitors who joined since have seen none that
was much different.
"""
OLDEST_MS = 240_000


def drifted(expected_s: float, now_s: float) -> str:
    """One of model.visit.CHANGES, or empty: `now_s` are left where `expected_s` should be."""
    change_s = now_s - expected_s
    if abs(change_s) < max(LEAST_S, LEAST_PART * max(0.0, expected_s)):
        return ""
    return "slower" if change_s > 0 else "faster"
