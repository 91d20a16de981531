"""E-mail: one message with a text and an HTML part, handed to the operator's own mail server."""

import asyncio
import hashlib
import socket
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from greenroom.alerts.rules.message import Message
from greenroom.errors import GreenroomError
from greenroom.outbound import OutboundPolicy

if TYPE_CHECKING:
    import aiosmtplib

TOTAL_S = 30.0

LOCAL = "localhost"
"""Nobody else has an address there, and mail servers refuse it."""

COLOURS = {"error": "#d1242f", "warning": "#bf8700", "info": "#0969da", "success": "#1a7f37"}


@dataclass(frozen=True, slots=True)
class MailServer:
    """The operator's own mail server, which may be on a private address."""

    host: str
    port: int = 587
    security: str = "starttls"
    user: str = ""
    password: str = field(default="", repr=False)
    sender: str = "greenroom@localhost"

    @property
    def domain(self) -> str:
        return self.sender.rpartition("@")[2].strip("> ") or LOCAL

    @property
    def introduced_as(self) -> str:
        """In EHLO; a name server would have to be asked each time."""
        return self.domain if self.domain != LOCAL else socket.gethostname()


class MailRefused(GreenroomError):
    """`permanent`: the server says that it never will."""

    def __init__(self, reason: str, permanent: bool = False) -> None:
        super().__init__(reason)
        self.permanent = permanent


async def send(server: MailServer, message: EmailMessage) -> None:
    """Raises MailRefused."""
    import aiosmtplib  # 40 ms, and most installations send no e-mail

    client = aiosmtplib.SMTP(
        hostname=server.host,
        port=server.port,
        use_tls=server.security == "tls",
        start_tls=server.security == "starttls",
        timeout=TOTAL_S,
        local_hostname=server.introduced_as,
    )
    try:
        async with asyncio.timeout(TOTAL_S), client:
            if server.user:
                await client.login(server.user, server.password)
            await client.send_message(message)
    except aiosmtplib.SMTPRecipientsRefused as error:
        first = error.recipients[0]  # every message has one recipient
        raise MailRefused(
            f"the mail server refused the recipient: {_said(first)}", first.code >= 500
        ) from error
    except aiosmtplib.SMTPAuthenticationError as error:
        raise MailRefused(f"the mail server refused the login: {_said(error)}") from error
    except aiosmtplib.SMTPResponseException as error:
        raise MailRefused(f"the mail server answered {_said(error)}", error.code >= 550) from error
    except (aiosmtplib.SMTPException, OSError, TimeoutError) as error:
        raise MailRefused(
            f"the mail server cannot be used: {str(error) or type(error).__name__}"
        ) from error


def _said(error: "aiosmtplib.SMTPResponseException | aiosmtplib.SMTPRecipientRefused") -> str:
    return f"{error.code} {error.message}"[:200]


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
    files: tuple[Path, ...] = ()
    """The files that were read."""
    dashboard_url: str = ""
    """Without a slash at its end; empty: messages have no links."""
