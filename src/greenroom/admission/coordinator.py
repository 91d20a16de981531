"""Leases permits to the ledgers of all data centers, and is the only one that knows the whole line.

Theory. Of capacity, what is not in the pool is held by somebody: `pool + sum(held + orphans) == total_active_users`. Of rate, every
data center counts with what it has admitted within 60 s plus what it may still admit: `value = max(admitted + outstanding, rho)`. A
permit is granted only out of `min(pool, new_users_per_minute - sum(value))`. An unused permit keeps counting until its use is
reported, and an admission counts from its own age on, so neither a late nor a lost message can free a unit too early, and no two
clocks are compared.

QUEUE (somebody waits without a permit): permits are paced inside the minute and go to the oldest uncovered waiters of all reachable
data centers, or, for the random method, to data centers in proportion to theirs. FREE: they are leased ahead of need, so newcomers
are let in without asking; a lone data center is leased everything. Limits that were lowered call permits back and expel nobody.

A data center that says nothing for four seconds is left out of the merge and keeps counting. Nothing is granted before every data
center has been heard once, because what the silent one holds is not known; at the latest when every session must have ended that
it had. A ledger that comes back without its memory begins a new
epoch; what it held is orphaned until every session of it must have ended.
"""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, sqrt

from greenroom.admission.lease import CUT_OFF_MS, WINDOW_MS
from greenroom.admission.messages import SyncDown, SyncUp
from greenroom.model.room import Room

ORPHAN_SLACK_MS = 5_000
LEASE_AHEAD_S = 2.0
LEASE_SHARE = 0.5
"""At most this part of what is free is leased ahead, by share of arrivals: the rest can still go where a crowd appears."""
RHO_SHARE = 0.95
RHO_FREE_SHARE = 0.05
"""Cut off, a data center may repeat nearly what it admitted in the last minute, or a little of what was free then."""
NO_RECALL = 1 << 62


@dataclass(slots=True)
class DataCenter:
    """What is known of one data center. Counters are those of its messages."""

    name: str
    epoch: int = -1
    heard: int = 0
    answered: int = 0
    contact_ms: int | None = None
    granted: int = 0
    returned_permits: int = 0
    returned_freed: int = 0
    used: int = 0
    over: int = 0
    settled: int = 0
    acknowledged: int = 0
    orphans: int = 0
    orphans_until_ms: int = 0
    leaving: deque[int] = field(default_factory=deque)
    """When each admission of the last 60 s leaves the minute."""
    rhos: deque[tuple[int, int]] = field(default_factory=deque)
    """(number of the answer, rho) of all that may be in force there."""
    waiting: int = 0
    seconds: dict[int, int] = field(default_factory=dict)
    whole: bool = False
    """Whether `seconds` began with a whole report."""
    arrivals_per_s: float = 0.0

    @property
    def held(self) -> int:
        """Capacity units there: permits, sessions, freed units, and what is on the way."""
        return self.granted - self.returned_permits - self.returned_freed

    @property
    def outstanding(self) -> int:
        """Permits there or on the way that are not known to be spent."""
        return self.granted - self.returned_permits - self.used

    @property
    def value(self) -> int:
        """Rate units it counts with."""
        return max(len(self.leaving) + self.outstanding, max((rho for _, rho in self.rhos), default=0))

    @property
    def uncovered(self) -> int:
        """Waiters without a permit."""
        return max(0, self.waiting - self.outstanding)

    @property
    def owed(self) -> int:
        """Admissions without a permit that no permit on the way will pay for."""
        return max(0, self.over - self.settled - max(0, self.outstanding))

    def uncovered_seconds(self) -> dict[int, int]:
        """Waiters without a permit by arrival second; permits cover the oldest."""
        covered = max(0, self.outstanding)
        left = {}
        for second in sorted(self.seconds):
            count = self.seconds[second]
            if count > covered:
                left[second] = count - covered
            covered = max(0, covered - count)
        return left


class Coordinator:
    """All operations of one room. Times are the coordinator's own milliseconds; `luck` is 64 random bits."""

    def __init__(self, data_centers: Sequence[str], room: Room, now_ms: int) -> None:
        self.data_centers = {name: DataCenter(name) for name in data_centers}
        self.total = room.total_active_users
        self.pool = self.total
        self._pace = 1.0
        self._paced_ms = now_ms
        self._horizon_s: int | None = None
        self.configure(room)
        self._unheard = set(self.data_centers)
        self._unheard_until_ms = now_ms + self._life_ms + ORPHAN_SLACK_MS

    def configure(self, room: Room) -> None:
        """New limits, from the next message on. The pool may become negative; nothing is granted until it is not."""
        self.pool += room.total_active_users - self.total
        self.total = room.total_active_users
        self.per_minute = room.new_users_per_minute
        self._random = room.queueing_method == "random"
        self._life_ms = room.session_ms + room.renewal_age_ms

    def sync(self, up: SyncUp, now_ms: int, luck: int) -> SyncDown:
        """Takes in a ledger's books and answers with what it may have. A message that is late or comes twice is granted nothing."""
        center = self.data_centers[up.data_center]
        recall = NO_RECALL
        if up.epoch > center.epoch:
            self._begin_epoch(center, up.epoch, now_ms)
        if up.epoch == center.epoch:
            self._absorb(center, up, now_ms)
            if up.number > center.heard:
                self._note(center, up, now_ms)
                recall = self._allot(center, up.want, now_ms, luck)
        center.answered += 1
        rho = self._rho(center)
        center.rhos.append((center.answered, rho))
        return SyncDown(
            center.epoch, center.answered, up.number, up.sent_ms, now_ms, center.granted, center.acknowledged, rho,
            self._queueing(now_ms), recall, None if self._horizon_s is None else self._horizon_s * 1000 + 999,
            max(0, self.pool), len(self.data_centers) == 1, not center.whole,
        )  # fmt: skip

    # -- what a message says ------------------------------------------------------------------------------------------------

    def _begin_epoch(self, center: DataCenter, epoch: int, now_ms: int) -> None:
        """The ledger lost its memory (or this is the first message): what it held is nobody's until its sessions have ended.

        Permits that it may have spent without saying so count as admitted just now.
        """
        if center.held:
            center.orphans += center.held
            center.orphans_until_ms = now_ms + self._life_ms + ORPHAN_SLACK_MS
        center.leaving.extend([now_ms + WINDOW_MS] * max(0, center.outstanding))
        center.granted = center.returned_permits = center.returned_freed = center.used = center.over = center.settled = 0
        center.acknowledged = center.heard = center.waiting = 0
        center.whole = False
        center.seconds.clear()
        center.rhos.clear()
        center.epoch = epoch

    def _absorb(self, center: DataCenter, up: SyncUp, now_ms: int) -> None:
        """Absolute counters: whatever the order of messages, the largest count is the newest."""
        adopted = max(0, up.granted_seen - center.granted)  # a ledger that kept its sessions, a coordinator that did not keep its books
        returned = max(0, up.returned_permits - center.returned_permits) + max(0, up.returned_freed - center.returned_freed)
        self.pool += returned - adopted
        center.granted += adopted
        center.returned_permits = max(center.returned_permits, up.returned_permits)
        center.returned_freed = max(center.returned_freed, up.returned_freed)
        center.used, center.over, center.settled = max(center.used, up.used), max(center.over, up.over), max(center.settled, up.settled)
        new = min(len(up.ages_ms), max(0, up.admitted - center.acknowledged))
        center.leaving.extend([now_ms - age_ms + WINDOW_MS for age_ms in up.ages_ms[len(up.ages_ms) - new :]])
        center.acknowledged = max(center.acknowledged, up.admitted)

    def _note(self, center: DataCenter, up: SyncUp, now_ms: int) -> None:
        """What only the newest message may say."""
        self._unheard.discard(center.name)
        center.heard, center.contact_ms = up.number, now_ms
        center.waiting, center.arrivals_per_s = up.waiting, up.arrivals_per_s
        if up.whole:
            center.seconds.clear()
            center.whole = True
        for second, count in up.seconds:
            if count:
                center.seconds[second] = count
            else:
                center.seconds.pop(second, None)
        while center.rhos and center.rhos[0][0] < up.applied:
            center.rhos.popleft()

    # -- what a data center may have ------------------------------------------------------------------------------------------

    def _allot(self, center: DataCenter, want: int, now_ms: int, luck: int) -> int:
        """Grants what is due to this data center now; the level above which it shall give permits back."""
        spare = self._spare(now_ms)
        if spare < 0:
            return self._recalled(center, -spare)
        if self._unheard and now_ms < self._unheard_until_ms:
            return NO_RECALL
        debts = sum(other.owed for other in self.data_centers.values())
        spare -= self._grant(center, min(spare, center.owed))
        spare = min(spare, self.pool - debts + center.owed) if debts else spare
        waiting = self._reachable_uncovered(now_ms)
        if waiting:
            share = self._share(center, min(spare, int(self._pace)), waiting, now_ms, luck)
            self._pace -= self._grant(center, share)
            if share < waiting:
                return NO_RECALL if len(self.data_centers) == 1 else center.waiting
            spare -= share
        self._horizon_s = None
        if len(self.data_centers) == 1:
            self._grant(center, spare)
            return NO_RECALL
        return self._lease_ahead(center, spare, want)

    def _spare(self, now_ms: int) -> int:
        """Permits that could be granted; negative: so many too many are out. Time passes here."""
        value = 0
        for center in self.data_centers.values():
            leaving = center.leaving
            while leaving and leaving[0] < now_ms:
                leaving.popleft()
            if center.orphans and now_ms >= center.orphans_until_ms:
                self.pool += center.orphans
                center.orphans = 0
            value += center.value
        left = self.per_minute - value
        rate = (self.per_minute + max(0, left)) / 60
        self._pace = min(1 + rate, self._pace + rate * (now_ms - self._paced_ms) / 1000)
        self._paced_ms = now_ms
        return min(self.pool, left)

    def _grant(self, center: DataCenter, count: int) -> int:
        count = max(0, count)
        center.granted += count
        self.pool -= count
        return count

    def _recalled(self, center: DataCenter, missing: int) -> int:
        out = sum(max(0, other.outstanding) for other in self.data_centers.values())
        mine = max(0, center.outstanding)
        return max(0, mine - ceil(missing * mine / out)) if out else 0

    def _lease_ahead(self, center: DataCenter, spare: int, want: int) -> int:
        """FREE with several data centers: what arrivals will need before the next sync."""
        arrivals = sum(other.arrivals_per_s for other in self.data_centers.values())
        share = center.arrivals_per_s / arrivals if arrivals > 0 else 1 / len(self.data_centers)
        expected = LEASE_AHEAD_S * center.arrivals_per_s
        target = max(ceil(expected + 2 * sqrt(expected)), int(LEASE_SHARE * spare * share))
        if want:
            target = max(target, center.outstanding + max(want, int(LEASE_SHARE / 2 * spare * share)))
        self._grant(center, min(spare, target - center.outstanding))
        return int(1.5 * target) + 2

    def _rho(self, center: DataCenter) -> int:
        """What it may admit per minute while cut off; never raises the sum of values above the limit."""
        if len(self.data_centers) == 1:
            return 0
        left = max(0, min(self.pool, self.per_minute - sum(other.value for other in self.data_centers.values())))
        own = int(RHO_SHARE * len(center.leaving))
        return max(own, min(int(RHO_FREE_SHARE * left), left + len(center.leaving) + center.outstanding))

    # -- whose turn it is -----------------------------------------------------------------------------------------------------

    def _reachable(self, now_ms: int) -> list[DataCenter]:
        return [one for one in self.data_centers.values() if one.contact_ms is not None and now_ms - one.contact_ms < CUT_OFF_MS]

    def _reachable_uncovered(self, now_ms: int) -> int:
        return sum(center.uncovered for center in self._reachable(now_ms))

    def _queueing(self, now_ms: int) -> bool:
        return self._reachable_uncovered(now_ms) > 0

    def _share(self, center: DataCenter, count: int, waiting: int, now_ms: int, luck: int) -> int:
        """How many of `count` permits are this data center's."""
        if center.uncovered == waiting:
            return min(count, waiting)
        if self._random:
            return rounded(count * center.uncovered, waiting, luck) if count < waiting else center.uncovered
        mine = center.uncovered_seconds()
        merged: Counter[int] = Counter()
        for other in self._reachable(now_ms):
            merged.update(other.uncovered_seconds())
        share = 0
        for second in sorted(merged):
            if merged[second] > count:
                share += rounded(count * mine.get(second, 0), merged[second], luck)
                self._horizon_s = max(second, self._horizon_s or 0)
                break
            share += mine.get(second, 0)
            count -= merged[second]
        return share


def rounded(part: int, whole: int, luck: int) -> int:
    """`part / whole`, rounded up or down at random so that the mean is exact."""
    quotient, rest = divmod(part, whole)
    return quotient + (luck % whole < rest)
