"""The decision: what has to be asked of the ledger for one arrival.

The order is the published one (visitor behaviour, "order of decision"): a suspended room lets by; a bypass rule lets by
(checked by the caller, before any ticket is opened); an accepted ticket is looked up; everybody else stands in line by the
ticket they bring, or begins a new one. What the room's method, its limits and queue_all make of that is the ledger's to
say, in one operation. So this function never admits anybody: it only names the question.
"""

from collections.abc import Sequence
from enum import IntEnum

from greenroom.model.room import Room
from greenroom.model.visit import PLACE_KEPT_MS, Ticket

EARLY_TOLERANCE_MS = 100
"""A try this much before its time still counts: browsers' timers are not exact."""


class Question(IntEnum):
    """The one thing to ask the ledger (or not to ask it)."""

    NONE = 0  # suspended: on to the origin, nothing recorded
    VIEW = 1  # is this session alive?
    POLL = 2  # a try of somebody in line
    PEEK = 3  # somebody in line came too early: no try
    ARRIVE = 4  # a newcomer
    PLACELESS = 5  # a newcomer that cannot show a page: held, without a ticket


NONE, VIEW, POLL, PEEK, ARRIVE, PLACELESS = Question
"""The same without the look into the class, which costs five times as much."""


def rank(tickets: Sequence[Ticket], now_ms: int) -> list[Ticket]:
    """The tickets worth asking about, best first: accepted ones by latest renewal, then waiting ones by place in line.

    A waiting ticket whose last check-in is more than five minutes old has lost its place and is left out.
    """
    alive = [ticket for ticket in tickets if ticket.accepted_ms or now_ms - ticket.checked_ms <= PLACE_KEPT_MS]
    if len(alive) > 1:
        alive.sort(key=lambda ticket: (0, -ticket.checked_ms) if ticket.accepted_ms else (1, ticket.key))
    return alive


def decide(room: Room, tickets: Sequence[Ticket], now_ms: int, may_take_place: bool) -> Question:
    """What to ask for a visitor who brings these tickets, already ranked: about the first one. Once that is GONE, ask for the rest."""
    if room.suspended:
        return NONE
    if not tickets:
        return ARRIVE if may_take_place else PLACELESS
    ticket = tickets[0]
    if ticket.accepted_ms:
        return VIEW
    return PEEK if now_ms < ticket.checked_ms + ticket.refresh_ms - EARLY_TOLERANCE_MS else POLL
