"""Reads the valid tickets among the cookies of one request.

A let-in visitor's browser sends the same Cookie header with every request, so what one header held
is remembered while the keys stay the same. Only a header whose every candidate was a ticket is:
time makes no ticket less possible, but may make a refused one good. A visitor in line gets a new
ticket with each answer, so what held no accepted ticket is remembered apart: it must not push out
the others.
"""

from typing import Protocol

from greenroom.decision.cookies import ticket_values, values_in
from greenroom.decision.tickets import Sealer
from greenroom.model.visit import Arrival, Ticket
from greenroom.request.admissible import UPDATE_HEADER

HEADERS_REMEMBERED = 4_096
"""Cookie headers whose tickets are remembered."""

WAITING_REMEMBERED = 512
"""The same, of visitors in line: a page that loads again, or its parts, which all bring the same
ticket within seconds.
"""

HEADER_REMEMBERED_MAX = 2_048
"""Longer ones are parsed each time, so that clients can make greenroom remember at most 14 MB."""

FoundTickets = tuple[tuple[Ticket, bytes], ...]
"""Tickets and how each one is spelled in its cookie, in the order sent."""


class TicketRoom(Protocol):
    """The room whose tickets are read."""

    @property
    def id(self) -> bytes:
        """Which tickets are sealed for."""

    @property
    def cookie_name(self) -> bytes:
        """Of its tickets."""


class TicketReader:
    """Finds and opens tickets."""

    __slots__ = ("_known", "_known_with", "_sealer", "_waiting")

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._known: dict[tuple[bytes, bytes, bytes], FoundTickets] = {}
        self._waiting: dict[tuple[bytes, bytes, bytes], FoundTickets] = {}
        self._known_with: object = None

    def find(self, room: TicketRoom, arrival: Arrival, now_ms: int) -> FoundTickets:
        """Every real ticket for this room among the cookies."""
        facts = arrival.facts
        if facts is None:  # some header came twice
            return self._opened(ticket_values(arrival.headers, room.cookie_name), room.id, now_ms)
        header = facts.get(b"cookie")
        if header is None:
            return ()
        if (
            UPDATE_HEADER in facts
        ):  # a page's update brings the ticket of the answer before, so nothing would be found again
            return self._opened(values_in(header, room.cookie_name), room.id, now_ms)
        opening = self._sealer.ring.opening
        if self._known_with is not opening:
            self._known, self._waiting, self._known_with = {}, {}, opening
        key = (header, room.cookie_name, room.id)
        found = self._known.get(key) or self._waiting.get(key)
        return self._learn(key, now_ms) if found is None else found

    def _learn(self, key: tuple[bytes, bytes, bytes], now_ms: int) -> FoundTickets:
        header, cookie_name, room_id = key  # of what is remembered by, and nothing else
        values = values_in(header, cookie_name)
        found = self._opened(values, room_id, now_ms)
        if found and len(found) == len(values) and len(header) <= HEADER_REMEMBERED_MAX:
            accepted = any(ticket.accepted_ms for ticket, _ in found)
            known, most = (
                (self._known, HEADERS_REMEMBERED)
                if accepted
                else (self._waiting, WAITING_REMEMBERED)
            )
            if len(known) >= most:
                known.clear()
            known[key] = found
        return found

    def _opened(self, values: list[bytes], room_id: bytes, now_ms: int) -> FoundTickets:
        """The candidates that are tickets."""
        found: FoundTickets = ()
        for value in values:
            if (ticket := self._sealer.open(value, room_id, now_ms)) is not None:
                found += ((ticket, value),)
        return found
