"""Visitors whom the origin failed: the clock that stands still, and the turn that is kept.

While documents of a visitor with a session fail, the clock of that session stands still. When such
a session ends within TURN_KEPT_MS of the newest failure, its turn is kept for TURN_KEPT_MS: once, its visitor
takes the place of the old key again, under the old id, and waits for a permit like everybody.

A row begins with a failure that a living session had, and all that it allows is counted from there:
the clock stands still in the first STILL_MS, one turn is kept, and WINDOW_MS after its begin the row
is forgotten. So however often a visitor makes documents fail, nothing here gives more than that in
an hour. Only a session whose time was over keeps its turn: who leaves, is revoked by the origin
or is sent out by an operator has none. `failures.lua` does the same in Redis. Between data centers
rows follow their visitors (`moving_turns`).
"""

from typing import Protocol

from greenroom.admission.lease import Lease
from greenroom.admission.ledger.sessions import Sessions
from greenroom.admission.messages.turns import EVERYWHERE
from greenroom.admission.queueing.line import Line
from greenroom.admission.records import FAILED, FAILED_STATES, FAILED_USED, SESSION, pack
from greenroom.admission.timer_wheel import Wheel
from greenroom.model.visit import Outcome, Standing

STILL_MS = 1_800_000
TURN_KEPT_MS = 900_000
WINDOW_MS = STILL_MS + 2 * TURN_KEPT_MS
"""A turn is kept by the end of it: failure, end of the session and return are no further apart."""

GAP_MS = 60_000
"""Longest time between two failures in which the origin is taken to have failed all along: pages of
failures try again after some ten seconds.
"""

GONE, GONE_KEPT = Outcome(Standing.GONE), Outcome(Standing.GONE, kept_ms=1)

FAILING, KEPT, USED = 1, 2, FAILED_USED
SINCE_BITS, OFFSET_BITS = 14, 2
_SINCE_MASK, _STATES = (1 << SINCE_BITS) - 1, FAILED_STATES
OFFSET_MOST_S = _SINCE_MASK >> OFFSET_BITS


def row_of(since_s: int, offset_s: int, state: int) -> int:
    """`offset_s`: from `since_s` to the newest failure, or while KEPT to the end of that."""
    return since_s << SINCE_BITS | offset_s << OFFSET_BITS | state


def parts_of(row: int) -> tuple[int, int, int]:
    return row >> SINCE_BITS, (row & _SINCE_MASK) >> OFFSET_BITS, row & _STATES


def merged(one: int, other: int) -> int:
    """Of two rows of one visitor: the earlier beginning, and what is furthest."""
    since_s = min(one >> SINCE_BITS, other >> SINCE_BITS)
    state, end_s = max((row & _STATES, sum(parts_of(row)[:2])) for row in (one, other))
    if state == USED and not (_was_taken(one) or _was_taken(other)):
        return row_of(since_s, 0, USED)
    return row_of(since_s, min(OFFSET_MOST_S, end_s - since_s), state)


def _was_taken(row: int) -> bool:
    _, offset_s, state = parts_of(row)
    return state == USED and offset_s > 0


class Failures:
    """Of one ledger, by ticket id. To the second, so that a row is exact in double precision."""

    __slots__ = ("_wheel", "newest_s", "rows")

    def __init__(self) -> None:
        self.rows: dict[bytes, int] = {}
        self.newest_s = 0
        """Of failures, and of ends of turns that came from elsewhere."""
        self._wheel: Wheel[bytes] = Wheel()

    def put(self, ticket_id: bytes, row: int) -> None:
        self.rows[ticket_id] = row
        since_s, offset_s, state = parts_of(row)
        if state != USED:
            self.newest_s = max(self.newest_s, since_s + offset_s)
        self._wheel.file((row >> SINCE_BITS) * 1000 + WINDOW_MS, ticket_id)

    def fail(self, ticket_id: bytes, now_ms: int) -> int | None:
        """A document failed for the visitor of a living session. For how many ms the clock has
        stood still since the failure before; None: this failure does not count.
        """
        second = self.newest_s = now_ms // 1000
        since_s, offset_s, state = parts_of(self.rows.get(ticket_id, 0))
        passed_s = second - since_s
        if passed_s >= WINDOW_MS // 1000:
            self.put(ticket_id, row_of(second, 0, FAILING))
            return 0
        if state == KEPT or passed_s > STILL_MS // 1000:
            return None
        self.rows[ticket_id] = row_of(since_s, passed_s, state)
        step_ms = (passed_s - offset_s) * 1000
        return step_ms if step_ms <= GAP_MS else 0

    def keeps(self, ticket_id: bytes, ended_ms: int) -> bool:
        """Whether the turn is kept if the session ends then."""
        since_s, offset_s, state = parts_of(self.rows.get(ticket_id, 0))
        return state == FAILING and ended_ms // 1000 - since_s - offset_s <= TURN_KEPT_MS // 1000

    def end(self, ticket_id: bytes, ended_ms: int) -> list[bytes]:
        """The time of this session was over then. Returns records behind its END."""
        if self.keeps(ticket_id, ended_ms):
            since_s = self.rows[ticket_id] >> SINCE_BITS
            until_s = ended_ms // 1000 - since_s + TURN_KEPT_MS // 1000
            row = self.rows[ticket_id] = row_of(since_s, until_s, KEPT)
            return [pack(FAILED, ticket_id, row)]
        self.rows.pop(ticket_id, None)
        return []

    def clear(self) -> list[bytes]:
        """An operator ended all sessions. Returns records."""
        found = [pack(FAILED, ticket_id, 0) for ticket_id in self.rows]
        self.rows.clear()
        return found

    def is_kept(self, ticket_id: bytes, now_ms: int) -> bool:
        since_s, offset_s, state = parts_of(self.rows.get(ticket_id, 0))
        return state == KEPT and now_ms // 1000 < since_s + offset_s

    def is_taken(self, ticket_id: bytes, now_ms: int) -> bool:
        """Whether its visitor has re-entered."""
        row = self.rows.get(ticket_id, 0)
        return _was_taken(row) and now_ms < (row >> SINCE_BITS) * 1000 + WINDOW_MS

    def take(self, ticket_id: bytes, now_ms: int) -> bool:
        """Whether the turn was kept; now it is used."""
        if not self.is_kept(ticket_id, now_ms):
            return False
        since_s = self.rows[ticket_id] >> SINCE_BITS
        # never 0: that is a turn which nobody had (`MovingTurns.replaced`)
        self.rows[ticket_id] = row_of(since_s, max(1, now_ms // 1000 - since_s), USED)
        return True

    def may_keep(self, now_ms: int) -> bool:
        """Whether a turn may be kept here, now or soon."""
        return now_ms < self.newest_s * 1000 + 2 * TURN_KEPT_MS

    def known(self, ticket_id: bytes, now_ms: int) -> int:
        """The row; 0: none, or its window has passed."""
        row = self.rows.get(ticket_id, 0)
        return row if now_ms < (row >> SINCE_BITS) * 1000 + WINDOW_MS else 0

    def absorb(self, ticket_id: bytes, row: int, now_ms: int) -> int:
        """A row of another data center; returns what is known now, 0 for one of long ago."""
        if now_ms >= (row >> SINCE_BITS) * 1000 + WINDOW_MS:
            return 0
        known = self.known(ticket_id, now_ms)
        self.put(ticket_id, merged(known, row) if known else row)
        return self.rows[ticket_id]

    def forget(self, now_ms: int, limit: int) -> None:
        for ticket_id in self._wheel.due(now_ms, limit):
            since_s = self.rows.get(ticket_id, 0) >> SINCE_BITS
            if now_ms >= since_s * 1000 + WINDOW_MS:
                self.rows.pop(ticket_id, None)


class LeavingTurns(Protocol):
    def leave(self, ticket_id: bytes, to: str, now_ms: int) -> list[bytes]:
        """What is known of this visitor goes to another data center. Returns records."""


class Failable(Protocol):
    """A ledger, as far as failures need it."""

    @property
    def failures(self) -> Failures: ...

    @property
    def moving_turns(self) -> "LeavingTurns": ...

    @property
    def lease(self) -> Lease: ...

    @property
    def renews(self) -> bool: ...

    @property
    def life_ms(self) -> int: ...

    @property
    def sessions(self) -> Sessions: ...

    @property
    def log(self) -> list[bytes]: ...

    @property
    def line(self) -> Line: ...

    def view(self, ticket_id: bytes, now_ms: int) -> Outcome: ...

    def poll(self, ticket_id: bytes, key: int, now_ms: int, random_bits: int) -> Outcome: ...

    def expired(self, ticket_id: bytes, until_ms: int, ended_ms: int) -> None:
        """The time of this session was over; its unit is free."""


def fail(ledger: Failable, ticket_id: bytes, now_ms: int) -> Outcome:
    """A document of the origin failed for this visitor. ACTIVE, with `kept_ms` for which the turn
    would be kept after the session; GONE without a living session.
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


def over(ledger: Failable, ticket_id: bytes, now_ms: int) -> Outcome:
    """GONE; with `kept_ms` where `reenter` has something to give."""
    failures, renewed_ms = ledger.failures, ledger.sessions.renewed(ticket_id)
    if renewed_ms is None:
        waits = ticket_id in ledger.line.slots and failures.is_taken(ticket_id, now_ms)
        return GONE_KEPT if waits or failures.is_kept(ticket_id, now_ms) else GONE
    ends_ms = renewed_ms + ledger.life_ms
    kept = failures.keeps(ticket_id, ends_ms)
    return GONE_KEPT if kept and now_ms // 1000 < (ends_ms + TURN_KEPT_MS) // 1000 else GONE


def reenter(ledger: Failable, ticket_id: bytes, key: int, now_ms: int, random_bits: int) -> Outcome:
    """An accepted ticket whose session is over: takes the place of the old key, and makes a try, if
    the turn was kept. A try too for who has done so and waits; else GONE.
    """
    sessions, failures = ledger.sessions, ledger.failures
    renewed_ms = sessions.renewed(ticket_id)
    if renewed_ms is not None:
        ends_ms = renewed_ms + ledger.life_ms
        if now_ms < ends_ms:
            return ledger.view(ticket_id, now_ms)
        ledger.expired(ticket_id, sessions.end(ticket_id, now_ms), ends_ms)
    if failures.take(ticket_id, now_ms):
        sessions.revive(ticket_id)
        ledger.log.append(pack(FAILED, ticket_id, failures.rows[ticket_id]))
        ledger.moving_turns.leave(ticket_id, EVERYWHERE, now_ms)
    elif ticket_id not in ledger.line.slots or not failures.is_taken(ticket_id, now_ms):
        return GONE
    return ledger.poll(ticket_id, key, now_ms, random_bits)
