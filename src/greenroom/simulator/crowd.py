"""The behaviour of visitors: they arrive, wait as told or not, view pages, move, leave or stop."""

from collections import deque

from greenroom.admission.ledger.failures import TURN_KEPT_MS
from greenroom.admission.ledger.keeping import HELD_MS
from greenroom.model.line_table import LOOK_S
from greenroom.model.room import Room
from greenroom.model.visit import PLACE_KEPT_MS, TIE_BITS, Outcome, Standing, arrival_ms_of
from greenroom.simulator.chance import Streams, between, choice, exponential, pareto
from greenroom.simulator.ground_truth import WINDOW_MS, GroundTruth
from greenroom.simulator.links import Agenda
from greenroom.simulator.scenario import START_MS, Scenario
from greenroom.simulator.visitor import CrowdListener, SimulatedVisitor, SystemUnderTest

PAUSE_MS = 60_000
RELOADS = 10
GUESS_SHARE = 0.1
PARTS_LEAST_MS, PARTS_MOST_MS = 200, 2_000
FLOOD_FROM = 1 << 40
SUSPENDED_MS = 20_000
EARLY_MS = 1_000
TIE_MASK = (1 << TIE_BITS) - 1
AGAIN_MS = 1_000
RETRIES_MS = (7_000, 12_000, 80_000)
STAYS_MS = 150_000
ABSENT_FROM_S = 600
RETURNS_MS = 600_000


class Crowd:
    def __init__(
        self,
        scenario: Scenario,
        agenda: Agenda,
        system: SystemUnderTest,
        ground_truth: GroundTruth,
        streams: Streams,
    ) -> None:
        self.visitors: list[SimulatedVisitor] = []
        self.guesses: list[tuple[SimulatedVisitor, int, float, float, float]] = []
        """Per try: visitor, time, and the quartiles in seconds."""
        self.looks = self.checks = 0
        """Reads of a line table; tries of waiting visitors."""
        self.unknown = self.told = 0
        """Answers in line without an estimate; all answers in line."""
        self.lost = 0
        """Sessions that disappeared before their time."""
        self.cut_short = self.places_lost = 0
        """Sessions that ended before the promise of the last page; places lost by visitors who came
        back in time.
        """
        self.places_untold = 0
        """The same of kept turns, where it may be unknown that the turn was given."""
        self.sent_back = 0
        """Visitors told to wait after admission, although sessions that move are not held."""
        self.searched = self.forgotten = 0
        """Pages that waited for a session whose ticket was over; sessions that disappeared within
        their duration.
        """
        self.reentered = 0
        self.turns_lost = [0, 0]
        """Where the session was, and elsewhere."""
        """Kept turns given; not given although a page had called them safe."""
        self.wrongly_kept: list[str] = []
        self.turns_known: dict[int, set[int]] = {}
        """Visitor -> data centers that gave a turn, or may know that one was given."""
        self.origin_down = 0
        """Faults in force in which documents fail."""
        self.absent = self.too_late = 0
        """Visitors who closed the page; those who returned too late."""
        self.flooded = self.most_flood = self.most_flood_minute = 0
        """Requests without cookies, and the most units they held."""
        self.listener: CrowdListener | None = None
        self._flood_ends: deque[int] = deque()
        self._flood_minute: deque[int] = deque()
        self._habits = scenario.behaviour
        self.reads_table = scenario.room.line_table
        self._strong = scenario.room.strong_sessions
        self._renews = not scenario.room.disable_session_renewal
        self._suspended = False
        self._agenda, self._system, self._ground_truth = agenda, system, ground_truth
        self._draw = streams("crowd")
        self._centers = scenario.centers
        self._arrivals = iter(scenario.arrivals)
        self._expected = len(scenario.arrivals)
        self._next()

    @property
    def settled(self) -> bool:
        return len(self.visitors) >= self._expected and not self._ground_truth.waiting

    @property
    def share_done(self) -> float:
        return (len(self.visitors) - self._ground_truth.waiting) / max(
            1, self._expected, len(self.visitors)
        )

    # -- coming ------------------------------------------------------------------------------------

    def _next(self) -> None:
        found = next(self._arrivals, None)
        if found:
            at_ms, center = found
            self._agenda.at(START_MS + at_ms, self._comes, center)

    def _comes(self, center: int) -> None:
        self._next()
        draw, habits, now_ms = self._draw, self._habits, self._agenda.now_ms
        visitor = SimulatedVisitor(len(self.visitors) + 1, center, now_ms)
        self.visitors.append(visitor)
        if habits.once and draw.random() < habits.once:
            visitor.once = True
        if habits.patience_s:
            visitor.gives_up_ms = now_ms + int(1000 * exponential(draw, habits.patience_s))
        visitor.pauses = bool(habits.pausing) and draw.random() < habits.pausing
        visitor.reloads = bool(habits.reloading) and draw.random() < habits.reloading
        visitor.absent = bool(habits.absent) and draw.random() < habits.absent
        if habits.sleeping and draw.random() < habits.sleeping:
            least_s, most_s = habits.sleep_s
            visitor.gap_ms = between(draw, least_s * 1000, most_s * 1000)
        self._ask_to_come(visitor)

    def configure(self, room: Room) -> None:
        self._renews, self._suspended = not room.disable_session_renewal, room.suspended

    def draw(self) -> None:
        keys, floor_key = self._system.draw()
        for visitor in self.visitors:
            if 0 < visitor.key < floor_key:
                visitor.key = keys.get(visitor.id, floor_key | visitor.number & TIE_MASK)

    def _ask_to_come(self, visitor: SimulatedVisitor) -> None:
        if self._suspended:
            return
        if self._reach(visitor):
            visitor.first_ms = self._agenda.now_ms
            self._system.arrive(visitor, self._answered)
        else:
            self._agenda.after(AGAIN_MS, self._ask_to_come, visitor)

    def _reach(self, visitor: SimulatedVisitor) -> bool:
        if (
            self._habits.moving
            and self._centers > 1
            and visitor.tries
            and self._draw.random() < self._habits.moving
        ):
            visitor.center = int(self._draw.random() * self._centers)
        for step in range(self._centers):
            center = (visitor.center + step) % self._centers
            if self._system.open(center):
                visitor.center = center
                return True
        return False

    def flood(self, center: int) -> None:
        """Not counted as a visitor."""
        self.flooded += 1
        stranger = SimulatedVisitor(FLOOD_FROM + self.flooded, center, self._agenda.now_ms)
        if self._system.open(center):
            self._system.arrive(stranger, self._ignored)

    def _hear(self, visitor: SimulatedVisitor, outcome: Outcome) -> None:
        if outcome.standing is Standing.ADMITTED and outcome.kept_ms and not visitor.taken_ms:
            self.wrongly_kept.append(f"visitor {visitor.number} is let in for a turn never taken")
        if self.listener:
            self.listener.answered(visitor, outcome, self._agenda.now_ms)

    def _ignored(self, visitor: SimulatedVisitor, outcome: Outcome) -> None:
        self._hear(visitor, outcome)
        now_ms, ends = self._agenda.now_ms, self._flood_ends
        if outcome.standing is not Standing.ADMITTED:
            self._ground_truth.refused(now_ms)
            return
        promised_ms = self._promised_ms(visitor, outcome)
        self._ground_truth.entering(visitor, promised_ms, now_ms)
        while ends and ends[0] <= now_ms:
            ends.popleft()
        ends.append(promised_ms)
        self.most_flood = max(self.most_flood, len(ends))
        minute = self._flood_minute
        minute.append(now_ms)
        while now_ms - minute[0] > WINDOW_MS:
            minute.popleft()
        self.most_flood_minute = max(self.most_flood_minute, len(minute))

    # -- waiting -----------------------------------------------------------------------------------

    def _answered(self, visitor: SimulatedVisitor, outcome: Outcome) -> None:
        self._hear(visitor, outcome)
        now_ms, standing = self._agenda.now_ms, outcome.standing
        if standing is Standing.WAITING:
            self._ground_truth.held(visitor, outcome.refresh_ms, now_ms)
            visitor.tries += 1
            self.checks += 1
            self._note(visitor, outcome, now_ms)
            visitor.attempted_ms, visitor.refresh_ms = now_ms, outcome.refresh_ms
            if visitor.once:
                self._ground_truth.gone(visitor)
                return
            pause_ms = _page_ms(outcome.refresh_ms)
            if visitor.gap_ms and visitor.tries > 1:
                self._ground_truth.gone(visitor)
                pause_ms = max(pause_ms, visitor.gap_ms)
            if visitor.absent:
                pause_ms = self._goes_away(visitor, outcome) or pause_ms
            visitor.plan += 1
            self._agenda.after(pause_ms, self._tries, visitor, visitor.plan)
            if self.reads_table and not visitor.gap_ms:
                self._look_later(visitor, now_ms + pause_ms)
            if visitor.reloads:
                for part in range(1, RELOADS):
                    self._agenda.after(outcome.refresh_ms * part // RELOADS, self._reloads, visitor)
        elif standing is Standing.GONE:
            self.too_late += visitor.returns
            if now_ms < visitor.attempted_ms + PLACE_KEPT_MS:
                told = visitor.center in self.turns_known.get(visitor.number, {visitor.center})
                self.places_lost += told
                self.places_untold += not told
            self._begins_anew(visitor)
        else:
            self._enters(visitor, outcome, now_ms)

    def _goes_away(self, visitor: SimulatedVisitor, outcome: Outcome) -> int:
        """Returns for how long; 0: the wait is too short or unknown."""
        estimate = outcome.estimate
        if not outcome.position or estimate is None or estimate.p50_s < ABSENT_FROM_S:
            return 0
        visitor.absent, visitor.returns = False, True
        self.absent += 1
        self._ground_truth.gone(visitor)
        latest_ms = int(estimate.p75_s * 1000) + RETURNS_MS
        return between(self._draw, int(estimate.p25_s * 1000), latest_ms)

    def _note(self, visitor: SimulatedVisitor, outcome: Outcome, now_ms: int) -> None:
        if not outcome.position:
            told = outcome.estimate
            if visitor.first_guess is None and told and visitor.tries == 1:
                visitor.first_guess = (now_ms, told.p25_s, told.p50_s, told.p75_s)
            return
        visitor.ahead = outcome.ahead if visitor.ahead < 0 else visitor.ahead
        self.told += 1
        estimate = outcome.estimate
        if estimate is None:
            self.unknown += 1
        elif visitor.guess is None:
            visitor.guess = (now_ms, estimate.p25_s, estimate.p50_s, estimate.p75_s)
        elif self._draw.random() < GUESS_SHARE:
            self.guesses.append((visitor, now_ms, estimate.p25_s, estimate.p50_s, estimate.p75_s))

    def _look_later(self, visitor: SimulatedVisitor, due_ms: int) -> None:
        pause_ms = between(self._draw, LOOK_S * 900, LOOK_S * 1100)
        if due_ms > self._agenda.now_ms + LOOK_S * 1000:
            self._agenda.after(pause_ms, self._look, visitor, visitor.plan, due_ms)

    def _look(self, visitor: SimulatedVisitor, plan: int, due_ms: int) -> None:
        now_ms = self._agenda.now_ms
        if plan != visitor.plan or not visitor.waits:
            return
        if 0 < visitor.gives_up_ms <= now_ms:
            visitor.plan += 1
            self._ground_truth.gone(visitor)
            return
        self.looks += 1
        table = (
            self._system.line_table(visitor.center) if self._system.open(visitor.center) else None
        )
        if table and arrival_ms_of(visitor.key) <= table.up_to_ms:
            visitor.plan += 1
            self._agenda.after(
                between(self._draw, 0, table.spread_s * 1000), self._tries, visitor, visitor.plan
            )
        else:
            self._look_later(visitor, due_ms)

    def _tries(self, visitor: SimulatedVisitor, plan: int) -> None:
        now_ms = self._agenda.now_ms
        if plan != visitor.plan:
            return
        if 0 < visitor.gives_up_ms <= now_ms:
            self._ground_truth.gone(visitor)
            return
        if self._suspended:
            self._ground_truth.gone(visitor)
            self._agenda.after(SUSPENDED_MS, self._tries, visitor, plan)
            return
        if visitor.gap_ms:
            drops = self._draw.random() < self._habits.dropping
            visitor.drops_ms = now_ms + between(self._draw, 0, HELD_MS) if drops else 0
        if visitor.pauses and visitor.tries == 3:
            visitor.tries += 1
            self._ground_truth.gone(visitor)
            self._agenda.after(PAUSE_MS, self._tries, visitor, plan)
        elif self._reach(visitor):
            self._system.poll(visitor, self._answered)
        else:
            self._agenda.after(AGAIN_MS, self._tries, visitor, plan)

    def _reloads(self, visitor: SimulatedVisitor) -> None:
        if visitor.waits and self._system.open(visitor.center):
            self._system.peek(visitor, self._peeked)

    def _peeked(self, visitor: SimulatedVisitor, outcome: Outcome) -> None:
        self._hear(visitor, outcome)

    # -- inside ------------------------------------------------------------------------------------

    def _enters(self, visitor: SimulatedVisitor, outcome: Outcome, now_ms: int) -> None:
        habits = self._habits
        lasting = pareto if habits.heavy_tail else exponential
        promised_ms = self._promised_ms(visitor, outcome)
        visitor.done_ms = now_ms + int(1000 * lasting(self._draw, habits.visit_s))
        if not self._renews:
            visitor.done_ms = min(visitor.done_ms, promised_ms - 1)
        if outcome.standing is Standing.ACTIVE and visitor.active:  # was held, and inside all along
            self._ground_truth.gone(visitor)
            self._ground_truth.page(visitor, promised_ms, now_ms)
        else:
            self._ground_truth.entering(visitor, promised_ms, now_ms)
        if habits.parts:
            self._agenda.after(
                between(self._draw, PARTS_LEAST_MS, PARTS_MOST_MS), self._loads_parts, visitor
            )
        self._browses(visitor)

    def _browses(self, visitor: SimulatedVisitor) -> None:
        gap_ms = max(200, int(1000 * exponential(self._draw, self._habits.page_gap_s)))
        now_ms = self._agenda.now_ms
        if now_ms + gap_ms < visitor.done_ms:
            self._agenda.after(gap_ms, self._looks, visitor)
        elif self._habits.leaving and self._draw.random() < self._habits.leaving:
            self._agenda.at(visitor.done_ms, self._leaves, visitor)

    def _loads_parts(self, visitor: SimulatedVisitor) -> None:
        if visitor.active and self._reach(visitor):
            self._system.view(visitor, self._loaded)

    def _loaded(self, visitor: SimulatedVisitor, outcome: Outcome) -> None:
        self._hear(visitor, outcome)
        if outcome.standing is Standing.ACTIVE:
            self._ground_truth.page(
                visitor, self._promised_ms(visitor, outcome), self._agenda.now_ms
            )

    def _promised_ms(self, visitor: SimulatedVisitor, outcome: Outcome) -> int:
        promised_ms = outcome.expires_ms - self._system.skew_ms(visitor.center)
        visitor.renewed_ms = promised_ms - (outcome.expires_ms - outcome.renewed_ms)
        return promised_ms

    def _looks(self, visitor: SimulatedVisitor) -> None:
        if self._suspended:
            self._browses(visitor)
        elif self._reach(visitor):
            self._system.view(visitor, self._seen)
        else:
            self._agenda.after(AGAIN_MS, self._looks, visitor)

    def _fails(self, visitor: SimulatedVisitor) -> None:
        """The page just served is a failure of the origin. Some visitors retry only after their
        session has ended.
        """
        now_ms, outcome = self._agenda.now_ms, self._system.fail(visitor)
        if outcome.standing is Standing.ACTIVE:
            promised_ms = self._promised_ms(visitor, outcome)
            visitor.failed_ms = now_ms
            visitor.safe_until_ms = promised_ms + outcome.kept_ms if outcome.kept_ms else 0
            self._ground_truth.page(visitor, promised_ms, now_ms)
        visitor.done_ms = max(visitor.done_ms, now_ms + STAYS_MS)
        self._agenda.after(choice(self._draw, RETRIES_MS), self._looks, visitor)

    def _reenters(self, visitor: SimulatedVisitor, now_ms: int) -> None:
        visitor.reenters = False
        knows = self.turns_known.setdefault(visitor.number, set())
        if now_ms - visitor.failed_ms > 2 * TURN_KEPT_MS or visitor.center in knows:
            self.wrongly_kept.append(
                f"visitor {visitor.number}, failed at {visitor.failed_ms}, has a turn at {now_ms}"
                f" after one at {visitor.taken_ms}"
            )
        knows.add(visitor.center)
        visitor.taken_ms = now_ms
        self.reentered += 1

    def _seen(self, visitor: SimulatedVisitor, outcome: Outcome) -> None:
        now_ms, standing = self._agenda.now_ms, outcome.standing
        if visitor.reenters:
            self._reenters(visitor, now_ms)
            self._answered(visitor, outcome)
            return
        self._hear(visitor, outcome)
        if standing is Standing.GONE:
            if now_ms < visitor.safe_until_ms and not visitor.taken_ms:
                self.turns_lost[visitor.center != visitor.home] += 1
            self.lost += 1
            self.forgotten += now_ms < visitor.inside_until_ms
            self.cut_short += now_ms < visitor.promised_ms - EARLY_MS and not (
                self._strong and self._habits.moving
            )
            self._begins_anew(visitor)
        elif standing is Standing.WAITING:  # on the way to another data center
            self.searched += outcome.searching
            self.sent_back += not self._strong and not outcome.searching
            self._agenda.after(_page_ms(outcome.refresh_ms), self._looks, visitor)
        else:
            promised_ms = self._promised_ms(visitor, outcome)
            if standing is Standing.ADMITTED:  # a new session, as the old one cannot be reached
                self._ground_truth.entering(visitor, promised_ms, now_ms)
            else:
                self._ground_truth.page(visitor, promised_ms, now_ms)
            if self.origin_down:
                self._fails(visitor)
            else:
                self._browses(visitor)

    def _leaves(self, visitor: SimulatedVisitor) -> None:
        if self._system.open(visitor.center):
            self._system.leave(visitor)
            if self.listener:
                self.listener.left(visitor, self._agenda.now_ms)
            self._ground_truth.left(visitor, self._agenda.now_ms)

    def _begins_anew(self, visitor: SimulatedVisitor) -> None:
        self._ground_truth.gone(visitor)
        again = SimulatedVisitor(len(self.visitors) + 1, visitor.center, self._agenda.now_ms)
        again.gives_up_ms = visitor.gives_up_ms
        self.visitors.append(again)
        self._agenda.after(between(self._draw, 50, 500), self._ask_to_come, again)


def _page_ms(refresh_ms: int) -> int:
    """Whole seconds, rounded up, as pages count; rejected visitors come back after a while."""
    return -(-refresh_ms // 1000) * 1000 or 20_000
