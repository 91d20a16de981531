"""More time for a session that requests do not renew (WCAG 2.2.1).

A visitor may ask again and again, of which one press in q counts; the end is at most a session duration from then, and at most
`times` session durations later than without asking. That counts from the last renewal before the
first extension, which is remembered, so neither haste nor another device makes it more.
"""

from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.records import EXTENDED, SESSION, pack
from greenroom.model.visit import Outcome, Standing


def extend(ledger: Ledger, ticket_id: bytes, times: int, now_ms: int) -> Outcome:
    """ACTIVE with the end as it is now, or GONE. A session that requests renew is only viewed."""
    outcome, sessions = ledger.view(ticket_id, now_ms), ledger.sessions
    if outcome.standing is Standing.GONE or not ledger.extends(outcome.renewed_ms, now_ms):
        return outcome
    since_ms = sessions.extended.get(ticket_id, outcome.renewed_ms)
    renewed_ms = min(now_ms, since_ms + times * sessions.life_ms)
    if renewed_ms <= outcome.renewed_ms:
        return outcome
    if ticket_id not in sessions.extended:
        sessions.extended[ticket_id] = since_ms
        ledger.log.append(pack(EXTENDED, ticket_id, since_ms))
    sessions.renew(ticket_id, renewed_ms)
    ledger.log.append(pack(SESSION, ticket_id, renewed_ms))
    return Outcome(Standing.ACTIVE, renewed_ms + sessions.life_ms, renewed_ms)
