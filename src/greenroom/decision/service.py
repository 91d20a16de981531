"""The decision service: finds the room of an arrival, opens its tickets, asks the ledger one question and gives a verdict.

This is sequencing only. Which question to ask is `core.decide`'s business, the answer is the ledger's, the wording is `render`'s, and
counting is the observer's. One rule has precedence: when anything fails here, the visitor is held and never passed to the origin.
"""

from collections.abc import Callable
from itertools import count
from typing import assert_never

from msgspec.structs import replace

from greenroom.core.admissible import UPDATE_HEADER
from greenroom.core.decide import (
    ARRIVE,
    BYPASSED,
    LEAVE,
    LINE_TABLE,
    PEEK,
    PLACELESS,
    POLL,
    PROVISIONAL,
    RECEIPT,
    SUSPENDED,
    UNCOVERED,
    VIEW,
    ArrivalQuestion,
    Found,
    comes_from_elsewhere,
    decide,
    decide_among,
    is_head_of_page,
)
from greenroom.decision.data_centers import DataCenters, or_abroad
from greenroom.decision.holding import Holding
from greenroom.decision.late_try import Done, LateTry, is_late
from greenroom.decision.observer import Decided, DecisionEvent, Observer
from greenroom.decision.open_session import OpenSession
from greenroom.decision.render import OUTAGE, SEVERAL_ROOMS, UNKNOWN_HOST, left_answer, let_in_update, receipt_answer
from greenroom.decision.room_schedule import CompiledRoom
from greenroom.decision.room_table import RoomTable
from greenroom.decision.ticket_reader import TicketReader
from greenroom.decision.tickets import Sealer
from greenroom.decision.verdict import Forward, Verdict
from greenroom.model.visit import (
    NO_HOME,
    RAY_BYTES,
    TICKET_ID_BYTES,
    Arrival,
    Outcome,
    Standing,
    Ticket,
    make_key,
)
from greenroom.ports import Clock

STANDING_ADMITTED, STANDING_ACTIVE, STANDING_WAITING, STANDING_GONE = Standing
ADMITTED, ACTIVE, PROVISIONALLY = Decided.ADMITTED, Decided.ACTIVE, Decided.PROVISIONAL
PASS = Forward()
"""On to the origin without a ticket."""

_NO_TICKET: tuple[None, None] = (None, None)
_PASSING = (Decided.UNCOVERED, Decided.SUSPENDED, Decided.BYPASSED)
"""What was decided when `ArrivalQuestion` is UNCOVERED (0), SUSPENDED (1) or BYPASSED (2)."""

Late = Callable[[LateTry], bool]
"""Offered the try of a visitor whose answer may be held; says whether it takes it."""


class DecisionService:
    """Turns an Arrival into a Verdict. `table` is swapped as a whole by a reload (`use`)."""

    def __init__(
        self,
        table: RoomTable,
        sealer: Sealer,
        clock: Clock,
        entropy: Callable[[int], bytes],
        on_error: Callable[[BaseException], None],
        observe: Observer = lambda _: None,
    ) -> None:
        """`entropy(n)` gives n unpredictable bytes; `on_error` is told of every exception that held a visitor.

        `observe` is told of every decision; it must be quick and must not raise (`observer.observed_by` sees to that).
        """
        self.use(table)
        self.data_centers: DataCenters | None = None
        """The data centers, where there may be several."""
        self._sealer = sealer
        self._tickets = TicketReader(sealer).find
        self.now_ms = clock.now_ms
        """Unix time, as the ledgers tell it."""
        self._entropy = entropy
        self._on_error = on_error
        self._observe = observe
        self._holding = Holding(sealer, observe)
        self._hold = self._holding.verdict
        self._next_ray = count(int.from_bytes(entropy(RAY_BYTES), "big") | 1).__next__

    def use(self, table: RoomTable) -> None:
        """These rooms from now on."""
        self.table = table
        self.own_cookies = table.own_cookies
        """Names of the ticket cookies; they never reach an origin."""

    def receive(self, arrival: Arrival, done: Done) -> None:
        """Calls `done` exactly once, now or later. Never raises: an error inside is an answer that holds the visitor."""
        verdict = self.verdict(arrival, done)
        if verdict is not None:
            done(verdict)

    def verdict(self, arrival: Arrival, later: Done, late: Late | None = None) -> Verdict | None:
        """The verdict where it is known at once; None: `later` is called exactly once, or `late` has taken the try. Never raises."""
        now_ms, compiled = self.now_ms(), None
        try:
            if arrival.readings:
                rooms = self.table.covering(arrival.host, arrival.readings)
                if len(rooms) > 1:
                    self._observe(DecisionEvent(now_ms, Decided.SEVERAL_ROOMS, None, arrival))
                    return SEVERAL_ROOMS
                schedule = rooms[0] if rooms else None
            else:
                schedule = self.table.find(arrival.host, arrival.path)
            if schedule is not None:
                compiled = schedule.now if now_ms < schedule.until_ms else schedule.at(now_ms)
                if compiled.bypass is not None:
                    arrival = replace(arrival, ray=self._next_ray())
            tickets = self._tickets if compiled is None or compiled.draw is None else self._drawn_tickets
            question, found = decide(compiled, arrival, now_ms, tickets)
            if compiled is not None and question is not SUSPENDED and question is not BYPASSED:
                return self._ask(compiled, arrival, question, found, now_ms, later, late)
            verdict: Verdict = PASS
            decided = _PASSING[question]
            if compiled is None and (hosts := self.table.hosts) is not None and not hosts.knows(arrival.host):
                verdict, decided = UNKNOWN_HOST, Decided.UNKNOWN_HOST
            self._observe(DecisionEvent(now_ms, decided, compiled.effective if compiled is not None else None, arrival))
        except Exception as error:
            verdict = self._failed(error, arrival, now_ms, compiled)
        return verdict

    def obey(self, forward: Forward, command: bytes) -> bytes:
        """Obeys the origin's Cf-Waiting-Room-Command; the Set-Cookie value to send instead of the ticket, or empty.

        Only `revoke` is known: the session ends at once and its unit is free. Anything else is ignored, as is any command to
        a room that did not enable it.
        """
        schedule = self.table.rooms.get(forward.room_id)
        if command.strip().lower() != b"revoke" or schedule is None or not forward.obeys_origin or forward.ticket is None:
            return b""
        compiled = schedule.now
        compiled.ledger.leave(forward.ticket.id)
        self._observe(DecisionEvent(self.now_ms(), Decided.REVOKED, compiled.effective))
        return compiled.cookies.of(forward.scheme).expire()

    def open_session(self, forward: Forward, place: int = 0) -> OpenSession:
        """The session of a request that is under way for long; only for a Forward with a ticket. See `OpenSession` for `place`."""
        return OpenSession(forward, self, place)

    def _drawn_tickets(self, compiled: CompiledRoom, arrival: Arrival, now_ms: int) -> Found:
        found = self._tickets(compiled, arrival, now_ms)
        return compiled.draw.counting(found) if compiled.draw is not None and found else found

    def _ask(
        self,
        compiled: CompiledRoom,
        arrival: Arrival,
        question: ArrivalQuestion,
        found: Found,
        now_ms: int,
        later: Done,
        late: Late | None = None,
    ) -> Verdict | None:
        """Carries out what `decide` named. Raises what the ledger raises; the visitor is held then."""
        if question is ARRIVE:
            ticket = self._new_ticket(now_ms)
        elif question is POLL or question is VIEW or question is PEEK:
            ticket = found[0][0]
        else:
            return self._settle(compiled, arrival, question, found, now_ms, later)
        prompt = compiled.prompt
        if prompt is None or self.data_centers is not None:
            self._ask_elsewhere(compiled, arrival, question, found, ticket, later, late)
            return None
        if question is POLL:
            outcome = prompt.poll_now(ticket.id, ticket.key, now_ms)
        elif question is VIEW:
            outcome = prompt.view_now(ticket.id, now_ms)
        elif question is PEEK:
            outcome = prompt.peek_now(ticket.id, ticket.key, now_ms)
        else:
            outcome = prompt.arrive_now(ticket.id, now_ms)
        return self._answered(compiled, arrival, question, found, ticket, outcome, now_ms, later, late)

    def _settle(
        self, compiled: CompiledRoom, arrival: Arrival, question: ArrivalQuestion, found: Found, now_ms: int, later: Done
    ) -> Verdict | None:
        """Every other question: those that need no outcome of a try, a visit or a look."""
        if question is PLACELESS:
            return self._placeless(compiled, arrival, self._new_ticket(now_ms), now_ms, later)
        if question is PROVISIONAL:
            self._ask_in_passing(compiled, arrival, now_ms, later)
            return None
        if question is RECEIPT:
            return self._receipt(compiled, arrival, found[0][0], now_ms)
        if question is LINE_TABLE and compiled.line_table is not None:
            self._observe(DecisionEvent(now_ms, Decided.LINE_TABLE, compiled.effective, arrival))
            return compiled.line_table.answer(now_ms, later)
        if question is LEAVE:
            return self._leave(compiled, arrival, found[0][0] if found else None, now_ms)
        if question in (UNCOVERED, SUSPENDED, BYPASSED, ARRIVE, POLL, VIEW, PEEK, LINE_TABLE):
            raise ValueError(f"{question!r} is not settled here")
        assert_never(question)

    def _ask_elsewhere(
        self,
        compiled: CompiledRoom,
        arrival: Arrival,
        question: ArrivalQuestion,
        found: Found,
        ticket: Ticket,
        later: Done,
        late: Late | None,
    ) -> None:
        """Asks a ledger that may answer later."""

        def answered(outcome: Outcome, visiting: bool = False) -> None:
            now_ms = self.now_ms()
            try:
                verdict = self._answered(compiled, arrival, question, found, ticket, outcome, now_ms, later, late, visiting)
            except Exception as error:
                verdict = self._failed(error, arrival, now_ms, compiled)
            if verdict is not None:
                later(verdict)

        ledger = compiled.ledger
        if question is VIEW:
            data_centers = self.data_centers if ticket.home != NO_HOME else None
            ledger.view(
                ticket.id, or_abroad(compiled.ledger, ticket, data_centers.name(ticket.home), answered) if data_centers else answered
            )
        elif question is POLL:
            ledger.poll(ticket.id, ticket.key, answered)
        elif question is PEEK:
            ledger.peek(ticket.id, ticket.key, answered)
        else:
            ledger.arrive(ticket.id, ticket.key, answered)

    def _answered(
        self,
        compiled: CompiledRoom,
        arrival: Arrival,
        question: ArrivalQuestion,
        found: Found,
        ticket: Ticket,
        outcome: Outcome,
        now_ms: int,
        later: Done,
        late: Late | None,
        visiting: bool = False,
    ) -> Verdict | None:
        """What the ledger's answer means. A session that is gone: the question is the one that the visitor's other tickets raise."""
        standing = outcome.standing
        if standing is STANDING_WAITING:
            if outcome.called and question is POLL and is_late(ticket, now_ms):
                return self._tried_late(compiled, arrival, found, ticket, outcome, now_ms, late)
            return self._hold(compiled, arrival, question, found, ticket, outcome, now_ms)
        if standing is STANDING_GONE:
            return self._ask(compiled, arrival, *decide_among(compiled, arrival, now_ms, found[1:], True), now_ms, later, late)
        decided = ADMITTED if standing is STANDING_ADMITTED else ACTIVE
        return self._let_in(compiled, arrival, found, ticket, outcome, decided, now_ms, visiting)

    def _tried_late(
        self, compiled: CompiledRoom, arrival: Arrival, found: Found, ticket: Ticket, outcome: Outcome, now_ms: int, late: Late | None
    ) -> Verdict | None:
        def decide(newest: Outcome, done: Done) -> None:
            now_ms = self.now_ms()
            try:
                verdict = self._answered(compiled, arrival, POLL, found, ticket, newest, now_ms, done, None)
            except Exception as error:
                verdict = self._failed(error, arrival, now_ms, compiled)
            if verdict is not None:
                done(verdict)

        def hold(newest: Outcome) -> Verdict:
            return self._hold(compiled, arrival, POLL, found, ticket, newest, self.now_ms())

        trying = LateTry(compiled.ledger, ticket, now_ms - ticket.checked_ms, outcome, decide, hold)
        return None if late is not None and late(trying) else trying.give_up() or OUTAGE

    def _ask_in_passing(self, compiled: CompiledRoom, arrival: Arrival, now_ms: int, done: Done) -> None:
        """A request that cannot wait is let in for some seconds, or answered at once that it cannot."""
        ticket = self._new_ticket(now_ms)

        def answered(outcome: Outcome) -> None:
            try:
                if outcome.standing is STANDING_WAITING:
                    verdict = self._placeless(compiled, arrival, ticket, now_ms, done)
                else:
                    verdict = self._let_in(compiled, arrival, (), ticket, outcome, PROVISIONALLY, self.now_ms())
                    if comes_from_elsewhere(arrival) and isinstance(verdict, Forward):
                        verdict = replace(
                            verdict, set_cookie=b"", pass_cookie=b""
                        )  # or it would overwrite the ticket that the browser kept back
            except Exception as error:
                verdict = self._failed(error, arrival, now_ms, compiled)
            if verdict is not None:
                done(verdict)

        compiled.ledger.arrive_provisionally(ticket.id, ticket.key, answered)

    def _leave(self, compiled: CompiledRoom, arrival: Arrival, ticket: Ticket | None, now_ms: int) -> Verdict:
        if ticket is not None:
            compiled.ledger.leave(ticket.id, ticket.key)
        self._observe(DecisionEvent(now_ms, Decided.LEFT, compiled.effective, arrival, ticket))
        # A cookie that holds no genuine ticket is left alone: any page could send such a request, and delete what it did not set.
        return left_answer(compiled.page, arrival, compiled.cookies.of(arrival.scheme).expire() if ticket is not None else b"")

    def _placeless(self, compiled: CompiledRoom, arrival: Arrival, ticket: Ticket, now_ms: int, done: Done) -> Verdict | None:
        """Held without a place. A HEAD is answered like GET, so where GET shows the page, the ledger is asked what is in it."""
        if not is_head_of_page(compiled.room, arrival):
            return self._holding.without_place(compiled, arrival, now_ms)

        def seen(outcome: Outcome) -> None:
            try:
                verdict: Verdict = self._holding.of_head(compiled, arrival, ticket, outcome, self.now_ms())
            except Exception as error:
                verdict = self._failed(error, arrival, now_ms, compiled)
            done(verdict)

        compiled.ledger.peek(ticket.id, ticket.key, seen)
        return None

    def _new_ticket(self, now_ms: int) -> Ticket:
        drawn = self._entropy(TICKET_ID_BYTES + 3)
        key = make_key(now_ms, int.from_bytes(drawn[TICKET_ID_BYTES:], "big"))
        return Ticket(drawn[:TICKET_ID_BYTES], key, 0, now_ms, 0)

    def _receipt(self, compiled: CompiledRoom, arrival: Arrival, ticket: Ticket, now_ms: int) -> Verdict:
        receipt = compiled.draw.receipt_file(ticket.id) if compiled.draw is not None else None
        if compiled.draw is None or receipt is None:
            raise ValueError("a receipt was promised, and there is none")
        self._observe(DecisionEvent(now_ms, Decided.RECEIPT, compiled.effective, arrival, ticket))
        return receipt_answer(receipt, compiled.draw.draw_id)

    def _failed(self, error: Exception, arrival: Arrival, now_ms: int, compiled: CompiledRoom | None = None) -> Verdict:
        self._on_error(error)
        self._observe(DecisionEvent(now_ms, Decided.FAILED, compiled.effective if compiled else None, arrival))
        return OUTAGE

    def _let_in(
        self,
        compiled: CompiledRoom,
        arrival: Arrival,
        found: Found,
        ticket: Ticket,
        outcome: Outcome,
        decided: Decided,
        now_ms: int,
        visiting: bool = False,
    ) -> Verdict:
        """`visiting`: the session is in the ledger of another data center, and has not followed yet when it is ACTIVE."""
        presented, spelled = found[0] if found else _NO_TICKET
        self._observe(DecisionEvent(now_ms, decided, compiled.effective, arrival, presented, outcome))
        accepted_ms, checked_ms, home = ticket.accepted_ms, ticket.checked_ms, ticket.home
        renewed_ms = outcome.renewed_ms or now_ms
        if (data_centers := self.data_centers) is not None and not (visiting and decided is ACTIVE):
            home = data_centers.here
        if spelled and accepted_ms and checked_ms == renewed_ms and ticket.home == home:
            sealed = spelled  # nothing in it has changed since the visitor got it, at most q ago
        else:
            sealed = self._sealer.seal_once(Ticket(ticket.id, ticket.key, accepted_ms or now_ms, renewed_ms, 0, home), compiled.id)
        session_ms, scheme, passes = compiled.session_ms, arrival.scheme, compiled.passes
        lasts_s = (session_ms if compiled.renews else outcome.renewed_ms + session_ms - now_ms) // 1000
        cookie = compiled.cookies.of(scheme).set(sealed, lasts_s if lasts_s > 1 else 1, now_ms)
        if arrival.header(UPDATE_HEADER) is not None:
            return let_in_update(compiled.page, cookie)
        early = presented is not None and decided is ACTIVE and home == ticket.home and 2 * (now_ms - checked_ms) <= session_ms
        passed = passes.cookie(arrival, outcome, now_ms) if passes is not None and not visiting else b""
        provisional = decided is PROVISIONALLY
        ends_ms, page = outcome.expires_ms, compiled.page
        return Forward(cookie, compiled.room.id, ticket, compiled.obeys_origin, ends_ms, provisional, early, passed, scheme, page)
