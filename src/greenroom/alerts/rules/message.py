"""One alert for one destination of one policy, and the request of a channel."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec

from greenroom.model.alert import TEST_IDS, Alert
from greenroom.model.alert_types import ALERTS
from greenroom.model.probe import REASON_WORDS

GREETING = (
    "Hello World! This is a test message sent by greenroom. If you can read it, the webhook is"
    " working."
)
"""Receivers recognize the test by its first two words."""

COLOURS = {"error": "#d1242f", "warning": "#bf8700", "info": "#0969da", "success": "#1a7f37"}
"""By severity."""

STATE_EVENTS = {"start": "ALERT_STATE_EVENT_START", "end": "ALERT_STATE_EVENT_END"}


@dataclass(frozen=True, slots=True)
class Message:
    """`alert` None: the test of a webhook when it is saved."""

    alert: Alert | None
    policy_id: str = ""
    policy_name: str = ""
    webhook_name: str = ""
    dashboard_url: str = ""

    @property
    def text(self) -> str:
        return self.alert.text if self.alert else GREETING

    @property
    def title(self) -> str:
        row = ALERTS.get(self.alert.type) if self.alert else None
        if self.alert is None:
            return "greenroom"
        test = "Test: " if self.alert.correlation_id.startswith(TEST_IDS) else ""
        subject = f": {self.alert.subject_name}" if self.alert.subject_name else ""
        if row and row.title:
            template = row.end_title if self.alert.state == "end" else row.title
            return test + template.format(subject=self.alert.subject_name or self.alert.subject_id)
        prefix = "Resolved: " if self.alert.state == "end" else test
        return f"{prefix}{row.display_name if row else self.alert.type}{subject}"

    @property
    def severity(self) -> str:
        """error, warning, info, or success at the end of an incident."""
        row = ALERTS.get(self.alert.type) if self.alert else None
        if self.alert is None or row is None:
            return "info"
        return "success" if self.alert.state == "end" else row.severity

    @property
    def facts(self) -> list[tuple[str, str]]:
        data = self.alert.data if self.alert else {}
        return [
            (name.replace("_", " "), str(value))
            for name, value in data.items()
            if value not in ("", None, [], {})
        ]

    @property
    def shown_facts(self) -> list[tuple[str, str]]:
        """Facts for people: each once, in plain words."""
        row = ALERTS.get(self.alert.type) if self.alert else None
        if self.alert is None or row is None or not row.shown:
            return self.facts
        data = self.alert.data
        found = [(label, data.get(name)) for name, label in row.shown.items()]
        facts = [
            (label, str(value)) for label, value in found if value not in ("", None, 0, "none")
        ]
        meaning = REASON_WORDS.get(str(data.get("reason", "")))
        return [*facts, *([("What it means", meaning)] if meaning else [])]

    @property
    def link(self) -> str:
        """Empty without a dashboard address or a page about the alert."""
        alert = self.alert
        row = ALERTS.get(alert.type) if alert else None
        if alert is None or row is None or not (self.dashboard_url and alert.zone_id):
            return ""
        path = row.path.format(zone=quote(alert.zone_id), subject=quote(alert.subject_id))
        return f"{self.dashboard_url}{path}" if path and alert.subject_id else ""

    @property
    def time_ms(self) -> int:
        return self.alert.time_ms if self.alert else 0

    @property
    def time(self) -> str:
        """RFC 3339."""
        return f"{datetime.fromtimestamp(self.time_ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


@dataclass(frozen=True, slots=True)
class Post:
    """Secrets may be in the URL, the headers and the body: never log it."""

    url: str = field(repr=False)
    body: bytes = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def json_post(url: str, document: Mapping[str, Any], *headers: tuple[str, str]) -> Post:
    return Post(
        url, msgspec.json.encode(document), (("Content-Type", "application/json"), *headers)
    )


def payload(message: Message) -> dict[str, Any]:
    """As Cloudflare published it; `webhook_name` is an extension."""
    alert = message.alert
    if alert is None:
        return {"text": message.text, "webhook_name": message.webhook_name}
    document: dict[str, Any] = {
        "name": message.policy_name,
        "text": message.text,
        "data": dict(alert.data),
        "ts": alert.time_ms // 1000,
        "account_id": alert.account_id,
        "policy_id": message.policy_id,
        "policy_name": message.policy_name,
        "alert_type": alert.type,
        "alert_correlation_id": alert.correlation_id,
        "webhook_name": message.webhook_name,
    }
    if alert.state in STATE_EVENTS:
        document["alert_event"] = STATE_EVENTS[alert.state]
    return document
