"""The rooms as the data path uses them: everything that can be prepared is prepared once, when the configuration changes."""

from collections.abc import Callable, Iterable

from greenroom.core.routing import RouteTable
from greenroom.gateway.calendar import NEVER_MS, Calendar

PLACES_REMEMBERED = 4_096
"""Hosts with paths whose room is remembered, 3 MB at most: in a rush everybody asks for the same pages."""

PATH_REMEMBERED_MAX = 512


class RoomTable:
    """All rooms of one configuration; a reload builds a new table and swaps one reference."""

    __slots__ = ("_found", "_routes", "own_cookies", "rooms")

    def __init__(self, rooms: Iterable[Calendar]) -> None:
        self.rooms = {calendar.now.room.id: calendar for calendar in rooms}
        self.own_cookies = frozenset(calendar.now.cookie_name for calendar in self.rooms.values())
        self._found: dict[tuple[str, str], Calendar | None] = {}
        self._routes = RouteTable(
            (route, calendar.now.room.case_insensitive_paths, calendar)
            for calendar in self.rooms.values()
            for route in calendar.now.room.routes
        )

    def find(self, host: str, path: str) -> Calendar | None:
        """The room that covers this canonical host and path, or None."""
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

    def turn(self, now_ms: int, on_error: Callable[[BaseException], None]) -> int:
        """Every room turns to the stage that holds now; when the next one does. What goes wrong in one room keeps no other waiting."""
        next_ms = NEVER_MS
        for calendar in self.rooms.values():
            try:
                calendar.at(now_ms)
            except Exception as error:
                on_error(error)
            else:
                next_ms = min(next_ms, calendar.until_ms)
        return next_ms
