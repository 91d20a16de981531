"""The coordinator's state of one data center, and its part in the sums."""

from collections import deque
from dataclasses import dataclass, field

from greenroom.admission.coordinator.fence import FENCE_SLACK_MS, NEVER_MS, FencesInForce
from greenroom.admission.messages.sync import NO_RECALL, SyncUp

NUMBERS_AHEAD = 1 << 20
"""More answers than coordinators send while one message is on its way: those of days."""
LEAVE_CELL_MS = 100
"""Rounded up: no admission leaves the minute early."""


@dataclass(slots=True)
class Weight:
    value: int = 0  # rate units
    owed: int = 0  # admissions without a permit that no permit on the way will pay for
    outstanding: int = 0  # permits
    uncovered: int = 0  # waiters without a permit; 0 while it is silent
    arrivals_per_s: float = 0.0


@dataclass(slots=True)
class DataCenter:
    """Counters are those of its messages. `retired`: off the list, kept until nothing of it is left."""

    name: str
    epoch: int = -1
    heard: int = 0
    answered: int = 0
    first: int = 0
    """This coordinator's first answer number; earlier coordinators' are lower. 0: none yet."""
    contact_ms: int | None = None
    granted: int = 0
    recall: int = NO_RECALL
    """Repeated in the answer to a late report."""
    seen: int = 0
    """Granted units that have arrived there."""
    returned_permits: int = 0
    returned_freed: int = 0
    used: int = 0
    over: int = 0
    settled: int = 0
    acknowledged: int = 0
    moved_in: int = 0
    moved_out: int = 0
    arrived: int = 0
    """Units moved in that it has taken over."""
    orphans: int = 0
    orphans_until_ms: int = 0
    leaving: deque[list[int]] = field(default_factory=deque)
    minute: int = 0
    disconnected_rates: deque[tuple[int, int]] = field(default_factory=deque)
    """(answer number, rate), without those below a later one: the first is the largest."""
    fences: FencesInForce = field(default_factory=FencesInForce)
    fenced_ms: int = 0
    """When a silent one stops by itself; 0: never, or it is not silent."""
    waiting: int = 0
    seconds: dict[int, int] = field(default_factory=dict)
    """Waiters by arrival second."""
    whole: bool = False
    reachable: bool = False
    retired: bool = False
    recalled: bool = False
    given_up: bool = False
    """It has stopped by itself (`fence`): until it reports again, what it held are orphans."""
    life_ms: int = 0
    """Longest possible session there since its last report."""
    arrivals_per_s: float = 0.0
    newest: SyncUp | None = None
    """The newest report of this epoch."""
    marked: tuple[int, ...] = ()
    """As last stored (`memory`)."""
    wait_table_ms: int = -1
    """When the forecast last sent to it was made."""
    summary_ms: int = -1
    """The same of the summary of the others."""
    weight: Weight = field(default_factory=Weight)
    """As counted in the sums."""
    alarm_ms: int = 0
    """0: none."""

    @property
    def held(self) -> int:
        return (
            self.granted
            - self.returned_permits
            - self.returned_freed
            + self.moved_in
            - self.moved_out
        )

    @property
    def outstanding(self) -> int:
        """Permits there or on their way, not known to be spent."""
        return self.granted - self.returned_permits - self.used

    @property
    def sessions(self) -> int:
        return (
            self.used
            + self.over
            + self.moved_in
            - self.moved_out
            - self.returned_freed
            - self.settled
        )

    @property
    def value(self) -> int:
        """Rate units: admissions of the minute and permits; or, if more, the disconnected rate and
        permits on their way.
        """
        cut_off = (
            self.disconnected_rates[0][1] + self.granted - self.seen
            if self.disconnected_rates
            else 0
        )
        return max(self.minute + self.outstanding, cut_off)

    @property
    def uncovered(self) -> int:
        return max(0, self.waiting - max(0, self.outstanding))

    @property
    def owed(self) -> int:
        return max(0, self.over - self.settled - max(0, self.outstanding))

    def uncovered_seconds(self) -> dict[int, int]:
        """Permits cover the oldest."""
        covered = max(0, self.outstanding)
        left = {}
        for second in sorted(self.seconds):
            count = self.seconds[second]
            if count > covered:
                left[second] = count - covered
            covered = max(0, covered - count)
        return left

    def in_reach(self, horizon_s: int | None) -> int:
        """Waiters whom permits may reach: those meant for ghosts go to the next visitor anywhere."""
        if horizon_s is None or self.outstanding <= 0:
            return self.waiting
        return sum(count for second, count in self.seconds.items() if second <= horizon_s)

    def close(self, granted_seen: int) -> int:
        """Frees units on their way to it; returns how many."""
        free = max(0, self.granted - granted_seen)
        self.granted -= free
        self.disconnected_rates.clear()
        return free

    def begin_epoch(self, epoch: int) -> None:
        """Keeps admissions of the last minute, orphans and contact."""
        self.epoch = epoch
        self.granted = self.returned_permits = self.returned_freed = self.seen = 0
        self.used = self.over = self.settled = self.acknowledged = 0
        self.heard = self.waiting = self.moved_in = self.moved_out = self.arrived = 0
        self.whole, self.newest = False, None
        self.seconds.clear()
        self.disconnected_rates.clear()
        self.fences = FencesInForce()
        self.fenced_ms = 0

    def count_answer(self, applied: int, random_bits: int) -> None:
        """An applied number that this coordinator never sent is an earlier one's, whose answers may
        still be on their way. From now on numbers are higher than all of those, so a ledger that
        has applied one refuses them.
        """
        if not self.first or applied > self.answered:
            self.answered = max(self.answered, applied) + NUMBERS_AHEAD + (random_bits & 0x3FFFFFFF)
            self.first = self.answered + 1
        self.answered += 1

    def has_heard(self, applied: int) -> bool:
        return 0 < self.first <= applied <= self.answered

    def admit(self, leaves_ms: int, count: int = 1) -> None:
        cell_ms = -(-leaves_ms // LEAVE_CELL_MS) * LEAVE_CELL_MS
        self.minute += count
        leaving = self.leaving
        if not leaving or leaving[-1][0] < cell_ms:
            leaving.append([cell_ms, count])
            return
        for cell in reversed(leaving):  # nearly always the newest
            if cell[0] == cell_ms:
                cell[1] += count
                return
            if cell[0] < cell_ms:
                break
        self.leaving = deque(sorted([*leaving, [cell_ms, count]]))

    def allow_disconnected_rate(self, number: int, disconnected_rate: int) -> None:
        disconnected_rates = self.disconnected_rates
        while disconnected_rates and disconnected_rates[-1][1] <= disconnected_rate:
            disconnected_rates.pop()
        disconnected_rates.append((number, disconnected_rate))

    def confirm_disconnected_rate(self, number: int, disconnected_rate: int) -> None:
        """The rate of this answer is in force there, and none of earlier answers."""
        disconnected_rates = self.disconnected_rates
        while disconnected_rates and disconnected_rates[0][0] <= number:
            disconnected_rates.popleft()
        if not disconnected_rates or disconnected_rates[0][1] < disconnected_rate:
            disconnected_rates.appendleft((number, disconnected_rate))

    def trim(self, now_ms: int) -> None:
        leaving = self.leaving
        while leaving and leaving[0][0] < now_ms:
            self.minute -= leaving.popleft()[1]

    def fall_silent(self, now_ms: int) -> None:
        """One without a report may have been in contact until now."""
        self.reachable = False
        contact_ms = now_ms if self.contact_ms is None else self.contact_ms
        fence_ms = self.fences.longest_ms
        self.fenced_ms = 0 if fence_ms == NEVER_MS else contact_ms + fence_ms + FENCE_SLACK_MS

    def returning(self, now_ms: int) -> list[tuple[float, int]]:
        """(in how many seconds, units) that come back. A silent data center is assumed to stay
        silent as long again, or until its fence.
        """
        found = [((self.orphans_until_ms - now_ms) / 1000, self.orphans)] if self.orphans else []
        if not self.reachable and self.held > 0 and self.contact_ms is not None:
            again_ms = now_ms - self.contact_ms
            fenced_ms = self.fenced_ms - now_ms + self.life_ms if self.fenced_ms else again_ms
            found.append((max(0, min(again_ms, fenced_ms)) / 1000, self.held))
        return found

    def next_alarm_ms(self) -> int:
        """0: never."""
        moments = [self.leaving[0][0] + 1] if self.leaving else []
        if self.orphans:
            moments.append(self.orphans_until_ms)
        if self.fenced_ms:
            moments.append(self.fenced_ms)
        return min(moments, default=0)


def remembered_units(center: DataCenter, up: SyncUp, adopted: int, returned: int) -> int:
    """How many adopted units are among its orphans: not those returned or given away since."""
    moves = up.moves
    moved = (
        max(0, moves.arrived - center.moved_in) - max(0, moves.given - center.moved_out)
        if moves
        else 0
    )
    return max(0, adopted - returned + moved)


@dataclass(slots=True)
class Sums(Weight):
    """Sums over all data centers, updated by difference."""

    def weigh(self, center: DataCenter) -> bool:
        """Returns whether the center's permits changed."""
        weight = center.weight
        outstanding = max(0, center.outstanding)
        changed = outstanding != weight.outstanding
        if changed:
            self.outstanding += outstanding - weight.outstanding
            weight.outstanding = outstanding
        value = center.value
        if value != weight.value:
            self.value += value - weight.value
            weight.value = value
        uncovered = (
            max(0, center.waiting - outstanding) if center.waiting and center.reachable else 0
        )
        if uncovered != weight.uncovered:
            self.uncovered += uncovered - weight.uncovered
            weight.uncovered = uncovered
        owed = center.owed if center.over else 0
        if owed != weight.owed:
            self.owed += owed - weight.owed
            weight.owed = owed
        if center.arrivals_per_s != weight.arrivals_per_s:
            self.arrivals_per_s += center.arrivals_per_s - weight.arrivals_per_s
            weight.arrivals_per_s = center.arrivals_per_s
        return changed
