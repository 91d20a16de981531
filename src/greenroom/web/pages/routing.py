"""One row for each page and action. Tests walk over `ROUTES`: every row refuses lower roles,
foreign zones, writes without CSRF token and writes from other origins.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NamedTuple

from greenroom.model.account import Role

PUBLIC = None


class Threads(Enum):
    """What takes long has its own threads, and may be refused with 429."""

    SHARED = "quick"
    PASSWORDS = "hashes a password"
    OUTBOUND = "asks another server"
    QUERIES = "computes an answer for a second or more"


class RouteReach(Enum):
    ZONE = "the zone in its path: people with other zones get 404"
    FILTERED = "all zones: it shows those that the person may see, and has to filter itself"
    WHOLE = "the installation: people with single zones get 403"


class PageRoute(NamedTuple):
    """`function` runs in a thread unless it is `async def`."""

    method: str
    path: str
    function: Callable[[Any], Any]
    role: Role | None
    reach: RouteReach
    threads: Threads = Threads.SHARED


class SearchResult(NamedTuple):
    kind: str
    name: str
    path: str
    more: str = ""
    anchor: str = ""


SearchSource = Callable[[Any, str], Iterator[SearchResult]]
"""Finds what the person who asks may see, from the page request and the text in lower case."""


class DashboardSlice(NamedTuple):
    """Pages of one slice; `package` has their `templates` and `assets`."""

    package: str
    pages: tuple[PageRoute, ...]
    searches: tuple[SearchSource, ...] = ()


def view(
    path: str,
    function: Callable[[Any], Any],
    role: Role | None = Role.VIEWER,
    *,
    filtered: bool = False,
) -> PageRoute:
    return PageRoute("GET", path, function, role, _reach(path, filtered))


def action(
    path: str,
    function: Callable[[Any], Any],
    role: Role | None = Role.OPERATOR,
    *,
    filtered: bool = False,
    threads: Threads = Threads.SHARED,
) -> PageRoute:
    """A POST whose form carries the CSRF token."""
    return PageRoute("POST", path, function, role, _reach(path, filtered), threads)


def _reach(path: str, filtered: bool) -> RouteReach:
    return (
        RouteReach.ZONE
        if "{zone_id}" in path
        else RouteReach.FILTERED
        if filtered
        else RouteReach.WHOLE
    )
