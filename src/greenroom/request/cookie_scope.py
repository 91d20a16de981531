"""Where a room's ticket cookie is valid: the smallest Domain and Path that a browser accepts and
that cover every route, as published by Cloudflare. Where a browser would refuse the cookie, or not
send it back, the scope is widened (Path) or left to the host (no Domain).
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from greenroom.errors import Problem
from greenroom.model.room import Room
from greenroom.model.route import Route

SCOPES_KEPT = 8_192

PATH_MAX = 1024
"""Browsers ignore a longer one (RFC 6265bis, 5.6)."""

SHARED_SECOND_LEVELS = frozenset(
    "ac co com edu gob gov go gouv gv ltd me mil ne net nhs nom or org plc police sch".split()
)
"""`co.uk`: browsers refuse cookies there."""

_ADDRESS = re.compile(r"[0-9.]+")
_ONE_SPELLING = re.compile(r"[A-Za-z0-9._~-]*")


@dataclass(frozen=True, slots=True)
class CookieScope:
    """`domain` empty: the very host. `problem` tells the operator what that costs."""

    domain: str
    path: str
    problem: Problem | None = None


@lru_cache(maxsize=SCOPES_KEPT)
def cookie_scope(routes: tuple[Route, ...], case_insensitive: bool = False) -> CookieScope:
    """Cookie paths are case-sensitive, so a case-insensitive room gets `/`."""
    hosts = list(dict.fromkeys(route.host.removeprefix("*.") for route in routes))
    shared = len(hosts) > 1 or any(route.host.startswith("*.") for route in routes)
    path = "/" if case_insensitive else _common_path([route.path for route in routes])
    if "*" in hosts:
        return CookieScope("", path)
    domain = _common_domain(hosts, shared)
    if domain or not shared:
        return CookieScope(domain, path)
    names = list(dict.fromkeys(route.host for route in routes))
    reason = (
        f"no cookie can be shared by {', '.join(names[:3])}{' and more' if len(names) > 3 else ''}:"
        " a visitor needs a place for each host"
    )
    return CookieScope("", path, Problem("additional_routes", reason))


def crosses_sites(room: Room, https: bool) -> bool:
    """A SameSite=None ticket comes with forms of other sites too. `https`: the visitor's scheme."""
    wanted = room.cookie_attributes
    return wanted.samesite == "none" or (
        wanted.samesite == "auto" and https and wanted.secure != "never"
    )


def _common_domain(hosts: list[str], shared: bool) -> str:
    """Empty when a browser would refuse it; `shared`: several hosts carry it."""
    labels = [host.split(".")[::-1] for host in hosts]
    common = _common(labels)
    domain = ".".join(common[::-1])
    if len(common) < 2 or any(_ADDRESS.fullmatch(host) for host in hosts):
        return ""
    if common[0].isdigit():  # browsers read a name that ends in a number as an address
        return ""
    if shared and len(common) == 2 and len(common[0]) == 2 and common[1] in SHARED_SECOND_LEVELS:
        return ""
    return domain


def _common_path(paths: list[str]) -> str:
    """Cut before the first segment with more than one spelling: browsers compare bytes."""
    segments = _common([path.rstrip("/").split("/") for path in paths])
    plain = next(
        (index for index, segment in enumerate(segments) if not _ONE_SPELLING.fullmatch(segment)),
        len(segments),
    )
    path = "/".join(segments[:plain])
    while len(path) > PATH_MAX:
        path = path[: path.rfind("/")]
    return path or "/"


def _common(lists: list[list[str]]) -> list[str]:
    shared: list[str] = []
    for column in zip(*lists, strict=False):
        if len(set(column)) > 1:
            break
        shared.append(column[0])
    return shared
