"""A ledger's side of sessions that follow their visitors between data centers (`moves`)."""

from greenroom.admission.ledger.state import LedgerState
from greenroom.admission.messages.moves import MovesDown
from greenroom.admission.records import END, SESSION, pack

SOURCE_SLACK_MS = 60_000
"""Ledgers report a gift until its session is over, by clocks of their own."""


def hear(ledger: LedgerState, down: MovesDown, now_ms: int, newest: bool) -> None:
    """Applies the coordinator's message; `newest`: it answers the last report."""
    ledger.moves.confirm(down, newest)
    if down.turns:
        ledger.log += ledger.moving_turns.hear(down.turns, now_ms)
    remembered_ms = now_ms + ledger.sessions.life_ms + SOURCE_SLACK_MS
    for ticket_id, age_ms, source in ledger.moves.new_arrivals(down):
        if ledger.moves.is_again(source, remembered_ms):
            ledger.lease.returned_freed += 1  # the unit does not exist: nobody may spend it
        else:
            take_over(ledger, ticket_id, now_ms - age_ms, now_ms, orphan=not source)
    for ticket_id, to in down.wanted:
        give(ledger, ticket_id, to, now_ms)


def take_over(
    ledger: LedgerState, ticket_id: bytes, renewed_ms: int, now_ms: int, orphan: bool = False
) -> None:
    """Takes over a session and its unit. Pages served on trust renewed it; a visitor's second unit
    becomes free. `orphan`: its last renewal is unknown, and may be later than the claim says.
    """
    sessions, claim = ledger.sessions, ledger.moves.claims.pop(ticket_id, None)
    if claim:
        # the ticket may know of a renewal that an older copy does not
        renewed_ms = max(renewed_ms, claim.served_ms, claim.renewed_ms)
    ended = renewed_ms <= ledger.all_ended_ms  # on the way when an operator ended all sessions
    if orphan:
        renewed_ms = now_ms
    ledger.leave_line(ticket_id)
    ledger.moves.found(ticket_id)
    if ticket_id in sessions.inside:
        ledger.lease.expire(now_ms)
        renewed_ms = max(renewed_ms, sessions.renewed(ticket_id) or 0)
    elif ended:
        ledger.lease.close(1, now_ms)
        ledger.log.append(pack(END, ticket_id, sessions.spend(ticket_id, renewed_ms, now_ms)))
        return
    sessions.revive(ticket_id)
    sessions.resume(ticket_id, renewed_ms)
    ledger.log.append(pack(SESSION, ticket_id, renewed_ms))


def give(ledger: LedgerState, ticket_id: bytes, to: str, now_ms: int) -> None:
    """Ends a session here, because its visitor is at `to`."""
    sessions = ledger.sessions
    renewed_ms = ledger.living(ticket_id, now_ms)
    if renewed_ms is None:
        ledger.moves.missing(ticket_id)
    else:
        begun_ms = ledger.provisional.fulfil(ticket_id)  # its ticket has come back there
        renewed_ms = max(renewed_ms, begun_ms or 0)
        sessions.forget(ticket_id)
        ledger.log.append(pack(END, ticket_id, sessions.spend(ticket_id, renewed_ms, now_ms)))
    ledger.log += ledger.moving_turns.leave(ticket_id, to, now_ms)
    if renewed_ms is None:
        return
    if ledger.lease.doubts(now_ms):
        renewed_ms = max(renewed_ms, ledger.born_ms)
    # pages may be served on trust until the ticket is over, and are searched for a session longer;
    # a turn is kept for `lasts_ms`
    remembered_ms = sessions.life_ms + max(sessions.life_ms, ledger.moving_turns.lasts_ms)
    ledger.moves.give(ticket_id, to, renewed_ms, renewed_ms + remembered_ms)
