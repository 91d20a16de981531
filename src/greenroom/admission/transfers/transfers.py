"""A ledger's operations on visitors admitted elsewhere, and on sessions that left (`moves`)."""

from collections.abc import Container
from typing import Protocol

from greenroom.admission.lease import CUT_OFF_MS, Lease
from greenroom.admission.messages.moves import NOWHERE, Claim, Moves, MovesDown
from greenroom.admission.messages.turns import TurnsDown, TurnsUp
from greenroom.admission.queueing.line import Line
from greenroom.admission.records import END, SESSION, pack
from greenroom.model.visit import Outcome, Standing

HELD_MS = 1_000
"""Retry of a visitor who is held while a session is on its way: two syncs take about as long."""
SOURCE_SLACK_MS = 60_000
"""Ledgers name a gift until its session is over, by clocks of their own."""
RENEWAL_SLACK_MS = 1_000
"""Clocks of data centers compare to within a round trip, and a transfer takes about two syncs."""
GONE = Outcome(Standing.GONE)


class LivingSessions(Protocol):
    """Sessions by ticket id, as far as they can move (`ledger.sessions.Sessions`)."""

    life_ms: int

    @property
    def inside(self) -> Container[bytes]: ...

    def renewed(self, ticket_id: bytes) -> int | None:
        """The last renewal; None without such a session."""

    def resume(self, ticket_id: bytes, renewed_ms: int) -> None:
        """Continues a session here that was renewed then."""

    def forget(self, ticket_id: bytes) -> None: ...

    def end(self, ticket_id: bytes, now_ms: int) -> int:
        """Returns until when its id stays spent."""

    def spend(self, ticket_id: bytes, last_seen_ms: int, now_ms: int) -> int:
        """Bars the id from a new place or session; returns until when that is remembered."""

    def revive(self, ticket_id: bytes) -> None:
        """Lifts the bar."""


class TurnsThatMove(Protocol):
    """Turns that are kept when the origin fails (`ledger.moving_turns`)."""

    lasts_ms: int
    left: dict[bytes, int]

    def leave(self, ticket_id: bytes, to: str, now_ms: int) -> list[bytes]: ...

    def seek(self, ticket_id: bytes, now_ms: int) -> bool: ...

    def report(self, now_ms: int) -> TurnsUp | None: ...

    def hear(self, down: TurnsDown, now_ms: int) -> list[bytes]: ...


class SessionLedger(Protocol):
    """What moving a session needs of a ledger (`ledger.ledger.Ledger`)."""

    data_center: str
    born_ms: int
    all_ended_ms: int
    """When an operator ended all sessions here; 0: never."""
    strong: bool
    renews: bool
    lease: Lease
    line: Line
    moves: Moves
    log: list[bytes]

    @property
    def sessions(self) -> LivingSessions: ...

    def view(self, ticket_id: bytes, now_ms: int) -> Outcome: ...

    def poll(self, ticket_id: bytes, key: int, now_ms: int, random_bits: int) -> Outcome: ...

    def admit_mover(self, ticket_id: bytes, now_ms: int) -> Outcome | None:
        """Admits a visitor whose session cannot be reached; None without a permit."""

    def leave_line(self, ticket_id: bytes) -> bool:
        """Gives up a place; returns whether there was one."""

    @property
    def moving_turns(self) -> TurnsThatMove: ...

    def expired(self, ticket_id: bytes, until_ms: int, ended_ms: int) -> None:
        """The time of this session was over; its unit is free."""

    def drop_place(self, ticket_id: bytes) -> None:
        """Frees a place whose visitor was admitted elsewhere."""


def is_outlived(found: Outcome, home: bool, renewed_ms: int) -> bool:
    """Whether a session that was found here is older than the ticket's, which another data center
    has (not `home`): what is left of it behind a fence or a cut. The ticket then stays as it is.
    """
    older = found.renewed_ms + RENEWAL_SLACK_MS < renewed_ms
    return not home and found.standing is Standing.ACTIVE and older


def visit(
    ledger: SessionLedger,
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
    it, or the same; both by this ledger's clock. ACTIVE: the session is here by now, or the visitor
    is served on trust: then the ticket keeps its home, and notes `refresh_ms`, the time from
    renewal to page. ADMITTED: a permit was spent; the home is here then. WAITING: held; GONE: there
    is no such session, or no longer.
    """
    moves = ledger.moves
    if ticket_id in ledger.sessions.inside:
        found = ledger.view(ticket_id, now_ms)
        if found.standing is not Standing.GONE:
            return found
    until_ms = renewed_ms + ledger.sessions.life_ms
    ended_here = (
        home == ledger.data_center
        and renewed_ms >= ledger.born_ms
        and ticket_id not in moves.elsewhere
    )
    over = now_ms >= until_ms
    if over and (kept := ledger.view(ticket_id, now_ms)).kept_ms:
        return kept
    if over and ticket_id in moves.claims:  # held in time, see below
        served_ms = max(served_ms, moves.claims[ticket_id].served_ms)
    if over and now_ms < served_ms + ledger.sessions.life_ms and renewed_ms > ledger.all_ended_ms:
        return _search(ledger, ticket_id, served_ms, now_ms) or _turn(ledger, ticket_id, now_ms)
    if over or ended_here or renewed_ms <= ledger.all_ended_ms:
        moves.claims.pop(ticket_id, None)
        late = now_ms >= until_ms + ledger.moving_turns.lasts_ms
        moved = (
            home != ledger.data_center
            or ticket_id in moves.elsewhere
            or ticket_id in ledger.moving_turns.left
        )
        if late or not moved or renewed_ms <= ledger.all_ended_ms:
            return GONE
        return _turn(ledger, ticket_id, now_ms)
    slot = ledger.line.slots.get(ticket_id, -1)
    if slot >= 0 and ledger.line.attempted[slot] < renewed_ms:
        ledger.drop_place(ticket_id)
    elif slot >= 0:  # held here although let in: no ledger has the session
        return ledger.poll(ticket_id, key, now_ms, random_bits)
    claim = moves.claim(ticket_id, home, renewed_ms, now_ms)
    if claim.denied:
        del moves.claims[ticket_id]
        kept = ledger.view(ticket_id, now_ms)
        return kept if kept.kept_ms else ledger.poll(ticket_id, key, now_ms, random_bits)
    return _claimed(ledger, ticket_id, claim, renewed_ms, now_ms) or ledger.poll(
        ticket_id, key, now_ms, random_bits
    )


def _claimed(
    ledger: SessionLedger, ticket_id: bytes, claim: Claim, renewed_ms: int, now_ms: int
) -> Outcome | None:
    """While the session is asked for. None: nothing is left but the line."""
    until_ms = renewed_ms + ledger.sessions.life_ms
    hopeful = ledger.lease.connected(now_ms) and now_ms - claim.since_ms < CUT_OFF_MS
    if not hopeful:
        outcome = ledger.admit_mover(ticket_id, now_ms)
        if outcome:
            return outcome
    if ledger.strong:
        if hopeful:
            return Outcome(Standing.WAITING, 0, 0, now_ms, HELD_MS, 1, 0, len(ledger.line))
        return None
    if ledger.renews:
        claim.served_ms = now_ms
        if hopeful and until_ms - now_ms < CUT_OFF_MS:
            # the session may be over before it is asked for: no page that could not be kept to
            claim.renewed_ms = now_ms
            return _held_for(ledger, now_ms)
    ledger.moves.unconfirmed += 1
    return Outcome(
        Standing.ACTIVE, until_ms, renewed_ms, 0, now_ms - renewed_ms if ledger.renews else 0
    )


def _turn(ledger: SessionLedger, ticket_id: bytes, now_ms: int) -> Outcome:
    """The session is over; another data center may keep the turn."""
    if ledger.lease.connected(now_ms) and ledger.moving_turns.seek(ticket_id, now_ms):
        return _held_for(ledger, now_ms)
    return GONE


def _search(ledger: SessionLedger, ticket_id: bytes, served_ms: int, now_ms: int) -> Outcome | None:
    """Holds a visitor whose ticket is over, but who was served on trust since: the session may have
    followed to there.

    Nothing proves that it did, so no page is served and no permit spent before it has come. None:
    it did not.
    """
    moves = ledger.moves
    claim = moves.claim(ticket_id, NOWHERE, served_ms, now_ms)
    if claim.denied or not ledger.lease.connected(now_ms) or now_ms - claim.since_ms >= CUT_OFF_MS:
        del moves.claims[ticket_id]
        return None
    return _held_for(ledger, now_ms)


def _held_for(ledger: SessionLedger, now_ms: int) -> Outcome:
    """Until the session has come."""
    return Outcome(Standing.WAITING, 0, 0, now_ms, HELD_MS, 1, 0, len(ledger.line), searching=True)


def hear(ledger: SessionLedger, down: MovesDown, now_ms: int, newest: bool) -> None:
    """Applies the coordinator's message; `newest`: it answers the last report."""
    ledger.moves.confirm(down, newest)
    if down.turns:
        ledger.log += ledger.moving_turns.hear(down.turns, now_ms)
    remembered_ms = now_ms + ledger.sessions.life_ms + SOURCE_SLACK_MS
    for ticket_id, age_ms, source in ledger.moves.new_arrivals(down):
        if ledger.moves.is_again(source, remembered_ms):
            ledger.lease.returned_freed += 1  # nobody may spend it: there is no such unit
        else:
            take_over(ledger, ticket_id, now_ms - age_ms, now_ms)
    for ticket_id, to in down.wanted:
        give(ledger, ticket_id, to, now_ms)


def take_over(ledger: SessionLedger, ticket_id: bytes, renewed_ms: int, now_ms: int) -> None:
    """Takes over a session and its unit. Pages served on trust renewed it; a second unit for the
    same visitor is free.
    """
    sessions, claim = ledger.sessions, ledger.moves.claims.pop(ticket_id, None)
    if claim:
        renewed_ms = max(renewed_ms, claim.served_ms)
    ledger.leave_line(ticket_id)
    ledger.moves.found(ticket_id)
    if ticket_id in sessions.inside:
        ledger.lease.free()
        renewed_ms = max(renewed_ms, sessions.renewed(ticket_id) or 0)
    elif renewed_ms <= ledger.all_ended_ms:  # it was on the way when an operator ended all sessions
        ledger.lease.close(1, now_ms)
        ledger.log.append(pack(END, ticket_id, sessions.spend(ticket_id, renewed_ms, now_ms)))
        return
    sessions.revive(ticket_id)
    sessions.resume(ticket_id, renewed_ms)
    ledger.log.append(pack(SESSION, ticket_id, renewed_ms))


def give(ledger: SessionLedger, ticket_id: bytes, to: str, now_ms: int) -> None:
    """Ends a session here, because its visitor is at `to`."""
    sessions = ledger.sessions
    renewed_ms = sessions.renewed(ticket_id)
    if renewed_ms is not None and now_ms >= (ends_ms := renewed_ms + sessions.life_ms):
        ledger.expired(ticket_id, sessions.end(ticket_id, now_ms), ends_ms)
        renewed_ms = None
    if renewed_ms is None:
        ledger.moves.missing(ticket_id)
    else:
        sessions.forget(ticket_id)
        ledger.log.append(pack(END, ticket_id, sessions.spend(ticket_id, renewed_ms, now_ms)))
    ledger.log += ledger.moving_turns.leave(ticket_id, to, now_ms)
    if renewed_ms is None:
        return
    # a page on trust may be served until the ticket is over, and is searched a session longer; a
    # turn is kept so long
    remembered_ms = sessions.life_ms + max(sessions.life_ms, ledger.moving_turns.lasts_ms)
    ledger.moves.give(ticket_id, to, renewed_ms, renewed_ms + remembered_ms)
