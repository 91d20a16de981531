"""Reads the valid tickets among the cookies of one request. Headers are cached while the keys stay
the same, only when every candidate was a ticket: time may make a refused one good. Waiting
visitors, who get a new ticket with each answer, have a cache of their own.
"""

from greenroom.decision.cookies import ticket_values, values_in
from greenroom.decision.room_schedule import CompiledRoom
from greenroom.decision.tickets import Sealer
from greenroom.model.visit import Arrival, Ticket
from greenroom.request.admissible import UPDATE_HEADER

HEADERS_CACHED = 4_096

WAITING_CACHED = 512

HEADER_CACHED_MAX = 2_048
"""Clients can make greenroom cache at most 14 MB."""

FoundTickets = tuple[tuple[Ticket, bytes], ...]


class TicketReader:
    __slots__ = ("_known", "_known_with", "_sealer", "_waiting")

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._known: dict[tuple[bytes, bytes, bytes], FoundTickets] = {}
        self._waiting: dict[tuple[bytes, bytes, bytes], FoundTickets] = {}
        self._known_with: object = None

    def find(self, room: CompiledRoom, arrival: Arrival, now_ms: int) -> FoundTickets:
        facts = arrival.facts
        if facts is None:  # some header came twice
            return self._opened(ticket_values(arrival.headers, room.cookie_name), room.id, now_ms)
        header = facts.get(b"cookie")
        if header is None:
            return ()
        if (
            UPDATE_HEADER in facts
        ):  # a page's update brings the previous ticket, so nothing would be found again
            return self._opened(values_in(header, room.cookie_name), room.id, now_ms)
        opening = self._sealer.ring.opening
        if self._known_with is not opening:
            self._known, self._waiting, self._known_with = {}, {}, opening
        key = (header, room.cookie_name, room.id)
        found = self._known.get(key) or self._waiting.get(key)
        return self._learn(key, now_ms) if found is None else found

    def _learn(self, key: tuple[bytes, bytes, bytes], now_ms: int) -> FoundTickets:
        header, cookie_name, room_id = key  # what the cache goes by, and nothing else
        values = values_in(header, cookie_name)
        found = self._opened(values, room_id, now_ms)
        if found and len(found) == len(values) and len(header) <= HEADER_CACHED_MAX:
            accepted = any(ticket.accepted_ms for ticket, _ in found)
            known, most = (
                (self._known, HEADERS_CACHED) if accepted else (self._waiting, WAITING_CACHED)
            )
            if len(known) >= most:
                known.clear()
            known[key] = found
        return found

    def _opened(self, values: list[bytes], room_id: bytes, now_ms: int) -> FoundTickets:
        found: FoundTickets = ()
        for value in values:
            if (ticket := self._sealer.open(value, room_id, now_ms)) is not None:
                found += ((ticket, value),)
        return found
