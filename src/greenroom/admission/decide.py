"""The order of decision: chooses the one question to ask the ledger for an arrival, or none.

This is the only place that knows the order. No visitor is admitted here: the ledger answers the
question.

| the first that holds | question | then |
|---|---|---|
| no room covers the host and path | UNCOVERED | to the origin, nothing is recorded |
| the room is suspended | SUSPENDED | to the origin, nothing is recorded |
| the table of the line is asked for, in a room that has one | LINE_TABLE | the same for everybody |
| a bypass rule holds, for every reading of the path | BYPASSED | to the origin, no ticket is opened |
| the visitor continues on another device, or asks for a link to do so | MOVE | a page; a POST moves the place |
| somebody in line asks for a calendar entry | CALENDAR | a file, or back to the page |
| somebody in line wants to be called, or a link in such a mail is followed | CALL | a page, JSON or a script; a POST keeps, confirms or ends it |
| how long the session lasts is asked, or for more time | SESSION | a page, JSON or a script; a POST extends the session |
| no ticket, and a CORS preflight of a listed origin | PREFLIGHT | to the origin |
| no genuine ticket, and no page or JSON can be shown, or another site sent a form | PROVISIONAL | let in for seconds while there is room |
| the same, in a room without provisional sessions | PLACELESS | held without a place; a HEAD sees what GET would show |
| the saved receipt of a draw is asked for | RECEIPT | a file |
| the visitor gives up the place | LEAVE | the place or session is free |
| no ticket | ARRIVE | a newcomer |
| an accepted ticket | VIEW | is the session alive? If not: its kept turn, else the next ticket |
| a waiting ticket of somebody who was away for more than five minutes | RETURN | an attempt, unless its turn was too long ago |
| a waiting ticket before its time | PEEK | no attempt |
| a waiting ticket | POLL | an attempt |
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Final, Protocol, TypeVar

from greenroom.model.arrival_kind import ArrivalKind
from greenroom.model.record import replace
from greenroom.model.room import Room
from greenroom.model.rule import Rule
from greenroom.model.visit import AWAY, AWAY_MAX_MS, PLACE_KEPT_MS, Arrival, Ticket
from greenroom.request.admissible import UPDATE_HEADER, kind_of, may_take_place
from greenroom.request.cross_origin import from_here, is_preflight

EARLY_TOLERANCE_MS = 100
"""Browsers' timers are not exact."""

LEAVE_VALUE = b"leave"
LEAVE_QUERY = "greenroom=leave"
"""The update header with this value, or without JavaScript a form with this query."""

RECEIPT_QUERY = "greenroom=receipt"

LINE_TABLE_QUERY = "greenroom=line"
"""The whole query, so that shared caches keep one copy for a path."""

SOONEST_MS = 1_500

ROBOTS, ACME_CHALLENGE = "/robots.txt", "/.well-known/acme-challenge/"
WELL_KNOWN = (ROBOTS, ACME_CHALLENGE)

WELL_KNOWN_RULE = Rule(
    id="pass_well_known",
    description="robots.txt and certificate challenges",
    expression=(
        f'http.request.uri.path eq "{ROBOTS}" or starts_with(http.request.uri.path,'
        f' "{ACME_CHALLENGE}")'
    ),
)
"""Checked without the rules engine: every request passes it."""

MOVE_QUERY = "greenroom=move"
"""Shows a link that moves the place to another device; followed by a dot and a code it is that link.
Only a POST changes anything.
"""

CALENDAR_QUERY = "greenroom=calendar"

CALL_QUERY = "greenroom=call"

SESSION_QUERY, SESSION_SCRIPT_QUERY = "greenroom=session", "greenroom=session.js"

_OWN_QUERY = "greenroom="

Found = Sequence[tuple[Ticket, bytes]]
"""Each with its spelling in the cookie (empty: that spelling is out of use)."""


class ArrivalQuestion(IntEnum):
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
    LINE_TABLE = 11
    PREFLIGHT = 12
    MOVE = 13
    CALENDAR = 14
    SESSION = 15
    RETURN = 16
    CALL = 17


# Looking the members up in the class for every request costs five times as much.
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
LINE_TABLE: Final = ArrivalQuestion.LINE_TABLE
PREFLIGHT: Final = ArrivalQuestion.PREFLIGHT
MOVE: Final = ArrivalQuestion.MOVE
CALENDAR: Final = ArrivalQuestion.CALENDAR
SESSION: Final = ArrivalQuestion.SESSION
RETURN: Final = ArrivalQuestion.RETURN
CALL: Final = ArrivalQuestion.CALL


class Receipts(Protocol):
    def has_receipt(self, ticket_id: bytes) -> bool: ...


class Covered(Protocol):
    @property
    def room(self) -> Room: ...

    @property
    def holds_nobody(self) -> bool:
        """Requests that cannot show a page need not be held in such a room."""

    @property
    def bypass(self) -> Callable[[Arrival, int], Rule | None] | None: ...

    @property
    def passes_well_known(self) -> bool: ...

    @property
    def moves(self) -> bool: ...

    @property
    def calls(self) -> bool: ...

    @property
    def extensions(self) -> int:
        """In session durations; `0` disables it."""

    def ticket_crosses_sites(self, scheme: str) -> bool: ...

    @property
    def draw(self) -> Receipts | None: ...


C = TypeVar("C", bound=Covered)


def decide(
    covered: C | None, arrival: Arrival, now_ms: int, tickets: Callable[[C, Arrival, int], Found]
) -> tuple[ArrivalQuestion, Found]:
    """`tickets` opens the arrival's tickets, when needed."""
    if covered is None:
        return UNCOVERED, ()
    if covered.room.suspended:
        return SUSPENDED, ()
    if (
        arrival.query == LINE_TABLE_QUERY
        and covered.room.line_table
        and arrival.method in ("GET", "HEAD")
    ):
        return LINE_TABLE, ()
    if covered.bypass is not None and bypassed(covered.bypass, arrival, now_ms):
        return BYPASSED, ()
    if covered.passes_well_known and arrival.path.startswith(WELL_KNOWN) and is_well_known(arrival):
        return BYPASSED, ()
    found = tickets(covered, arrival, now_ms)
    if arrival.query.startswith(_OWN_QUERY):
        own = _own_page(covered, arrival, now_ms, found)
        if own is not None:
            return own
    if not found:
        return decide_among(covered, arrival, now_ms, found, False)
    if len(found) == 1:  # as nearly always: there is nothing to sort
        ticket = found[0][0]
        if ticket.accepted_ms or now_ms - ticket.checked_ms <= PLACE_KEPT_MS:
            return decide_among(covered, arrival, now_ms, found, True)
    return decide_again(covered, arrival, now_ms, rank(found, now_ms, covered.room.claim_ms > 0))


def _own_page(
    covered: Covered, arrival: Arrival, now_ms: int, found: Found
) -> tuple[ArrivalQuestion, Found] | None:
    ranked = rank(found, now_ms, covered.room.claim_ms > 0)
    if covered.moves and _asks_here(arrival, MOVE_QUERY):
        # a ticket too old for the line still tells whose place has moved
        return MOVE, ranked or found
    if ranked and _asks_for_entry(covered, arrival):
        return CALENDAR, ranked
    if covered.calls and _asks_here(arrival, CALL_QUERY):
        return CALL, ranked
    if covered.extensions and arrival.query in (SESSION_QUERY, SESSION_SCRIPT_QUERY):
        return SESSION, ranked
    return None


def decide_again(
    covered: Covered, arrival: Arrival, now_ms: int, ranked: Found
) -> tuple[ArrivalQuestion, Found]:
    """As `decide_among`, where tickets may belong to absent visitors."""
    question, found = decide_among(covered, arrival, now_ms, ranked, True)
    if question is POLL and now_ms - found[0][0].checked_ms > PLACE_KEPT_MS:
        return RETURN, found
    return question, found


def bypassed(bypass: Callable[[Arrival, int], Rule | None], arrival: Arrival, now_ms: int) -> bool:
    """Whether a bypass rule holds for every reading of the path."""
    if not arrival.readings:
        return bypass(arrival, now_ms) is not None
    return all(bypass(reading, now_ms) is not None for reading in read_alone(arrival))


def is_well_known(arrival: Arrival) -> bool:
    return all(
        path == ROBOTS or path.startswith(ACME_CHALLENGE)
        for path in arrival.readings or (arrival.path,)
    )


def read_alone(arrival: Arrival) -> Sequence[Arrival]:
    if not arrival.readings:
        return (arrival,)
    return [replace(arrival, path=reading, readings=()) for reading in arrival.readings]


def read_alike(covered: Covered, arrival: Arrival, now_ms: int) -> bool:
    if covered.room.suspended:
        return True
    bypass, known = covered.bypass, covered.passes_well_known
    lets = {
        (bypass is not None and bypass(reading, now_ms) is not None)
        or (known and is_well_known(reading))
        for reading in read_alone(arrival)
    }
    return len(lets) == 1


def decide_among(
    covered: Covered, arrival: Arrival, now_ms: int, found: Found, proven: bool
) -> tuple[ArrivalQuestion, Found]:
    """`found` is ranked; call again with the rest when the first is gone. `proven`: the arrival
    brought a genuine ticket, however old, so its sender keeps cookies and may wait with any request.
    """
    if not (found or proven):
        question = _without_ticket(covered, arrival)
        if question is not None:
            return question, found
    if (
        covered.draw is not None
        and found
        and arrival.query == RECEIPT_QUERY
        and covered.draw.has_receipt(found[0][0].id)
    ):
        return RECEIPT, found
    if arrival.method == "POST" and _gives_up(arrival):
        return LEAVE, found
    if not found:
        return ARRIVE, found
    ticket = found[0][0]
    if ticket.accepted_ms:
        return VIEW, found
    calls_early = covered.room.line_table
    refresh_ms = min(ticket.refresh_ms, SOONEST_MS) if calls_early else ticket.refresh_ms
    return PEEK if now_ms < ticket.checked_ms + refresh_ms - EARLY_TOLERANCE_MS else POLL, found


def _without_ticket(covered: Covered, arrival: Arrival) -> ArrivalQuestion | None:
    """None: the arrival may take a place, or the room holds nobody."""
    room = covered.room
    placeless = PROVISIONAL if room.provisional_sessions else PLACELESS
    if (
        arrival.method == "POST"
        and comes_from_elsewhere(arrival)
        and not covered.ticket_crosses_sites(arrival.scheme)
    ):
        return placeless
    holds_nobody = covered.holds_nobody
    if not holds_nobody and may_take_place(
        arrival, room.json_response_enabled, bool(room.frame_ancestors)
    ):
        return None
    if room.cors_origins and is_preflight(arrival, room.cors_origins):
        return PREFLIGHT  # it may not take a place, and brings no cookie
    return None if holds_nobody else placeless


def is_head_of_page(room: Room, arrival: Arrival) -> bool:
    if arrival.method != "HEAD":
        return False
    return may_take_place(
        replace(arrival, method="GET"), room.json_response_enabled, bool(room.frame_ancestors)
    )


def is_away(ticket: Ticket, now_ms: int, claims: bool) -> bool:
    """Whether only the ledger knows if this waiting ticket is still good. `claims`: the room keeps
    places of absent visitors.
    """
    return claims and ticket.home >= AWAY and now_ms - ticket.checked_ms <= AWAY_MAX_MS


def rank(found: Found, now_ms: int, claims: bool = False) -> Found:
    """Accepted tickets by latest renewal, then waiting ones by place, without those whose last
    check-in is over five minutes old, unless the visitor is away (`is_away`).
    """
    alive = [
        one
        for one in found
        if one[0].accepted_ms
        or now_ms - one[0].checked_ms <= PLACE_KEPT_MS
        or is_away(one[0], now_ms, claims)
    ]
    if len(alive) > 1:
        alive.sort(
            key=lambda one: (0, -one[0].checked_ms) if one[0].accepted_ms else (1, one[0].key)
        )
    return alive


def comes_from_elsewhere(arrival: Arrival) -> bool:
    """The return from a payment or a sign-in (SAML, OpenID form_post). Browsers then withhold Lax
    cookies, so the sender may have a place and must not be given another.
    """
    if arrival.method != "POST" or kind_of(arrival) is not ArrivalKind.DOCUMENT:
        return False
    site = arrival.header(b"sec-fetch-site")
    return site == b"cross-site" if site is not None else not from_here(arrival)


def _asks_here(arrival: Arrival, query: str) -> bool:
    """Whether the query is `query`, alone or with a dot and a code behind it."""
    behind = arrival.query[len(query) :]
    return (
        arrival.query.startswith(query)
        and arrival.method in ("GET", "HEAD", "POST")
        and (not behind or behind[0] == ".")
    )


def _asks_for_entry(covered: Covered, arrival: Arrival) -> bool:
    return (
        arrival.query == CALENDAR_QUERY
        and covered.room.calendar_after_minutes > 0
        and arrival.method in ("GET", "HEAD")
    )


def asked_by_own_page(arrival: Arrival) -> bool:
    """Whether no other site can have made the browser send this."""
    return arrival.header(b"sec-fetch-site") in (None, b"same-origin") and from_here(arrival)


def _gives_up(arrival: Arrival) -> bool:
    """Only a page of this host may, so that no other page can throw a visitor out."""
    if arrival.header(UPDATE_HEADER) != LEAVE_VALUE and arrival.query != LEAVE_QUERY:
        return False
    return asked_by_own_page(arrival)
