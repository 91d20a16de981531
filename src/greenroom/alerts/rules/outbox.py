"""Records of the outbox and the history, and when a message is retried or given up. Pure."""

from dataclasses import dataclass

from greenroom.model.alert import Alert

HISTORY_KEPT_MS = 30 * 86_400_000
"""Of the history and repeated alerts, as published."""

WAITING_MAX = 10_000
"""Waiting messages of one destination; a day's outage in a bad week stays far below."""

FIRST_MS = 1_000
LONGEST_MS = 600_000
"""Ten minutes, so that a receiver that is back after hours soon gets its messages."""

GIVE_UP_MS = 86_400_000
"""Age of the alert; the history then says that it was not delivered."""

RETRY_AFTER_MAX_MS = 3_600_000
"""Limit of a receiver's Retry-After."""


@dataclass(frozen=True, slots=True)
class Due:
    """A message to send now. `destination` is a key (`matching.Destination`)."""

    number: int
    alert: Alert
    policy_id: str
    policy_name: str
    description: str
    destination: str
    created_ms: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A message that was delivered, or given up (`problem` says why)."""

    id: str
    policy_id: str
    name: str
    description: str
    alert_type: str
    alert_body: str
    mechanism_type: str
    mechanism: str
    correlation_id: str
    sent_ms: int
    attempts: int
    problem: str = ""


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
