"""Alerts as e-mail, with a text and an HTML part."""

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from html import escape

from greenroom.alerts.rules.message import COLOURS, Message
from greenroom.outbound import OutboundPolicy
from greenroom.outbound.mail import MailServer


def written(message: Message, server: MailServer, recipient: str) -> EmailMessage:
    """Its id depends on alert, policy and recipient only, so a repeated one is recognised."""
    mail = EmailMessage()
    mail["From"], mail["To"] = server.sender, recipient
    mail["Subject"] = " ".join(f"[greenroom] {message.title}".split())
    alert = message.alert
    if alert:
        mail["Date"] = format_datetime(_moment(alert.time_ms))
        mail["Message-ID"] = (
            f"<{_digest(*alert.identity, message.policy_id, recipient)}@{server.domain}>"
        )
        mail["References"] = (
            f"<{_digest(alert.type, alert.correlation_id, message.policy_id)}@{server.domain}>"
        )
        mail["X-Greenroom-Correlation-Id"] = (
            alert.correlation_id.encode("ascii", "replace")
            .decode()
            .replace("\n", " ")
            .replace("\r", " ")
        )
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(_text(message))
    mail.add_alternative(_html(message), subtype="html")
    return mail


def _moment(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _rows(message: Message) -> list[tuple[str, str]]:
    policy = [("Policy", message.policy_name)] if message.policy_name else []
    time = ("Time", f"{_moment(message.time_ms):%Y-%m-%d %H:%M:%S} UTC")
    return [time, *message.shown_facts, *policy] if message.alert else []


def _text(message: Message) -> str:
    lines = [message.text, "", *(f"{name}: {value}" for name, value in _rows(message))]
    link = ["", message.link] if message.link else []
    return "\n".join(line.replace("\r", " ") for line in [*lines, *link]).rstrip() + "\n"


def _html(message: Message) -> str:
    label = "padding:2px 12px 2px 0;font-weight:normal;color:#59636e"
    rows = "".join(
        f'<tr><th align="left" style="{label}">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in _rows(message)
    )
    link = escape(message.link)
    opens = f'<p><a href="{link}">Open it in the dashboard</a></p>' if link else ""
    return (
        '<!doctype html><html><body style="font-family:system-ui,sans-serif">'
        '<p style="border-left:4px solid'
        f' {COLOURS[message.severity]};padding-left:12px"><strong>{escape(message.title)}</strong><br>'
        f"{escape(message.text)}</p><table>{rows}</table>{opens}</body></html>\n"
    )


# How notifications are sent: mail server, requirements on webhooks, and where requests may go.


@dataclass(frozen=True, slots=True)
class Sending:
    """Validated `NotificationSettings` and `Outbound`."""

    webhook_test: str = "required"
    mail_server: MailServer | None = None
    """None disables e-mail."""
    outbound: OutboundPolicy = field(default_factory=OutboundPolicy)
    dashboard_url: str = ""
    """Without a slash at its end; empty: messages have no links."""
