"""Records a failure of the origin, and gives a kept turn back (rules in `failures`)."""

from greenroom.admission.ledger.failures import TURN_KEPT_MS
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.moving import take_turn
from greenroom.admission.records import FAILED, SESSION, pack
from greenroom.model.visit import Outcome, Standing

GONE = Outcome(Standing.GONE)


def fail(ledger: Ledger, ticket_id: bytes, now_ms: int) -> Outcome:
    """A document of the origin failed for this visitor. ACTIVE, with `kept_ms` if the turn would be
    kept after the session; GONE without a living session.
    """
    outcome = ledger.view(ticket_id, now_ms)
    if outcome.standing is not Standing.ACTIVE:
        return GONE
    failures, renewed_ms = ledger.failures, outcome.renewed_ms
    before = failures.rows.get(ticket_id)
    still_ms = failures.fail(ticket_id, now_ms)
    if still_ms is None:
        return outcome
    if failures.rows[ticket_id] != before:  # once a second at most, however many fail
        ledger.log.append(pack(FAILED, ticket_id, failures.rows[ticket_id]))
    # a failure in another data center may seem to come later: clocks differ by a round trip
    if still_ms > 0 and not ledger.renews and not ledger.lease.fenced(now_ms):
        renewed_ms = min(now_ms, renewed_ms + still_ms)
        if renewed_ms > outcome.renewed_ms:
            ledger.sessions.renew(ticket_id, renewed_ms)
            ledger.log.append(pack(SESSION, ticket_id, renewed_ms))
    ends_ms = renewed_ms + ledger.life_ms
    kept_ms = TURN_KEPT_MS if failures.keeps(ticket_id, ends_ms) else 0
    return Outcome(Standing.ACTIVE, ends_ms, renewed_ms, kept_ms=kept_ms)


def reenter(ledger: Ledger, ticket_id: bytes, key: int, now_ms: int, random_bits: int) -> Outcome:
    """For an accepted ticket whose session is over: if the turn was kept, takes the place of the old
    key and makes a try, as do later calls of that visitor. Else GONE.
    """
    if ledger.living(ticket_id, now_ms) is not None:
        return ledger.view(ticket_id, now_ms)
    if told := ledger.moving_places.told(ticket_id, len(ledger.line), now_ms):
        return told
    waits = ticket_id in ledger.line.slots and ledger.failures.is_taken(ticket_id, now_ms)
    if not (waits or take_turn(ledger, ticket_id, now_ms)):
        return GONE
    return ledger.poll(ticket_id, key, now_ms, random_bits)
