"""Receives every arrival: finds its room, opens its ticket, asks the ledger one question and words the reply.

This is sequencing only. Which question to ask is `core.decide`'s business, the answer is the ledger's, the wording is the
page's. One rule stands above the rest: whatever goes wrong in here, the visitor is held, never passed to the origin.
"""

from collections.abc import Callable
from itertools import count

from msgspec.structs import replace

from greenroom.core.admissible import UPDATE_HEADER, may_take_place, speculative
from greenroom.core.decide import PEEK, PLACELESS, POLL, VIEW, Question, decide, rank
from greenroom.core.schedule import Phase
from greenroom.decision.data_centers import DataCenters
from greenroom.decision.prequeue_draw import NOT_TOLD, PrequeueDraw
from greenroom.decision.render import LEFT, OUTAGE, UPDATE_LET_IN, held_head, left_page_answer, placeless_answer, receipt_answer
from greenroom.decision.room_schedule import CompiledRoom
from greenroom.decision.room_table import RoomTable
from greenroom.decision.ticket_reader import Found, TicketReader
from greenroom.decision.tickets import Sealer
from greenroom.model.visit import (
    NO_HOME,
    PLACE_KEPT_MS,
    RAY_BYTES,
    TICKET_ID_BYTES,
    Answer,
    Arrival,
    Forward,
    Held,
    Outcome,
    Reply,
    Standing,
    Ticket,
    arrival_ms_of,
    make_key,
)
from greenroom.ports import Clock

ADMITTED, ACTIVE, WAITING, GONE = Standing
PASS = Forward()
LEAVE_VALUE = b"leave"
LEAVE_QUERY = "greenroom=leave"
"""How the built-in page gives up a place: the update header with this value, or without JavaScript a form with this query."""

RECEIPT_QUERY = "greenroom=receipt"
"""How a visitor saves the receipt for a draw: the built-in page links to it, and it works once the visitor is in as well."""

Then = Callable[[Reply], None]


class DecisionService:
    """Turns an Arrival into a Reply. `table` is swapped as a whole by a reload."""

    def __init__(
        self,
        table: RoomTable,
        sealer: Sealer,
        clock: Clock,
        entropy: Callable[[int], bytes],
        on_error: Callable[[BaseException], None],
    ) -> None:
        """`entropy(n)` gives n unpredictable bytes; `on_error` is told of every exception that held a visitor."""
        self.table = table
        self.data_centers: DataCenters | None = None
        """The data centers, where there may be several."""
        self._sealer = sealer
        self._ticket_reader = TicketReader(sealer)
        self._now_ms = clock.now_ms
        self._entropy = entropy
        self._on_error = on_error
        self._next_ray = count(int.from_bytes(entropy(RAY_BYTES), "big") | 1).__next__

    @property
    def own_cookies(self) -> frozenset[bytes]:
        """Names of the ticket cookies; they never reach an origin."""
        return self.table.own_cookies

    def receive(self, arrival: Arrival, then: Then) -> None:
        """Calls `then` exactly once, now or later. Never raises: an error inside is an answer that holds the visitor."""
        try:
            schedule = self.table.find(arrival.host, arrival.path)
            now_ms = self._now_ms()
            if schedule is None:
                reply: Reply = PASS
            elif (compiled := schedule.at(now_ms)).room.suspended:
                compiled.counts["suspended"] += 1
                reply = PASS
            else:
                if compiled.bypass is None or compiled.bypass(replace(arrival, ray=self._next_ray()), now_ms) is None:
                    found = self._ticket_reader.find(arrival, compiled.cookie_name, compiled.id, now_ms)
                    if compiled.draw and found:
                        found = _drawn(compiled.draw, found)
                    tickets = rank([ticket for ticket, _ in found], now_ms) if found else []
                    self._ask(compiled, arrival, tickets, found, now_ms, then)
                    return
                compiled.counts["bypassed"] += 1
                reply = PASS
        except Exception as error:
            self._on_error(error)
            reply = OUTAGE
        then(reply)

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
        compiled.counts["revoked"] += 1
        return compiled.cookies.expire()

    def _ask(self, compiled: CompiledRoom, arrival: Arrival, tickets: list[Ticket], found: Found, now_ms: int, then: Then) -> None:
        able = bool(tickets) or compiled.holds_nobody or may_take_place(arrival, compiled.room.json_response_enabled)
        question = decide(compiled.room, tickets, now_ms, able)
        if question is PLACELESS:
            compiled.counts["placeless"] += 1
            then(placeless_answer(compiled.room, speculative(arrival)))
            return
        if compiled.draw and tickets and arrival.query == RECEIPT_QUERY:
            receipt = compiled.draw.receipt_file(tickets[0].id)
            if receipt is not None:
                then(receipt_answer(receipt, compiled.draw.draw_id))
                return
        ticket = tickets[0] if tickets else self._new_ticket(now_ms)
        if arrival.method == "POST" and _gives_up(arrival):
            if tickets:
                compiled.ledger.leave(ticket.id, ticket.key)
            compiled.counts["left"] += 1
            then(_left(compiled, arrival))
            return

        def answered(outcome: Outcome, visiting: bool = False) -> None:
            try:
                if outcome.standing is WAITING:
                    reply: Reply = self._hold(compiled, arrival, question, ticket, found, outcome)
                elif outcome.standing is GONE:
                    self._ask(compiled, arrival, tickets[1:], found, self._now_ms(), then)
                    return
                else:
                    reply = self._let_in(compiled, arrival, ticket, found, outcome, visiting)
            except Exception as error:
                self._on_error(error)
                reply = OUTAGE
            then(reply)

        if question is VIEW:
            data_centers = self.data_centers if ticket.home != NO_HOME else None
            compiled.ledger.view(
                ticket.id, _or_abroad(compiled, ticket, data_centers.name(ticket.home), answered) if data_centers else answered
            )
        elif question is POLL:
            compiled.ledger.poll(ticket.id, ticket.key, answered)
        elif question is PEEK:
            compiled.ledger.peek(ticket.id, ticket.key, answered)
        else:
            compiled.ledger.arrive(ticket.id, ticket.key, answered)

    def _new_ticket(self, now_ms: int) -> Ticket:
        drawn = self._entropy(TICKET_ID_BYTES + 3)
        key = make_key(now_ms, int.from_bytes(drawn[TICKET_ID_BYTES:], "big"))
        return Ticket(id=drawn[:TICKET_ID_BYTES], key=key, accepted_ms=0, checked_ms=now_ms, refresh_ms=0)

    def _let_in(self, compiled: CompiledRoom, arrival: Arrival, ticket: Ticket, found: Found, outcome: Outcome, visiting: bool) -> Reply:
        """`visiting`: the session is in the ledger of another data center, and has not followed yet when it is ACTIVE."""
        compiled.counts["admitted" if outcome.standing is ADMITTED else "active"] += 1
        now_ms = self._now_ms()
        accepted_ms = ticket.accepted_ms or now_ms
        renewed_ms = outcome.renewed_ms or now_ms
        home = ticket.home if self.data_centers is None or (visiting and outcome.standing is ACTIVE) else self.data_centers.here
        sealed: bytes | None = None
        if ticket.accepted_ms and ticket.checked_ms == renewed_ms and ticket.home == home:
            sealed = _spelled(found, ticket)  # nothing in it has changed since the visitor got it: at most q old
        if not sealed:
            sealed = self._sealer.seal_once(Ticket(ticket.id, ticket.key, accepted_ms, renewed_ms, 0, home), compiled.id)
        room = compiled.room
        lasts_ms = room.session_ms if not room.disable_session_renewal else outcome.renewed_ms + room.session_ms - now_ms
        cookie = compiled.cookies.set(sealed, max(1, lasts_ms // 1000), now_ms)
        if arrival.header(UPDATE_HEADER) is not None:
            return Answer(200, compiled.page.json_head, UPDATE_LET_IN, cookie)
        return Forward(cookie, room.id, ticket.id, bool(room.enabled_origin_commands))

    def _hold(self, compiled: CompiledRoom, arrival: Arrival, question: Question, ticket: Ticket, found: Found, outcome: Outcome) -> Answer:
        compiled.counts["held"] += 1
        room, page, now_ms = compiled.room, compiled.page, self._now_ms()
        if page.follows:
            page = page.speaking(arrival.header(b"accept-language"))
        spelled = _spelled(found, ticket) if found else None
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
        status = room.queueing_status_code
        updating = arrival.header(UPDATE_HEADER) is not None
        if updating or (room.json_response_enabled and arrival.header(b"accept") == b"application/json"):
            status, head, body = 200 if updating else status, page.json_head, page.json(held)
        else:
            head, body = page.shown(held, arrival.header(b"accept-encoding"))
        return Answer(status, held_head(head, next_try_s, status), body, cookie)


def _drawn(draw: PrequeueDraw, found: Found) -> Found:
    """The tickets by the keys that count; one whose key was drawn is not spelled like that anywhere yet."""
    counting = [(draw.standing(ticket), ticket, value) for ticket, value in found]
    return tuple([(counts, value if counts is ticket else b"") for counts, ticket, value in counting])


def _spelled(found: Found, ticket: Ticket) -> bytes | None:
    """How this ticket is spelled in its cookie; empty when it is not any more, None for a new ticket."""
    for theirs, value in found:
        if theirs is ticket:
            return value
    return None


def _or_abroad(compiled: CompiledRoom, ticket: Ticket, home: str, answered: Callable[[Outcome, bool], None]) -> Callable[[Outcome], None]:
    """A session that is not in the ledger here may be in that of the data center that its ticket names."""

    def viewed(outcome: Outcome) -> None:
        if outcome.standing is GONE:
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


def _gives_up(arrival: Arrival) -> bool:
    """Whether the visitor asks to leave the line; only a same-site POST may, so no other page can throw anybody out."""
    if arrival.header(b"sec-fetch-site") not in (None, b"same-origin"):
        return False
    return arrival.header(UPDATE_HEADER) == LEAVE_VALUE or arrival.query == LEAVE_QUERY


def _left(compiled: CompiledRoom, arrival: Arrival) -> Answer:
    cookie = compiled.cookies.expire()
    if arrival.header(UPDATE_HEADER) is not None:
        return Answer(200, compiled.page.json_head, LEFT, cookie)
    return left_page_answer(compiled.page.speaking(arrival.header(b"accept-language")).language, cookie)
