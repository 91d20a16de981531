"""The decision service: finds the room, opens tickets, asks the ledger one question and gives a
verdict. When anything fails here, the visitor is held and never passed to the origin.
"""

import struct
from collections.abc import Callable
from itertools import count
from typing import Protocol

from greenroom.admission.decide import (
    ARRIVE,
    PEEK,
    POLL,
    VIEW,
    ArrivalQuestion,
    Found,
    comes_from_elsewhere,
    decide,
    decide_again,
    is_head_of_page,
    read_alike,
)
from greenroom.admission.ledger.keeping import is_due
from greenroom.decision.admitting import Admitting
from greenroom.decision.calendar_link import CalendarLink
from greenroom.decision.calling import Calling
from greenroom.decision.data_centers import DataCenters, or_abroad
from greenroom.decision.holding import Holding
from greenroom.decision.inquiry import Inquiry, Late
from greenroom.decision.kept_turn import FailedDocument
from greenroom.decision.late_try import Done, LateTry, is_late, patience_ms, preferred
from greenroom.decision.more_time import MoreTime
from greenroom.decision.moving_place import LEFT, MOVES_MAX, MovingPlace, successor
from greenroom.decision.observer import Decided, DecisionEvent, Observer
from greenroom.decision.open_session import OpenSession
from greenroom.decision.render import (
    OUTAGE,
    SEVERAL_ROOMS,
    UNKNOWN_HOST,
    for_scripts,
    left_answer,
    receipt_answer,
    refused,
)
from greenroom.decision.room_schedule import CompiledRoom
from greenroom.decision.room_table import RoomTable
from greenroom.decision.ticket_reader import TicketReader
from greenroom.decision.tickets import Sealer
from greenroom.decision.verdict import Forward, Verdict
from greenroom.model.answer import Answer
from greenroom.model.clock import Clock
from greenroom.model.record import replace
from greenroom.model.room import Room
from greenroom.model.route import is_below
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
from greenroom.request.canonical import Target, folded_path

STANDING_ACTIVE, STANDING_WAITING, STANDING_GONE = Standing.ACTIVE, Standing.WAITING, Standing.GONE
ADMITTED, ACTIVE, PROVISIONALLY = Decided.ADMITTED, Decided.ACTIVE, Decided.PROVISIONAL
REENTERED = Decided.REENTERED
_DRAWN = struct.Struct(
    f">{TICKET_ID_BYTES}sxH"
)  # of random bytes: a ticket's id, and what breaks ties
PASS = Forward()
SENDS = frozenset(("POST", "PUT", "PATCH", "DELETE"))
NOBODY = Outcome(STANDING_GONE)


class LedgerAnswered(Protocol):
    """`visiting`: from another data center's ledger."""

    def __call__(self, outcome: Outcome, visiting: bool = False) -> None: ...


class DecisionService:
    """A reload swaps `table` as a whole (`use`)."""

    def __init__(
        self,
        table: RoomTable,
        sealer: Sealer,
        clock: Clock,
        entropy: Callable[[int], bytes],
        on_error: Callable[[BaseException], None],
        observe: Observer,
    ) -> None:
        """`on_error` receives every exception that held a visitor. `observe` must not block or
        raise.
        """
        self._holding = Holding(sealer, observe)
        self.use(table)
        self.data_centers: DataCenters | None = None
        self.offers_received: Callable[[Room, bytes], None] = lambda _room, _said: None
        """Must not block or raise."""
        self._sealer = sealer
        self._tickets = TicketReader(sealer).find
        self.now_ms = clock.now_ms
        self._entropy = entropy
        self._on_error = on_error
        self._observe = observe
        self._hold = self._holding.verdict
        self._admit = Admitting(sealer, observe).verdict

        def failed(error: Exception, asked: Inquiry) -> Verdict:
            return self._failed(error, asked.arrival, asked.now_ms, asked.room)

        self._moving = MovingPlace(sealer, clock.now_ms, failed, observe)
        self._calendar = CalendarLink(self._moving, sealer, failed, observe)
        self.calling = Calling(sealer, clock.now_ms, failed, observe)
        self._moving.moved = self._moved
        self._moving.here = self._here
        self._more_time = MoreTime(sealer, clock.now_ms, failed, observe)
        self._ways = self._by_question()
        self._next_ray = count(int.from_bytes(entropy(RAY_BYTES), "big") | 1).__next__

    def _here(self) -> bytes:
        # no lambda in __init__: compiled, it would expect the None that is assigned there
        return self.data_centers.here if self.data_centers else NO_HOME

    def use(self, table: RoomTable) -> None:
        self.table = table
        self._holding.forget()
        self.own_cookies = table.own_cookies
        """Ticket cookies never reach an origin."""

    def receive(self, arrival: Arrival, done: Done) -> None:
        """Calls `done` exactly once, now or later. Never raises."""
        verdict = self.verdict(arrival, done)
        if verdict is not None:
            done(verdict)

    def verdict(self, arrival: Arrival, later: Done, late: Late | None = None) -> Verdict | None:
        """None: `later` is called exactly once, or `late` has taken the try. Never raises."""
        tell_ms, compiled = self.now_ms, None
        now_ms = tell_ms()
        try:
            judged = False
            if arrival.readings:
                judged = arrival.otherwise is not None
                rooms = self.table.covering(arrival.host, arrival.readings)
                if not judged:
                    rooms = [found for found in rooms if found is not None]
                if len(rooms) > 1:
                    return self._otherwise(arrival, now_ms, later)
                schedule = rooms[0] if rooms else None
            else:
                schedule = self.table.find(arrival.host, arrival.path)
            if schedule is None:
                return self._uncovered(arrival, now_ms)
            compiled = schedule.now if now_ms < schedule.until_ms else schedule.at(now_ms)
            if compiled.bypass is not None:
                arrival = replace(arrival, ray=self._next_ray())
            if judged and not read_alike(compiled, arrival, now_ms):
                return self._otherwise(arrival, now_ms, later)
            tickets = self._tickets if compiled.draw is None else self._drawn_tickets
            question, found = decide(compiled, arrival, now_ms, tickets)
            return self._ways[question](Inquiry(compiled, arrival, now_ms, found, later, late))
        except Exception as error:
            return self._failed(error, arrival, now_ms, compiled)

    def _otherwise(self, arrival: Arrival, now_ms: int, later: Done) -> Verdict | None:
        """Readings of the path that lead to different rooms or rules: refused, or forwarded in
        canonical form.
        """
        target = arrival.otherwise
        if not isinstance(target, Target):
            self._observe(DecisionEvent(now_ms, Decided.SEVERAL_ROOMS, None, arrival))
            return SEVERAL_ROOMS if target is None else refused(target)

        def sent(verdict: Verdict) -> Verdict:
            return replace(verdict, target=target.raw) if isinstance(verdict, Forward) else verdict

        alone = replace(arrival, path=target.path, readings=(), otherwise=None)
        verdict = self.verdict(alone, lambda verdict: later(sent(verdict)))
        return None if verdict is None else sent(verdict)

    def obey(self, forward: Forward, command: bytes) -> bytes:
        """Returns the Set-Cookie value that replaces the ticket, or empty. Of the list of commands
        only `revoke` is known; all else is ignored.
        """
        schedule = self.table.rooms.get(forward.room_id)
        if (
            b"revoke" not in [each.strip() for each in command.lower().split(b",")]
            or schedule is None
            or not forward.obeys_origin
            or forward.ticket is None
        ):
            return b""
        compiled = schedule.now

        def end(ticket_id: bytes, moves: int) -> None:
            def ended(was: Outcome) -> None:
                if was.standing is STANDING_GONE and moves < MOVES_MAX and compiled.moves:
                    end(successor(ticket_id), moves + 1)  # it may have moved since the request came
                    return
                decided = Decided.REVOKED if was.standing is STANDING_ACTIVE else Decided.NOT_HERE
                self._observe(DecisionEvent(self.now_ms(), decided, compiled.effective))

            compiled.ledger.leave(ticket_id, 0, ended)

        end(forward.ticket.id, 0)
        return compiled.cookies.of(forward.scheme, forward.prefix).expire()

    def receive_offers(self, forward: Forward, said: bytes) -> None:
        """Of a response to an admitted visitor, where the operator allowed it."""
        schedule = self.table.rooms.get(forward.room_id)
        if schedule is not None and forward.ticket is not None and schedule.now.room.offers_header:
            self.offers_received(schedule.now.room, said)

    def open_session(self, forward: Forward, place: int = 0) -> OpenSession:
        return OpenSession(forward, self, place)

    def goes_first(self, forward: Forward | None, arrival: Arrival) -> bool:
        """Writes (POST, ...) of admitted visitors, and the room's priority paths."""
        if forward is None or forward.ticket is None or forward.provisional:
            return False
        schedule = self.table.rooms.get(forward.room_id)
        if arrival.method in SENDS or schedule is None:
            return arrival.method in SENDS
        room = schedule.now.room
        cased = folded_path if room.case_insensitive_paths else str
        return any(is_below(cased(arrival.path), cased(path)) for path in room.priority_paths)

    def failed_document(self, forward: Forward) -> FailedDocument:
        return FailedDocument(forward, self)

    def _drawn_tickets(self, compiled: CompiledRoom, arrival: Arrival, now_ms: int) -> Found:
        found = self._tickets(compiled, arrival, now_ms)
        return compiled.draw.counting(found) if compiled.draw is not None and found else found

    def _by_question(self) -> tuple[Callable[[Inquiry], Verdict | None], ...]:
        ways: dict[ArrivalQuestion, Callable[[Inquiry], Verdict | None]] = {
            ArrivalQuestion.UNCOVERED: self._not_asked,
            ArrivalQuestion.SUSPENDED: lambda asked: self._by(asked, Decided.SUSPENDED),
            ArrivalQuestion.BYPASSED: lambda asked: self._by(asked, Decided.BYPASSED),
            ArrivalQuestion.PROVISIONAL: self._provisional,
            ArrivalQuestion.PLACELESS: self._placeless,
            ArrivalQuestion.RECEIPT: self._receipt,
            ArrivalQuestion.LEAVE: self._leave,
            ArrivalQuestion.ARRIVE: self._arrive,
            ArrivalQuestion.VIEW: self._view,
            ArrivalQuestion.PEEK: self._peek,
            ArrivalQuestion.POLL: self._poll,
            ArrivalQuestion.LINE_TABLE: self._line_table,
            ArrivalQuestion.MOVE: self._moving.verdict,
            ArrivalQuestion.CALENDAR: self._calendar.verdict,
            ArrivalQuestion.CALL: self.calling.verdict,
            ArrivalQuestion.SESSION: self._more_time.verdict,
            ArrivalQuestion.RETURN: self._return,
            ArrivalQuestion.PREFLIGHT: lambda asked: self._by(asked, Decided.PREFLIGHT),
        }
        return tuple([ways[question] for question in sorted(ArrivalQuestion)])

    def _again(self, asked: Inquiry) -> Verdict | None:
        question, found = decide_again(asked.room, asked.arrival, asked.now_ms, asked.found[1:])
        return self._ways[question](replace(asked, found=found))

    # -- one method for each question --------------------------------------------------------------

    def _uncovered(self, arrival: Arrival, now_ms: int) -> Verdict:
        hosts = self.table.hosts
        known = hosts is None or hosts.knows(arrival.host)
        self._observe(
            DecisionEvent(
                now_ms, Decided.UNCOVERED if known else Decided.UNKNOWN_HOST, None, arrival
            )
        )
        return PASS if known else UNKNOWN_HOST

    def _by(self, asked: Inquiry, decided: Decided) -> Verdict:
        self._observe(DecisionEvent(asked.now_ms, decided, asked.room.effective, asked.arrival))
        page = asked.room.page
        return (
            Forward(page=page) if page.cors_origins else PASS
        )  # a script may read then that the origin fails

    def _view(self, asked: Inquiry) -> Verdict | None:
        prompt, ticket = asked.room.prompt, asked.found[0][0]
        if prompt is None or self.data_centers is not None:
            self._view_elsewhere(asked, ticket)
            return None
        outcome = prompt.view_now(ticket.id, asked.now_ms)
        if outcome.standing is STANDING_ACTIVE:  # as nearly always
            admit = self._admit
            return admit(asked, ticket, outcome, ACTIVE, None)
        return self._answered(VIEW, asked, ticket, outcome)

    def _poll(self, asked: Inquiry) -> Verdict | None:
        prompt, ticket = asked.room.prompt, asked.found[0][0]
        if prompt is None or self.data_centers is not None:
            asked.room.ledger.poll(ticket.id, ticket.key, self._on_outcome(POLL, asked, ticket))
            return None
        return self._answered(
            POLL, asked, ticket, prompt.poll_now(ticket.id, ticket.key, asked.now_ms)
        )

    def _peek(self, asked: Inquiry) -> Verdict | None:
        prompt, ticket = asked.room.prompt, asked.found[0][0]
        if prompt is None or self.data_centers is not None:
            asked.room.ledger.peek(ticket.id, ticket.key, self._on_outcome(PEEK, asked, ticket))
            return None
        return self._answered(
            PEEK, asked, ticket, prompt.peek_now(ticket.id, ticket.key, asked.now_ms)
        )

    def _return(self, asked: Inquiry) -> None:
        ticket = asked.found[0][0]

        def known(outcome: Outcome) -> None:
            now_ms = self.now_ms()
            try:
                now = replace(asked, now_ms=now_ms)
                if outcome.standing is STANDING_GONE or outcome.storage_failed:
                    verdict = self._answered(PEEK, now, ticket, outcome)
                else:
                    verdict = self._poll(now)
            except Exception as error:
                verdict = self._failed(error, asked.arrival, now_ms, asked.room)
            if verdict is not None:
                asked.later(verdict)

        asked.room.ledger.reclaim(ticket.id, ticket.key, known)

    def _arrive(self, asked: Inquiry) -> Verdict | None:
        prompt, ticket = asked.room.prompt, self._new_ticket(asked)
        if prompt is None or self.data_centers is not None:
            asked.room.ledger.arrive(ticket.id, ticket.key, self._on_outcome(ARRIVE, asked, ticket))
            return None
        signs = asked.arrival.signs
        told = asked.room.tells_newcomers or signs is None or signs.wants_facts
        outcome = prompt.arrive_now(ticket.id, asked.now_ms, told)
        if not told and outcome.standing is STANDING_WAITING:
            hold = self._hold
            return hold(ARRIVE, asked, ticket, outcome, True)
        return self._answered(ARRIVE, asked, ticket, outcome)

    def _provisional(self, asked: Inquiry) -> None:
        ticket = self._new_ticket(asked)

        def answered(outcome: Outcome) -> None:
            try:
                if outcome.standing is STANDING_WAITING:
                    verdict = self._placed_nowhere(asked, ticket)
                else:
                    verdict = self._admit(
                        replace(asked, now_ms=self.now_ms()),
                        ticket,
                        outcome,
                        PROVISIONALLY,
                        self.data_centers,
                    )
                    if comes_from_elsewhere(asked.arrival) and isinstance(verdict, Forward):
                        # or it would overwrite the ticket that the browser kept back
                        verdict = replace(verdict, set_cookie=b"", pass_cookie=b"", lines=b"")
            except Exception as error:
                verdict = self._failed(error, asked.arrival, asked.now_ms, asked.room)
            if verdict is not None:
                asked.later(verdict)

        asked.room.ledger.arrive_provisionally(ticket.id, ticket.key, answered)

    def _placeless(self, asked: Inquiry) -> Verdict | None:
        return self._placed_nowhere(asked, self._new_ticket(asked))

    def _placed_nowhere(self, asked: Inquiry, ticket: Ticket) -> Verdict | None:
        """A HEAD is answered like GET."""
        if not is_head_of_page(asked.room.room, asked.arrival):
            return self._holding.without_place(asked)

        def seen(outcome: Outcome) -> None:
            try:
                verdict: Verdict = self._holding.of_head(
                    replace(asked, now_ms=self.now_ms()), ticket, outcome
                )
            except Exception as error:
                verdict = self._failed(error, asked.arrival, asked.now_ms, asked.room)
            asked.later(verdict)

        asked.room.ledger.peek(ticket.id, ticket.key, seen)
        return None

    def _leave(self, asked: Inquiry) -> Verdict:
        room, arrival, ticket = (
            asked.room,
            asked.arrival,
            asked.found[0][0] if asked.found else None,
        )

        def left(was: Outcome) -> None:
            decided = (
                Decided.NOT_HERE if was.storage_failed else LEFT.get(was.standing, Decided.NOT_HERE)
            )
            self._observe(DecisionEvent(asked.now_ms, decided, room.effective, arrival, ticket))

        if ticket is None:
            left(NOBODY)
        else:
            room.ledger.leave(ticket.id, ticket.key, left)
            desk = self.calling.desk
            if room.calls and desk is not None:
                desk.run(desk.drop(room.room.id, ticket.id), False)
        # A cookie that holds no genuine ticket is left alone: any page could send such a request,
        # and delete what it did not set.
        return left_answer(
            room.page,
            arrival,
            room.cookies.of(arrival.scheme, arrival.prefix).expire() if ticket is not None else b"",
        )

    def _moved(self, room: CompiledRoom, old: bytes, new: bytes) -> None:
        desk = self.calling.desk
        if desk is not None:
            draw = room.draw
            drawn = (lambda key: draw.key(old, key)) if draw else (lambda key: key)
            desk.run(desk.move(room.room.id, old, new, drawn), None)

    def _receipt(self, asked: Inquiry) -> Verdict:
        room, ticket = asked.room, asked.found[0][0]
        receipt = room.draw.receipt_file(ticket.id) if room.draw is not None else None
        if room.draw is None or receipt is None:
            raise ValueError("a receipt was promised, and there is none")
        self._observe(
            DecisionEvent(asked.now_ms, Decided.RECEIPT, room.effective, asked.arrival, ticket)
        )
        return for_scripts(receipt_answer(receipt, room.draw.draw_id), room.page, asked.arrival)

    def _line_table(self, asked: Inquiry) -> Verdict | None:
        room = asked.room
        if room.line_table is None:
            raise ValueError("a table of the line was promised, and there is none")
        self._observe(
            DecisionEvent(asked.now_ms, Decided.LINE_TABLE, room.effective, asked.arrival)
        )

        def readable(answer: Answer) -> Answer:
            return for_scripts(answer, room.page, asked.arrival)

        answer = room.line_table.answer(asked.now_ms, lambda answer: asked.later(readable(answer)))
        return None if answer is None else readable(answer)

    def _not_asked(self, asked: Inquiry) -> Verdict:  # noqa: ARG002 - asked like the others
        raise ValueError("no room is asked about such an arrival")

    # -- ledgers that may answer later -------------------------------------------------------------

    def _on_outcome(
        self, question: ArrivalQuestion, asked: Inquiry, ticket: Ticket
    ) -> LedgerAnswered:
        def answered(outcome: Outcome, visiting: bool = False) -> None:
            now_ms = self.now_ms()
            try:
                verdict = self._answered(
                    question, replace(asked, now_ms=now_ms), ticket, outcome, visiting
                )
            except Exception as error:
                verdict = self._failed(error, asked.arrival, now_ms, asked.room)
            if verdict is not None:
                asked.later(verdict)

        return answered

    def _view_elsewhere(self, asked: Inquiry, ticket: Ticket) -> None:
        answered, ledger, data_centers = (
            self._on_outcome(VIEW, asked, ticket),
            asked.room.ledger,
            self.data_centers,
        )
        if data_centers is None or ticket.home == NO_HOME:
            ledger.view(ticket.id, answered)
        else:
            ledger.view(ticket.id, or_abroad(ledger, ticket, data_centers, answered))

    def _tried_late(self, asked: Inquiry, ticket: Ticket, outcome: Outcome) -> Verdict | None:
        def decide(newest: Outcome, done: Done) -> None:
            now_ms = self.now_ms()
            try:
                verdict = self._answered(
                    POLL, replace(asked, now_ms=now_ms, later=done, late=None), ticket, newest
                )
            except Exception as error:
                verdict = self._failed(error, asked.arrival, now_ms, asked.room)
            if verdict is not None:
                done(verdict)

        def hold(newest: Outcome, held_ms: int) -> Verdict:
            verdict = self._hold(POLL, replace(asked, now_ms=self.now_ms()), ticket, newest)
            applied = preferred(asked.arrival) if held_ms else b""
            return replace(verdict, applied=applied) if applied else verdict

        late = asked.late
        held_ms = patience_ms(asked.arrival) if late is not None else 0
        gap_ms = asked.now_ms - ticket.checked_ms
        trying = LateTry(asked.room.ledger, ticket, gap_ms, outcome, decide, hold, held_ms)
        if held_ms and late is not None:
            if late(trying):
                return None
            trying.held_ms = 0
        return trying.give_up() or OUTAGE

    # -- verdicts ----------------------------------------------------------------------------------

    def _answered(
        self,
        question: ArrivalQuestion,
        asked: Inquiry,
        ticket: Ticket,
        outcome: Outcome,
        visiting: bool = False,
    ) -> Verdict | None:
        standing = outcome.standing
        if standing is STANDING_ACTIVE:
            return self._admit(asked, ticket, outcome, ACTIVE, self.data_centers, visiting)
        if standing is STANDING_WAITING:
            if question is POLL and is_due(outcome) and is_late(ticket, asked.now_ms):
                return self._tried_late(asked, ticket, outcome)
            hold = self._hold
            return hold(question, asked, ticket, outcome)
        if standing is STANDING_GONE:
            if outcome.kept_ms:
                self._reenter(asked, ticket)
                return None
            if asked.room.moves:
                return self._moving.gone(asked, outcome, lambda: self._again(asked))
            return self._again(asked)
        decided = REENTERED if outcome.kept_ms else ADMITTED
        return self._admit(asked, ticket, outcome, decided, self.data_centers, visiting)

    def _reenter(self, asked: Inquiry, ticket: Ticket) -> None:
        """The session is over, and the turn was kept: the visitor waits by the old key."""
        waiting = Ticket(ticket.id, ticket.key, 0, asked.now_ms, 0)
        asked.room.ledger.reenter(ticket.id, ticket.key, self._on_outcome(POLL, asked, waiting))

    def _new_ticket(self, asked: Inquiry) -> Ticket:
        now_ms, draw, entropy = asked.now_ms, asked.room.draw, self._entropy
        came_ms = now_ms if draw is None else draw.arrival_ms(now_ms)
        ticket_id, tie = _DRAWN.unpack(entropy(_DRAWN.size))
        return Ticket(ticket_id, make_key(came_ms, tie), 0, now_ms, 0)

    def _failed(
        self, error: Exception, arrival: Arrival, now_ms: int, compiled: CompiledRoom | None = None
    ) -> Verdict:
        self._on_error(error)
        self._observe(
            DecisionEvent(now_ms, Decided.FAILED, compiled.effective if compiled else None, arrival)
        )
        return OUTAGE if compiled is None else for_scripts(OUTAGE, compiled.page, arrival)
