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
    decide,
    decide_among,
)
from greenroom.core.schedule import Phase
from greenroom.decision.data_centers import DataCenters
from greenroom.decision.observer import Decided, DecisionEvent, Observer
from greenroom.decision.prequeue_draw import NOT_TOLD
from greenroom.decision.render import OUTAGE, left_answer, let_in_update, receipt_answer
from greenroom.decision.room_schedule import CompiledRoom
from greenroom.decision.room_table import RoomTable
from greenroom.decision.ticket_reader import TicketReader
from greenroom.decision.tickets import Sealer
from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.model.visit import (
    NO_HOME,
    PLACE_KEPT_MS,
    RAY_BYTES,
    TICKET_ID_BYTES,
    Arrival,
    Held,
    Outcome,
    Standing,
    Ticket,
    arrival_ms_of,
    make_key,
)
from greenroom.ports import Clock

STANDING_ADMITTED, STANDING_ACTIVE, STANDING_WAITING, STANDING_GONE = Standing
ADMITTED, ACTIVE, HELD = Decided.ADMITTED, Decided.ACTIVE, Decided.HELD
PASS = Forward()
"""On to the origin without a ticket."""

_PASSING = (Decided.UNCOVERED, Decided.SUSPENDED, Decided.BYPASSED)
"""What was decided when `ArrivalQuestion` is UNCOVERED (0), SUSPENDED (1) or BYPASSED (2)."""

Done = Callable[[Verdict], None]


class DecisionService:
    """Turns an Arrival into a Verdict. `table` is swapped as a whole by a reload."""

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
        self.table = table
        self.data_centers: DataCenters | None = None
        """The data centers, where there may be several."""
        self._sealer = sealer
        self._reader = TicketReader(sealer)
        self._now_ms = clock.now_ms
        self._entropy = entropy
        self._on_error = on_error
        self._observe = observe
        self._next_ray = count(int.from_bytes(entropy(RAY_BYTES), "big") | 1).__next__

    @property
    def own_cookies(self) -> frozenset[bytes]:
        """Names of the ticket cookies; they never reach an origin."""
        return self.table.own_cookies

    def receive(self, arrival: Arrival, done: Done) -> None:
        """Calls `done` exactly once, now or later. Never raises: an error inside is an answer that holds the visitor."""
        now_ms, compiled = self._now_ms(), None
        try:
            schedule = self.table.find(arrival.host, arrival.path)
            if schedule is not None:
                compiled = schedule.at(now_ms)
            if compiled is not None and compiled.bypass is not None:
                arrival = replace(arrival, ray=self._next_ray())
            question, found = decide(compiled, arrival, now_ms, self._tickets)
            if compiled is not None and question is not SUSPENDED and question is not BYPASSED:
                self._ask(compiled, arrival, question, found, now_ms, done)
                return
            self._observe(DecisionEvent(now_ms, _PASSING[question], compiled.effective if compiled is not None else None, arrival))
            verdict: Verdict = PASS
        except Exception as error:
            verdict = self._failed(error, arrival, now_ms, compiled)
        done(verdict)

    def obey(self, forward: Forward, command: bytes) -> bytes:
        """Obeys the origin's Cf-Waiting-Room-Command; the Set-Cookie value to send instead of the ticket, or empty.

        Only `revoke` is known: the session ends at once and its unit is free. Anything else is ignored, as is any command to
        a room that did not enable it.
        """
        schedule = self.table.rooms.get(forward.room_id)
        if command.strip().lower() != b"revoke" or schedule is None or not forward.obeys_origin or not forward.ticket_id:
            return b""
        compiled = schedule.now
        compiled.ledger.leave(forward.ticket_id)
        self._observe(DecisionEvent(self._now_ms(), Decided.REVOKED, compiled.effective))
        return compiled.cookies.expire()

    def _tickets(self, compiled: CompiledRoom, arrival: Arrival, now_ms: int) -> Found:
        """The genuine tickets of this room, by the keys that count; one whose key was drawn has no spelling yet."""
        found = self._reader.find(arrival, compiled.cookie_name, compiled.id, now_ms)
        draw = compiled.draw
        if draw is None or not found:
            return found
        counting = [(draw.standing(ticket), ticket, value) for ticket, value in found]
        return [(counts, value if counts is ticket else b"") for counts, ticket, value in counting]

    def _ask(self, compiled: CompiledRoom, arrival: Arrival, question: ArrivalQuestion, found: Found, now_ms: int, done: Done) -> None:
        """Carries out what `decide` named. Raises what the ledger raises; `receive` holds the visitor then."""
        if question is VIEW or question is POLL or question is PEEK or question is ARRIVE:
            self._ask_ledger(compiled, arrival, question, found, now_ms, done)
        elif question is PLACELESS:
            done(self._placeless(compiled, arrival, now_ms))
        elif question is PROVISIONAL:
            self._ask_in_passing(compiled, arrival, now_ms, done)
        elif question is RECEIPT:
            done(self._receipt(compiled, arrival, found[0][0], now_ms))
        elif question is LEAVE:
            ticket = found[0][0] if found else None
            if ticket is not None:
                compiled.ledger.leave(ticket.id, ticket.key)
            self._observe(DecisionEvent(now_ms, Decided.LEFT, compiled.effective, arrival, ticket))
            done(left_answer(compiled.page, arrival, compiled.cookies.expire()))
        elif question is UNCOVERED or question is SUSPENDED or question is BYPASSED:
            raise ValueError(f"{question!r} asks nothing of a room")
        else:
            assert_never(question)

    def _ask_ledger(
        self, compiled: CompiledRoom, arrival: Arrival, question: ArrivalQuestion, found: Found, now_ms: int, done: Done
    ) -> None:
        presented, spelled = found[0] if found else (None, None)
        ticket = presented if presented is not None else self._new_ticket(now_ms)

        def answered(outcome: Outcome, visiting: bool = False) -> None:
            try:
                if outcome.standing is STANDING_GONE:
                    later_ms = self._now_ms()
                    self._ask(compiled, arrival, *decide_among(compiled, arrival, later_ms, found[1:], True), later_ms, done)
                    return
                if outcome.standing is STANDING_WAITING:
                    verdict: Verdict = self._hold(compiled, arrival, question, ticket, presented, spelled, outcome)
                else:
                    decided = ADMITTED if outcome.standing is STANDING_ADMITTED else ACTIVE
                    verdict = self._let_in(compiled, arrival, ticket, presented, spelled, outcome, decided, visiting)
            except Exception as error:
                verdict = self._failed(error, arrival, now_ms, compiled)
            done(verdict)

        ledger = compiled.ledger
        if question is VIEW:
            data_centers = self.data_centers if ticket.home != NO_HOME else None
            ledger.view(ticket.id, _or_abroad(compiled, ticket, data_centers.name(ticket.home), answered) if data_centers else answered)
        elif question is POLL:
            ledger.poll(ticket.id, ticket.key, answered)
        elif question is PEEK:
            ledger.peek(ticket.id, ticket.key, answered)
        else:
            ledger.arrive(ticket.id, ticket.key, answered)

    def _ask_in_passing(self, compiled: CompiledRoom, arrival: Arrival, now_ms: int, done: Done) -> None:
        """A request that cannot wait is let in for some seconds, or answered at once that it cannot."""
        ticket = self._new_ticket(now_ms)

        def answered(outcome: Outcome) -> None:
            try:
                if outcome.standing is STANDING_WAITING:
                    verdict: Verdict = self._placeless(compiled, arrival, now_ms)
                else:
                    verdict = self._let_in(compiled, arrival, ticket, None, None, outcome, Decided.PROVISIONAL)
            except Exception as error:
                verdict = self._failed(error, arrival, now_ms, compiled)
            done(verdict)

        compiled.ledger.arrive_provisionally(ticket.id, ticket.key, answered)

    def _placeless(self, compiled: CompiledRoom, arrival: Arrival, now_ms: int) -> Hold:
        self._observe(DecisionEvent(now_ms, Decided.PLACELESS, compiled.effective, arrival))
        return _hold_of(compiled)

    def _new_ticket(self, now_ms: int) -> Ticket:
        drawn = self._entropy(TICKET_ID_BYTES + 3)
        key = make_key(now_ms, int.from_bytes(drawn[TICKET_ID_BYTES:], "big"))
        return Ticket(id=drawn[:TICKET_ID_BYTES], key=key, accepted_ms=0, checked_ms=now_ms, refresh_ms=0)

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
        ticket: Ticket,
        presented: Ticket | None,
        spelled: bytes | None,
        outcome: Outcome,
        decided: Decided,
        visiting: bool = False,
    ) -> Verdict:
        """`visiting`: the session is in the ledger of another data center, and has not followed yet when it is ACTIVE."""
        now_ms = self._now_ms()
        self._observe(DecisionEvent(now_ms, decided, compiled.effective, arrival, presented, outcome))
        accepted_ms = ticket.accepted_ms or now_ms
        renewed_ms = outcome.renewed_ms or now_ms
        home = ticket.home if self.data_centers is None or (visiting and decided is ACTIVE) else self.data_centers.here
        # Nothing in it has changed since the visitor got it, at most q ago: it is sent as it is spelled.
        unchanged = ticket.accepted_ms and ticket.checked_ms == renewed_ms and ticket.home == home
        sealed = spelled if unchanged and spelled else None
        if sealed is None:
            sealed = self._sealer.seal_once(Ticket(ticket.id, ticket.key, accepted_ms, renewed_ms, 0, home), compiled.id)
        room = compiled.room
        lasts_ms = room.session_ms if not room.disable_session_renewal else outcome.renewed_ms + room.session_ms - now_ms
        cookie = compiled.cookies.set(sealed, max(1, lasts_ms // 1000), now_ms)
        if arrival.header(UPDATE_HEADER) is not None:
            return let_in_update(compiled.page, cookie)
        return Forward(cookie, room.id, ticket.id, bool(room.enabled_origin_commands))

    def _hold(
        self,
        compiled: CompiledRoom,
        arrival: Arrival,
        question: ArrivalQuestion,
        ticket: Ticket,
        presented: Ticket | None,
        spelled: bytes | None,
        outcome: Outcome,
    ) -> Hold:
        now_ms, room = self._now_ms(), compiled.room
        self._observe(DecisionEvent(now_ms, HELD, compiled.effective, arrival, presented, outcome))
        if question is not PEEK:
            ticket = Ticket(ticket.id, ticket.key, 0, outcome.attempted_ms or now_ms, outcome.refresh_ms)
        checked_ms, refresh_ms, position = ticket.checked_ms, ticket.refresh_ms, outcome.position
        next_try_s = 0 if compiled.turns_away else max(1, -((now_ms - checked_ms - refresh_ms) // 1000))
        held = Held(
            now_ms,
            room.queueing_method,
            checked_ms,
            0 if compiled.turns_away else -(-refresh_ms // 1000),
            next_try_s,
            outcome.estimate,
            queue_all=room.queue_all,
            origin_unhealthy=compiled.effective.origin_down,
            position=position,
            ahead=outcome.ahead,
            waiting=outcome.waiting,
            joined_ms=arrival_ms_of(ticket.key),
            in_line=position > 0,
            storage_failed=outcome.storage_failed,
        )
        if compiled.effective.event or compiled.draw:
            held = _with_event(held, compiled, ticket.id)
        cookie = b""
        known = not (outcome.storage_failed and question is VIEW)  # else the ticket of a session is kept as it is
        if known and (spelled is not None or not compiled.turns_away):
            sealed = spelled if question is PEEK and spelled else self._sealer.seal(ticket, compiled.id)
            cookie = compiled.cookies.set(sealed, PLACE_KEPT_MS // 1000, now_ms)
        return _hold_of(compiled, held, cookie)


def _hold_of(compiled: CompiledRoom, held: Held | None = None, cookie: bytes = b"") -> Hold:
    room = compiled.room
    return Hold(room.id, compiled.page, room.queueing_status_code, room.json_response_enabled, room.same_status_for_all, held, cookie)


def _or_abroad(compiled: CompiledRoom, ticket: Ticket, home: str, answered: Callable[[Outcome, bool], None]) -> Callable[[Outcome], None]:
    """A session that is not in the ledger here may be in that of the data center that its ticket names."""

    def viewed(outcome: Outcome) -> None:
        if outcome.standing is STANDING_GONE:
            compiled.ledger.visit(ticket.id, ticket.key, home, ticket.checked_ms, lambda found: answered(found, True))
        else:
            answered(outcome, False)

    return viewed


def _with_event(held: Held, compiled: CompiledRoom, ticket_id: bytes) -> Held:
    """The same with what an event and its draw add."""
    effective, event = compiled.effective, compiled.effective.event
    told = compiled.draw.told(ticket_id) if compiled.draw else NOT_TOLD
    return replace(
        held,
        event_active=event is not None,
        event_prequeueing=effective.phase is Phase.PREQUEUE,
        event_start_ms=event.event_start_ms if event else 0,
        event_end_ms=event.event_end_ms if event else 0,
        shuffle_at_event_start=event is not None and event.shuffle_at_event_start,
        receipt=told.receipt,
        draw_commitment=told.commitment,
        draw_seed=told.seed,
        drawn_place=told.place,
        drawn_size=told.size,
    )
