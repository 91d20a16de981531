"""Visitors whom the origin failed: the session clock that stops, and the turn that is kept.

While documents of a visitor with a session fail, the clock of that session stops. If the session
ends within TURN_KEPT_MS of the newest failure, its turn is kept for TURN_KEPT_MS: once, the visitor
takes the place of the old key again, under the old id, and waits for a permit like everybody.

A row begins with a failure in a living session, and everything it allows counts from there: the
clock stops in the first STILL_MS, one turn is kept, and the row is dropped after WINDOW_MS. So
however often a visitor makes documents fail, an hour gives no more than that. Only a session whose
time ran out keeps its turn, not one that the visitor left, the origin revoked or an operator ended.
`failures.lua` does the same in Redis. Rows follow their visitors between data centers
(`moving_turns`).
"""

from greenroom.admission.records import FAILED, FAILED_STATES, FAILED_USED, pack
from greenroom.admission.timer_wheel import Wheel

STILL_MS = 1_800_000
TURN_KEPT_MS = 900_000
WINDOW_MS = STILL_MS + 2 * TURN_KEPT_MS
"""Failure, end of the session and return are no further apart."""

GAP_MS = 60_000
"""Longest time between two failures that counts as failing throughout: error pages retry after some
ten seconds.
"""

FAILING, KEPT, USED = 1, 2, FAILED_USED
SINCE_BITS, OFFSET_BITS = 14, 2
_SINCE_MASK, _STATES = (1 << SINCE_BITS) - 1, FAILED_STATES
OFFSET_MOST_S = _SINCE_MASK >> OFFSET_BITS


def row_of(since_s: int, offset_s: int, state: int) -> int:
    """`offset_s`: from `since_s` to the newest failure, or while KEPT to the end of the kept turn."""
    return since_s << SINCE_BITS | offset_s << OFFSET_BITS | state


def parts_of(row: int) -> tuple[int, int, int]:
    return row >> SINCE_BITS, (row & _SINCE_MASK) >> OFFSET_BITS, row & _STATES


def merged(one: int, other: int) -> int:
    """Two rows of one visitor as one: the earlier beginning and the most advanced state."""
    since_s = min(one >> SINCE_BITS, other >> SINCE_BITS)
    state, end_s = max((row & _STATES, sum(parts_of(row)[:2])) for row in (one, other))
    if state == USED and not (_was_taken(one) or _was_taken(other)):
        return row_of(since_s, 0, USED)
    return row_of(since_s, min(OFFSET_MOST_S, end_s - since_s), state)


def _was_taken(row: int) -> bool:
    _, offset_s, state = parts_of(row)
    return state == USED and offset_s > 0


class Failures:
    """Rows by ticket id, in seconds so that they are exact in Lua's double precision."""

    __slots__ = ("_wheel", "newest_s", "rows")

    def __init__(self) -> None:
        self.rows: dict[bytes, int] = {}
        self.newest_s = 0
        """Of failures, and of ends of turns from other data centers."""
        self._wheel: Wheel[bytes] = Wheel()

    def put(self, ticket_id: bytes, row: int) -> None:
        self.rows[ticket_id] = row
        since_s, offset_s, state = parts_of(row)
        if state != USED:
            self.newest_s = max(self.newest_s, since_s + offset_s)
        self._wheel.file((row >> SINCE_BITS) * 1000 + WINDOW_MS, ticket_id)

    def fail(self, ticket_id: bytes, now_ms: int) -> int | None:
        """A document failed in a living session. Returns for how many ms its clock has been stopped
        since the previous failure; None: this failure does not count.
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
        """The time of this session ran out. Returns records to store behind its END."""
        if self.keeps(ticket_id, ended_ms):
            since_s = self.rows[ticket_id] >> SINCE_BITS
            until_s = ended_ms // 1000 - since_s + TURN_KEPT_MS // 1000
            row = self.rows[ticket_id] = row_of(since_s, until_s, KEPT)
            return [pack(FAILED, ticket_id, row)]
        self.rows.pop(ticket_id, None)
        return []

    def clear(self) -> list[bytes]:
        """Returns records."""
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
        """Uses the kept turn; returns whether there was one."""
        if not self.is_kept(ticket_id, now_ms):
            return False
        since_s = self.rows[ticket_id] >> SINCE_BITS
        # never 0: that marks a turn nobody had (`MovingTurns.replaced`)
        self.rows[ticket_id] = row_of(since_s, max(1, now_ms // 1000 - since_s), USED)
        return True

    def may_keep(self, now_ms: int) -> bool:
        return now_ms < self.newest_s * 1000 + 2 * TURN_KEPT_MS

    def known(self, ticket_id: bytes, now_ms: int) -> int:
        """The row; 0: none within its window."""
        row = self.rows.get(ticket_id, 0)
        return row if now_ms < (row >> SINCE_BITS) * 1000 + WINDOW_MS else 0

    def absorb(self, ticket_id: bytes, row: int, now_ms: int) -> int:
        """Merges a row of another data center; returns the result, 0 for an expired row."""
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
