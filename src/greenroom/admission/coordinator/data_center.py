"""The coordinator's state of one data center, and what it counts for."""

from collections import deque
from dataclasses import dataclass, field

from greenroom.admission.coordinator.fence import FENCE_SLACK_MS, NEVER_MS, FencesInForce
from greenroom.admission.messages.sync import NO_RECALL, SyncUp

NUMBERS_AHEAD = 1 << 20
"""Answers that coordinators could send while one message is on its way: those of days."""
LEAVE_CELL_MS = 100
"""Rounded up, so none leaves early."""


@dataclass(slots=True)
class Weight:
    value: int = 0  # rate units
    owed: int = 0  # admissions without a permit that no permit on the way will pay for
    outstanding: int = 0  # permits
    uncovered: int = 0  # waiters without a permit; 0 while it is silent
    arrivals_per_s: float = 0.0


@dataclass(slots=True)
class DataCenter:
    """Counters are those of its messages. `retired`: taken off the list; counts until nothing of it
    can be left.
    """

    name: str
    epoch: int = -1
    heard: int = 0
    answered: int = 0
    first: int = 0
    """Earlier coordinators' are lower. 0: none yet."""
    contact_ms: int | None = None
    granted: int = 0
    recall: int = NO_RECALL
    """The answer to a late report repeats it."""
    seen: int = 0
    """Granted units known to have arrived there."""
    returned_permits: int = 0
    returned_freed: int = 0
    used: int = 0
    over: int = 0
    settled: int = 0
    acknowledged: int = 0
    moved_in: int = 0
    moved_out: int = 0
    arrived: int = 0
    """Of those moved in, how many it has taken over."""
    orphans: int = 0
    orphans_until_ms: int = 0
    leaving: deque[list[int]] = field(default_factory=deque)
    minute: int = 0
    disconnected_rates: deque[tuple[int, int]] = field(default_factory=deque)
    """(answer number, rate), without those outweighed by a later one: the first is the largest."""
    fences: FencesInForce = field(default_factory=FencesInForce)
    fenced_ms: int = 0
    """When a silent one has stopped by itself; 0: never, or it is not silent."""
    waiting: int = 0
    seconds: dict[int, int] = field(default_factory=dict)
    """Waiters by arrival second."""
    whole: bool = False
    reachable: bool = False
    retired: bool = False
    recalled: bool = False
    given_up: bool = False
    """It has stopped by itself (`fence`): what it held are orphans, until it is heard again."""
    life_ms: int = 0
    """Longest possible session there since it was last heard."""
    arrivals_per_s: float = 0.0
    newest: SyncUp | None = None
    """The newest report of this epoch."""
    marked: tuple[int, ...] = ()
    """What was last stored of it (`memory`)."""
    wait_table_ms: int = -1
    """When the newest forecast sent to it was made."""
    summary_ms: int = -1
    """The same of the summary of the others."""
    weight: Weight = field(default_factory=Weight)
    """As in the sums."""
    alarm_ms: int = 0
    """0: not noted."""

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
        """Permits there or on the way that are not known to be spent."""
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
        """All it admitted and may admit with permits; or, cut off, that rate and permits on the way
        to it.
        """
        return max(
            self.minute + self.outstanding,
            (
                self.disconnected_rates[0][1] + self.granted - self.seen
                if self.disconnected_rates
                else 0
            ),
        )

    @property
    def uncovered(self) -> int:
        return max(0, self.waiting - max(0, self.outstanding))

    @property
    def owed(self) -> int:
        """Admissions without a permit that no permit on the way will pay for."""
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
        """A permit meant for a ghost goes to the next visitor in any data center."""
        if horizon_s is None or self.outstanding <= 0:
            return self.waiting
        return sum(count for second, count in self.seconds.items() if second <= horizon_s)

    def close(self, granted_seen: int) -> int:
        """Returns how many units on their way to it are free."""
        free = max(0, self.granted - granted_seen)
        self.granted -= free
        self.disconnected_rates.clear()
        return free

    def begin_epoch(self, epoch: int) -> None:
        """Admissions of the last minute, orphans and contact stay."""
        self.epoch = epoch
        self.granted = self.returned_permits = self.returned_freed = self.used = self.over = (
            self.settled
        ) = 0
        self.acknowledged = self.heard = self.waiting = self.seen = self.moved_in = (
            self.moved_out
        ) = self.arrived = 0
        self.whole, self.newest = False, None
        self.seconds.clear()
        self.disconnected_rates.clear()
        self.fences = FencesInForce()
        self.fenced_ms = 0

    def count_answer(self, applied: int, random_bits: int) -> None:
        """A number that this coordinator never sent is an earlier one's, whose answers may still be
        on their way: this one's are higher than all of those, so a ledger that has applied one
        refuses those.
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
        """The rate of this answer is in force there; those of earlier answers no longer are."""
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
        """From when `fenced_ms` says. One without a report yet may have been in contact until
        now.
        """
        self.reachable = False
        fence_ms = self.fences.longest_ms
        self.fenced_ms = (
            0
            if fence_ms == NEVER_MS
            else (now_ms if self.contact_ms is None else self.contact_ms)
            + fence_ms
            + FENCE_SLACK_MS
        )

    def returning(self, now_ms: int) -> list[tuple[float, int]]:
        """(in how many seconds, units). A silent one is assumed to report again after as long
        again, unless its fence ends that sooner.
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
    """They are among its orphans; units that it has returned or given away no longer are."""
    moves = up.moves
    moved = (
        max(0, moves.arrived - center.moved_in) - max(0, moves.given - center.moved_out)
        if moves
        else 0
    )
    return max(0, adopted - returned + moved)


@dataclass(slots=True)
class Sums(Weight):
    """Of all data centers, updated by difference."""

    def weigh(self, center: DataCenter) -> bool:
        """Returns whether its permits changed."""
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
