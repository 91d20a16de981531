import os
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from greenroom.configuration.file_tables import NamedFiles, step, unknown_keys
from greenroom.errors import GreenroomError, Problem
from greenroom.model.oidc import ROLES_MAX, OidcEntry, OidcRole, OidcSettings, role_problems
from greenroom.outbound import read_target, tls_context
from greenroom.web.api_shapes import read_nested

OIDC = "dashboard.oidc"
LISTS = ("scopes", "allowed_domains", "allowed_groups")
AUTHORITIES_MAX = 1024 * 1024


def read_oidc(raw: Any, files: NamedFiles, problems: list[Problem]) -> OidcSettings | None:
    """Adds what is wrong to `problems`."""
    if not isinstance(raw, dict):
        problems.append(Problem("dashboard", f"must be a table, not {raw!r:.60}"))
        return None
    problems += unknown_keys(raw, ["oidc"], "dashboard")
    if "oidc" not in raw:
        return None
    table = raw["oidc"]
    plain = (
        {name: value for name, value in table.items() if name != "roles"}
        if isinstance(table, dict)
        else table
    )
    entry = read_nested(OidcEntry, OIDC, plain, problems)
    roles = _roles(table.get("roles", []) if isinstance(table, dict) else [], problems)
    if entry is None:
        return None
    for key in LISTS:
        wrong = [
            index for index, value in enumerate(getattr(entry, key)) if not value or " " in value
        ]
        problems += [
            Problem(step(step(OIDC, key), index), "must be a text without spaces")
            for index in wrong
        ]
    if "openid" not in entry.scopes:
        problems.append(Problem(step(OIDC, "scopes"), "must hold openid"))
    problems += _issuer_problems(entry.issuer)
    secret = _secret(entry, files, os.environ, problems)
    authorities = _authorities(entry, files, problems)
    return OidcSettings(entry=entry, roles=roles, secret=secret, authorities=authorities)


def _roles(raw: Any, problems: list[Problem]) -> tuple[OidcRole, ...]:
    pointer = step(OIDC, "roles")
    if not isinstance(raw, list) or len(raw) > ROLES_MAX:
        problems.append(Problem(pointer, f"must be a list of at most {ROLES_MAX} tables"))
        return ()
    read = [
        read_nested(OidcRole, step(pointer, index), one, problems) for index, one in enumerate(raw)
    ]
    found = tuple(row for row in read if row)
    problems += role_problems(found, pointer)
    return found


def _issuer_problems(issuer: str) -> list[Problem]:
    pointer = step(OIDC, "issuer")
    try:
        target = read_target(issuer)
    except GreenroomError as error:
        return [Problem(pointer, str(error))]
    if urlsplit(issuer).query or urlsplit(issuer).fragment:
        return [Problem(pointer, "must not have a query or a fragment")]
    if target.scheme == "http" and not _is_local(target.host):
        return [
            Problem(
                pointer,
                "must begin with https://: who can change its answers on the way can sign in as"
                " everyone",
            )
        ]
    return []


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _secret(
    entry: OidcEntry, files: NamedFiles, environment: Mapping[str, str], problems: list[Problem]
) -> str:
    if entry.client_secret_file and entry.client_secret_env:
        problems.append(
            Problem(
                step(OIDC, "client_secret_env"),
                "must not be given together with client_secret_file",
            )
        )
    if entry.client_secret_env:
        secret = environment.get(entry.client_secret_env, "").strip()
        if not secret:
            problems.append(
                Problem(
                    step(OIDC, "client_secret_env"),
                    f"the environment variable {entry.client_secret_env} is empty",
                )
            )
        return secret
    secret, wrong = files.first_line(
        {"client_secret_file": entry.client_secret_file}, OIDC, "client_secret_file"
    )
    problems += wrong
    return secret.strip()


def _authorities(entry: OidcEntry, files: NamedFiles, problems: list[Problem]) -> str:
    """The content of `ca_file`, so that a changed file counts as changed settings."""
    if not entry.ca_file:
        return ""
    pointer = step(OIDC, "ca_file")
    text = files.text(entry.ca_file, pointer, AUTHORITIES_MAX)
    if isinstance(text, Problem):
        problems.append(text)
        return ""
    try:
        if not text.strip():
            raise ValueError("it is empty")
        tls_context(text)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = getattr(error, "strerror", None) or error
        problems.append(Problem(pointer, f"cannot read {files.paths[-1]}: {reason}"))
        return ""
    return text
