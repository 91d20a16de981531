"""Hands e-mail to the operator's own mail server."""

import asyncio
import socket
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import parseaddr
from typing import TYPE_CHECKING

from greenroom.errors import GreenroomError

if TYPE_CHECKING:
    import aiosmtplib

TOTAL_S = 30.0

LOCAL = "localhost"
"""Domain of a sender without one; mail servers refuse it."""


@dataclass(frozen=True, slots=True)
class MailServer:
    """May be on a private address."""

    host: str
    port: int = 587
    security: str = "starttls"
    user: str = ""
    password: str = field(default="", repr=False)
    sender: str = "greenroom@localhost"

    @property
    def address(self) -> str:
        """The sender's address, without a display name."""
        return parseaddr(self.sender)[1]

    @property
    def domain(self) -> str:
        return self.sender.rpartition("@")[2].strip("> ") or LOCAL

    @property
    def introduced_as(self) -> str:
        """The name in EHLO, without asking a name server."""
        return self.domain if self.domain != LOCAL else socket.gethostname()


class MailRefused(GreenroomError):
    """`permanent`: no retry helps."""

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
