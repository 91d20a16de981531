"""Chat services. Texts are cut to the service's limits and escaped against markup."""

import base64
import hashlib
import hmac
import re
from typing import Any

from greenroom.alerts.rules.message import Message, Post, json_post

SLACK_COLOURS = {"error": "#d1242f", "warning": "#bf8700", "info": "#0969da", "success": "#1a7f37"}
NUMBERS = {name: int(colour[1:], 16) for name, colour in SLACK_COLOURS.items()}
CARD_COLOURS = {"error": "attention", "warning": "warning", "info": "accent", "success": "good"}
FACTS_MAX = 10


def slack(message: Message, url: str, _secret: str, _now_ms: int) -> Post:
    fields = [
        {"title": _mrkdwn(name), "value": _mrkdwn(value)[:500], "short": len(value) < 30}
        for name, value in _facts(message)
    ]
    attachment: dict[str, Any] = {
        "color": SLACK_COLOURS[message.severity],
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
    return message.facts[:FACTS_MAX]


_NO_MENTION = str.maketrans("<>", "‹›")


def _mrkdwn(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _html(text: str) -> str:
    return _mrkdwn(text)


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", text)
