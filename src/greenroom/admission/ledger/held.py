"""The ledger's answers to visitors who are held: place, next try and wait. Decides nothing; it only
sets when a visitor in line is expected again.
"""

from greenroom.admission.ledger.refresh import (
    CALLED_REFRESH_MS,
    FIRST_REFRESH_MS,
    SHOW_REFRESH_MS,
    by_rank,
    later,
    soon,
)
from greenroom.admission.ledger.state import LedgerState
from greenroom.admission.ledger.waits import not_before, whole_seconds
from greenroom.admission.messages.room_summary import Elsewhere
from greenroom.admission.queueing.line_table import due, ranks, table_of
from greenroom.admission.queueing.methods import QUEUEING_METHODS, QueueingMethod
from greenroom.model.line_table import LineTable
from greenroom.model.record import replace
from greenroom.model.room import Room
from greenroom.model.visit import TIE_BITS, Estimate, Outcome, Standing, make_key

WAITING = Standing.WAITING


class HeldVisitors(LedgerState):
    def __init__(self, room: Room, data_center: str, epoch: int, now_ms: int) -> None:
        super().__init__(room, data_center, epoch, now_ms)
        self._queueing: QueueingMethod = QUEUEING_METHODS[room.queueing_method]()
        self._method = room.queueing_method
        self._rejecting = False
        self._configure_line(room)

    @property
    def called(self) -> int:
        return (
            self._queueing.count(len(self.line), self.lease.permits, self.lookahead.permits)
            if self._open
            else 0
        )

    def _configure_line(self, room: Room) -> None:
        if room.queueing_method != self._method:
            self._method = room.queueing_method
            self._queueing = QUEUEING_METHODS[self._method]()
        self._open = self._queueing.open and not room.queue_all
        self._rejecting = not self._queueing.open and not room.queue_all
        self._by_rank = self._open and self._method == "fifo"
        self._by_lot = self._open and self._queueing.lots
        self._refresh_max_ms = room.check_in_max_s * 1000
        self.waits.configure(room)

    def _outside(
        self, now_ms: int, refresh_ms: int, ahead: int, arrival_ms: int, unseen: int = 0
    ) -> Outcome:
        """A visitor who is not in line yet. `unseen` visitors before this one are about to join."""
        estimate = not_before(
            whole_seconds(refresh_ms), self._estimate(ahead + unseen + 1, arrival_ms, now_ms)
        )
        outcome = Outcome(
            WAITING, 0, 0, now_ms, refresh_ms, 0, ahead, len(self.line.slots), estimate, self.halted
        )
        if self.elsewhere is None:
            return outcome
        return self._in_whole_line(self.elsewhere, outcome, make_key(arrival_ms, 0), now_ms)

    def _untold(self, now_ms: int, refresh_ms: int) -> Outcome:
        waiting = len(self.line.slots)
        outcome = Outcome(WAITING, 0, 0, now_ms, refresh_ms, 0, waiting, waiting, None, self.halted)
        if self.elsewhere is None:
            return outcome
        key = make_key(self.line_ms(now_ms), 0)
        return self._in_whole_line(self.elsewhere, outcome, key, now_ms)

    def _hold(
        self, slot: int, rank: int, now_ms: int, random_bits: int, first: bool = False
    ) -> Outcome:
        """`first`: the place has just been taken."""
        line, lease, place, estimate, called = self.line, self.lease, rank + 1, None, False
        waiting = len(line.slots)
        if self._open:
            if not self.halted:
                estimate = self.waits.estimate(
                    lease, place, waiting, line.keys[slot] >> TIE_BITS, now_ms
                )
            called = self._queueing.called(waiting, rank, lease.permits, self.lookahead.permits)
        refresh_ms = (
            soon(random_bits) if called else self._refresh(rank, estimate, random_bits, first)
        )
        line.expect(slot, now_ms, refresh_ms)
        if estimate is not None:
            estimate = not_before(refresh_ms, estimate)
        outcome = Outcome(
            WAITING, 0, 0, now_ms, refresh_ms, place, rank, waiting, estimate, self.halted, called
        )
        if self.elsewhere is None:
            return outcome
        return self._in_whole_line(self.elsewhere, outcome, line.keys[slot], now_ms)

    def _in_whole_line(
        self, elsewhere: Elsewhere, outcome: Outcome, key: int, now_ms: int
    ) -> Outcome:
        return with_others(outcome, elsewhere, key, self.lease.connected(now_ms))

    def _early(self, slot: int, now_ms: int) -> Outcome:
        line = self.line
        key = line.keys[slot]
        rank = line.rank(key)
        attempted_ms, refresh_ms = line.attempted[slot], line.refresh[slot]
        estimate = not_before(
            attempted_ms + refresh_ms - now_ms, self._estimate(rank + 1, key >> TIE_BITS, now_ms)
        )
        waiting = len(line.slots)
        outcome = Outcome(
            WAITING, 0, 0, attempted_ms, refresh_ms, rank + 1, rank, waiting, estimate, self.halted
        )
        if self.elsewhere is None:
            return outcome
        return self._in_whole_line(self.elsewhere, outcome, key, now_ms)

    def _table(self, now_ms: int) -> LineTable:
        line, lookahead, able = self.line, self.lookahead, self._open and not self.halted
        waiting, made_ms = len(line), self.line_ms(now_ms)
        count = due(waiting, self.lease.permits, lookahead.permits, lookahead.pace) if able else 0
        last = line.places((count - 1,))[0] if count else None
        waits = self.waits.of_places(self.lease, waiting, now_ms)
        places = line.places(ranks(waiting))
        return table_of(places, waiting, able, last, made_ms, waits, self.elsewhere)

    def _is_new(self, key: int, now_ms: int) -> bool:
        """Whether the visitor came within the longest interval between two tries."""
        return self.line_ms(now_ms) - (key >> TIE_BITS) < self._refresh_max_ms

    def _called(self, rank: int) -> bool:
        return self._open and self._queueing.called(
            len(self.line.slots), rank, self.lease.permits, self.lookahead.permits
        )

    def _join_refresh(self, random_bits: int, room: bool = False) -> int:
        """Soon, so that the visitor joins the line soon; `room`: only has to show the ticket."""
        if self._rejecting:
            return 0
        return soon(random_bits, SHOW_REFRESH_MS if room else CALLED_REFRESH_MS)

    def _refresh(self, rank: int, estimate: Estimate | None, random_bits: int, first: bool) -> int:
        longest_ms = self._refresh_max_ms
        if self._by_rank:
            return by_rank(
                rank,
                estimate,
                FIRST_REFRESH_MS if first and longest_ms > FIRST_REFRESH_MS else longest_ms,
                random_bits,
            )
        if self._by_lot:
            longest_ms = min(longest_ms, CALLED_REFRESH_MS * len(self.line.slots))
        return 0 if self._rejecting else later(longest_ms, random_bits)

    def _estimate(self, position: int, arrival_ms: int, now_ms: int) -> Estimate | None:
        """None: admissions are stopped, or there is no reliable estimate."""
        if not self._open or self.halted:
            return None
        return self.waits.estimate(self.lease, position, len(self.line.slots), arrival_ms, now_ms)


def with_others(outcome: Outcome, elsewhere: Elsewhere, key: int, connected: bool) -> Outcome:
    """Place and counts in the whole line; a visitor without a place still has none."""
    more = elsewhere.ahead(key)
    return replace(
        outcome,
        position=outcome.position + more if outcome.position else 0,
        ahead=outcome.ahead + more,
        waiting=outcome.waiting + elsewhere.waiting,
        about=not connected or elsewhere.about(key),
    )
