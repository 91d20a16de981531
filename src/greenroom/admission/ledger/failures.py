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

from greenroom.admission.records import FAILED, FAILED_STATES, FAILED_USED, pack
from greenroom.admission.timer_wheel import Wheel

STILL_MS = 1_800_000
TURN_KEPT_MS = 900_000
WINDOW_MS = STILL_MS + 2 * TURN_KEPT_MS
"""A turn is kept by the end of it: failure, end of the session and return are no further apart."""

GAP_MS = 60_000
"""Longest time between two failures in which the origin is taken to have failed all along: pages of
failures try again after some ten seconds.
"""

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
        if state == USED and not offset_s:  # or the turn would look taken (`_was_taken`)
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
