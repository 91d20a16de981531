"""Verdicts for waiting visitors."""

from greenroom.admission.decide import PEEK, VIEW, ArrivalQuestion
from greenroom.admission.schedule import Phase
from greenroom.decision.inquiry import Inquiry
from greenroom.decision.observer import Decided, DecisionEvent, Observer
from greenroom.decision.prequeue_draw import NOT_TOLD
from greenroom.decision.room_schedule import CompiledRoom
from greenroom.decision.shared_table import refresh_ms_for
from greenroom.decision.tickets import Sealer, marked
from greenroom.decision.verdict import Hold, SharedPages
from greenroom.model.record import replace
from greenroom.model.visit import (
    AWAY,
    AWAY_MAX_MS,
    HOME_BYTES,
    PLACE_KEPT_MS,
    TIE_BITS,
    Arrival,
    Held,
    Outcome,
    Ticket,
)

HELD = Decided.HELD
_NOTHING: tuple[Ticket | None, bytes] = (None, b"")
KEPT_S = PLACE_KEPT_MS // 1000
AWAY_S = AWAY_MAX_MS // 1000

_AWAY_MARK = int.from_bytes(AWAY, "big")

_Moment = tuple[CompiledRoom, int, dict[tuple[int, int, bool], tuple[Held, SharedPages | None]]]
"""A room's stage, a second, and the pages of new visitors then, by refresh and journal failure."""


class Holding:
    def __init__(self, sealer: Sealer, observe: Observer) -> None:
        self._sealer = sealer
        self._observe = observe
        self._moments: dict[bytes, _Moment] = {}

    def forget(self) -> None:
        self._moments.clear()

    def verdict(
        self,
        question: ArrivalQuestion,
        asked: Inquiry,
        ticket: Ticket,
        outcome: Outcome,
        newcomer: bool = False,
    ) -> Hold:
        """`newcomer`: the page says nothing of the wait, so it may be shared."""
        room, arrival, now_ms, observe = asked.room, asked.arrival, asked.now_ms, self._observe
        presented, spelled = asked.found[0] if asked.found else _NOTHING
        observe(DecisionEvent(now_ms, HELD, room.effective, arrival, presented, outcome))
        told = ticket.home
        if question is not PEEK:
            ticket = _tried(room, arrival, ticket, outcome, now_ms)
        if outcome.searching and question is not VIEW:
            ticket, outcome = _as_told(ticket, told, outcome)
        elif outcome.about is not None and outcome.position and room.room.queueing_method == "fifo":
            ticket, outcome = _never_further_back(ticket, told, outcome)
        cookie, kept_s = b"", KEPT_S
        away = told >= AWAY and presented is not None and not presented.accepted_ms
        if away:
            ticket, kept_s = marked(ticket), AWAY_S
        if _gives_ticket(room, question, outcome, presented):
            kept = question is PEEK and spelled and ticket.home == told
            sealed = spelled if kept else self._sealer.seal(ticket, room.id)
            cookie = room.cookies.of(arrival.scheme, arrival.prefix).set(sealed, kept_s, now_ms)
        if newcomer:
            held, shown = self._at_this_moment(room, ticket, outcome, now_ms)
            if shown is not None:
                return _hold(room, held, cookie, shown)
        held = _held(room, ticket, outcome, now_ms)
        if away and room.keeps_absent and not room.draws_at_ms:
            held = replace(held, away_minutes=room.room.claim_minutes)
        return _hold(room, held, cookie)

    def _at_this_moment(
        self, room: CompiledRoom, ticket: Ticket, outcome: Outcome, now_ms: int
    ) -> tuple[Held, SharedPages | None]:
        """The facts of the page, and the answers shared in this second; None: not shared."""
        moment = self._moments.get(room.id)
        if moment is None or moment[0] is not room or moment[1] != now_ms // 1000:
            moment = self._moments[room.id] = (room, now_ms // 1000, {})
        key = (
            -ticket.refresh_ms // 1000,
            (now_ms - ticket.checked_ms - ticket.refresh_ms) // 1000,
            outcome.storage_failed,
        )
        found = moment[2].get(key)
        if found is None:
            held = _held(room, ticket, outcome, now_ms)
            found = moment[2][key] = (held, {} if room.page.same_for_all(held) else None)
        return found

    def without_place(self, asked: Inquiry) -> Hold:
        self._observe(
            DecisionEvent(asked.now_ms, Decided.PLACELESS, asked.room.effective, asked.arrival)
        )
        return _hold(asked.room, None, b"")

    def of_head(self, asked: Inquiry, ticket: Ticket, outcome: Outcome) -> Hold:
        """What GET would show, with a ticket that is not given out."""
        room, now_ms = asked.room, asked.now_ms
        self._observe(DecisionEvent(now_ms, Decided.PLACELESS, room.effective, asked.arrival))
        ticket = _tried(room, asked.arrival, ticket, outcome, now_ms)
        return _hold(room, _held(room, ticket, outcome, now_ms), b"")


def _gives_ticket(
    room: CompiledRoom, question: ArrivalQuestion, outcome: Outcome, presented: Ticket | None
) -> bool:
    if question is VIEW and (outcome.storage_failed or outcome.searching):
        return False  # the ticket of a session is kept as it is
    return presented is not None or not room.turns_away


def _hold(
    compiled: CompiledRoom, held: Held | None, cookie: bytes, shown: SharedPages | None = None
) -> Hold:
    room = compiled.room
    status, json, uniform = (
        room.queueing_status_code,
        room.json_response_enabled,
        room.same_status_for_all,
    )
    return Hold(room.id, compiled.page, status, json, uniform, held, cookie, shown)


def _tried(
    compiled: CompiledRoom, arrival: Arrival, ticket: Ticket, outcome: Outcome, now_ms: int
) -> Ticket:
    told_ms = (
        outcome.refresh_ms
        if compiled.line_table is None
        else refresh_ms_for(outcome.refresh_ms, compiled.room, arrival)
    )
    return Ticket(ticket.id, ticket.key, 0, outcome.attempted_ms or now_ms, told_ms)


def _never_further_back(ticket: Ticket, told: bytes, outcome: Outcome) -> tuple[Ticket, Outcome]:
    """A waiting visitor's ticket carries the place last shown once it is exact, because reports of
    other data centers and returning visitors come late.
    """
    best = int.from_bytes(told, "big") % _AWAY_MARK
    place = min(best, outcome.position) if best else outcome.position
    home = told if outcome.about else place.to_bytes(HOME_BYTES, "big")
    ahead = min(outcome.ahead, place - 1)
    return replace(ticket, home=home), replace(outcome, position=place, ahead=ahead)


def _as_told(ticket: Ticket, told: bytes, outcome: Outcome) -> tuple[Ticket, Outcome]:
    """Holds the visitor until it is known whether the place moved to another device."""
    place = int.from_bytes(told, "big") % _AWAY_MARK or outcome.position
    return replace(ticket, home=told), replace(outcome, position=place, ahead=place - 1)


def _held(compiled: CompiledRoom, ticket: Ticket, outcome: Outcome, now_ms: int) -> Held:
    room, effective = compiled.room, compiled.effective
    refresh_s = next_try_s = 0
    if not compiled.turns_away:
        left_s = -((now_ms - ticket.checked_ms - ticket.refresh_ms) // 1000)
        refresh_s, next_try_s = -(-ticket.refresh_ms // 1000), left_s if left_s > 1 else 1
    estimate, position, ahead = outcome.estimate, outcome.position, outcome.ahead
    least_minutes = (
        ahead // room.new_users_per_minute
        if estimate is None and room.queueing_method == "fifo"
        else 0
    )
    method = room.queueing_method
    if method == "reject" and not compiled.turns_away:
        method = "fifo"  # held with a place: by queue_all, or before the event
    held = Held(
        now_ms,
        method,
        ticket.checked_ms,
        refresh_s,
        next_try_s,
        estimate,
        least_minutes,
        False,  # queue_full
        room.queue_all,
        position,
        ahead,
        outcome.waiting,
        ticket.key >> TIE_BITS,
        position > 0,
        outcome.storage_failed,
        effective.origin_stops,
    )
    if outcome.about:
        held = replace(held, about=True)
    if compiled.offers is not None:
        held = replace(held, offers=compiled.offers)
    if compiled.draw is not None or effective.event is not None:
        return _with_event(held, compiled, ticket.id)
    return held


def _with_event(held: Held, compiled: CompiledRoom, ticket_id: bytes) -> Held:
    effective, event = compiled.effective, compiled.effective.event
    told = compiled.draw.standing_of(ticket_id) if compiled.draw else NOT_TOLD
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
