"""How notifications are sent: mail server, requirements on webhooks, and where requests may go."""

from dataclasses import dataclass, field
from pathlib import Path

from greenroom.alerts.mail import MailServer
from greenroom.outbound import OutboundPolicy


@dataclass(frozen=True, slots=True)
class Sending:
    """Validated `NotificationSettings` and `Outbound`."""

    webhook_test: str = "required"
    mail_server: MailServer | None = None
    """None disables e-mail."""
    outbound: OutboundPolicy = field(default_factory=OutboundPolicy)
    files: tuple[Path, ...] = ()
    """The files that were read."""
