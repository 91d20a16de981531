"""Where a room's ticket cookie is valid: the smallest Domain and Path that a browser accepts and
that cover every route.

One route: its host and its path. Several: the longest common domain suffix and the longest common
path prefix, as published by Cloudflare. Where a browser would refuse the cookie, or not send it
back, the scope is widened (Path) or left to the host alone (no Domain attribute).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from greenroom.errors import Problem
from greenroom.model.room import Room
from greenroom.model.route import Route

T = TypeVar("T")

SCOPES_KEPT = 8_192
"""Cached scopes: those of all rooms are compared again with every change."""

PATH_MAX = 1024
"""Browsers ignore a longer Path attribute (RFC 6265bis, 5.6)."""

SHARED_SECOND_LEVELS = frozenset(
    "ac co com edu gob gov go gouv gv ltd me mil ne net nhs nom or org plc police sch".split()
)
"""Second-level labels under country domains where strangers register names (`co.uk`): browsers
refuse them.
"""

_ADDRESS = re.compile(r"[0-9.]+")
_ONE_SPELLING = re.compile(r"[A-Za-z0-9._~-]*")


@dataclass(frozen=True, slots=True)
class CookieScope:
    """`domain` empty: no Domain attribute, valid for the very host. `problem` tells the operator
    what that costs.
    """

    domain: str
    path: str
    problem: Problem | None = None


@lru_cache(maxsize=SCOPES_KEPT)
def cookie_scope(routes: tuple[Route, ...], case_insensitive: bool = False) -> CookieScope:
    """The scope of one room's routes (at least one). Cookie paths are case-sensitive, so a
    case-insensitive room gets `/`.
    """
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
    """Whether this room's ticket is SameSite=None: then it comes with forms of other sites too.
    `https`: the visitor's scheme.
    """
    wanted = room.cookie_attributes
    return wanted.samesite == "none" or (
        wanted.samesite == "auto" and https and wanted.secure != "never"
    )


def clashing(rooms: Iterable[Room]) -> Iterator[tuple[int, int, str]]:
    """Rooms whose cookies (name, domain, path) overwrite one another, so that a visitor of both
    loses a place.

    Yields the index of the room, of the first room with this cookie, and the cookie.
    """
    claims: CookieClaims[int] = CookieClaims()
    for index, room in enumerate(rooms):
        found = claims.holder(room)
        claims.claim(index, room)
        if found:
            yield index, *found


class CookieClaims(Generic[T]):
    """Owners of cookies by name, domain and path."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken: dict[tuple[str, str, str], T] = {}

    def claim(self, owner: T, room: Room) -> None:
        """Claims the free cookies of a room for `owner`."""
        for cookie in _cookies(room):
            self._taken.setdefault(cookie, owner)

    def holder(self, room: Room) -> tuple[T, str] | None:
        """The owner of a cookie of this room, and the cookie; None when all are free."""
        for cookie in _cookies(room):
            if cookie in self._taken:
                name, host, path = cookie
                return (
                    self._taken[cookie],
                    f"both cookies are {name} for {host}{path}, and each would overwrite the other",
                )
        return None


def _cookies(room: Room) -> list[tuple[str, str, str]]:
    scope = cookie_scope(room.routes, room.case_insensitive_paths)
    hosts = [scope.domain] if scope.domain else dict.fromkeys(route.host for route in room.routes)
    return [(room.cookie_name, host, scope.path) for host in hosts]


def scope_clashes(rooms: Sequence[Room]) -> list[Problem]:
    """As `clashing`, for people who may know all rooms."""
    return [
        Problem(
            f"rooms[{index}].cookie_suffix",
            f"must differ from that of room {rooms[first].name}: {clash}",
        )
        for index, first, clash in clashing(rooms)
    ]


def _common_domain(hosts: list[str], shared: bool) -> str:
    """The longest suffix of whole labels, or empty when a browser would refuse it; `shared`:
    several hosts carry it.
    """
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
    """The longest prefix of whole segments, cut before the first that has more than one spelling.

    Browsers compare the bytes of a Path with the address as written: one may say %c3%a9 or %C3%A9,
    and `<` becomes %3C in some.
    """
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
