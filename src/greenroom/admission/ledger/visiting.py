"""Visitors whose session is, or was, in another data center."""

from greenroom.admission.lease import CUT_OFF_MS
from greenroom.admission.ledger.barred_places import HELD_MS, held
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.messages.moves import NOWHERE, Claim
from greenroom.model.visit import Outcome, Standing

RENEWAL_SLACK_MS = 1_000
"""Clocks of data centers differ by up to a round trip, and a transfer takes about two syncs."""
GONE = Outcome(Standing.GONE)


def is_outlived(found: Outcome, home: bool, renewed_ms: int) -> bool:
    """Whether a session found here is a remainder, behind a fence or a cut, of the newer one that the
    ticket names in another data center (not `home`). The ticket then stays as it is.
    """
    older = found.renewed_ms + RENEWAL_SLACK_MS < renewed_ms
    return not home and found.standing is Standing.ACTIVE and older


def visit(
    ledger: Ledger,
    ticket_id: bytes,
    key: int,
    home: str,
    renewed_ms: int,
    served_ms: int,
    now_ms: int,
    random_bits: int,
) -> Outcome:
    """Handles an accepted ticket of another data center (`home`), or of this one before it lost its
    state.

    `renewed_ms` is the last renewal that the ticket knows, `served_ms` the last page on trust after
    it, or the same; both by this ledger's clock. ACTIVE: the session has come, or the visitor is
    served on trust: then the ticket keeps its home, and `refresh_ms` is the time from renewal to
    page. ADMITTED: a permit was spent; the home is here now. WAITING: held. GONE: no such session.
    """
    if ticket_id in ledger.sessions.inside:
        found = ledger.view(ticket_id, now_ms)
        if found.standing is not Standing.GONE:
            return found
    if told := ledger.moving_places.told(ticket_id, len(ledger.line), now_ms):
        return told
    if now_ms >= renewed_ms + ledger.sessions.life_ms:
        return _outdated(ledger, ticket_id, home, renewed_ms, served_ms, now_ms)
    if renewed_ms <= ledger.all_ended_ms or _ended_here(
        ledger, ticket_id, home, renewed_ms, now_ms
    ):
        return _ended(ledger, ticket_id, home, renewed_ms, now_ms)
    if _waits_here(ledger, ticket_id, renewed_ms):
        return ledger.poll(ticket_id, key, now_ms, random_bits)
    claim = ledger.moves.claim(ticket_id, home, renewed_ms, now_ms)
    return _claimed(ledger, ticket_id, claim, renewed_ms, now_ms) or ledger.poll(
        ticket_id, key, now_ms, random_bits
    )


def _outdated(
    ledger: Ledger, ticket_id: bytes, home: str, renewed_ms: int, served_ms: int, now_ms: int
) -> Outcome:
    """The session is over as far as the ticket knows."""
    kept = ledger.view(ticket_id, now_ms)
    if kept.kept_ms:
        return kept
    claims, life_ms = ledger.moves.claims, ledger.sessions.life_ms
    if ticket_id in claims:  # held in time, by `_claimed`
        served_ms = max(served_ms, claims[ticket_id].served_ms)
    if now_ms < served_ms + life_ms and renewed_ms > ledger.all_ended_ms:
        return _search(ledger, ticket_id, served_ms, now_ms) or _turn(ledger, ticket_id, now_ms)
    return _ended(ledger, ticket_id, home, renewed_ms, now_ms)


def _ended_here(ledger: Ledger, ticket_id: bytes, home: str, renewed_ms: int, now_ms: int) -> bool:
    """Whether this ledger knows that the session is over: it had all of it, or, since it lost its
    state, saw an end after that renewal (the visitor left, or has another id).
    """
    if home != ledger.data_center or ticket_id in ledger.moves.elsewhere:
        return False
    sessions = ledger.sessions
    over_ms = sessions.renewed(ticket_id)  # over, but not swept yet
    until_ms = (
        sessions.spent.get(ticket_id, 0) if over_ms is None else sessions.spent_until(over_ms)
    )
    last_ms = sessions.last_seen_ms(until_ms) + RENEWAL_SLACK_MS
    seen = until_ms > now_ms and renewed_ms <= last_ms
    return seen or renewed_ms >= ledger.born_ms


def _ended(ledger: Ledger, ticket_id: bytes, home: str, renewed_ms: int, now_ms: int) -> Outcome:
    """The session is over; another data center that had it may keep the turn."""
    ledger.moves.claims.pop(ticket_id, None)
    turns = ledger.moving_turns
    late = now_ms >= renewed_ms + ledger.sessions.life_ms + turns.lasts_ms
    moved = (
        home != ledger.data_center or ticket_id in ledger.moves.elsewhere or ticket_id in turns.left
    )
    if late or not moved or renewed_ms <= ledger.all_ended_ms:
        return GONE
    return _turn(ledger, ticket_id, now_ms)


def _waits_here(ledger: Ledger, ticket_id: bytes, renewed_ms: int) -> bool:
    """Whether the visitor waits here although admitted: no ledger has the session. Gives up a place
    from before the admission.
    """
    slot = ledger.line.slots.get(ticket_id, -1)
    if slot >= 0 and ledger.line.attempted[slot] < renewed_ms:
        ledger.drop_place(ticket_id)
        return False
    return slot >= 0


def _claimed(
    ledger: Ledger, ticket_id: bytes, claim: Claim, renewed_ms: int, now_ms: int
) -> Outcome | None:
    """While the session is claimed. None: only the line is left."""
    denied = ledger.moves.denied
    if claim.denied:
        del ledger.moves.claims[ticket_id]
        denied[ticket_id] = max(renewed_ms, denied.get(ticket_id, 0))
        kept = ledger.view(ticket_id, now_ms)
        return kept if kept.kept_ms else None
    until_ms = renewed_ms + ledger.sessions.life_ms
    hopeful = ledger.lease.connected(now_ms) and now_ms - claim.since_ms < CUT_OFF_MS
    if not hopeful:
        outcome = ledger.admit_mover(ticket_id, now_ms)
        if outcome:
            return outcome
    if ledger.strong or renewed_ms <= denied.get(ticket_id, -RENEWAL_SLACK_MS) + RENEWAL_SLACK_MS:
        # the session was given away, so the line would refuse the spent id
        spent = ledger.sessions.spent.get(ticket_id, 0) > now_ms
        if hopeful or (spent and ledger.lease.connected(now_ms)):
            return Outcome(Standing.WAITING, 0, 0, now_ms, HELD_MS, 1, 0, len(ledger.line))
        return None
    if ledger.renews:
        claim.served_ms = now_ms
        if hopeful and until_ms - now_ms < CUT_OFF_MS:
            # the session may end before the claim arrives: serve no page that may come to nothing
            claim.renewed_ms = now_ms
            return held(len(ledger.line), now_ms)
    ledger.moves.unconfirmed += 1
    return Outcome(
        Standing.ACTIVE, until_ms, renewed_ms, 0, now_ms - renewed_ms if ledger.renews else 0
    )


def _turn(ledger: Ledger, ticket_id: bytes, now_ms: int) -> Outcome:
    """Seeks the turn, which another data center may keep. A cut ends no search."""
    turns = ledger.moving_turns
    begins = ledger.lease.connected(now_ms) or ticket_id in turns.seeks
    if begins and turns.seek(ticket_id, now_ms):
        return held(len(ledger.line), now_ms)
    return GONE


def _search(ledger: Ledger, ticket_id: bytes, served_ms: int, now_ms: int) -> Outcome | None:
    """Holds a visitor whose ticket is over but who was served on trust since: the session may have
    followed. Nothing proves it, so until it comes no page is served and no permit spent. None: it
    did not.
    """
    moves = ledger.moves
    claim = moves.claim(ticket_id, NOWHERE, served_ms, now_ms)
    if claim.denied or not ledger.lease.connected(now_ms) or now_ms - claim.since_ms >= CUT_OFF_MS:
        del moves.claims[ticket_id]
        return None
    return held(len(ledger.line), now_ms)
