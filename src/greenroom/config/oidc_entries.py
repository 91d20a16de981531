import os
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from greenroom.config.entries import unknown_keys
from greenroom.config.toml_lines import step
from greenroom.errors import GreenroomError, Problem
from greenroom.model.oidc import ROLES_MAX, OidcEntry, OidcRole, OidcSettings, role_problems
from greenroom.outbound import read_target, tls_context
from greenroom.web.api_shapes import read_nested

OIDC = "dashboard.oidc"
LISTS = ("scopes", "allowed_domains", "allowed_groups")
SECRET_MAX = 4_096


def read_oidc(
    raw: Any, folder: Path, problems: list[Problem]
) -> tuple[OidcSettings | None, tuple[Path, ...]]:
    """Returns the settings and their files; adds what is wrong to `problems`."""
    if not isinstance(raw, dict):
        problems.append(Problem("dashboard", f"must be a table, not {raw!r:.60}"))
        return None, ()
    problems += unknown_keys(raw, ["oidc"], "dashboard")
    if "oidc" not in raw:
        return None, ()
    table = raw["oidc"]
    plain = (
        {name: value for name, value in table.items() if name != "roles"}
        if isinstance(table, dict)
        else table
    )
    entry = read_nested(OidcEntry, OIDC, plain, problems)
    roles = _roles(table.get("roles", []) if isinstance(table, dict) else [], problems)
    if entry is None:
        return None, ()
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
    secret, files = _secret(entry, folder, os.environ, problems)
    authorities, more = _authorities(entry, folder, problems)
    return OidcSettings(entry=entry, roles=roles, secret=secret, authorities=authorities), (
        *files,
        *more,
    )


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
    entry: OidcEntry, folder: Path, environment: Mapping[str, str], problems: list[Problem]
) -> tuple[str, tuple[Path, ...]]:
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
        return secret, ()
    if not entry.client_secret_file:
        return "", ()
    path, pointer = folder / entry.client_secret_file, step(OIDC, "client_secret_file")
    try:
        with path.open("rb") as file:
            secret = file.read(SECRET_MAX).decode().partition("\n")[0].strip()
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a NUL in the name
        problems.append(
            Problem(pointer, f"cannot read {path}: {getattr(error, 'strerror', None) or error}")
        )
        return "", (path,)
    if not secret:
        problems.append(Problem(pointer, f"{path} is empty"))
    return secret, (path,)


def _authorities(
    entry: OidcEntry, folder: Path, problems: list[Problem]
) -> tuple[str, tuple[Path, ...]]:
    """The content of `ca_file`, so that a changed file counts as changed settings."""
    if not entry.ca_file:
        return "", ()
    path = folder / entry.ca_file
    try:
        text = path.read_text()
        if not text.strip():
            raise ValueError("it is empty")
        tls_context(text)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        problems.append(
            Problem(
                step(OIDC, "ca_file"),
                f"cannot read {path}: {getattr(error, 'strerror', None) or error}",
            )
        )
        return "", (path,)
    return text, (path,)
