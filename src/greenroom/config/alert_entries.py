"""Reads `[[alert_policies]]`, `[[webhooks]]` and `[[pagerduty_services]]`.

Secrets come from files, which are watched like the configuration file. Policies refer to webhooks
and services by name.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from greenroom.alerts.destinations import SERVICES_MAX, WEBHOOKS_MAX
from greenroom.alerts.mail import LOCAL, MailServer, Sending
from greenroom.alerts.policies import POLICIES_MAX
from greenroom.alerts.rules.channels import CHANNELS, channel_of, shown_url
from greenroom.alerts.rules.matching import filter_problems
from greenroom.config.documents import file_id, tables
from greenroom.config.toml_lines import step
from greenroom.errors import InvalidConfig, Problem
from greenroom.model.alert_types import ALERTS
from greenroom.model.fields import Unique, spec
from greenroom.model.notification import (
    DESTINATIONS_MAX,
    EMAILS_MAX,
    AlertPolicy,
    PagerdutyService,
    Webhook,
    record_problems,
)
from greenroom.outbound import OutboundPolicy, OutboundRefused, read_target
from greenroom.settings.process import NotificationSettings, Outbound
from greenroom.web.api_shapes import read_nested

SECRET_FILE_MAX = 10_000
"""Bytes; a larger file does not hold a secret on its first line."""

EntryType = TypeVar("EntryType")
_WORDS = {
    "webhooks": "webhook",
    "pagerduty_services": "PagerDuty service",
    "alert_policies": "alert policy",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEntry:
    name: str = spec(
        "unique name; every call sends it", example="team chat", low=1, high=200, one_line=True
    )
    url: str = spec(
        "URL, `https://` or `http://`", "", example="https://hooks.example.com/alerts", high=2_048
    )
    url_file: str = spec(
        "file with the URL on its first line, for services whose URL is a secret", "", high=4_096
    )
    secret_file: str = spec(
        "file with the secret on its first line; it identifies greenroom to the receiver",
        "",
        high=4_096,
    )
    channel: str = spec(
        "message format; left out: recognised by the URL", "", choices=("", *CHANNELS)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PagerdutyServiceEntry:
    name: str = spec("unique name", example="on call", low=1, high=200, one_line=True)
    routing_key_file: str = spec(
        "file with the integration key of an Events API v2 integration on its first line",
        low=1,
        high=4_096,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertPolicyEntry:
    name: str = spec("unique name", example="the shop is down", low=1, high=200, one_line=True)
    alert_type: str = spec(
        "type of alert", example="health_check_status_notification", choices=tuple(sorted(ALERTS))
    )
    description: str = spec("a note for operators", "", high=2_000)
    enabled: bool = spec("whether it is active", True)
    alert_interval: str = spec(
        "minimum time between two notifications about the same subject, such as 30m; empty: none",
        "",
        high=20,
    )
    emails: tuple[str, ...] = spec("e-mail recipients", (), high=EMAILS_MAX)
    webhooks: tuple[str, ...] = spec("names of `[[webhooks]]`", (), high=DESTINATIONS_MAX)
    pagerduty_services: tuple[str, ...] = spec(
        "names of `[[pagerduty_services]]`", (), high=DESTINATIONS_MAX
    )
    filters: dict[str, Any] = spec(
        "name of a filter -> list of the values that pass it", {}, example={"status": ["Unhealthy"]}
    )


class Alerting(NamedTuple):
    """With the files that hold its secrets."""

    policies: tuple[AlertPolicy, ...] = ()
    webhooks: tuple[Webhook, ...] = ()
    services: tuple[PagerdutyService, ...] = ()
    files: tuple[Path, ...] = ()

    def records(self) -> tuple[AlertPolicy | Webhook | PagerdutyService, ...]:
        return (*self.webhooks, *self.services, *self.policies)

    def __repr__(self) -> str:
        # Without the secrets.
        return (
            f"Alerting(policies={len(self.policies)}, webhooks={len(self.webhooks)},"
            f" services={len(self.services)})"
        )


def read_alerting(raw: Mapping[str, Any], folder: Path, problems: list[Problem]) -> Alerting:
    """Adds what is wrong to `problems`."""
    files: list[Path] = []
    webhooks = [
        _webhook(entry, at, folder, files, problems)
        for at, entry in _entries(raw, "webhooks", WebhookEntry, WEBHOOKS_MAX, problems)
    ]
    services = [
        _service(entry, at, folder, files, problems)
        for at, entry in _entries(
            raw, "pagerduty_services", PagerdutyServiceEntry, SERVICES_MAX, problems
        )
    ]
    known = {
        "webhooks": _names(raw, "webhooks"),
        "pagerduty_services": _names(raw, "pagerduty_services"),
    }
    policies = [
        _policy(entry, at, known, problems)
        for at, entry in _entries(raw, "alert_policies", AlertPolicyEntry, POLICIES_MAX, problems)
    ]
    return Alerting(_made(policies), _made(webhooks), _made(services), tuple(files))


def _entries(
    raw: Mapping[str, Any], section: str, kind: type[EntryType], most: int, problems: list[Problem]
) -> Iterator[tuple[str, EntryType]]:
    names = Unique(_WORDS[section])
    for at, table in tables(raw.get(section, []), section, most, problems):
        entry = read_nested(kind, at, table, problems)
        if entry is None:
            continue
        problems += names.problems(step(at, "name"), table["name"])
        yield at, entry


def _names(raw: Mapping[str, Any], section: str) -> set[str]:
    """Includes entries with something else wrong: one mistake is one problem."""
    listed = raw.get(section, [])
    return (
        {str(table.get("name")) for table in listed if isinstance(table, dict)}
        if isinstance(listed, list)
        else set()
    )


def _made(found: Sequence[EntryType | None]) -> tuple[EntryType, ...]:
    return tuple(entry for entry in found if entry is not None)


def _webhook(
    entry: WebhookEntry, at: str, folder: Path, files: list[Path], problems: list[Problem]
) -> Webhook | None:
    before = len(problems)
    if bool(entry.url) == bool(entry.url_file):
        problems.append(Problem(step(at, "url"), "is required: one of url and url_file"))
    url = entry.url or _first_line(entry.url_file, step(at, "url_file"), folder, files, problems)
    secret = _first_line(entry.secret_file, step(at, "secret_file"), folder, files, problems)
    if url:
        try:
            read_target(url)
        except OutboundRefused as refused:
            problems.append(Problem(step(at, "url" if entry.url else "url_file"), str(refused)))
    if len(problems) > before:
        return None
    channel = CHANNELS[entry.channel] if entry.channel else channel_of(url)
    values = {
        "name": entry.name,
        "url": url,
        "secret": secret,
        "channel": channel.name,
        "shown_url": shown_url(channel, url),
    }
    problems += record_problems(Webhook, values, f"{at}.")
    return None if len(problems) > before else Webhook(id=file_id("webhook", entry.name), **values)


def _service(
    entry: PagerdutyServiceEntry, at: str, folder: Path, files: list[Path], problems: list[Problem]
) -> PagerdutyService | None:
    before, pointer = len(problems), step(at, "routing_key_file")
    key = _first_line(entry.routing_key_file, pointer, folder, files, problems)
    if len(problems) == before:
        wrong = record_problems(PagerdutyService, {"name": entry.name, "routing_key": key})
        problems += [
            Problem(pointer, "holds no routing key of letters, digits, - and _") for _ in wrong[:1]
        ]
    return (
        None
        if len(problems) > before
        else PagerdutyService(id=file_id("pagerduty", entry.name), name=entry.name, routing_key=key)
    )


def _policy(
    entry: AlertPolicyEntry, at: str, known: Mapping[str, set[str]], problems: list[Problem]
) -> AlertPolicy | None:
    before = len(problems)
    for section, names in known.items():
        for place, name in enumerate(getattr(entry, section)):
            if name not in names:
                problems.append(
                    Problem(
                        step(step(at, section), place),
                        f"there is no [[{section}]] entry named {name!r:.80}",
                    )
                )
    filters = {
        name: tuple(values) if isinstance(values, list) else values
        for name, values in entry.filters.items()
    }
    values: dict[str, Any] = {
        "name": entry.name,
        "alert_type": entry.alert_type,
        "description": entry.description,
        "enabled": entry.enabled,
        "alert_interval": entry.alert_interval,
        "emails": entry.emails,
        "webhook_ids": tuple(file_id("webhook", str(name)) for name in entry.webhooks),
        "pagerduty_ids": tuple(
            file_id("pagerduty", str(name)) for name in entry.pagerduty_services
        ),
        "filters": filters,
    }
    problems += record_problems(AlertPolicy, values, f"{at}.")
    if len(problems) == before:
        problems += [
            Problem(step(step(at, "filters"), name), reason)
            for name, reason in filter_problems(entry.alert_type, filters)
        ]
    return (
        None if len(problems) > before else AlertPolicy(id=file_id("policy", entry.name), **values)
    )


def _first_line(
    written: str, pointer: str, folder: Path, files: list[Path], problems: list[Problem]
) -> str:
    """Returns the first line of a file, which is watched from now on; empty when none is named."""
    if not written:
        return ""
    path = folder / written
    files.append(path)
    try:
        with path.open("rb") as file:
            text = file.read(SECRET_FILE_MAX + 1)
        if len(text) > SECRET_FILE_MAX:
            problems.append(Problem(pointer, f"{path} is larger than {SECRET_FILE_MAX} bytes"))
        line = text.decode().partition("\n")[0].strip("\r")
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a NUL in the name
        problems.append(
            Problem(pointer, f"cannot read {path}: {getattr(error, 'strerror', None) or error}")
        )
        return ""
    if not line:
        problems.append(Problem(pointer, f"{path} is empty"))
    return line


# Reads `[notifications]` and `[outbound]`.

PASSWORD_MAX = 1_000
"""Characters; a longer first line is not the password that was meant."""


def read_sending(
    notifications: NotificationSettings | None,
    outbound: Outbound | None,
    folder: Path,
    problems: list[Problem],
) -> Sending:
    """Adds what is wrong to `problems`."""
    section = notifications or NotificationSettings()
    files = (folder / section.smtp_password_file,) if section.smtp_password_file else ()
    return Sending(
        section.webhook_test,
        _mail_server(section, files, problems),
        _outbound(outbound, problems),
        files,
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
    section: NotificationSettings, files: Sequence[Path], problems: list[Problem]
) -> MailServer | None:
    pointer = step("notifications", "smtp_password_file")
    password = ""
    for path in files:
        try:
            password = path.read_text().partition("\n")[0].strip("\r")
        except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a NUL in the name
            problems.append(
                Problem(pointer, f"cannot read {path}: {getattr(error, 'strerror', None) or error}")
            )
        if len(password) > PASSWORD_MAX:
            problems.append(
                Problem(pointer, f"must be at most {PASSWORD_MAX} characters, not {len(password)}")
            )
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
