"""Records of the outbox and the history, shared by the store, the sender and the API."""

from dataclasses import dataclass

from greenroom.model.alert import Alert

HISTORY_KEPT_MS = 30 * 86_400_000
"""Of the history and repeated alerts, as published."""

INCIDENTS_KEPT_MS = 90 * 86_400_000
"""The status page shows 90 days."""

WAITING_MAX = 10_000
"""Waiting messages of one destination; a day's outage in a bad week stays far below."""


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
