"""The three published methods of dividing slots, to compare with greenroom's protocol on the same
visitors.

As published by Cloudflare (2021 and 2023): every data center has a state of the world that is a few
seconds old. The slots of a minute, `min(total_active_users - active, new_users_per_minute)`, are
divided by how many new visitors each saw two minutes ago; the rest of the limit are *Anywhere* slots.
Then

1. *even split*: every worker gets an even part of its data center's slots and of the Anywhere slots
   of the world;
2. *utilisation*: the same, but the number of workers is multiplied by utilisation ** CURVE_FACTOR:
   more slots far from the limits;
3. *counters*: one counter for each data center, and a global one for Anywhere slots, queried while
   the visitor waits.

Waiting visitors are in buckets of a minute; the oldest buckets that fit into the free slots may enter
anywhere, the next one is divided like the slots. What the articles leave open is decided in their
favour: counts inside a data center are exact, no visitor is forgotten, and slots freed within a
minute are used in it.
"""

from collections import Counter, deque

from greenroom.model.line_table import LineTable
from greenroom.model.room import Room
from greenroom.model.visit import Estimate, Outcome, Standing, make_key
from greenroom.simulator.chance import Streams, between, weighted
from greenroom.simulator.links import Agenda, Links
from greenroom.simulator.scenario import Scenario
from greenroom.simulator.visitor import CenterLook, OutcomeHandler, SimulatedVisitor

GENERATIONS = {"even split": 1, "utilisation": 2, "counters": 3}
CURVE_FACTOR = 1.0
REPORT_MS = 2_000
REFRESH_MS = 20_000
MINUTE_MS = 60_000
ANYWHERE_MS = 65
"""Published: 60 or 70 ms."""
SWEEP_MS = 10_000
FORGOTTEN_MS = 45_000


class Site:
    def __init__(self, workers: int) -> None:
        self.down = 0
        self.sessions: dict[bytes, int] = {}
        self.waiting: dict[bytes, tuple[int, int]] = {}  # id -> bucket, last try
        self.buckets: Counter[int] = Counter()
        self.swept_ms = 0
        self.came: Counter[int] = Counter()  # new visitors by minute
        self.sent = 0  # this minute
        self.sent_by: Counter[int] = Counter()  # worker -> sent this minute from slots
        self.bucket_sent: Counter[int] = (
            Counter()
        )  # since the last picture, from a bucket that was divided
        self.minute = -1
        self.workers = list(range(workers))
        self.world = PublishedView(0, 0, {}, 1.0, {}, 1)


class PublishedView:
    __slots__ = ("active", "anywhere", "buckets", "sent", "shares", "workers")

    def __init__(
        self,
        active: int,
        sent: int,
        shares: dict[int, float],
        anywhere: float,
        buckets: dict[int, int],
        workers: int,
    ) -> None:
        self.active, self.sent, self.shares, self.anywhere = active, sent, shares, anywhere
        self.buckets, self.workers = buckets, workers


class Published:
    def __init__(
        self, generation: int, scenario: Scenario, agenda: Agenda, links: Links, streams: Streams
    ) -> None:
        self._generation = generation
        self._room = scenario.room
        self._agenda, self._links = agenda, links
        self._draw = streams("published")
        self._silent = 0
        self.global_calls = self.messages = 0
        self.sites = [Site(scenario.workers) for _ in range(scenario.centers)]
        self._reported: dict[int, tuple[int, int, dict[int, int], dict[int, int], int]] = {}
        self._anywhere_sent = 0
        self._anywhere_minute = -1
        self._admitted: deque[int] = deque()
        self._workers_born = scenario.workers
        weights = [1 / (rank + 1) for rank in range(scenario.workers)]
        self._busy = [sum(weights[: rank + 1]) for rank in range(scenario.workers)]
        for number in range(scenario.centers):
            agenda.after(between(self._draw, 0, REPORT_MS), self._report, number)

    # -- what visitors ask -------------------------------------------------------------------------

    def skew_ms(self, center: int) -> int:  # noqa: ARG002 - clocks are right, in their favour
        return 0

    def open(self, center: int) -> bool:
        return not self.sites[center].down

    def arrive(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None:
        site, now_ms = self._site(visitor), self._agenda.now_ms
        visitor.key = make_key(now_ms, self._draw.getrandbits(22))
        visitor.latency_ms = between(self._draw, 1, 10) if self._generation == 3 else 0
        site.came[now_ms // MINUTE_MS] += 1
        free = self._slots(site) - sum(site.world.buckets.values())
        if free > 0 and self._takes_slot(visitor, site, free):
            then(visitor, self._admit(visitor, site))
        else:
            then(visitor, self._hold(visitor, site))

    def arrive_provisionally(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None:
        then(visitor, self._hold(visitor, self._site(visitor)))

    def poll(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None:
        site = self._site(visitor)
        bucket = visitor.came_ms // MINUTE_MS
        before = sum(count for other, count in site.world.buckets.items() if other < bucket)
        mine = max(1, site.world.buckets.get(bucket, 0))
        free = min(
            self._room.total_active_users - site.world.active,
            self._room.new_users_per_minute - site.world.sent,
        )
        if free - before >= mine or (
            free > before and self._takes_share(visitor, site, free - before)
        ):
            then(visitor, self._admit(visitor, site))
        else:
            then(visitor, self._hold(visitor, site))

    def peek(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None:
        then(visitor, self._hold(visitor, self._site(visitor)))

    def line_table(self, center: int) -> LineTable | None:  # noqa: ARG002
        return None

    def view(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None:
        site, now_ms = self._site(visitor), self._agenda.now_ms
        expires_ms = (
            now_ms + self._room.session_ms
            if not self._room.disable_session_renewal
            else visitor.promised_ms
        )
        if visitor.home != visitor.center:
            self.sites[visitor.home].sessions.pop(visitor.id, None)
            visitor.home = visitor.center
        site.sessions[visitor.id] = expires_ms
        then(visitor, Outcome(Standing.ACTIVE, expires_ms, now_ms))

    def fail(self, visitor: SimulatedVisitor) -> Outcome:  # noqa: ARG002
        return Outcome(Standing.GONE)

    def leave(self, visitor: SimulatedVisitor) -> None:
        self._site(visitor).sessions.pop(visitor.id, None)

    def look(self, center: int) -> CenterLook:
        site, now_ms = self.sites[center], self._agenda.now_ms
        return CenterLook(
            sum(until_ms > now_ms for until_ms in site.sessions.values()), len(site.waiting)
        )

    # -- what goes wrong ---------------------------------------------------------------------------

    def shut(self, center: int, change: int) -> None:
        self.sites[center].down += change

    def part(self, center: int) -> None: ...

    def lose_ledger(self, center: int) -> None:
        site = self.sites[center]
        site.sessions, site.waiting, site.sent_by, site.buckets = {}, {}, Counter(), Counter()

    def restore_old(self, center: int) -> None:
        self.lose_ledger(center)

    def silence(self, change: int) -> None:
        self._silent += change

    def lose_coordinator(self) -> None:
        self._reported.clear()

    def worker_dies(self, center: int) -> None:
        site = self.sites[center]
        self._workers_born += 1
        site.workers[between(self._draw, 0, len(site.workers) - 1)] = self._workers_born

    def step_clock(self, center: int, step_ms: int) -> None: ...

    def configure(self, room: Room) -> None:
        self._room = room

    def enlist(self, center: int, listed: bool) -> None: ...

    def draw(self) -> tuple[dict[bytes, int], int]:
        return {}, 0

    # -- slots -------------------------------------------------------------------------------------

    def _site(self, visitor: SimulatedVisitor) -> Site:
        site, minute = self.sites[visitor.center], self._agenda.now_ms // MINUTE_MS
        if site.minute != minute:
            site.minute, site.sent = minute, 0
            site.sent_by.clear()
        return site

    def _slots(self, site: Site) -> int:
        return min(
            self._room.total_active_users - (site.world.active - site.world.sent),
            self._room.new_users_per_minute,
        )

    def _takes_slot(self, visitor: SimulatedVisitor, site: Site, free: int) -> bool:
        own = free * site.world.shares.get(visitor.center, 0.0)
        anywhere = free * site.world.anywhere
        if self._generation == 3:
            if site.sent_by[-1] < own:
                site.sent_by[-1] += 1
                return True
            return self._takes_anywhere(visitor, anywhere)
        worker = site.workers[weighted(self._draw, self._busy)]
        factor = 1.0
        if self._generation == 2:
            factor = (
                min(1.0, max(0.0, site.world.active / self._room.total_active_users))
                ** CURVE_FACTOR
            )
        here, everywhere = (
            max(1.0, len(site.workers) * factor),
            max(1.0, site.world.workers * factor),
        )
        if site.sent_by[worker] < own / here + anywhere / everywhere:
            site.sent_by[worker] += 1
            return True
        return False

    def _takes_anywhere(self, visitor: SimulatedVisitor, slots: float) -> bool:
        minute = self._agenda.now_ms // MINUTE_MS
        if self._anywhere_minute != minute:
            self._anywhere_minute, self._anywhere_sent = minute, 0
        if self._silent or self._links.is_cut(visitor.center):
            return False
        self.global_calls += 1
        visitor.latency_ms += ANYWHERE_MS
        if self._anywhere_sent < slots:
            self._anywhere_sent += 1
            return True
        return False

    def _takes_share(self, visitor: SimulatedVisitor, site: Site, slots: int) -> bool:
        share = site.world.shares.get(visitor.center, site.world.anywhere / max(1, len(self.sites)))
        counter, parts = -1, 1.0
        if self._generation < 3:
            counter, parts = (
                site.workers[weighted(self._draw, self._busy)],
                float(len(site.workers)),
            )
        if site.bucket_sent[counter] < slots * share / parts:
            site.bucket_sent[counter] += 1
            return True
        return False

    def _admit(self, visitor: SimulatedVisitor, site: Site) -> Outcome:
        now_ms = self._agenda.now_ms
        if site.waiting.pop(visitor.id, None):
            site.buckets[visitor.came_ms // MINUTE_MS] -= 1
        site.sent += 1
        visitor.home = visitor.center
        self._admitted.append(now_ms)
        expires_ms = site.sessions[visitor.id] = now_ms + self._room.session_ms
        return Outcome(Standing.ADMITTED, expires_ms, now_ms)

    def _hold(self, visitor: SimulatedVisitor, site: Site) -> Outcome:
        now_ms = self._agenda.now_ms
        bucket = visitor.came_ms // MINUTE_MS
        site.buckets[bucket] += visitor.id not in site.waiting
        site.waiting[visitor.id] = (bucket, now_ms)
        ahead = sum(count for other, count in site.world.buckets.items() if other <= bucket)
        while self._admitted and now_ms - self._admitted[0] > MINUTE_MS:
            self._admitted.popleft()
        rate = len(self._admitted)
        wait_s = ahead * 60 / rate if rate else 0.0
        guess = Estimate(wait_s, wait_s, wait_s) if rate else None
        return Outcome(
            Standing.WAITING, 0, 0, now_ms, REFRESH_MS, ahead + 1, ahead, len(site.waiting), guess
        )

    # -- the picture -------------------------------------------------------------------------------

    def _report(self, number: int) -> None:
        self._agenda.after(REPORT_MS, self._report, number)
        site, now_ms = self.sites[number], self._agenda.now_ms
        if site.down:
            return
        self.messages += 1
        site.sessions = {
            one: until_ms for one, until_ms in site.sessions.items() if until_ms > now_ms
        }
        if now_ms - site.swept_ms >= SWEEP_MS:
            site.swept_ms = now_ms
            site.waiting = {
                one: place
                for one, place in site.waiting.items()
                if now_ms - place[1] <= FORGOTTEN_MS
            }
            site.buckets = Counter(bucket for bucket, _ in site.waiting.values())
        minute = now_ms // MINUTE_MS
        sent = site.sent if site.minute == minute else 0
        buckets = {bucket: count for bucket, count in site.buckets.items() if count > 0}
        self._links.send(
            number,
            self._heard,
            number,
            (len(site.sessions), sent, buckets, dict(site.came), minute),
        )

    def _heard(
        self, number: int, told: tuple[int, int, dict[int, int], dict[int, int], int]
    ) -> None:
        if self._silent:
            return
        self._reported[number] = told
        minute = self._agenda.now_ms // MINUTE_MS
        came = {other: one[3].get(minute - 2, 0) for other, one in self._reported.items()}
        whole = max(self._room.new_users_per_minute, sum(came.values()))
        shares = {other: count / whole for other, count in came.items() if count}
        buckets: Counter[int] = Counter()
        for one in self._reported.values():
            buckets.update(one[2])
        workers = sum(len(self.sites[other].workers) for other in self._reported)
        active = sum(one[0] for one in self._reported.values())
        sent = sum(one[1] for one in self._reported.values() if one[4] == minute)
        picture = PublishedView(
            active, sent, shares, max(0.0, 1 - sum(shares.values())), dict(buckets), workers
        )
        self._links.send(number, self._sees, number, picture)

    def _sees(self, number: int, picture: PublishedView) -> None:
        site = self.sites[number]
        site.world = picture
        site.bucket_sent.clear()
