"""Reads the valid tickets among the cookies of one request.

A let-in visitor's browser sends the same Cookie header with every request, so what one header held is remembered while the keys stay the
same. Only a header whose every candidate was a ticket is: time makes no ticket less possible, but may make a refused one good. A visitor
in line gets a new ticket with each answer: remembering those would push out the others.
"""

from greenroom.decision.cookies import ticket_values
from greenroom.decision.forwarded import Headers
from greenroom.decision.tickets import Sealer
from greenroom.model.visit import Arrival, Ticket

HEADERS_REMEMBERED = 4_096
"""Cookie headers whose tickets are remembered."""

HEADER_REMEMBERED_MAX = 2_048
"""Longer ones are parsed each time, so that clients can make greenroom remember at most 12 MB."""

FoundTickets = tuple[tuple[Ticket, bytes], ...]
"""Tickets and how each one is spelled in its cookie, in the order sent."""


class TicketReader:
    """Finds and opens tickets."""

    __slots__ = ("_known", "_known_with", "_sealer")

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._known: dict[tuple[bytes, bytes, bytes], FoundTickets] = {}
        self._known_with: object = None

    def find(self, arrival: Arrival, cookie_name: bytes, room_id: bytes, now_ms: int) -> FoundTickets:
        """Every real ticket for this room among the cookies."""
        if arrival.facts is None:  # some header came twice
            return self._read(arrival.headers, cookie_name, room_id, now_ms)[0]
        header = arrival.facts.get(b"cookie")
        if header is None:
            return ()
        if self._known_with is not self._sealer.opening:
            self._known, self._known_with = {}, self._sealer.opening
        key = (header, cookie_name, room_id)
        found = self._known.get(key)
        if found is None:
            found, whole = self._read(((b"cookie", header),), cookie_name, room_id, now_ms)  # of what is remembered by, and nothing else
            if whole and len(header) <= HEADER_REMEMBERED_MAX and any(ticket.accepted_ms for ticket, _ in found):
                if len(self._known) >= HEADERS_REMEMBERED:
                    self._known.clear()
                self._known[key] = found
        return found

    def _read(self, headers: Headers, cookie_name: bytes, room_id: bytes, now_ms: int) -> tuple[FoundTickets, bool]:
        """The tickets, and whether every candidate was one."""
        values = ticket_values(headers, cookie_name)
        opened = [(self._sealer.open(value, room_id, now_ms), value) for value in values]
        found = tuple([(ticket, value) for ticket, value in opened if ticket is not None])
        return found, len(found) == len(values)
