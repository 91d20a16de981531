"""Leases permits to the ledgers of all data centers, and alone knows the whole line.

Theory. Capacity that is not in the pool is held by a ledger: `pool + sum(held + orphans) ==
total_active_users`. A data center's part of the rate is what it admitted within 60 s plus what it
may still admit: `max(admitted + outstanding, disconnected_rate + permits on the way)`, because one
that was cut off may have used up that rate when they arrive. A permit is granted only out of
`min(pool, new_users_per_minute - sum of these)`, and counts until its use is reported.

The base class, `allotment`, decides who gets how many; this module what is known, and when it
counts. docs/explanation/admission.md has the proofs for silent data centers and lost state. Sums
are kept up to date, so the cost of a report does not grow with the number of data centers.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from heapq import heappop

from greenroom.admission.coordinator.allotment import Allotment
from greenroom.admission.coordinator.data_center import DataCenter, remembered_units
from greenroom.admission.coordinator.session_transfers import SessionTransfers
from greenroom.admission.coordinator.summaries import Summaries
from greenroom.admission.coordinator.whole_line import WholeLine
from greenroom.admission.forecast.forecast import Forecaster, ForecastInput
from greenroom.admission.lease import CUT_OFF_MS, WINDOW_MS
from greenroom.admission.messages.sync import SyncDown, SyncUp
from greenroom.admission.messages.wait_table import WaitTable
from greenroom.admission.pacing import gap_us
from greenroom.model.room import Room

ORPHAN_SLACK_MS = 5_000


class Coordinator(Allotment):
    """Times are the coordinator's own milliseconds; `random_bits` is 64 random bits."""

    def __init__(self, data_centers: Sequence[str], room: Room, now_ms: int) -> None:
        super().__init__(room, now_ms)
        self.data_centers: dict[str, DataCenter] = {}
        # reachable data centers, the oldest report first
        self._contacts: OrderedDict[str, None] = OrderedDict()
        self.transfers = SessionTransfers(
            self._living,
            lambda name: self.doubting and name in self.doubted,
            lambda: self.data_centers,
        )
        self.forecaster = Forecaster(room, now_ms)
        self.summaries = Summaries(now_ms)
        self._life_ms = self._unknown_until_ms = 0
        self.configure(room)
        self.doubted_until_ms = now_ms + self._life_ms + ORPHAN_SLACK_MS
        self.enlist(data_centers, now_ms)
        self.doubted.update(self.data_centers)

    def configure(self, room: Room) -> None:
        """Lower limits may make the pool negative: nothing is granted meanwhile."""
        self.pool += room.total_active_users - self.total
        self.total = room.total_active_users
        self.per_minute = room.new_users_per_minute
        self._random, self._evenly = room.queueing_method == "random", room.pace_admissions
        before_ms, self._life_ms = self._life_ms, room.session_ms + room.renewal_age_ms
        for center in self.data_centers.values():
            center.life_ms = max(center.life_ms, self._life_ms)
        if 0 < before_ms < self._life_ms:
            self._lengthen(self._life_ms - before_ms)
        self.forecaster.configure(room)
        self._rank()

    def _lengthen(self, longer_ms: int) -> None:
        """The session duration grew, also for sessions that no ledger knows of."""
        for center in self.data_centers.values():
            center.orphans_until_ms += longer_ms if center.orphans else 0
        if not self._waited_for_doubted:
            self.doubted_until_ms += longer_ms
        self._unknown_until_ms += longer_ms
        self.forgotten = self.forgotten.until(self.forgotten.until_ms + longer_ms)
        self.transfers.lengthen(longer_ms)

    def enlist(self, names: Iterable[str], now_ms: int) -> None:
        """Units of removed data centers stay in use until all their sessions must have ended; how
        many a doubted one holds is unknown.
        """
        wanted = dict.fromkeys(names)
        if not (self.doubted <= wanted.keys() or self._waited_for_doubted):
            stored = any(center.recalled for center in self.data_centers.values())
            until_ms = now_ms + self._life_ms + ORPHAN_SLACK_MS
            self.forgotten = self.forgotten.until(until_ms, certain=stored)
        self.doubted &= wanted.keys()
        for name in wanted:
            center = self.data_centers.setdefault(name, DataCenter(name))
            center.retired = False
        for center in self.data_centers.values():
            if center.name not in wanted and not center.retired:
                center.retired = True
                self._begin_epoch(center, center.epoch + 1, now_ms)
                self._fall_silent(center, now_ms)
        self._alone = len(wanted) == 1
        self._company = max(1, len(wanted))
        self._rank()

    def _living(self, name: str) -> DataCenter | None:
        """None, too, for a doubted one that never reported: its sessions are over."""
        given_up = name in self.doubted and self._waited_for_doubted
        return None if given_up else self.data_centers.get(name)

    def give_up(self, name: str, now_ms: int) -> None:
        """An operator states that nothing runs there. Frees nothing of a doubted one, which only a
        lost coordinator knew.
        """
        self._pass_time(now_ms)
        center = self.data_centers[name]
        if not (center.retired or center.given_up or name in self.doubted):
            self._give_up(center, now_ms)

    def reckon(self, total: int, doubted: Iterable[str]) -> None:
        """Recomputes the pool from what is held. Doubted data centers may hold more."""
        self.total = total
        self.pool = total - sum(
            center.held + center.orphans for center in self.data_centers.values()
        )
        self.doubted = set(doubted)
        for center in self.data_centers.values():
            self._weigh(center)
            if center.orphans:
                self._unknown_until_ms = max(self._unknown_until_ms, center.orphans_until_ms)

    def _rank(self) -> None:
        if self._ranked == (not self._alone and not self._random):
            return
        self._ranked = not self._ranked
        self._line, self._horizon_s = WholeLine(), None
        if self._ranked:
            for name in self._contacts:
                self._show(self.data_centers[name])

    @property
    def ranked_seconds(self) -> dict[int, int] | None:
        return self._line.seconds if self._ranked else None

    @property
    def _fence_ms(self) -> int:
        return 0 if self._alone else self.fence_ms

    def sync(self, up: SyncUp, now_ms: int, random_bits: int) -> SyncDown:
        """A late or repeated report is granted nothing."""
        center = self.data_centers[up.data_center]
        self._pass_time(now_ms)
        self._greet(center, up, now_ms)
        if up.epoch == center.epoch:
            newest = up.number > center.heard
            news = not (newest and center.reachable and center.newest and up.repeats(center.newest))
            if news:
                self._absorb(center, up, now_ms)
                if newest:
                    self._note(center, up, now_ms)
            if newest:
                self._meet(center, up, now_ms)
                if news:
                    self._weigh(center)
                if up.farewell:
                    self._part(center, up, now_ms)
                elif self.transfers.has_learned(center, up.applied, now_ms):
                    center.recall = self._allot(center, up.want, now_ms, random_bits)
        center.count_answer(up.applied, random_bits)
        disconnected_rate = 0
        if up.epoch == center.epoch:  # else the answer only tells the ledger that its epoch is over
            disconnected_rate = self._disconnected_rate(center)
            center.allow_disconnected_rate(center.answered, disconnected_rate)
            center.fences.say(center.answered, self._fence_ms)
        self._weigh(center)
        afresh = not center.whole or center.name in self.doubted
        return SyncDown(
            center.epoch, center.answered, up.number, up.sent_ms, now_ms, center.granted,
            center.acknowledged, disconnected_rate, self.sums.uncovered > 0, center.recall,
            None if self._horizon_s is None else self._horizon_s * 1000 + 999, max(0, self.pool),
            self._alone, afresh, self._wait_table_for(center, now_ms),
            self.transfers.answer(center, now_ms),
            gap_us(self.per_minute, self._admissions_share(center), self._company) if self._evenly else 0,
            self._fence_ms, self._company,
            None if self._alone else self.summaries.of(center, self.data_centers, self._ranked, now_ms),
            self._unknown_ms(center, now_ms),
        )  # fmt: skip

    def _unknown_ms(self, center: DataCenter, now_ms: int) -> int:
        """How long sessions may remain that no ledger can report; -1: not known yet."""
        if self.doubted and not self._waited_for_doubted:
            return -1
        if center.orphans:
            self._unknown_until_ms = max(self._unknown_until_ms, center.orphans_until_ms)
        forgotten_ms = self.forgotten.until_ms if self.forgotten.certain else 0
        return max(0, max(self._unknown_until_ms, forgotten_ms) - now_ms)

    def _greet(self, center: DataCenter, up: SyncUp, now_ms: int) -> None:
        doubted, unknown = center.name in self.doubted, not center.recalled
        if (
            self._waited_for_doubted
            if doubted
            else up.applied and unknown and center.contact_ms is None
        ):  # it never reported, or is listed again: others may have got what it had
            self.doubted.discard(center.name)
            self._begin_epoch(center, max(up.epoch, center.epoch) + 1, now_ms)
        elif doubted and unknown:
            self._hear_of_forgotten(center, up, now_ms)
        if up.epoch > center.epoch:
            self._begin_epoch(center, up.epoch, now_ms)

    def _hear_of_forgotten(self, center: DataCenter, up: SyncUp, now_ms: int) -> None:
        earlier = up.applied > 0 and not center.has_heard(up.applied)
        self.forgotten = self.forgotten.report(up, self._life_ms + ORPHAN_SLACK_MS, earlier, now_ms)

    # -- what a message says -----------------------------------------------------------------------

    def _begin_epoch(self, center: DataCenter, epoch: int, now_ms: int) -> None:
        """The ledger lost its state (or this is its first report): its units stay in use until its
        sessions have ended. Admissions it may not have reported count as made now. The pool pays
        those of passthrough that no permit has paid for, and may become negative.
        """
        owed = center.owed
        self.pool -= owed  # even if nothing is held there: sessions in debt may have moved away
        if center.held + owed:
            center.orphans += center.held + owed
            center.orphans_until_ms = now_ms + max(self._life_ms, center.life_ms) + ORPHAN_SLACK_MS
        if center.held or owed or center.value:
            self._unknown_until_ms = now_ms + max(self._life_ms, center.life_ms) + ORPHAN_SLACK_MS
        if center.value > center.minute:
            center.admit(now_ms + WINDOW_MS, center.value - center.minute)
        center.begin_epoch(epoch)
        self.transfers.begin_epoch(center.name, now_ms)
        if center.reachable:
            self._show(center)
        self._weigh(center)

    def _part(self, center: DataCenter, up: SyncUp, now_ms: int) -> None:
        """Only sessions are left there, and they are not renewed (`fence`)."""
        if center.name not in self.doubted:
            self.pool += center.close(up.granted_seen)
        self._give_up(center, now_ms)

    def _give_up(self, center: DataCenter, now_ms: int) -> None:
        self._begin_epoch(center, center.epoch + 1, now_ms)
        center.given_up = True
        self._fall_silent(center, now_ms)

    def _absorb(self, center: DataCenter, up: SyncUp, now_ms: int) -> None:
        """Reports may come in any order: the largest count is the newest."""
        # more than was granted: the ledger kept its sessions, an earlier coordinator lost its state
        adopted = max(0, up.granted_seen - center.granted)
        unused = max(0, up.returned_permits - center.returned_permits)
        self._pace.return_unused(unused)
        returned = unused + max(0, up.returned_freed - center.returned_freed)
        known = remembered_units(center, up, adopted, returned)
        remembered = min(known, adopted, center.orphans)
        center.orphans -= remembered
        self.pool += returned - adopted + remembered
        center.granted += adopted
        center.seen = max(center.seen, up.granted_seen)
        center.returned_permits = max(center.returned_permits, up.returned_permits)
        center.returned_freed = max(center.returned_freed, up.returned_freed)
        center.used, center.over = max(center.used, up.used), max(center.over, up.over)
        center.settled = max(center.settled, up.settled)
        new = min(len(up.ages_ms), max(0, up.admitted - center.acknowledged))
        # else: the ages are only those that an earlier coordinator had not confirmed
        if up.whole or center.name not in self.doubted:
            for age_ms in up.ages_ms[len(up.ages_ms) - new :]:
                center.admit(now_ms - age_ms + WINDOW_MS)
            center.acknowledged = max(center.acknowledged, up.admitted)
        if up.moves:
            self.pool += self.transfers.book(
                center,
                up.moves,
                now_ms,
                now_ms + self._life_ms + ORPHAN_SLACK_MS,
                known - remembered,
            )
        self.forecaster.admitted(center.name, up.ages_ms[len(up.ages_ms) - new :], now_ms)

    def _note(self, center: DataCenter, up: SyncUp, now_ms: int) -> None:
        center.waiting = up.waiting
        self._see(center, up)
        if up.moves:
            self.transfers.hear(center, up.moves, now_ms, now_ms + self._life_ms + ORPHAN_SLACK_MS)
        self.forecaster.hear(up, now_ms)

    def _meet(self, center: DataCenter, up: SyncUp, now_ms: int) -> None:
        center.newest, center.heard, center.contact_ms = up, up.number, now_ms
        center.arrivals_per_s = up.arrivals_per_s
        self.forecaster.meet(center.name, now_ms)
        self._contacts[center.name] = None
        self._contacts.move_to_end(center.name)
        center.confirm_disconnected_rate(up.applied, up.disconnected_rate)
        center.fences.confirm(up.applied, up.fence_ms)
        center.life_ms, center.fenced_ms, center.given_up = self._life_ms, 0, False

    def _see(self, center: DataCenter, up: SyncUp) -> None:
        anew = up.whole or not center.reachable
        center.whole, center.reachable = center.whole or up.whole, True
        if up.whole and (self._alone or center.has_heard(up.applied)):
            self.doubted.discard(center.name)
        if up.whole:
            center.seconds.clear()
        seconds = center.seconds
        for second, count in up.seconds:
            if self._ranked and not anew:
                self._line.move(center.name, second, count - seconds.get(second, 0))
            if count:
                seconds[second] = count
            else:
                seconds.pop(second, None)
        if anew:
            self._show(center)
        elif self._ranked:
            self._line.cover(center.name, max(0, center.outstanding))

    def _show(self, center: DataCenter) -> None:
        if self._ranked:
            self._line.show(center.name, center.seconds)
            self._line.cover(center.name, max(0, center.outstanding))

    def _wait_table_for(self, center: DataCenter, now_ms: int) -> WaitTable | None:
        if now_ms >= self.forecaster.due_ms:
            self.forecaster.think(self._facts(now_ms), now_ms)
        wait_table = self.forecaster.wait_table
        if wait_table is None or wait_table.made_ms == center.wait_table_ms:
            return None
        center.wait_table_ms = wait_table.made_ms
        return (
            wait_table
            if self._alone
            else self.forecaster.wait_table_for(center.uncovered_seconds(), center.seconds)
        )

    def _facts(self, now_ms: int) -> ForecastInput:
        """The line without silent data centers, where no permit arrives."""
        centers, seconds = self.data_centers, self._uncovered_seconds()
        lines = tuple([centers[name].seconds for name in self._contacts])
        waiting = [(centers[name].waiting, centers[name].contact_ms) for name in self._contacts]
        ages_ms = sum([count * (now_ms - (heard_ms or now_ms)) for count, heard_ms in waiting])
        ended = sum(center.returned_freed + center.settled for center in centers.values())
        sessions = {name: max(0, centers[name].sessions) for name in self._contacts}
        returning = tuple(
            [part for center in centers.values() for part in center.returning(now_ms)]
        )
        free = max(0, self.pool)
        return ForecastInput(
            sessions,
            self.sums.outstanding,
            free,
            sum(seconds.values()),
            ended,
            seconds,
            lines,
            returning,
            ages_ms // max(1, sum([count for count, _ in waiting])),
        )

    def _uncovered_seconds(self) -> dict[int, int]:
        """By arrival second; random: all waiters, as none is covered first."""
        if self._ranked:
            return self._line.seconds
        seconds = Counter[int]()
        for name in self._contacts:
            center = self.data_centers[name]
            seconds.update(center.seconds if self._random else center.uncovered_seconds())
        return seconds

    # -- sums and time -----------------------------------------------------------------------------

    def _pass_time(self, now_ms: int) -> None:
        while self._alarms and self._alarms[0][0] <= now_ms:
            alarm_ms, name = heappop(self._alarms)
            center = self.data_centers.get(name)
            if center is None or center.alarm_ms != alarm_ms:
                continue
            center.alarm_ms = 0
            center.trim(now_ms)
            if center.fenced_ms and now_ms >= center.fenced_ms:
                self._begin_epoch(center, center.epoch + 1, now_ms)
                center.given_up = True
            if center.orphans and now_ms >= center.orphans_until_ms:
                self.pool += center.orphans
                center.orphans = 0
            self._weigh(center)
            if center.retired and not center.orphans and not center.minute:
                del self.data_centers[name]
        while self._contacts:
            center = self.data_centers[next(iter(self._contacts))]
            if center.contact_ms is not None and now_ms - center.contact_ms < CUT_OFF_MS:
                break
            self._fall_silent(center, now_ms)

    def _fall_silent(self, center: DataCenter, now_ms: int) -> None:
        center.fall_silent(now_ms)
        self._contacts.pop(center.name, None)
        self._line.hide(center.name)
        self._weigh(center)
