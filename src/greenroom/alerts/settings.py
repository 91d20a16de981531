"""Settings of notifications: mail server, requirements on webhooks, and where requests may go."""

from dataclasses import dataclass, field
from pathlib import Path

from greenroom.alerts.mail import MailServer
from greenroom.model.fields import spec
from greenroom.outbound import OutboundPolicy

SECURITY = ("starttls", "tls", "none")
WEBHOOK_TESTS = ("required", "reported", "off")


@dataclass(frozen=True, slots=True)
class NotificationSettings:
    """`[notifications]` of the configuration file."""

    smtp_host: str = spec(
        "mail server for e-mail; empty: no e-mail can be sent",
        "",
        example="smtp.example.com",
        high=253,
    )
    smtp_port: int = spec("its port", 587, low=1, high=65_535)
    smtp_security: str = spec(
        "`starttls`, `tls` (from the first byte, usually port 465) or `none`",
        "starttls",
        choices=SECURITY,
    )
    smtp_user: str = spec("user name; empty: no login", "", high=320)
    smtp_password_file: str = spec(
        "file with the password on its first line; relative to the configuration file",
        "",
        high=4_096,
    )
    smtp_from: str = spec(
        "sender of every e-mail",
        "greenroom@localhost",
        example="greenroom@example.com",
        low=3,
        high=320,
    )
    webhook_test: str = spec(
        "whether a webhook must take a test message when it is saved: `required`, `reported` (a"
        " failure is told in the answer) or `off`",
        "required",
        choices=WEBHOOK_TESTS,
    )


@dataclass(frozen=True, slots=True)
class Outbound:
    """`[outbound]` of the configuration file: where greenroom's own requests may go."""

    schemes: tuple[str, ...] = spec("schemes of URLs", ("https", "http"), low=1, high=2)
    ports: tuple[int, ...] = spec("ports; empty: all", (443, 80), high=100)
    allow: tuple[str, ...] = spec(
        "addresses and networks that are allowed although they are not public, such as 10.0.0.0/8",
        (),
        example=["10.0.0.0/8"],
        high=200,
    )
    deny: tuple[str, ...] = spec(
        "addresses and networks that are refused although they are public", (), high=200
    )

    def policy(self) -> OutboundPolicy:
        """Raises InvalidConfig."""
        return OutboundPolicy(
            tuple(self.schemes), tuple(self.ports), tuple(self.allow), tuple(self.deny)
        )


@dataclass(frozen=True, slots=True)
class Sending:
    """Both, validated."""

    webhook_test: str = "required"
    mail_server: MailServer | None = None
    """None disables e-mail."""
    outbound: OutboundPolicy = field(default_factory=OutboundPolicy)
    files: tuple[Path, ...] = ()
    """The files that were read."""
