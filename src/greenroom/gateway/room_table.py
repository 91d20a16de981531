"""The rooms as the data path uses them: everything that can be prepared is prepared once, when the configuration changes."""

from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from greenroom.core.routing import RouteTable
from greenroom.gateway.cookies import CookieWriter
from greenroom.model.room import Room
from greenroom.model.rule import Rule
from greenroom.model.visit import Arrival
from greenroom.pages import Page, compile_page
from greenroom.ports import Ledger

Bypass = Callable[[Arrival, int], Rule | None]
"""(arrival, now_ms) -> the bypass rule of the room that lets this arrival by, or None. A rule that cannot be evaluated is none."""


class CompiledRoom(msgspec.Struct, frozen=True):
    """One room, ready to be asked. `counts` outlives reloads: it belongs to the room id, like the ledger."""

    room: Room
    id: bytes
    ledger: Ledger
    page: Page
    cookies: CookieWriter
    cookie_name: bytes
    counts: Counter[str]
    bypass: Bypass | None = None


class RoomTable:
    """All rooms of one configuration; a reload builds a new table and swaps one reference."""

    __slots__ = ("_routes", "own_cookies", "rooms")

    def __init__(self, rooms: Iterable[CompiledRoom]) -> None:
        self.rooms = {compiled.room.id: compiled for compiled in rooms}
        self.own_cookies = frozenset(compiled.cookie_name for compiled in self.rooms.values())
        self._routes = RouteTable(
            (route, compiled.room.case_insensitive_paths, compiled) for compiled in self.rooms.values() for route in compiled.room.routes
        )

    def find(self, host: str, path: str) -> CompiledRoom | None:
        """The room that covers this canonical host and path, or None."""
        return self._routes.find(host, path)


def compile_room(room: Room, ledger: Ledger, counts: Counter[str], *, always_use_https: bool, bypass: Bypass | None = None) -> CompiledRoom:
    """Prepares one room; its template must already have been checked."""
    return CompiledRoom(
        room=room,
        id=room.id.encode(),
        ledger=ledger,
        page=compile_page(room),
        cookies=CookieWriter(room, always_use_https),
        cookie_name=room.cookie_name.encode(),
        counts=counts,
        bypass=bypass,
    )
