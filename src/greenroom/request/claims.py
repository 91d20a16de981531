"""What two rooms must not share: a host and path, or a cookie (name, domain, path); a visitor of
both would lose a place.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from greenroom.model.fields import stand_in
from greenroom.model.room import Room
from greenroom.model.route import Route
from greenroom.request.canonical import folded_path
from greenroom.request.cookie_scope import cookie_scope
from greenroom.request.routing import route_prefix

T = TypeVar("T")

IN_COOKIES = ("host", "path", "additional_routes", "cookie_suffix", "case_insensitive_paths")
"""What decides about a room's cookies."""
_LEAST = {"name": "any", "total_active_users": 1, "new_users_per_minute": 1}


class Footprint(NamedTuple):
    """What a room occupies. `routes` with their pointers; `room` None: its cookie is not known."""

    routes: Sequence[tuple[str, Route]]
    any_case: bool
    room: Room | None

    @classmethod
    def of(cls, room: Room) -> "Footprint":
        first, *more = room.routes
        routes = [("host", first), *_additional(more)]
        return cls(routes, room.case_insensitive_paths, room)

    @classmethod
    def of_values(cls, values: Mapping[str, Any], wrong: Container[str]) -> "Footprint":
        """Without the `wrong` fields."""
        any_case = values.get("case_insensitive_paths") is True
        unclear = any(name in wrong for name in IN_COOKIES)
        room = None if unclear else stand_in(Room, values, _LEAST, {}, needed=IN_COOKIES)
        return cls(routes_of(values, wrong), any_case, room)


def routes_of(values: Mapping[str, Any], wrong: Container[str] = ()) -> list[tuple[str, Route]]:
    """(pointer, route), without those in `wrong` fields."""
    bad = "host" in wrong or "path" in wrong
    first = [] if bad else [("host", Route(values["host"], values["path"]))]
    return first + (
        [] if "additional_routes" in wrong else _additional(values["additional_routes"])
    )


def _additional(routes: Sequence[Route]) -> list[tuple[str, Route]]:
    return [(f"additional_routes[{index}]", route) for index, route in enumerate(routes)]


class Clash(NamedTuple, Generic[T]):
    """`owner` None: the room itself, by another of its routes. `route` None: the cookie."""

    pointer: str
    owner: T | None
    route: Route | None
    cookie: str = ""

    def reason(self, owner: str) -> str:
        """`owner` as the reader may know it."""
        if self.route is None:
            return (
                f"must differ from that of {owner}: both cookies are {self.cookie}, and each would"
                " overwrite the other"
            )
        by = "another route of this room" if self.owner is None else owner
        return f"{self.route.host}{self.route.path} already belongs to {by}"


class Claims(Generic[T]):
    """What rooms occupy, in the order in which they were added. Paths that differ only in case
    clash when either side ignores case.
    """

    __slots__ = ("_cookies", "_paths")

    def __init__(self) -> None:
        self._paths: dict[tuple[str, str], list[tuple[T, str, bool]]] = {}
        self._cookies: dict[tuple[str, str, str], T] = {}

    def add(self, owner: T, found: Footprint) -> None:
        for _, route in found.routes:
            self._take(owner, route, found.any_case)
        for cookie in _cookies(found.room) if found.room else ():
            self._cookies.setdefault(cookie, owner)

    def clashes(self, found: Footprint) -> list[Clash[T]]:
        """Routes that another room, or an earlier route of this one, covers; without these, the
        cookie.
        """
        own: Claims[None] = Claims()
        clashes = []
        for pointer, route in found.routes:
            other = self._holder(route, found.any_case)
            if other or own._holder(route, found.any_case):
                clashes.append(Clash(pointer, other[0] if other else None, route))
            own._take(None, route, found.any_case)
        if clashes or found.room is None:
            return clashes
        for cookie in _cookies(found.room):
            if cookie in self._cookies:
                name, host, path = cookie
                what = f"{name} for {host}{path}"
                return [Clash("cookie_suffix", self._cookies[cookie], None, what)]
        return []

    def _take(self, owner: T, route: Route, any_case: bool) -> None:
        prefix = route_prefix(route.path)
        holders = self._paths.setdefault((route.host, folded_path(prefix)), [])
        holders.append((owner, prefix, any_case))

    def _holder(self, route: Route, any_case: bool) -> tuple[T, str, bool] | None:
        prefix = route_prefix(route.path)
        holders = self._paths.get((route.host, folded_path(prefix)), [])
        return next((each for each in holders if each[1] == prefix or any_case or each[2]), None)


def _cookies(room: Room) -> list[tuple[str, str, str]]:
    scope = cookie_scope(room.routes, room.case_insensitive_paths)
    hosts = [scope.domain] if scope.domain else dict.fromkeys(route.host for route in room.routes)
    return [(room.cookie_name, host, scope.path) for host in hosts]
