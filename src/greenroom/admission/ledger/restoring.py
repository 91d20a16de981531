"""Restores a ledger from its stored records."""

from greenroom.admission.lease import CLOSING_MS
from greenroom.admission.ledger.failures import parts_of
from greenroom.admission.ledger.state import LedgerState
from greenroom.admission.records import END, LedgerMemory, pack


def restore(
    ledger: LedgerState,
    memory: LedgerMemory,
    now_ms: int,
    life_ms: int,
    ended_ms: int = 0,
    older: bool = False,
) -> None:
    """Fills an empty ledger. Every waiter gets a whole refresh to come back; provisional sessions
    become ordinary ones.

    `ended_ms`: when an operator ended all sessions: those renewed before do not come back, and the
    unit of every id that may have had one then may be closing. `older`: records from before some
    visitors were answered, so a session that is over here may have been renewed since.
    """
    sessions, lease, failures = ledger.sessions, ledger.lease, ledger.failures
    closing = 0
    if older:
        lease.doubt(life_ms, now_ms)
    for ticket_id, row in memory.failures.items():
        if parts_of(row)[0] * 1000 >= ended_ms:
            failures.put(ticket_id, row)
    for ticket_id, renewed_ms in memory.sessions.items():
        if renewed_ms + life_ms > now_ms and renewed_ms >= ended_ms:
            sessions.resume(ticket_id, renewed_ms, memory.began.get(ticket_id, 0))
            if ticket_id in memory.extended:
                sessions.extended[ticket_id] = memory.extended[ticket_id]
        else:  # stored, or a longer session duration would bring it back at the next restart
            ledger.log.append(pack(END, ticket_id, sessions.spend(ticket_id, renewed_ms, now_ms)))
            ledger.log.extend(failures.end(ticket_id, renewed_ms + life_ms))
            closing += older or renewed_ms + life_ms > now_ms
    for ticket_id, until_ms in memory.spent.items():
        if until_ms > now_ms:
            sessions.remember(ticket_id, until_ms)
        seen_ms = sessions.last_seen_ms(until_ms)  # later than now: of a place, not of a session
        if now_ms < ended_ms + CLOSING_MS and ended_ms < seen_ms + life_ms <= now_ms + life_ms:
            closing += 1
    lease.window.extend(sorted(memory.window))
    lease.trim(now_ms)
    lease.unacknowledged.extend(lease.window)
    lease.admitted = len(lease.window)
    lease.granted_seen = lease.used = len(sessions.inside) + closing
    lease.close(closing, now_ms)
    ledger.line.fill(memory.places.items(), now_ms, ledger.longest_refresh_ms)
