"""The rooms of the data path, prepared once per configuration."""

from collections.abc import Callable, Iterable

from greenroom.decision.cookies import DASHBOARD_COOKIES
from greenroom.decision.native_pass import pass_cookie_name
from greenroom.decision.room_schedule import NEVER_MS, RoomSchedule
from greenroom.request.routing import KnownHosts, RouteTable

PLACES_CACHED = 4_096
"""At most 3 MB."""

PATH_CACHED_MAX = 512


class RoomTable:
    __slots__ = ("_found", "_routes", "hosts", "own_cookies", "rooms")

    def __init__(self, rooms: Iterable[RoomSchedule], hosts: KnownHosts | None = None) -> None:
        """`hosts` None: every host is served."""
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
        place = (host, path)
        try:
            return self._found[place]
        except KeyError:
            found = self._routes.find(host, path)
        if len(path) <= PATH_CACHED_MAX:
            if len(self._found) >= PLACES_CACHED:
                self._found.clear()
            self._found[place] = found
        return found

    def covering(self, host: str, paths: Iterable[str]) -> list[RoomSchedule | None]:
        return list(dict.fromkeys([self._routes.find(host, path) for path in paths]))

    def turn(self, now_ms: int, on_error: Callable[[BaseException], None]) -> int:
        """Returns when the next stage is due."""
        next_ms = NEVER_MS
        for schedule in self.rooms.values():
            try:
                schedule.at(now_ms)
            except Exception as error:
                on_error(error)
            else:
                next_ms = min(next_ms, schedule.until_ms)
        return next_ms
