"""The rooms of the data path, prepared once per configuration."""

from collections.abc import Callable, Iterable

from greenroom.decision.cookies import DASHBOARD_COOKIES
from greenroom.decision.native_pass import pass_cookie_name
from greenroom.decision.room_schedule import NEVER_MS, RoomSchedule
from greenroom.request.hosts import KnownHosts
from greenroom.request.routing import RouteTable

PLACES_REMEMBERED = 4_096
"""Cached rooms of hosts with paths, at most 3 MB: in a rush everybody requests the same pages."""

PATH_REMEMBERED_MAX = 512


class RoomTable:
    """All rooms of one configuration; a reload swaps the whole table."""

    __slots__ = ("_found", "_routes", "hosts", "own_cookies", "rooms")

    def __init__(self, rooms: Iterable[RoomSchedule], hosts: KnownHosts | None = None) -> None:
        """`hosts` are those that are served; None: every host."""
        self.hosts = hosts
        self.rooms = {schedule.now.room.id: schedule for schedule in rooms}
        stages = [schedule.now for schedule in self.rooms.values()]
        self.own_cookies = frozenset(
            [
                *DASHBOARD_COOKIES,
                *(stage.cookie_name for stage in stages),
                *(pass_cookie_name(stage.room).encode() for stage in stages if stage.passes),
            ]
        )
        self._found: dict[tuple[str, str], RoomSchedule | None] = {}
        self._routes = RouteTable(
            (route, schedule.now.room.case_insensitive_paths, schedule)
            for schedule in self.rooms.values()
            for route in schedule.now.room.routes
        )

    def find(self, host: str, path: str) -> RoomSchedule | None:
        """The room of this canonical host and path."""
        place = (host, path)
        try:
            return self._found[place]
        except KeyError:
            found = self._routes.find(host, path)
        if len(path) <= PATH_REMEMBERED_MAX:
            if len(self._found) >= PLACES_REMEMBERED:
                self._found.clear()
            self._found[place] = found
        return found

    def covering(self, host: str, paths: Iterable[str]) -> list[RoomSchedule | None]:
        """The rooms of these readings of one path, None for uncovered ones; not cached."""
        return list(dict.fromkeys([self._routes.find(host, path) for path in paths]))

    def turn(self, now_ms: int, on_error: Callable[[BaseException], None]) -> int:
        """Turns every room to its current stage and returns when the next one is due. Errors of one
        room do not delay others.
        """
        next_ms = NEVER_MS
        for schedule in self.rooms.values():
            try:
                schedule.at(now_ms)
            except Exception as error:
                on_error(error)
            else:
                next_ms = min(next_ms, schedule.until_ms)
        return next_ms
