"""Alert services: the generic webhook, Opsgenie, Datadog, Splunk and PagerDuty."""

from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from greenroom.alerts.rules.message import (
    Message,
    Post,
    json_post,
    payload,
)

AUTH_HEADER = "cf-webhook-auth"

PAGERDUTY_URL = "https://events.pagerduty.com/v2/enqueue"
LEVELS = {"error": "error", "warning": "warning", "info": "info", "success": "info"}
DATADOG_TYPES = {"error": "error", "warning": "warning", "info": "info", "success": "success"}
PRIORITIES = {"error": "P2", "warning": "P3", "info": "P5", "success": "P5"}


def generic(message: Message, url: str, secret: str, _now_ms: int) -> Post:
    return json_post(url, payload(message), *([(AUTH_HEADER, secret)] if secret else []))


def opsgenie(message: Message, url: str, secret: str, _now_ms: int) -> Post:
    """The secret is the API key."""
    key = [("Authorization", f"GenieKey {secret}")] if secret else []
    alert = message.alert
    if alert is not None and alert.state == "end":
        base = url.partition("?")[0].rstrip("/")
        close = f"{base}/{quote(alert.correlation_id, safe='')}/close?identifierType=alias"
        return json_post(close, {"source": "greenroom", "note": message.text}, *key)
    document: dict[str, Any] = {
        "message": message.title[:130],
        "description": message.text,
        "source": "greenroom",
    }
    document |= {"priority": PRIORITIES[message.severity], "details": dict(message.facts)}
    return json_post(
        url,
        document | ({"alias": alert.correlation_id} if alert else {"message": message.text[:130]}),
        *key,
    )


def datadog(message: Message, url: str, secret: str, now_ms: int) -> Post:
    """The API key is the secret, or `api_key` in the URL."""
    alert = message.alert
    document: dict[str, Any] = {
        "title": message.title[:100],
        "text": message.text,
        "alert_type": DATADOG_TYPES[message.severity],
        "date_happened": (message.time_ms or now_ms) // 1000,
        "source_type_name": "greenroom",
        "tags": ["source:greenroom"],
    }
    if alert:
        document |= {
            "aggregation_key": alert.correlation_id[:100],
            "tags": ["source:greenroom", f"alert_type:{alert.type}"],
        }
    return json_post(url, document, *([("DD-API-KEY", secret)] if secret else []))


def splunk(message: Message, url: str, secret: str, now_ms: int) -> Post:
    """The secret is its token. A `raw` address gets only the payload."""
    token = [("Authorization", f"Splunk {secret}")] if secret else []
    if urlsplit(url).path.rstrip("/").endswith("/raw"):
        return json_post(url, payload(message), *token)
    event = {
        "time": (message.time_ms or now_ms) // 1000,
        "source": "greenroom",
        "sourcetype": "_json",
        "event": payload(message),
    }
    return json_post(url, event, *token)


def pagerduty(message: Message, url: str, secret: str, _now_ms: int) -> Post:
    """The secret is the routing key."""
    alert = message.alert
    event: dict[str, Any] = {
        "summary": message.text[:1_024],
        "source": "greenroom",
        "severity": LEVELS[message.severity],
    }
    document: dict[str, Any] = {"routing_key": secret, "event_action": "trigger"}
    if alert:
        event |= {
            "source": alert.subject_name or "greenroom",
            "component": alert.type,
            "timestamp": message.time,
        }
        event["custom_details"] = dict(alert.data)
        document["dedup_key"] = alert.correlation_id[:255]
        document["event_action"] = "resolve" if alert.state == "end" else "trigger"
    return json_post(url, document | {"payload": event})


def answered_2xx(status: int, _body: bytes) -> str:
    return "" if 200 <= status < 300 else f"the receiver answered {status}"


def answered_code_0(status: int, body: bytes) -> str:
    """Feishu and Splunk answer 200 and report failures in the body."""
    problem = answered_2xx(status, body)
    if problem:
        return problem
    try:
        document = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
    code = document.get("code", document.get("StatusCode", 0)) if isinstance(document, dict) else 0
    return f"the receiver answered code {code}" if code else ""
