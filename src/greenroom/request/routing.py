"""Which room covers a host and path: the most specific host first, then the longest path prefix on
segment boundaries.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Generic, TypeVar

from greenroom.errors import Problem
from greenroom.model.route import Route, path_problems
from greenroom.request.canonical import (
    Refusal,
    Target,
    canonical_target,
    folded_path,
    matching_path,
)

T = TypeVar("T")

ANY_HOST = "*"

PREFIXES_KEPT = 16_384


class RouteTable(Generic[T]):
    """One dict probe per path segment. A host is looked up as it is, then its ends below `*.`,
    longest first, then `*`.
    """

    __slots__ = ("_depth", "_exact", "_folded", "_patterns")

    def __init__(self, entries: Iterable[tuple[Route, bool, T]]) -> None:
        """Each entry: (route, whether its path ignores case, value)."""
        self._exact: dict[str, dict[str, T]] = {}
        self._folded: dict[str, dict[str, T]] = {}
        self._depth = 1
        for route, any_case, value in entries:
            prefix = route_prefix(route.path)
            table, key = (self._folded, folded_path(prefix)) if any_case else (self._exact, prefix)
            table.setdefault(route.host, {})[key] = value
            self._depth = max(self._depth, prefix.count("/"))
        self._patterns = frozenset(
            host for host in (*self._exact, *self._folded) if host.startswith("*.")
        )

    def find(self, host: str, path: str) -> T | None:
        path = matching_path(path)
        found = self._below(host, path)
        if found is None and self._patterns:
            found = self._below_patterns(host, path)
        return found if found is not None else self._below(ANY_HOST, path)

    def _below_patterns(self, host: str, path: str) -> T | None:
        dot = host.find(".")
        while dot >= 0:
            pattern = f"*{host[dot:]}"
            found = self._below(pattern, path) if pattern in self._patterns else None
            if found is not None:
                return found
            dot = host.find(".", dot + 1)
        return None

    def _below(self, host: str, path: str) -> T | None:
        exact, folded = self._exact.get(host), self._folded.get(host)
        if exact is None and folded is None:
            return None
        if (
            self._depth == 1
            and folded is None
            and exact is not None
            and len(exact) == 1
            and "" in exact
        ):
            return exact[""]  # a room for the whole host: the usual case
        prefix = "/".join(path.split("/", self._depth + 1)[: self._depth + 1]).rstrip("/")
        while True:
            if exact is not None and prefix in exact:
                return exact[prefix]
            if folded is not None and (alike := folded_path(prefix)) in folded:
                return folded[alike]
            if not prefix:
                return None
            prefix = prefix[: prefix.rfind("/")]


@lru_cache(maxsize=PREFIXES_KEPT)
def route_prefix(path: str) -> str:
    """`/` becomes the empty prefix, which covers everything."""
    target = canonical_target(path.encode())
    return matching_path(target.path if isinstance(target, Target) else path).rstrip("/")


def unreachable(values: Mapping[str, Any]) -> list[Problem]:
    """Paths that no request can have protect nothing. Leaves out what `room_problems` reports."""
    routes = values.get("additional_routes")
    paths = [("path", values.get("path"))]
    if isinstance(routes, (tuple, list)):
        paths += [
            (f"additional_routes[{index}].path", getattr(route, "path", None))
            for index, route in enumerate(routes)
        ]
    found = []
    for at, path in paths:
        if (
            isinstance(path, str)
            and not path_problems(at, path)
            and isinstance(wrong := canonical_target(path.encode()), Refusal)
        ):
            found.append(
                Problem(
                    at,
                    f"covers nothing: a room path is written decoded, with one reading: {wrong.reason}",
                )
            )
    return found


# The hosts a configuration names.


class KnownHosts:
    __slots__ = ("_below", "_exact")

    def __init__(self, exact: Iterable[str], below: Iterable[str]) -> None:
        """`below`: names whose subdomains are known, not the names themselves."""
        self._exact = frozenset(exact)
        self._below = frozenset(below)

    def knows(self, host: str) -> bool:
        if host in self._exact:
            return True
        dot = host.find(".") if self._below else -1
        while dot >= 0:
            if host[dot + 1 :] in self._below:
                return True
            dot = host.find(".", dot + 1)
        return False


def known_hosts(
    rooms: Iterable[str], zones: Iterable[str], others: Iterable[str]
) -> KnownHosts | None:
    """None: every host is served, because a room covers every host or neither rooms nor zones name
    any.
    """
    routes, zones = frozenset(rooms), frozenset(zones)
    if ANY_HOST in routes or not (routes or zones):
        return None
    patterns = {route for route in routes if route.startswith("*.")}
    return KnownHosts(
        (routes - patterns) | zones | frozenset(others),
        {pattern[2:] for pattern in patterns} | zones,
    )
