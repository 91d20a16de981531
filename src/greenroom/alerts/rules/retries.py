"""When an undelivered message is retried or given up. Pure."""

FIRST_MS = 1_000
LONGEST_MS = 600_000
"""Ten minutes, so that a receiver that is back after hours soon gets its messages."""

GIVE_UP_MS = 86_400_000
"""Age of the alert; the history then says that it was not delivered."""

RETRY_AFTER_MAX_MS = 3_600_000
"""Limit of a receiver's Retry-After."""


def next_try_ms(
    attempts: int, created_ms: int, now_ms: int, random: float, asked_ms: int = 0
) -> int | None:
    """The time of the next try; None gives up.

    Waits double from a second to ten minutes, each shortened by up to half at random (`random` is 0
    to 1) to spread retries. `asked_ms`: the receiver's Retry-After.
    """
    longest = min(LONGEST_MS, FIRST_MS << min(max(attempts, 1) - 1, 20))
    wait_ms = max(longest - int(longest * random / 2), min(asked_ms, RETRY_AFTER_MAX_MS))
    due_ms = now_ms + wait_ms
    return due_ms if due_ms < created_ms + GIVE_UP_MS else None
