"""Verdicts for visitors who may go on. Requests of one page share a ticket, so a session's last
verdict is cached with everything it depends on.
"""

from greenroom.decision.data_centers import DataCenters
from greenroom.decision.inquiry import Inquiry
from greenroom.decision.observer import Decided, DecisionEvent, Observer
from greenroom.decision.render import let_in_update
from greenroom.decision.tickets import Sealer
from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.model.record import replace
from greenroom.model.visit import NO_HOME, Outcome, Ticket
from greenroom.request.admissible import UPDATE_HEADER

ACTIVE, PROVISIONALLY = Decided.ACTIVE, Decided.PROVISIONAL
REENTERED = Decided.REENTERED

SESSIONS_CACHED: int = 4_096
"""At most 4 MB."""


_Given = tuple[tuple[object, ...], Forward | Answer, tuple[Ticket, object, bytes], bytes]
"""Dependencies, verdict, then the sealed ticket and its dependencies."""
_NOTHING: _Given = ((), Answer(0, AnswerHeaders(), b""), (Ticket(b"", 0, 0, 0, 0), None, b""), b"")


class Admitting:
    def __init__(self, sealer: Sealer, observe: Observer) -> None:
        self._sealer = sealer
        self._observe = observe
        self._given: dict[bytes, _Given] = {}

    def verdict(
        self,
        asked: Inquiry,
        ticket: Ticket,
        outcome: Outcome,
        decided: Decided,
        data_centers: DataCenters | None,
        visiting: bool = False,
    ) -> Forward | Answer:
        """`visiting`: the session is in another data center's ledger."""
        room, arrival, found, now_ms = asked.room, asked.arrival, asked.found, asked.now_ms
        presented, facts, observe = ticket if found else None, arrival.facts, self._observe
        observe(DecisionEvent(now_ms, decided, room.effective, arrival, presented, outcome))
        accepted_ms, home = ticket.accepted_ms, ticket.home
        if not accepted_ms:
            accepted_ms, home = now_ms, NO_HOME
        if data_centers is not None and not (visiting and decided is ACTIVE):
            home = data_centers.here
        update = (
            UPDATE_HEADER in facts
            if facts is not None
            else arrival.header(UPDATE_HEADER) is not None
        )
        early = (
            decided is ACTIVE
            and presented is not None
            and home == ticket.home
            and 2 * (now_ms - ticket.checked_ms) <= room.session_ms
        )
        key = self._sealer.ring.current
        terms = (
            now_ms // 1000,
            found,
            room,
            outcome.renewed_ms,
            outcome.expires_ms,
            outcome.refresh_ms // 1000,
            early,
            decided,
            home,
            (arrival.scheme, arrival.prefix),
            update,
            key,
        )
        known = self._given.get(ticket.id, _NOTHING)
        if known[0] == terms:
            return known[1]
        refresh_ms = outcome.refresh_ms // 1000 * 1000  # or each part of a page had its own ticket
        renewed_ms = outcome.renewed_ms or now_ms
        renewed = Ticket(ticket.id, ticket.key, accepted_ms, renewed_ms, refresh_ms, home)
        content = (renewed, key, room.id)
        if ticket == renewed and found and found[0][1]:
            sealed = found[0][1]  # unchanged since the visitor got it, at most q ago
        elif known[2] == content:
            sealed = known[3]
        else:
            sealed = self._sealer.seal(renewed, room.id)
        lasts_s = (
            room.session_ms if room.renews else outcome.renewed_ms + room.session_ms - now_ms
        ) // 1000
        writer = room.cookies.of(arrival.scheme, arrival.prefix)
        cookie = writer.set(sealed, lasts_s if lasts_s > 1 else 1, now_ms)
        if update:
            verdict: Forward | Answer = let_in_update(room.page, arrival, cookie)
        else:
            verdict = _forward(asked, ticket, outcome, decided, cookie, early, visiting)
        if found:
            self._keep(asked, outcome, update, ticket.id, (terms, verdict, content, sealed))
        return verdict

    def _keep(
        self, asked: Inquiry, outcome: Outcome, update: bool, ticket_id: bytes, given: _Given
    ) -> None:
        if len(self._given) >= SESSIONS_CACHED:
            self._given.clear()
        room = asked.room
        lasts = outcome.renewed_ms and room.renews and room.passes is None
        if not lasts or (update and room.page.cors_origins):
            given = ((), *given[1:])  # the verdict depends on more than its terms
        self._given[ticket_id] = given


def _forward(
    asked: Inquiry,
    ticket: Ticket,
    outcome: Outcome,
    decided: Decided,
    cookie: bytes,
    early: bool,
    visiting: bool,
) -> Forward:
    room, arrival, passes = asked.room, asked.arrival, asked.room.passes
    passed = (
        passes.cookie(arrival, outcome, asked.now_ms)
        if passes is not None and not visiting
        else b""
    )
    provisional = decided is PROVISIONALLY
    forward = Forward(
        cookie,
        room.room.id,
        ticket,
        room.obeys_origin,
        outcome.expires_ms,
        provisional,
        early,
        passed,
        arrival.scheme,
        room.page,
        prefix=arrival.prefix,
        reentered=decided is REENTERED,
    )
    return _with_lines(forward, room.extensions) if passed or room.extensions else forward


def _with_lines(forward: Forward, extensions: int) -> Forward:
    session = lines = b""
    if forward.pass_cookie:
        lines = b"Set-Cookie: %b\r\n" % forward.pass_cookie
    if extensions and not forward.provisional:
        session = b"ends=%d" % (forward.expires_ms // 1000)
        lines += b"Greenroom-Session: %b\r\n" % session
    return replace(forward, session=session, lines=lines)
