"""What the outbox holds and the history tells: records that the store, the sender and the API
share.
"""

from dataclasses import dataclass

from greenroom.model.alert import Alert

HISTORY_KEPT_MS = 30 * 86_400_000
"""How long the history and repeated alerts are remembered, as published."""

INCIDENTS_KEPT_MS = 90 * 86_400_000
"""How long alerts themselves are kept: the status page shows 90 days."""

WAITING_MAX = 10_000
"""Messages of one destination that wait at once; a receiver that is away for a day in a bad week
stays far below it.
"""


@dataclass(frozen=True, slots=True)
class Due:
    """One message that is to be sent now. `destination` is a key (`matching.Destination`)."""

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
    """One row of the history: a message that was delivered, or given up (`problem` says why)."""

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
