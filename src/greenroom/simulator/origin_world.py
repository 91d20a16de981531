"""A room before a model of its origin: greenroom's admission code, visitors, and a law that sets the
limits every five seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import fmean, median, pstdev

from greenroom.capacity import WINDOW_MS, CapacityLaw, Histogram, OperatorLimits, Window
from greenroom.model.room import Room
from greenroom.model.visit import Outcome, Standing
from greenroom.simulator.arrivals import arrivals
from greenroom.simulator.chance import Streams, exponential
from greenroom.simulator.crowd import Crowd
from greenroom.simulator.lease_model import LeaseModel
from greenroom.simulator.origin import OriginModel, SimulatedOrigin
from greenroom.simulator.rivals import Aimd, Fixed, Gradient2, Law, Vegas
from greenroom.simulator.scenario import START_MS, Behaviour, Scenario
from greenroom.simulator.visitor import SimulatedVisitor
from greenroom.simulator.world import World

ORACLE_MS = 1_000
MARGINS = (1.0, 0.85, 0.7)
RETRY_MS = 5_000
FAILURES_MOST = 3
"""Consecutive failed documents after which a visitor leaves."""
SLOW_S = 5
"""A slower answer counts as failed: the visitor reloads the page."""
CHANGED_MS = 30_000
"""After a fall of capacity overshoot is not counted for this long."""
OVERSHOOT_ROWS = 6
"""Overshoot is the mean of these rows: of 30 seconds."""
FLOOR_SHARE = 0.1
"""Where laws begin: this share of what the origin can take."""


class OriginCrowd(Crowd):
    def attach(self, origin: SimulatedOrigin, model: OriginModel, streams: Streams) -> None:
        self.origin, self._model = origin, model
        self._inside_draw = streams("inside")
        self._left_to_see: dict[int, int] = {}
        self._failures: dict[int, int] = {}
        self.completed = self.given_up = self.admitted = self.failed = self.browsing = 0
        self.latencies: list[int] = []
        self.all_latencies: list[int] = []

    def _enters(self, visitor: SimulatedVisitor, outcome: Outcome, now_ms: int) -> None:
        self._ground_truth.entering(visitor, self._promised_ms(visitor, outcome), now_ms)
        pages = max(1, round(exponential(self._inside_draw, self._model.pages)))
        self._left_to_see[visitor.number] = pages
        self.admitted += 1
        self.browsing += 1
        self._requests(visitor)

    def _requests(self, visitor: SimulatedVisitor) -> None:
        self.origin.request(
            lambda latency_ms, well: self._answered_by_origin(visitor, latency_ms, well)
        )

    def _answered_by_origin(self, visitor: SimulatedVisitor, latency_ms: int, well: bool) -> None:
        number = visitor.number
        if well:
            self.latencies.append(latency_ms)
            self.all_latencies.append(latency_ms)
        else:
            self.failed += 1
        if not well or latency_ms > SLOW_S * 1000:
            failures = self._failures[number] = self._failures.get(number, 0) + 1
            if failures >= FAILURES_MOST:
                self.given_up += 1
                self._done(visitor)
            else:
                self._agenda.after(RETRY_MS, self._looks, visitor)
            return
        self._failures.pop(number, None)
        self._left_to_see[number] -= 1
        if self._left_to_see[number]:
            reading_ms = int(1000 * exponential(self._inside_draw, self._model.reading_s))
            self._agenda.after(max(200, reading_ms), self._looks, visitor)
        else:
            self.completed += 1
            self._done(visitor)

    def _done(self, visitor: SimulatedVisitor) -> None:
        self.browsing -= 1
        del self._left_to_see[visitor.number]
        if self._inside_draw.random() < self._model.leaving:
            self._leaves(visitor)

    def _browses(self, visitor: SimulatedVisitor) -> None:
        """Called when the ledger has let the next request pass."""
        self._requests(visitor)

    def _seen(self, visitor: SimulatedVisitor, outcome: Outcome) -> None:
        if outcome.standing is Standing.GONE:
            self.browsing -= 1
            del self._left_to_see[visitor.number]
        super()._seen(visitor, outcome)


class OriginWorld(World):
    crowd: OriginCrowd
    crowd_type = OriginCrowd

    def __init__(self, model: OriginModel, streams: Streams) -> None:
        self.model = model
        super().__init__(_scenario(model, streams), streams)
        self.origin = SimulatedOrigin(model, self.agenda, streams("origin"))
        self.crowd.attach(self.origin, model, streams)
        if isinstance(self.system, LeaseModel):
            self.system.forecast_nothing()
        self._per_minute = bounds_of(model).new_users_per_minute
        self.rows: list[tuple[float, int, int, int, float, float, str]] = []
        """Second, target, sessions, visitors who browse, capacity, p95 in seconds, reason."""
        self._mark = (0, 0)
        self._capacity = (model.capacity, 0)
        """The last capacity, and when it last fell."""
        self.overshoot = 0.0

    def _configured(self, center: int, ended: bool) -> None:
        """Limits change every few seconds here, and nothing about sessions."""

    # -- laws --------------------------------------------------------------------------------------

    def follow(self, law: Law) -> None:
        self.agenda.at(START_MS, self._step, law)

    def obey_oracle(self, share: float) -> None:
        """Admits a visitor whenever this share of the origin has room, up to the operator's limit."""
        self.agenda.at(START_MS, self._oracle, share)

    def _oracle(self, share: float) -> None:
        self.agenda.after(ORACLE_MS, self._oracle, share)
        free = int(share * self.origin.capacity()) - self.crowd.browsing
        if self.origin.line_ms() > 2 * self.model.objective_ms:
            free = 0  # a crowded origin serves less: let it recover
        active = self.ground_truth.in_use
        most = min(active + free, bounds_of(self.model).total_active_users)
        self._apply(max(1, most), 1_000_000, stop=free <= 0)
        if (self.agenda.now_ms - START_MS) % WINDOW_MS == 0:
            self._record(active, "knows the capacity")

    def _step(self, law: Law) -> None:
        self.agenda.after(WINDOW_MS, self._step, law)
        target = law.step(self._window(), self.agenda.now_ms)
        # The law's rate is in its limit; the rates of the rivals are their own.
        per_minute = self._per_minute if isinstance(law, CapacityLaw) else target.per_minute
        self._apply(max(1, target.limit), max(1, per_minute), stop=not target.per_minute)
        self._record(target.sessions, target.reason)

    def _apply(self, sessions: int, per_minute: int, *, stop: bool) -> None:
        room = replace(
            self.room, total_active_users=sessions, new_users_per_minute=per_minute, queue_all=stop
        )
        if room != self.room:
            self.configure(room)

    def _window(self) -> Window:
        crowd, now_ms = self.crowd, self.agenda.now_ms
        admitted, failed = self._mark
        self._mark = (crowd.admitted, crowd.failed)
        latencies, crowd.latencies = crowd.latencies, []
        system = self.system
        active = sum(system.look(center).active for center in range(self.scenario.centers))
        return Window(
            documents=Histogram.of(latencies),
            pending=Histogram.of(now_ms - asked_ms for asked_ms in self.origin.asked.values()),
            failed=crowd.failed - failed,
            active=active,
            admitted=crowd.admitted - admitted,
            waiting=self.ground_truth.waiting,
            scaling=self.origin.scaling_until_ms > now_ms,
        )

    def _record(self, target: int, reason: str) -> None:
        now_ms, capacity = self.agenda.now_ms, self.origin.capacity()
        last, fell_ms = self._capacity
        if capacity < last * 0.98:
            fell_ms = now_ms
        self._capacity = (capacity, fell_ms)
        recent = sorted(self.crowd.all_latencies[-200:])
        p95 = recent[int(len(recent) * 0.95)] / 1000 if recent else 0.0
        row = ((now_ms - START_MS) / 1000, target, self.ground_truth.active, self.crowd.browsing,
               capacity, p95, reason)  # fmt: skip
        self.rows.append(row)
        minute = self.ground_truth.minute
        admitting = bool(minute) and now_ms - minute[-1] < WINDOW_MS
        if admitting and now_ms - fell_ms > CHANGED_MS and capacity > 0:
            browsing = fmean(row[3] for row in self.rows[-OVERSHOOT_ROWS:])
            self.overshoot = max(self.overshoot, browsing / capacity - 1)


@dataclass(frozen=True, slots=True)
class OriginFigures:
    law: str
    completed: int
    lost: float
    """Share of admitted visitors who gave up because of the origin."""
    p95_s: float
    overshoot: float
    """Most visitors browsing beyond the capacity while visitors are admitted, relative to it."""
    deviation: float
    """Standard deviation of the target in the last third, relative to its mean."""


def figures(name: str, world: OriginWorld) -> OriginFigures:
    crowd, last = world.crowd, world.rows[-len(world.rows) // 3 :]
    targets = [float(row[1]) for row in last]
    ordered = sorted(crowd.all_latencies)
    return OriginFigures(
        name,
        crowd.completed,
        crowd.given_up / max(1, crowd.admitted),
        ordered[int(len(ordered) * 0.95)] / 1000 if ordered else 0.0,
        max(0.0, world.overshoot),
        pstdev(targets) / max(1.0, fmean(targets)),
    )


def bounds_of(model: OriginModel) -> OperatorLimits:
    ceiling = max(1, round(model.ceiling * model.capacity))
    floor = min(ceiling, max(1, round(FLOOR_SHARE * model.capacity)))
    return OperatorLimits(
        objective_ms=model.objective_ms,
        floor=floor,
        total_active_users=ceiling,
        new_users_per_minute=max(1, 10 * ceiling),
    )


def run_oracle(model: OriginModel, streams: Streams) -> OriginWorld:
    """The one that completes most visits; before a hard knee it keeps some distance."""
    worlds = []
    for share in MARGINS if model.collapse else (1.0,):
        world = OriginWorld(model, streams)
        world.obey_oracle(share)
        world.run()
        worlds.append(world)
    return max(worlds, key=lambda world: world.crowd.completed)


def run_law(model: OriginModel, streams: Streams, law: Law) -> OriginWorld:
    world = OriginWorld(model, streams)
    world.follow(law)
    world.run()
    return world


def laws(model: OriginModel, oracle: OriginWorld) -> dict[str, Callable[[], Law]]:
    """Fixed limits are those of the oracle: the sessions it had when all was well."""
    bounds = bounds_of(model)
    right = max(1, round(median(row[2] for row in oracle.rows[len(oracle.rows) // 5 :])))
    return {
        "follow": lambda: CapacityLaw(bounds),
        "AIMD": lambda: Aimd(bounds, max(1, round(60 * model.capacity / model.visit_s))),
        "Gradient2": lambda: Gradient2(bounds),
        "Vegas": lambda: Vegas(bounds),
        "fixed": lambda: Fixed(bounds, right),
        "fixed +50 %": lambda: Fixed(bounds, round(1.5 * right)),
    }


def _scenario(model: OriginModel, streams: Streams) -> Scenario:
    a_minute = 60 * model.capacity / model.visit_s
    room = Room(
        name="origin",
        host="*",
        total_active_users=1,
        new_users_per_minute=1,
        session_duration=model.session_duration,
        provisional_sessions=False,
    )
    lasts_s = model.minutes * 60
    coming = arrivals(
        streams("arrivals"),
        lasts_s,
        lambda second: [
            a_minute * model.demand / 60 + (model.flash * model.capacity / 60 if second < 60 else 0)
        ],
    )
    habits = Behaviour(visit_s=model.visit_s, leaving=model.leaving, patience_s=model.patience_s)
    return Scenario(model.name, room, 1, coming, lasts_s, habits, laws_every_s=600)
