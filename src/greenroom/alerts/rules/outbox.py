"""Records of the outbox and the history, and when a message is retried or given up. Pure."""

from dataclasses import dataclass

from greenroom.model.alert import Alert

HISTORY_KEPT_MS = 30 * 86_400_000
"""As published."""

WAITING_MAX = 10_000

FIRST_MS = 1_000
LONGEST_MS = 600_000

GIVE_UP_MS = 86_400_000

RETRY_AFTER_MAX_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Due:
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
    attempts: int, created_ms: int, now_ms: int, random: float, asked_ms: int
) -> int | None:
    """Returns None to give up. Waits double from a second to ten minutes, each shortened by up to
    half at random. `asked_ms`: Retry-After.
    """
    longest = min(LONGEST_MS, FIRST_MS << min(max(attempts, 1) - 1, 20))
    wait_ms = max(longest - int(longest * random / 2), min(asked_ms, RETRY_AFTER_MAX_MS))
    due_ms = now_ms + wait_ms
    return due_ms if due_ms < created_ms + GIVE_UP_MS else None
