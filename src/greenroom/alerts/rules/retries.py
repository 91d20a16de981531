"""When a message that could not be delivered is tried again, and when it is given up. Pure."""

FIRST_MS = 1_000
LONGEST_MS = 600_000
"""Ten minutes: a receiver that comes back after hours gets its messages soon after."""

GIVE_UP_MS = 86_400_000
"""A day after the alert; the history says that it was not delivered."""

RETRY_AFTER_MAX_MS = 3_600_000
"""A receiver may ask for more patience than this, and does not get it."""


def next_try_ms(
    attempts: int, created_ms: int, now_ms: int, random: float, asked_ms: int = 0
) -> int | None:
    """When to try again after this many attempts; None: it is given up.

    Waits double from a second to ten minutes, each shortened by up to half at random (`random` is 0
    to 1), so that many messages do not come back together. `asked_ms`: how long the receiver asked
    us to wait (Retry-After).
    """
    longest = min(LONGEST_MS, FIRST_MS << min(max(attempts, 1) - 1, 20))
    wait_ms = max(longest - int(longest * random / 2), min(asked_ms, RETRY_AFTER_MAX_MS))
    due_ms = now_ms + wait_ms
    return due_ms if due_ms < created_ms + GIVE_UP_MS else None
