"""What one ledger may spend.

The law (checked by `laws.ledger_problems`): permits + freed + closing + sessions == granted_seen -
returned_permits - returned_freed + over - settled. Every counter only grows. Spending a permit turns
it into a session; its end leaves a freed unit, which returns to the coordinator, because only that
knows whether the minute has room. An admission without a permit (passthrough) is a debt, paid by
freed units and permits before the next admission. `coordinator.fence` explains the fence.
"""

from collections import deque
from enum import IntEnum

from greenroom.admission import pacing
from greenroom.admission.messages.sync import SyncDown
from greenroom.admission.timer_wheel import CELL_BITS

WINDOW_MS = 60_000
CLOSING_MS = 6_000
"""Native passes live at most 5 s, and open connections are closed within q, at most 5 s."""

CUT_OFF_MS = 4_000
"""Without an answer for this long a ledger is cut off and lives on what it holds."""

HORIZON_SLACK_MS = 1_000
"""Keeps the front of the line moving between two syncs."""


class PermitSource(IntEnum):
    PERMIT = 1
    FREED = 2  # a freed unit of its own: cut off, or passthrough
    DEBT = 3  # passthrough only


class Lease:
    __slots__ = (
        "admitted",
        "alone",
        "answered_ms",
        "applied",
        "closing",
        "closing_until_ms",
        "contact_ms",
        "data_centers",
        "disconnected_rate",
        "fence_ms",
        "freed",
        "gap_us",
        "granted_seen",
        "horizon_ms",
        "later_ms",
        "line_ahead_ms",
        "over",
        "permits",
        "pool",
        "queueing",
        "recall",
        "returned_freed",
        "returned_permits",
        "round_trip_ms",
        "settled",
        "spent_until_us",
        "unacknowledged",
        "unknown_until_ms",
        "used",
        "window",
    )  # fmt: skip

    def __init__(self) -> None:
        self.permits = self.freed = 0
        self.granted_seen = self.returned_permits = self.returned_freed = 0
        self.used = self.over = self.settled = 0
        self.closing = self.closing_until_ms = 0
        self.admitted = 0
        self.unacknowledged: deque[int] = deque()
        self.window: deque[int] = deque()
        """Trimmed when it matters."""
        self.disconnected_rate = 0
        self.recall = 0
        self.gap_us = self.spent_until_us = 0
        self.queueing = False
        self.horizon_ms: int | None = None
        self.pool = 0
        self.alone = False
        self.data_centers = 1
        self.applied = 0
        self.answered_ms: int | None = None
        self.contact_ms = 0
        self.fence_ms = 0
        self.later_ms = 0
        self.line_ahead_ms = 0
        """Offset of the coordinator's clock, on which keys are compared."""
        self.round_trip_ms = 0
        self.unknown_until_ms = 0
        """Sessions that only the coordinator knows of last until then."""

    @property
    def debt(self) -> int:
        return self.over - self.settled

    @property
    def surplus(self) -> bool:
        return self.freed > 0 or self.permits > self.recall

    def connected(self, now_ms: int) -> bool:
        return self.answered_ms is not None and now_ms - self.answered_ms < CUT_OFF_MS

    def fenced(self, now_ms: int) -> bool:
        return self.fence_ms > 0 and now_ms + self.later_ms - self.contact_ms >= self.fence_ms

    def spendable(self, now_ms: int) -> int:
        """Cut off without permits: freed units within the disconnected rate."""
        if self.permits or not self.freed or self.connected(now_ms):
            return self.at_hand(now_ms)
        self.trim(now_ms)
        return self.paced(
            max(0, min(self.freed, self.disconnected_rate - len(self.window))), now_ms
        )

    def at_hand(self, now_ms: int) -> int:
        return self.paced(self.permits, now_ms)

    def paced(self, count: int, now_ms: int) -> int:
        """While visitors wait the coordinator sets the pace: only permits leased ahead of need are
        held back here.
        """
        if self.fence_ms and self.fenced(now_ms):
            return 0
        if not count or not self.holds_back:
            return count
        return min(count, max(0, pacing.allowed(self.spent_until_us, self.gap_us, now_ms)))

    @property
    def holds_back(self) -> bool:
        return self.gap_us > 0 and not (
            self.queueing and self.permits * self.gap_us <= pacing.saved_us(self.gap_us)
        )

    def paced_s(self, place: int, now_ms: int) -> float:
        """`place`: from 1, among those with a permit."""
        return (
            max(0, pacing.wait_us(self.spent_until_us, self.gap_us, place, now_ms)) / 1_000_000
            if self.holds_back
            else 0.0
        )

    def horizon_at(self, now_ms: int, gap_ms: int) -> int | None:
        """Latest arrival time that permits reach; None: no bound, as when cut off, because these
        units cannot reach older places elsewhere. `gap_ms`: between two tries.
        """
        if self.horizon_ms is None or self.answered_ms is None or not self.connected(now_ms):
            return None
        return self.horizon_ms + now_ms - self.answered_ms + HORIZON_SLACK_MS + gap_ms

    def source(self, now_ms: int, overdraws: bool, paced: bool = True) -> PermitSource | None:
        """None: nothing may be spent, except in passthrough (`overdraws`). Cut off, unused permits
        count against the disconnected rate. Not `paced`: however soon after the last admission.
        """
        if overdraws:
            return (
                PermitSource.PERMIT
                if self.permits > 0
                else PermitSource.FREED
                if self.freed > 0
                else PermitSource.DEBT
            )
        if not self.paced(1, now_ms) if paced else self.fenced(now_ms):
            return None
        if self.permits > 0:
            return PermitSource.PERMIT
        if self.freed > 0 and not self.connected(now_ms):
            self.trim(now_ms)
            if len(self.window) + self.permits < self.disconnected_rate:
                return PermitSource.FREED
        return None

    def spend(self, source: PermitSource, now_ms: int, paced: bool = True) -> None:
        if source is PermitSource.PERMIT:
            self.permits -= 1
            self.used += 1
        elif source is PermitSource.FREED:
            self.freed -= 1
        else:
            self.over += 1
        self.admitted += 1
        if paced:
            self.spent_until_us = pacing.spent(self.spent_until_us, self.gap_us, now_ms)
        self.window.append(now_ms)
        self.unacknowledged.append(now_ms)

    def unspend(self, source: PermitSource, paced: bool) -> None:
        """Call before the next report."""
        if source is PermitSource.PERMIT:
            self.permits += 1
            self.used -= 1
        elif source is PermitSource.FREED:
            self.freed += 1
        else:
            self.over -= 1
        self.admitted -= 1
        self.spent_until_us -= self.gap_us if paced else 0
        self.window.pop()
        self.unacknowledged.pop()

    def free(self) -> None:
        """Pays a debt with the unit, or returns it with the next report."""
        if self.over > self.settled:
            self.settled += 1
        else:
            self.freed += 1

    def expire(self, now_ms: int) -> None:
        """The time of a session is over, or there were two for one visitor."""
        if self.doubts(now_ms):
            self.closing += 1
        else:
            self.free()

    def doubt(self, life_ms: int, now_ms: int) -> None:
        """For a ledger restored from an older copy: sessions may have been renewed since."""
        self.closing_until_ms = now_ms + life_ms + CLOSING_MS

    def doubts(self, now_ms: int) -> bool:
        return now_ms + CLOSING_MS < self.closing_until_ms

    def lengthen(self, longer_ms: int, now_ms: int) -> None:
        """The session duration grew: renewals that the copy does not know last longer too."""
        if self.doubts(now_ms):
            self.closing_until_ms += longer_ms

    def close(self, count: int, now_ms: int) -> None:
        self.closing += count
        self.closing_until_ms = max(self.closing_until_ms, now_ms + CLOSING_MS)

    def free_closed(self, now_ms: int) -> None:
        if self.closing and now_ms >> CELL_BITS > self.closing_until_ms >> CELL_BITS:
            for _ in range(self.closing):
                self.free()
            self.closing = 0

    def trim(self, now_ms: int) -> None:
        window = self.window
        while window and now_ms - window[0] > WINDOW_MS:
            window.popleft()

    def give_back(self, now_ms: int) -> None:
        """While connected, returns freed units and permits above the recall level for good."""
        if self.connected(now_ms):
            self._return_above(self.recall)

    def give_all_back(self) -> None:
        """Before the last report of an epoch."""
        self._return_above(0)

    def _return_above(self, level: int) -> None:
        self.returned_freed += self.freed
        self.freed = 0
        surplus = max(0, self.permits - level)
        self.permits -= surplus
        self.returned_permits += surplus

    def begin_epoch(self, sessions: int, now_ms: int) -> "Lease":
        """A lease with the units of `sessions`, the sliding minute and the fence."""
        left = Lease()
        self.trim(now_ms)
        left.granted_seen = left.used = sessions
        left.window, left.unacknowledged = self.window, deque(self.window)
        left.admitted = len(self.window)
        left.line_ahead_ms, left.round_trip_ms = self.line_ahead_ms, self.round_trip_ms
        left.gap_us, left.spent_until_us = self.gap_us, self.spent_until_us
        left.fence_ms, left.data_centers = self.fence_ms, self.data_centers
        left.unknown_until_ms = self.unknown_until_ms
        left.closing_until_ms = self.closing_until_ms
        return left

    def ages(self, now_ms: int, whole: bool) -> tuple[int, ...]:
        """Of admissions in the last 60 s that are not acknowledged; `whole`: of all."""
        times = self.window if whole else self.unacknowledged
        while times and now_ms - times[0] > WINDOW_MS:
            times.popleft()
        return tuple([now_ms - time_ms for time_ms in times])

    def is_late(self, down: SyncDown) -> bool:
        """A late answer is refused: it may be a lost coordinator's, and grant what its successor,
        which has this ledger's report, does not know of.
        """
        return down.number <= self.applied

    def apply(self, down: SyncDown, now_ms: int) -> None:
        """Grants only what is new in the absolute count."""
        self.permits += max(0, down.granted - self.granted_seen)
        self.granted_seen = max(down.granted, self.granted_seen)
        paid = min(self.permits, self.debt)
        self.permits -= paid
        self.used += paid
        self.settled += paid
        self.applied = down.number
        for _ in range(len(self.unacknowledged) - (self.admitted - down.acknowledged)):
            self.unacknowledged.popleft()
        self.disconnected_rate, self.recall = down.disconnected_rate, down.recall
        self.queueing, self.horizon_ms = down.queueing, down.horizon_ms
        self.pool, self.alone, self.gap_us = down.pool, down.alone, down.gap_us
        self.contact_ms, self.fence_ms = down.sent_ms, down.fence_ms
        self.data_centers = down.data_centers
        # -1 from a coordinator without memory: what an earlier one said remains in force
        if down.unknown_ms >= 0:
            self.unknown_until_ms = max(self.unknown_until_ms, now_ms + down.unknown_ms)
        self._set_line_clock(down, now_ms)
        self.answered_ms = now_ms

    def _set_line_clock(self, down: SyncDown, now_ms: int) -> None:
        """The offset errs by half the round trip at most, so quick answers count at once, slower
        ones only after a while.
        """
        round_trip_ms = now_ms - down.sent_ms
        if self.answered_ms is None or round_trip_ms <= self.round_trip_ms:
            self.round_trip_ms = round_trip_ms
            self.line_ahead_ms = down.time_ms - (down.sent_ms + now_ms) // 2
        else:
            self.round_trip_ms += 1
