"""Reads `[notifications]` and `[outbound]`: how messages leave."""

import re

from greenroom.alerts.mail import Sending
from greenroom.config.named_files import SECRET_FILE_MAX, NamedFiles
from greenroom.config.toml_lines import step
from greenroom.errors import InvalidConfig, Problem
from greenroom.outbound import OutboundPolicy
from greenroom.outbound.mail import LOCAL, MailServer
from greenroom.settings.process import NotificationSettings, Outbound

PASSWORD_MAX = 1_000
"""Characters; a longer first line is not the password that was meant."""


def read_sending(
    notifications: NotificationSettings | None,
    outbound: Outbound | None,
    files: NamedFiles,
    problems: list[Problem],
) -> Sending:
    """Adds what is wrong to `problems`."""
    section = notifications or NotificationSettings()
    return Sending(
        section.webhook_test,
        _mail_server(section, files, problems),
        _outbound(outbound, problems),
        _dashboard_url(section.dashboard_url, problems),
    )


def _dashboard_url(url: str, problems: list[Problem]) -> str:
    if url and not re.fullmatch(r"https?://[\x21-\x7e]+", url):
        reason = f"must begin with https:// or http:// and hold no blanks, not {url[:60]!r}"
        problems.append(Problem(step("notifications", "dashboard_url"), reason))
    return url.rstrip("/")


def mail_notes(server: MailServer | None) -> tuple[str, ...]:
    """What an operator may want to know about the sender of e-mail."""
    if server is None or server.domain != LOCAL:
        return ()
    return (
        f"notifications.smtp_from: {server.sender} is no address on the Internet, and many mail servers"
        " refuse it; set one of your own domain",
    )


def _mail_server(
    section: NotificationSettings, files: NamedFiles, problems: list[Problem]
) -> MailServer | None:
    pointer = step("notifications", "smtp_password_file")
    password = ""
    if section.smtp_password_file:
        text = files.text(section.smtp_password_file, pointer, SECRET_FILE_MAX)
        if isinstance(text, Problem):
            problems.append(text)
        else:
            password = text.partition("\n")[0].strip("\r")
        if len(password) > PASSWORD_MAX:
            reason = f"must be at most {PASSWORD_MAX} characters, not {len(password)}"
            problems.append(Problem(pointer, reason))
    if bool(section.smtp_user) != bool(section.smtp_password_file):
        problems.append(Problem(pointer, "must be given together with smtp_user"))
    if section.smtp_user and section.smtp_security == "none":
        reason = "must not be none with smtp_user: the password could be read on the way"
        problems.append(Problem(step("notifications", "smtp_security"), reason))
    if not section.smtp_host:
        return None
    return MailServer(
        section.smtp_host,
        section.smtp_port,
        section.smtp_security,
        section.smtp_user,
        password,
        section.smtp_from,
    )


def _outbound(section: Outbound | None, problems: list[Problem]) -> OutboundPolicy:
    if section is None:
        return OutboundPolicy()
    try:
        return OutboundPolicy(section.schemes, section.ports, section.allow, section.deny)
    except InvalidConfig as invalid:
        names = {"allowed": "allow", "denied": "deny"}
        for problem in invalid.problems:
            field, bracket, rest = problem.pointer.partition("[")
            problems.append(
                Problem(f"outbound.{names.get(field, field)}{bracket}{rest}", problem.reason)
            )
        return OutboundPolicy()
