"""Channels of webhooks: hosts, message format, and what counts as delivered."""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from greenroom.alerts.rules.message import (
    COLOURS,
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
    """The secret is the token. A `raw` address gets only the payload."""
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


NUMBERS = {name: int(colour[1:], 16) for name, colour in COLOURS.items()}
CARD_COLOURS = {"error": "attention", "warning": "warning", "info": "accent", "success": "good"}
FACTS_MAX = 10


def slack(message: Message, url: str, _secret: str, _now_ms: int) -> Post:
    fields = [
        {"title": _mrkdwn(name), "value": _mrkdwn(value)[:500], "short": len(value) < 30}
        for name, value in _facts(message)
    ]
    attachment: dict[str, Any] = {
        "color": COLOURS[message.severity],
        "text": _mrkdwn(message.text),
        "fallback": message.text,
    }
    if message.alert is None:
        return json_post(url, {"text": _mrkdwn(message.text)})
    attachment |= {
        "fields": fields,
        "ts": message.time_ms // 1000,
        "footer": _mrkdwn(message.policy_name),
    }
    return json_post(url, {"text": f"*{_mrkdwn(message.title)}*", "attachments": [attachment]})


def discord(message: Message, url: str, _secret: str, _now_ms: int) -> Post:
    base: dict[str, Any] = {"allowed_mentions": {"parse": []}}
    if message.alert is None:
        return json_post(url, {"content": message.text, **base})
    embed = {
        "title": _markdown(message.title)[:256],
        "description": _markdown(message.text)[:4_096],
        "color": NUMBERS[message.severity],
        "timestamp": message.time,
        "fields": [
            {"name": name[:256], "value": _markdown(value)[:1_024], "inline": len(value) < 30}
            for name, value in _facts(message)
        ],
        "footer": {"text": message.policy_name[:2_048]},
    }
    return json_post(url, {"embeds": [embed], **base})


def gchat(message: Message, url: str, _secret: str, _now_ms: int) -> Post:
    if message.alert is None:
        return json_post(url, {"text": message.text})
    widgets = [
        {"decoratedText": {"topLabel": name, "text": _html(value)[:1_000]}}
        for name, value in _facts(message)
    ]
    sections: list[dict[str, Any]] = [
        {"widgets": [{"textParagraph": {"text": _html(message.text)}}]}
    ]
    sections += [{"collapsible": True, "widgets": widgets}] if widgets else []
    card = {
        "header": {"title": message.title[:200], "subtitle": message.policy_name[:200]},
        "sections": sections,
    }
    return json_post(
        url,
        {
            "text": message.text.translate(_NO_MENTION),
            "cardsV2": [{"cardId": "alert", "card": card}],
        },
    )


def msteams(message: Message, url: str, _secret: str, _now_ms: int) -> Post:
    body: list[dict[str, Any]] = [
        {
            "type": "TextBlock",
            "text": _markdown(message.title),
            "weight": "Bolder",
            "wrap": True,
            "color": CARD_COLOURS[message.severity],
        },
        {"type": "TextBlock", "text": _markdown(message.text), "wrap": True},
    ]
    facts = _facts(message)
    if facts:
        body.append(
            {
                "type": "FactSet",
                "facts": [
                    {"title": name, "value": _markdown(value)[:500]} for name, value in facts
                ],
            }
        )
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
    }
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return json_post(url, {"type": "message", "attachments": [attachment]})


def feishu(message: Message, url: str, secret: str, now_ms: int) -> Post:
    lines = [message.title, message.text, *(f"{name}: {value}" for name, value in _facts(message))]
    document: dict[str, Any] = {
        "msg_type": "text",
        "content": {"text": "\n".join(lines)[:4_000] if message.alert else message.text},
    }
    if secret:
        timestamp = str(now_ms // 1000)
        signature = hmac.new(f"{timestamp}\n{secret}".encode(), b"", hashlib.sha256).digest()
        document |= {"timestamp": timestamp, "sign": base64.b64encode(signature).decode()}
    return json_post(url, document)


def _facts(message: Message) -> list[tuple[str, str]]:
    link = [("Dashboard", message.link)] if message.link else []
    return [*message.shown_facts[: FACTS_MAX - len(link)], *link]


_NO_MENTION = str.maketrans("<>", "‹›")


def _mrkdwn(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _html(text: str) -> str:
    return _mrkdwn(text)


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", text)


GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class Channel:
    """`write` gets (message, url, secret, now_ms); `problem` judges (status, body). `published`:
    Cloudflare's `type`. `secret_url`: what follows the host in the URL is a secret.
    """

    name: str
    help: str
    write: Callable[[Message, str, str, int], Post]
    hosts: str = ""
    paths: str = ""
    published: str = GENERIC
    secret_url: bool = False
    secret_help: str = ""
    problem: Callable[[int, bytes], str] = answered_2xx


_ROWS = (
    Channel(
        "slack",
        "Slack incoming webhooks; Mattermost and Rocket.Chat with `channel` set",
        slack,
        r"hooks\.slack(-gov)?\.com",
        published="slack",
        secret_url=True,
    ),
    Channel(
        "discord",
        "Discord webhooks",
        discord,
        r"(.+\.)?discord(app)?\.com",
        published="discord",
        secret_url=True,
    ),
    Channel(
        "gchat",
        "Google Chat webhooks of a space",
        gchat,
        r"chat\.googleapis\.com",
        published="gchat",
        secret_url=True,
    ),
    Channel(
        "msteams",
        "Microsoft Teams workflows that begin with a webhook request",
        msteams,
        r".+\.(webhook\.office\.com|logic\.azure\.com|powerplatform\.com)",
        secret_url=True,
    ),
    Channel(
        "feishu",
        "custom bots of Feishu and Lark",
        feishu,
        r"open\.(feishu\.cn|larksuite\.com)",
        published="feishu",
        secret_url=True,
        secret_help="the signing secret of the bot",  # noqa: S106  # a text for operators
        problem=answered_code_0,
    ),
    Channel(
        "opsgenie",
        "Opsgenie Alert API, `https://api.opsgenie.com/v2/alerts`",
        opsgenie,
        r"api\.(eu\.)?opsgenie\.com",
        published="opsgenie",
        secret_help="the API key",  # noqa: S106
    ),
    Channel(
        "datadog",
        "Datadog Events API, `https://api.datadoghq.com/api/v1/events`",
        datadog,
        r"(.+\.)?(datadoghq\.(com|eu)|ddog-gov\.com)",
        published="datadog",
        secret_url=True,
        secret_help="the API key",  # noqa: S106
    ),
    Channel(
        "splunk",
        "Splunk HTTP Event Collector",
        splunk,
        r".+\.splunkcloud\.com",
        r"/services/collector(/.*)?",
        published="splunk",
        secret_help="the token of the collector",  # noqa: S106
        problem=answered_code_0,
    ),
    Channel(
        "pagerduty",
        "PagerDuty Events API v2; usually by a PagerDuty service instead of a webhook",
        pagerduty,
        r"events\.(eu\.)?pagerduty\.com",
        secret_help="the routing key",  # noqa: S106
    ),
    Channel(
        GENERIC,
        "anything else: the published JSON payload",
        generic,
        secret_help=f"sent with every call in the header `{AUTH_HEADER}`",
    ),
)

CHANNELS: Mapping[str, Channel] = {row.name: row for row in _ROWS}


def channel_of(url: str) -> Channel:
    parts = urlsplit(url)
    host, path = (parts.hostname or "").lower(), parts.path or "/"
    for row in _ROWS:
        if (row.hosts and re.fullmatch(row.hosts, host)) or (
            row.paths and re.fullmatch(row.paths, path)
        ):
            return row
    return CHANNELS[GENERIC]


def shown_url(channel: Channel, url: str) -> str:
    """Masks path and query where they are secret, and any `api_key` or token in the query."""
    parts = urlsplit(url)
    if channel.secret_url:
        return f"{parts.scheme}://{parts.netloc}/***"
    return f"{parts.scheme}://{parts.netloc}{parts.path}" + ("?***" if parts.query else "")
