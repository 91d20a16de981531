"""Reads `[[crawlers]]`, `[native_pass]`, `[[prometheus]]`, `[notifications]` and `[outbound]`."""

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, unquote

from greenroom.alerts.mail import Sending
from greenroom.configuration.file_tables import SECRET_FILE_MAX, NamedFiles, step, tables
from greenroom.decision.native_pass import PassKeys, no_pass_because
from greenroom.errors import InvalidConfig, Problem
from greenroom.lookups.crawlers import UnusableRanges, networks, read_ranges
from greenroom.model.crawler import CRAWLERS_MAX, Crawler
from greenroom.model.fields import Unique
from greenroom.model.room import ANY_PASS, PUSHED, Room
from greenroom.outbound import OutboundPolicy
from greenroom.outbound.mail import LOCAL, MailServer
from greenroom.outbound.policy import OutboundRefused, OutboundTarget, read_target
from greenroom.settings.process import (
    PROMETHEUS_MAX,
    NativePass,
    NotificationSettings,
    Outbound,
    PrometheusLogin,
)
from greenroom.web.api_shapes import read_nested

# -- crawlers -------------------------------------------------------------------------------------


def read_crawlers(raw: Any, files: NamedFiles, problems: list[Problem]) -> tuple[Crawler, ...]:
    """With what their files say in `ranges`."""
    read: list[Crawler] = []
    names = Unique("crawler")
    for at, entry in tables(raw, "crawlers", CRAWLERS_MAX, problems):
        crawler = read_nested(Crawler, at, entry, problems)
        if crawler is None:
            continue
        problems += names.problems(step(at, "name"), crawler.name)
        found = _crawler_problems(crawler, at)
        if not (crawler.domains or crawler.ranges or crawler.ranges_file):
            found.append(
                Problem(
                    at, "needs domains, ranges or ranges_file, because a User-Agent proves nothing"
                )
            )
        if not found:
            try:
                if crawler.ranges_file:
                    listed = read_ranges(files.path(crawler.ranges_file))
                    crawler = replace(crawler, ranges=(*crawler.ranges, *listed))
                networks(crawler.ranges)
                read.append(crawler)
            except UnusableRanges as error:
                found.append(
                    Problem(
                        step(at, "ranges_file" if crawler.ranges_file else "ranges"), str(error)
                    )
                )
        problems += found
    return tuple(read)


def _crawler_problems(crawler: Crawler, at: str) -> list[Problem]:
    """Words so short that they match half of all user agents."""
    problems = [
        Problem(step(step(at, key), place), "must be text of at least 3 characters")
        for key in ("user_agents", "domains", "ranges")
        for place, text in enumerate(getattr(crawler, key))
        if len(text) < 3
    ]
    return (
        problems
        if crawler.user_agents
        else [*problems, Problem(step(at, "user_agents"), "must not be empty")]
    )


# -- passes that proxies verify by themselves -----------------------------------------------------

PASS_FILE_MAX = 64 * 1024


def read_pass_keys(
    section: NativePass | None,
    files: NamedFiles,
    places: Mapping[str, Room],
    problems: list[Problem],
) -> PassKeys | None:
    """Adds what is wrong with them, or with a room that wants passes, to `problems`. `places`: rooms
    by pointer.
    """
    wanted = section or NativePass()
    texts, read = {}, True
    for name in ("secret_file", "key_file"):
        written = getattr(wanted, name)
        content = files.content(written, f"native_pass.{name}", PASS_FILE_MAX) if written else b""
        if isinstance(content, Problem):
            read = False
            problems.append(content)
        else:
            texts[name] = content
    keys: PassKeys | None = None
    try:
        if read:
            keys = PassKeys(texts["secret_file"].decode("latin-1").strip(), texts["key_file"])
    except ValueError as error:
        problems.append(Problem("native_pass", str(error)))
    rooms = list(places.values())
    for pointer, room in places.items():
        if room.native_pass in ANY_PASS and (reason := no_pass_because(room, keys, rooms)):
            problems.append(Problem(f"{pointer}.native_pass", reason))
    return keys


# -- Prometheus servers that rooms ask ------------------------------------------------------------


def read_prometheus(raw: Any, files: NamedFiles, problems: list[Problem]) -> dict[str, str]:
    """Values of `Authorization` by URL."""
    found: dict[str, str] = {}
    for at, entry in tables(raw, "prometheus", PROMETHEUS_MAX, problems):
        login = read_nested(PrometheusLogin, at, entry, problems)
        if login is None:
            continue
        wrong = _login_problems(login, at)
        token, of_token = files.first_line(entry, at, "token_file")
        password, of_password = files.first_line(entry, at, "password_file")
        wrong += of_token + of_password
        if token and not re.fullmatch(r"[\x21-\x7e]+", token):
            reason = "must hold a token of printable ASCII characters without blanks"
            wrong.append(Problem(step(at, "token_file"), reason))
        target = _login_target(login.url, step(at, "url"), wrong)
        if target is not None and target.url in found:
            wrong.append(Problem(step(at, "url"), "is given twice"))
        problems += wrong
        if target is not None and not wrong:
            basic = b64encode(f"{login.user}:{password}".encode()).decode()
            found[target.url] = f"Bearer {token}" if token else f"Basic {basic}"
    return found


def prometheus_notes(rooms: Iterable[Room], policy: OutboundPolicy) -> tuple[str, ...]:
    """Rooms whose Prometheus is never asked. Their URLs are valid."""
    found = []
    for room in rooms:
        with suppress(OutboundRefused):  # a problem of its own
            if room.capacity_metrics not in ("", PUSHED) and (
                reason := policy.target_problem(prometheus_target(room.capacity_metrics))
            ):
                found.append(
                    f"room {room.name}: capacity_metrics cannot be asked: {reason} ([outbound])"
                )
    return tuple(found)


def _login_problems(login: PrometheusLogin, at: str) -> list[Problem]:
    found = []
    if bool(login.token_file) == bool(login.user):
        found.append(Problem(at, "needs one of token_file and user"))
    if bool(login.user) != bool(login.password_file):
        reason = "must be given together with user"
        found.append(Problem(step(at, "password_file"), reason))
    if ":" in login.user:
        found.append(Problem(step(at, "user"), "must not contain a colon"))
    return found


def _login_target(url: str, at: str, problems: list[Problem]) -> OutboundTarget | None:
    try:
        if "?" in url:
            raise OutboundRefused("must end before ?query=")
        target = read_target(url)
        if target.scheme == "http" and not _is_private(target.host):
            raise OutboundRefused(
                "must begin with https://, or have a private address: the secret could be read on"
                " the way"
            )
    except OutboundRefused as error:
        problems.append(Problem(at, str(error)))
        return None
    return target


def _is_private(host: str) -> bool:
    try:
        return ip_address(host).is_private
    except ValueError:
        return host == "localhost"


RANGE = "[1m]"
"""Samples have the time of their scrape only in an answer about a range."""
_QUERY = "?query="


def prometheus_base(written: str) -> str:
    """What a room's `capacity_metrics` has before its query, as `prometheus_target` reads it."""
    return read_target(written.partition(_QUERY)[0]).url


def prometheus_target(written: str) -> OutboundTarget:
    """The URL of a room's `capacity_metrics`, to ask for. Raises OutboundRefused."""
    base, found, selector = written.partition(_QUERY)
    target = read_target(base)
    if not found or not selector or "&" in selector:
        raise OutboundRefused(f"a URL of Prometheus must end in {_QUERY} and a selector of buckets")
    query = quote(unquote(selector) + RANGE, safe="")
    return read_target(f"{target.url}{_QUERY}{query}")


# -- how messages leave ---------------------------------------------------------------------------

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
