"""Continuing on another device: the link, the page behind it, and the press that moves.

The link carries a sealed code that names the ticket. Pressing renames the place or session in the
ledger to the id that follows from the old one, once in all data centers: a second press finds nothing.
Whoever brings an id whose successor has the place is told so, and may take it back.
"""

import re
from collections.abc import Callable
from hashlib import sha256
from urllib.parse import quote

from greenroom.admission.decide import MOVE_QUERY, asked_by_own_page, is_away, rank
from greenroom.decision.inquiry import Inquiry
from greenroom.decision.observer import Decided, DecisionEvent
from greenroom.decision.own_page import OwnPage
from greenroom.decision.render import ONWARD, OUTAGE, for_scripts
from greenroom.decision.room_schedule import CompiledRoom
from greenroom.decision.tickets import Sealer
from greenroom.decision.verdict import Verdict
from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.model.record import replace
from greenroom.model.visit import (
    AWAY,
    AWAY_MAX_MS,
    NO_HOME,
    PLACE_KEPT_MS,
    TICKET_ID_BYTES,
    Arrival,
    Outcome,
    Standing,
    Ticket,
)
from greenroom.pages.builtin import IN_APP
from greenroom.pages.move_page import MOVED_JSON, confirm_page, link_json, moved_page, notice_page
from greenroom.pages.move_page import link_page as link_page_of
from greenroom.pages.page import UNCACHEABLE
from greenroom.request.admissible import UPDATE_HEADER, prefers_json, shows_page

CODE_MS = 600_000

MOVES_MAX = 4
"""Moves that an old ticket is followed through: as many questions to the ledger for each stale one,
so that it is cheap to ask with a cookie of yesterday.
"""

_ASSOCIATED = b"move "
"""No room id has a blank, so a code is no ticket and a ticket no code."""

_IN_APP = re.compile(IN_APP)

LEFT = {Standing.ACTIVE: Decided.ENDED, Standing.WAITING: Decided.LEFT}

LONGEST_CODE_MS = 86_400_000
"""By how much longer the code of a calendar entry may be good."""

_WAITS = 1
"""In the place of the refresh: the code was made of a waiting ticket. But for this bit: for how many
milliseconds longer than CODE_MS the code is good.
"""

_TEXT = AnswerHeaders((b"Content-Type", b"text/plain; charset=utf-8"), *UNCACHEABLE)
_MOVED_TEXT = b"Your place is on another device.\n"


def successor(ticket_id: bytes) -> bytes:
    """The id under which a place goes on. Ids are no secret: only a sealed ticket is accepted."""
    return sha256(b"greenroom move" + ticket_id).digest()[:TICKET_ID_BYTES]


def code_of(sealer: Sealer, room_id: bytes, ticket: Ticket, now_ms: int, lasts_ms: int) -> str:
    """`lasts_ms`: CODE_MS to LONGEST_CODE_MS longer."""
    flags = (lasts_ms - CODE_MS) & ~_WAITS | (0 if ticket.accepted_ms else _WAITS)
    home = ticket.home if ticket.home >= AWAY and not ticket.accepted_ms else NO_HOME
    named = Ticket(ticket.id, ticket.key, now_ms, ticket.checked_ms, flags, home)
    return sealer.seal(named, _ASSOCIATED + room_id).decode()


class MovingPlace(OwnPage):
    moved: Callable[[CompiledRoom, bytes, bytes], None] | None = None
    """Receives the room and the ids before and after a move."""
    here: Callable[[], bytes] | None = None
    """This data center in tickets, or NO_HOME where there is one only."""

    def verdict(self, asked: Inquiry) -> Verdict | None:
        arrival = asked.arrival
        self._observe(
            DecisionEvent(asked.now_ms, Decided.MOVE, asked.room.effective, arrival, _ticket(asked))
        )
        code = arrival.query[len(MOVE_QUERY) + 1 :]
        pressed = arrival.method == "POST" and asked_by_own_page(arrival)
        draw = asked.room.draw
        if pressed and draw is not None and draw.is_closing(asked.now_ms):
            return for_scripts(OUTAGE, asked.room.page, arrival)
        if code:
            return self._by_code(asked, code.encode(), pressed)
        if _ticket(asked) is None:
            return ONWARD
        self._follow(asked, self._takes_back if pressed else self._links)
        return None

    def gone(
        self, asked: Inquiry, outcome: Outcome, otherwise: Callable[[], Verdict | None]
    ) -> Verdict | None:
        """Says so if another device has the place or session."""
        if outcome.moved:
            return self._moved(asked)
        prompt, ticket = asked.room.prompt, asked.found[0][0]
        if prompt is None:

            def found(_asked: Inquiry, holder: bytes | None, _moves: int) -> Verdict | None:
                return otherwise() if holder is None else self._moved(asked)

            self._follow(asked, found, 1)
            return None
        ticket_id = ticket.id
        for _ in range(MOVES_MAX):
            ticket_id = successor(ticket_id)
            outcome = prompt.peek_now(ticket_id, ticket.key, asked.now_ms)
            if has_place(outcome):
                return self._moved(asked)
            if outcome.standing is not Standing.GONE:
                break
        return otherwise()

    def link(self, asked: Inquiry, lasts_ms: int = CODE_MS) -> str:
        """The requested address with a code valid for `lasts_ms` where places may move."""
        arrival, room, ticket = asked.arrival, asked.room, asked.found[0][0]
        where = (arrival.header(b"host") or b"").decode("latin-1") or arrival.host
        path = quote(arrival.prefix + arrival.path)
        url = f"{arrival.scheme}://{quote(where, safe=':[]')}{path}"
        if not room.moves:
            return url
        return (
            f"{url}?{MOVE_QUERY}.{code_of(self._sealer, room.id, ticket, asked.now_ms, lasts_ms)}"
        )

    # -- by the code of a link ---------------------------------------------------------------------

    def _by_code(self, asked: Inquiry, value: bytes, pressed: bool) -> Verdict | None:
        room, now_ms = asked.room, asked.now_ms
        code = self._sealer.open(value, _ASSOCIATED + room.id, now_ms)
        if code is None or now_ms - code.accepted_ms > CODE_MS + (code.refresh_ms & ~_WAITS):
            return self._page(asked, notice_page)
        others = [
            ticket
            for ticket, _ in rank(asked.found, now_ms)
            if ticket.id not in (code.id, successor(code.id))
        ]
        if not pressed:
            return self._confirm(asked, others)
        waits, unseen_ms = bool(code.refresh_ms & _WAITS), now_ms - code.checked_ms
        place = replace(code, accepted_ms=0) if waits else code
        if room.draw is not None:
            place = room.draw.standing(place)

        def moved(outcome: Outcome) -> Verdict | None:
            if outcome.storage_failed:
                return for_scripts(OUTAGE, room.page, asked.arrival)
            if outcome.standing is Standing.GONE:
                return self._page(asked, notice_page)
            self._report(asked, code.id, successor(code.id))
            for ticket in others:
                self._give_up(asked, ticket)
            return self._arrived(asked, outcome, successor(code.id), place.key, place.home)

        def move(absent: bool) -> None:
            room.ledger.move(code.id, successor(code.id), absent, self._later(asked, moved))

        if (
            unseen_ms <= PLACE_KEPT_MS
            or not waits
            or not is_away(place, now_ms, room.room.claim_ms > 0)
        ):
            move(waits and unseen_ms <= PLACE_KEPT_MS)
        else:
            room.ledger.reclaim(
                code.id, place.key, lambda outcome: move(outcome.standing is not Standing.GONE)
            )
        return None

    def _confirm(self, asked: Inquiry, others: list[Ticket]) -> Verdict | None:
        """Warns a visitor who would lose a place or session."""

        def shown(has: bool) -> Verdict:
            return self._page(asked, confirm_page, f"?{asked.arrival.query}", has)

        if not others:
            return shown(False)

        def seen(outcome: Outcome) -> Verdict | None:
            if outcome.standing is not Standing.GONE:
                return shown(True)
            return self._confirm(asked, others[1:])

        room = asked.room
        room.ledger.peek(others[0].id, others[0].key, self._later(asked, seen))
        return None

    def _give_up(self, asked: Inquiry, ticket: Ticket) -> None:

        def left(was: Outcome) -> None:
            decided = LEFT.get(was.standing)
            if decided is not None and not was.storage_failed:
                room = asked.room.effective
                self._observe(DecisionEvent(asked.now_ms, decided, room, asked.arrival, ticket))

        asked.room.ledger.leave(ticket.id, ticket.key, left)

    # -- by a ticket -------------------------------------------------------------------------------

    def _links(self, asked: Inquiry, holder: bytes | None, moves: int) -> Verdict | None:
        if moves:
            return self._moved(asked) if holder is not None else ONWARD
        arrival, room = asked.arrival, asked.room
        if holder is None and _is_over(asked):
            return (
                ONWARD  # a press would find nothing; the page gives a turn that is kept elsewhere
            )
        url = self.link(asked)
        if prefers_json(arrival.header(b"accept")):
            return for_scripts(
                Answer(200, room.page.json_headers, link_json(url, asked.now_ms + CODE_MS)),
                room.page,
                arrival,
            )
        return self._page(asked, link_page_of, url, _in_app(arrival))

    def _takes_back(self, asked: Inquiry, holder: bytes | None, moves: int) -> Verdict | None:
        if holder is None or not moves:
            return ONWARD

        def moved(outcome: Outcome) -> Verdict | None:
            if outcome.storage_failed:
                return for_scripts(OUTAGE, asked.room.page, asked.arrival)
            if outcome.standing is Standing.GONE:  # it moved on at this very moment
                return self._moved(asked)
            self._report(asked, holder, successor(holder))
            return self._arrived(asked, outcome, successor(holder), ticket.key, home)

        ticket = asked.found[0][0]
        home = NO_HOME if ticket.accepted_ms else ticket.home
        absent = not ticket.accepted_ms and asked.now_ms - ticket.checked_ms <= PLACE_KEPT_MS
        asked.room.ledger.move(holder, successor(holder), absent, self._later(asked, moved))
        return None

    def _follow(
        self,
        asked: Inquiry,
        then: Callable[[Inquiry, bytes | None, int], Verdict | None],
        moved: int = 0,
    ) -> None:
        """Calls `then` with the id that has the place or session now, and after how many moves.
        None: no id has it. `moved`: 1 when the ticket's own id has it not.
        """
        ticket, room = asked.found[0][0], asked.room

        def look(ticket_id: bytes, moves: int, told: bool) -> None:
            """`told`: the id before said that it has moved, perhaps to another data center."""

            def seen(outcome: Outcome) -> Verdict | None:
                if outcome.storage_failed:
                    return for_scripts(OUTAGE, room.page, asked.arrival)
                holds = has_place(outcome)
                if outcome.standing is Standing.GONE and not holds and moves < MOVES_MAX:
                    look(successor(ticket_id), moves + 1, outcome.moved)
                    return None
                return then(asked, ticket_id if told or holds else None, moves)

            room.ledger.peek(ticket_id, ticket.key, self._later(asked, seen))

        look(successor(ticket.id) if moved else ticket.id, moved, False)

    def _report(self, asked: Inquiry, old: bytes, new: bytes) -> None:
        if asked.room.calls and self.moved is not None:
            self.moved(asked.room, old, new)

    # -- answers -----------------------------------------------------------------------------------

    def _arrived(
        self, asked: Inquiry, outcome: Outcome, ticket_id: bytes, key: int, home: bytes
    ) -> Answer | None:
        """Redirects to the page with a ticket for the place or session."""
        room, here = asked.room, self.here() if self.here is not None else NO_HOME
        if outcome.standing is not Standing.ACTIVE or here == NO_HOME:
            away = home >= AWAY and room.keeps_absent
            ticket = Ticket(ticket_id, key, 0, self._now_ms(), 0, AWAY if away else NO_HOME)
            return self._onward(asked, ticket, AWAY_MAX_MS if away else PLACE_KEPT_MS)

        # a waiting ticket of a session would have a place in the other data centers
        def seen(found: Outcome) -> Answer:
            if found.standing is not Standing.ACTIVE:
                return self._page(asked, notice_page)
            now_ms = self._now_ms()
            ticket = Ticket(ticket_id, key, now_ms, found.renewed_ms or now_ms, 0, here)
            return self._onward(asked, ticket, room.session_ms)

        room.ledger.view(ticket_id, self._later(asked, seen))
        return None

    def _onward(self, asked: Inquiry, ticket: Ticket, kept_ms: int) -> Answer:
        arrival, room = asked.arrival, asked.room
        cookies = room.cookies.of(arrival.scheme, arrival.prefix)
        sealed = self._sealer.seal(ticket, room.id)
        return replace(ONWARD, set_cookie=cookies.set(sealed, kept_ms // 1000, self._now_ms()))

    def _moved(self, asked: Inquiry) -> Answer:
        arrival, page = asked.arrival, asked.room.page
        if arrival.header(UPDATE_HEADER) is not None or prefers_json(arrival.header(b"accept")):
            return for_scripts(Answer(200, page.json_headers, MOVED_JSON), page, arrival)
        if shows_page(arrival):
            return self._page(asked, moved_page)
        return for_scripts(Answer(503, _TEXT, _MOVED_TEXT), page, arrival)


def has_place(outcome: Outcome) -> bool:
    """Or a session, or a turn that is kept."""
    return bool(outcome.kept_ms) or outcome.standing is Standing.ACTIVE or outcome.position > 0


def _is_over(asked: Inquiry) -> bool:
    """Whether the ticket's session must have ended, wherever it is."""
    ticket, room = asked.found[0][0], asked.room.room
    ends_ms = ticket.checked_ms + ticket.refresh_ms + room.session_ms + room.renewal_age_ms
    return bool(ticket.accepted_ms) and asked.now_ms >= ends_ms


def _in_app(arrival: Arrival) -> bool:
    browser = arrival.header(b"user-agent") or b""
    return _IN_APP.search(browser.decode("latin-1")) is not None


def _ticket(asked: Inquiry) -> Ticket | None:
    return asked.found[0][0] if asked.found else None
