"""The order of decision: chooses the one question to ask the ledger for an arrival, or none.

The order is the published one (visitor behaviour, "order of decision"), and this is the only place that knows it; the decision service
carries it out, `explain` tells it. This function never admits a visitor: it names the question, and what the room's method, its limits
and queue_all make of that is the ledger's to say, in one operation.

| the first that holds | question | then |
|---|---|---|
| no room covers the host and path | UNCOVERED | to the origin, nothing is recorded |
| the room is suspended | SUSPENDED | to the origin, nothing is recorded |
| a bypass rule holds | BYPASSED | to the origin, no ticket is opened |
| no genuine ticket, and the arrival can show neither a page nor JSON | PROVISIONAL | let in for seconds while there is room to spare |
| the same, in a room without provisional sessions | PLACELESS | held without a place |
| the saved receipt of a draw is asked for | RECEIPT | a file |
| the visitor gives up the place | LEAVE | the place or session is free |
| no ticket | ARRIVE | a newcomer |
| an accepted ticket | VIEW | is this session alive? When it is gone: the rest of this table, with the next ticket |
| a waiting ticket before its time | PEEK | no attempt |
| a waiting ticket | POLL | an attempt |
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Final, Protocol, TypeVar

from greenroom.core.admissible import UPDATE_HEADER, may_take_place
from greenroom.model.room import Room
from greenroom.model.rule import Rule
from greenroom.model.visit import PLACE_KEPT_MS, Arrival, Ticket

EARLY_TOLERANCE_MS = 100
"""An attempt this much before its time still counts: browsers' timers are not exact."""

LEAVE_VALUE = b"leave"
LEAVE_QUERY = "greenroom=leave"
"""How the built-in page gives up a place: the update header with this value, or without JavaScript a form with this query."""

RECEIPT_QUERY = "greenroom=receipt"
"""How a visitor saves the receipt for a draw: the built-in page links to it, and it works after admission as well."""

Found = Sequence[tuple[Ticket, bytes]]
"""Genuine tickets, each with its spelling in the cookie (empty: not spelled like that any more)."""


class ArrivalQuestion(IntEnum):
    """The one thing to ask. See the table above."""

    UNCOVERED = 0
    SUSPENDED = 1
    BYPASSED = 2
    PROVISIONAL = 3
    PLACELESS = 4
    RECEIPT = 5
    LEAVE = 6
    ARRIVE = 7
    VIEW = 8
    PEEK = 9
    POLL = 10


# The members under short names: looking them up in the class for every request costs five times as much.
UNCOVERED: Final = ArrivalQuestion.UNCOVERED
SUSPENDED: Final = ArrivalQuestion.SUSPENDED
BYPASSED: Final = ArrivalQuestion.BYPASSED
PROVISIONAL: Final = ArrivalQuestion.PROVISIONAL
PLACELESS: Final = ArrivalQuestion.PLACELESS
RECEIPT: Final = ArrivalQuestion.RECEIPT
LEAVE: Final = ArrivalQuestion.LEAVE
ARRIVE: Final = ArrivalQuestion.ARRIVE
VIEW: Final = ArrivalQuestion.VIEW
PEEK: Final = ArrivalQuestion.PEEK
POLL: Final = ArrivalQuestion.POLL


class Receipts(Protocol):
    """The draw of a pre-queue, as far as the order of decision needs it."""

    def has_receipt(self, ticket_id: bytes) -> bool:
        """Whether this visitor has a receipt that can be saved."""


class Covered(Protocol):
    """A room at this moment, as far as the order of decision needs it."""

    @property
    def room(self) -> Room:
        """Its settings now."""

    @property
    def holds_nobody(self) -> bool:
        """Whether every arrival goes on, so that what cannot show a page need not be held."""

    @property
    def bypass(self) -> Callable[[Arrival, int], Rule | None] | None:
        """(arrival, now_ms) -> the bypass rule that holds, or None."""

    @property
    def draw(self) -> Receipts | None:
        """The draw of this stage, if there is one."""


C = TypeVar("C", bound=Covered)


def decide(covered: C | None, arrival: Arrival, now_ms: int, tickets: Callable[[C, Arrival, int], Found]) -> tuple[ArrivalQuestion, Found]:
    """What to ask, and the ranked tickets to ask it about (the first one). `tickets` opens those that the arrival brings, when needed."""
    if covered is None:
        return UNCOVERED, ()
    if covered.room.suspended:
        return SUSPENDED, ()
    if covered.bypass is not None and covered.bypass(arrival, now_ms) is not None:
        return BYPASSED, ()
    found = tickets(covered, arrival, now_ms)
    return decide_among(covered, arrival, now_ms, rank(found, now_ms), True) if found else decide_among(covered, arrival, now_ms, (), False)


def decide_among(covered: Covered, arrival: Arrival, now_ms: int, found: Found, proven: bool) -> tuple[ArrivalQuestion, Found]:
    """The part of the order that depends on tickets: these, already ranked. Ask again with the rest when the first one is gone.

    `proven`: the arrival brought a genuine ticket, however old. Its bearer keeps cookies, so it may wait with any kind of request.
    """
    if not (found or proven or covered.holds_nobody or may_take_place(arrival, covered.room.json_response_enabled)):
        return PROVISIONAL if covered.room.provisional_sessions else PLACELESS, found
    if found and arrival.query == RECEIPT_QUERY and covered.draw is not None and covered.draw.has_receipt(found[0][0].id):
        return RECEIPT, found
    if arrival.method == "POST" and _gives_up(arrival):
        return LEAVE, found
    if not found:
        return ARRIVE, found
    ticket = found[0][0]
    if ticket.accepted_ms:
        return VIEW, found
    return PEEK if now_ms < ticket.checked_ms + ticket.refresh_ms - EARLY_TOLERANCE_MS else POLL, found


def rank(found: Found, now_ms: int) -> Found:
    """The tickets worth asking about, best first: accepted ones by latest renewal, then waiting ones by place in line.

    A waiting ticket whose last check-in is more than five minutes old has lost its place and is left out.
    """
    alive = [one for one in found if one[0].accepted_ms or now_ms - one[0].checked_ms <= PLACE_KEPT_MS]
    if len(alive) > 1:
        alive.sort(key=lambda one: (0, -one[0].checked_ms) if one[0].accepted_ms else (1, one[0].key))
    return alive


def _gives_up(arrival: Arrival) -> bool:
    """Whether the visitor asks to leave the line; only a same-site POST may, so no other page can throw a visitor out."""
    if arrival.header(b"sec-fetch-site") not in (None, b"same-origin"):
        return False
    return arrival.header(UPDATE_HEADER) == LEAVE_VALUE or arrival.query == LEAVE_QUERY
