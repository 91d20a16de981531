"""Reads `[[prometheus]]`: what greenroom proves itself with to a Prometheus that rooms ask."""

import re
from base64 import b64encode
from ipaddress import ip_address
from typing import Any

from greenroom.config.entries import tables
from greenroom.config.named_files import NamedFiles
from greenroom.config.toml_lines import step
from greenroom.errors import Problem
from greenroom.outbound.policy import OutboundRefused, OutboundTarget, read_target
from greenroom.settings.process import PROMETHEUS_MAX, PrometheusLogin
from greenroom.web.api_shapes import read_nested


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
        target = _target(login.url, step(at, "url"), wrong)
        if target is not None and target.url in found:
            wrong.append(Problem(step(at, "url"), "is given twice"))
        problems += wrong
        if target is not None and not wrong:
            basic = b64encode(f"{login.user}:{password}".encode()).decode()
            found[target.url] = f"Bearer {token}" if token else f"Basic {basic}"
    return found


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


def _target(url: str, at: str, problems: list[Problem]) -> OutboundTarget | None:
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
