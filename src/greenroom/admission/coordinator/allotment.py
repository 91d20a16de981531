"""Which data center gets how many permits.

QUEUE (a visitor waits without a permit): permits are paced within the minute and go to the oldest
uncovered waiters of all reachable data centers, or, for the random method, to data centers in
proportion to their lines. FREE: they are leased ahead of need, so new visitors enter without a
request; a single data center gets all. Lower limits recall permits and expel no visitor.
"""

from heapq import heappush
from math import ceil, sqrt

from greenroom.admission.coordinator.data_center import DataCenter, Sums
from greenroom.admission.coordinator.fence import FENCE_SLACK_MS
from greenroom.admission.coordinator.forgotten import Forgotten
from greenroom.admission.coordinator.pace import Pace
from greenroom.admission.coordinator.whole_line import WholeLine, rounded
from greenroom.admission.messages.sync import NO_RECALL
from greenroom.model.room import Room

LEASE_AHEAD_S = 2.0
LEASE_SHARE = 0.5
"""Share of the free permits leased ahead; the rest is for where a crowd appears."""
DISCONNECTED_SHARE = 0.95
DISCONNECTED_FREE_SHARE = 0.05
"""A data center that is cut off may repeat nearly its last minute's admissions, or use this share of
what was free.
"""
NO_ARRIVALS_PER_S = 1e-6


class Allotment:
    def __init__(self, room: Room, now_ms: int) -> None:
        self.total = room.total_active_users
        self.pool = self.total
        self.per_minute = room.new_users_per_minute
        self.sums = Sums()
        self.doubted: set[str] = set()
        """Nothing is granted until each of them has reported."""
        self.doubted_until_ms = now_ms
        self.forgotten = Forgotten()
        self.fence_ms = 0
        """`0` disables it."""
        # heap: when time changes something about a data center
        self._alarms: list[tuple[int, str]] = []
        self._line = WholeLine()
        self._ranked = self._alone = self._random = False
        self._company = 1
        self._pace = Pace(now_ms)
        self._horizon_s: int | None = None

    @property
    def doubting(self) -> bool:
        forgotten = self.forgotten
        return (bool(self.doubted) and not self._waited_for_doubted) or (
            forgotten.certain and self._pace.since_ms < forgotten.until_ms
        )

    @property
    def _waited_for_doubted(self) -> bool:
        """Never without a fence: then no data center stops by itself."""
        return (
            self.fence_ms > 0
            and self._pace.since_ms >= self.doubted_until_ms + self.fence_ms + FENCE_SLACK_MS
        )

    def _allot(self, center: DataCenter, want: int, now_ms: int, random_bits: int) -> int:
        """Returns the level above which it must return permits."""
        spare = self._spare(now_ms)
        if spare < 0:
            return self._recalled(center, -spare)
        if self.doubting:
            return NO_RECALL
        spare -= self._grant(center, min(spare, center.owed))
        # passthrough admitted too many: permits elsewhere would admit even more
        if debts := self.sums.owed:
            if debts > self.pool:
                return self._recalled(center, debts - self.pool)
            spare = min(spare, self.pool - debts)
        waiting = self.sums.uncovered
        if waiting:
            share = self._share(center, min(spare, self._pace.permits), waiting, random_bits)
            self._pace.spend(self._grant(center, share))
            if share < waiting:
                return (
                    NO_RECALL
                    if self._alone
                    else center.in_reach(None if self._random else self._horizon_s)
                )
            spare -= share
        self._horizon_s = None
        if self._alone:
            self._grant(center, spare)
            return NO_RECALL
        return self._lease_ahead(center, spare, want)

    def _spare(self, now_ms: int) -> int:
        """Permits that may be granted; negative: how many too many are out. Advances the pace."""
        left = self.per_minute - self.sums.value
        self._pace.earn(self.per_minute, left, now_ms)
        return min(self.pool, left)

    def _grant(self, center: DataCenter, count: int) -> int:
        if count <= 0:
            return 0
        center.granted += count
        self.pool -= count
        self._weigh(center)
        return count

    def _recalled(self, center: DataCenter, missing: int) -> int:
        out, mine = self.sums.outstanding, max(0, center.outstanding)
        return max(0, mine - ceil(missing * mine / out)) if out else 0

    def _lease_ahead(self, center: DataCenter, spare: int, want: int) -> int:
        """Grants what arrivals will need before the next sync."""
        share = self._arrivals_share(center)
        expected = LEASE_AHEAD_S * center.arrivals_per_s
        target = max(ceil(expected + 2 * sqrt(expected)), int(LEASE_SHARE * spare * share))
        if want:
            target = max(
                target, center.outstanding + max(want, int(LEASE_SHARE / 2 * spare * share))
            )
        self._grant(center, min(spare, target - center.outstanding))
        return int(1.5 * target) + 2

    def _arrivals_share(self, center: DataCenter) -> float:
        arrivals = self.sums.arrivals_per_s
        return (
            center.arrivals_per_s / arrivals if arrivals > NO_ARRIVALS_PER_S else 1 / self._company
        )

    def _admissions_share(self, center: DataCenter) -> float:
        """Newcomers enter where arrivals are, visitors in line where permits go."""
        return max(self._arrivals_share(center), center.outstanding / max(1, self.sums.outstanding))

    def _disconnected_rate(self, center: DataCenter) -> int:
        """Never raises the sum of values above the limit."""
        # a negative pool: more is held than there is, by a ledger with sessions whose units went back
        if self._alone or self.pool < 0:
            return 0
        left = max(0, min(self.pool, self.per_minute - self.sums.value))
        own = int(
            DISCONNECTED_SHARE * center.minute * min(1.0, self.per_minute / max(1, self.sums.value))
        )
        if self.doubting:
            return own
        return max(
            own, min(int(DISCONNECTED_FREE_SHARE * left), left + center.minute + center.outstanding)
        )

    def _share(self, center: DataCenter, count: int, waiting: int, random_bits: int) -> int:
        if not self._ranked:
            return (
                rounded(count * center.uncovered, waiting, random_bits)
                if count < waiting
                else center.uncovered
            )
        reach = self._line.reach(center.name, count)
        if reach.edge_s is None:
            return reach.sure
        self._horizon_s = max(reach.edge_s, self._horizon_s or 0)
        return reach.sure + rounded(
            reach.edge_permits * reach.edge_mine, reach.edge_all, random_bits
        )

    def _weigh(self, center: DataCenter) -> None:
        if self.sums.weigh(center) and center.reachable and self._ranked:
            self._line.cover(center.name, max(0, center.outstanding))
        alarm_ms = (
            center.next_alarm_ms() if center.leaving or center.orphans or center.fenced_ms else 0
        )
        if alarm_ms and (not center.alarm_ms or alarm_ms < center.alarm_ms):
            center.alarm_ms = alarm_ms
            heappush(self._alarms, (alarm_ms, center.name))
