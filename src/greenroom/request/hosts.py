"""The hosts a configuration names."""

from collections.abc import Iterable

from greenroom.request.routing import ANY_HOST


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
