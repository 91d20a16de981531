"""What rooms occupy: names, cookie suffixes, hosts with paths, cookies. Bulk changes keep one,
because building it reads every room.
"""

from greenroom.model.configuration import Configuration, Entry
from greenroom.model.room import Room
from greenroom.model.route import Route
from greenroom.model.zone import Zone, in_zone
from greenroom.request.cookie_scope import CookieClaims
from greenroom.request.routing import Coverage


class RoomClaims:
    def __init__(self) -> None:
        self._names: set[tuple[str, str]] = set()
        self._suffixes: set[tuple[str, str]] = set()
        self._coverage: Coverage[Entry[Room]] = Coverage()
        self._cookies: CookieClaims[Entry[Room]] = CookieClaims()

    @classmethod
    def of(cls, known: Configuration, without: str = "") -> "RoomClaims":
        claims = cls()
        for entry in known.rooms.values():
            if entry.id != without:
                claims.add(entry, known.zones[entry.parent].record)
        return claims

    def add(self, entry: Entry[Room], zone: Zone) -> None:
        room = entry.record if entry.read_only else in_zone(entry.record, zone)
        self._names.add((entry.parent, room.name))
        self._suffixes.add((entry.parent, room.cookie_suffix))
        for route in room.routes:
            self._coverage.claim(entry, route, room.case_insensitive_paths)
        self._cookies.claim(entry, room)

    def has_name(self, zone_id: str, name: str) -> bool:
        return (zone_id, name) in self._names

    def has_suffix(self, zone_id: str, suffix: str) -> bool:
        return (zone_id, suffix) in self._suffixes

    def covering(self, route: Route, any_case: bool) -> Entry[Room] | None:
        return self._coverage.holder(route, any_case)

    def with_cookie(self, room: Room, zone: Zone) -> tuple[Entry[Room], str] | None:
        return self._cookies.holder(in_zone(room, zone))
