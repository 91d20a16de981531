"""One run: schedules crowd, system, network and faults on one agenda."""

from collections.abc import Callable
from dataclasses import replace

from greenroom.model.room import Room
from greenroom.simulator.chance import Streams, between
from greenroom.simulator.crowd import Crowd
from greenroom.simulator.followed_origin import FollowedOrigin
from greenroom.simulator.ground_truth import SAMPLE_MS, GroundTruth
from greenroom.simulator.lease_model import HEARS_MOST_MS, LeaseModel
from greenroom.simulator.links import Agenda, Links
from greenroom.simulator.operators import CHANGES, OperatedRoom
from greenroom.simulator.provisional_flood import ProvisionalFlood
from greenroom.simulator.published import GENERATIONS, Published
from greenroom.simulator.scenario import START_MS, Fault, Scenario
from greenroom.simulator.visitor import SystemUnderTest

WARM_MS = 5_000
"""Data centers sync before the first visitor comes."""
CHURN_MS = 2_000

OnProgress = Callable[[float], None]


ALGORITHMS = ("greenroom", *GENERATIONS)


class World:
    crowd_type = Crowd

    def __init__(self, scenario: Scenario, streams: Streams, algorithm: str = "greenroom") -> None:
        self.scenario = scenario
        self.algorithm = algorithm
        self.agenda = Agenda(START_MS - WARM_MS)
        self.links = Links(scenario.network, scenario.centers, self.agenda, streams)
        self.ground_truth = GroundTruth(scenario)
        self.system = self._make_system(algorithm, streams)
        self.crowd = self.crowd_type(scenario, self.agenda, self.system, self.ground_truth, streams)
        self.provisional = ProvisionalFlood(
            scenario, self.agenda, self.system, self.ground_truth, streams
        )
        self.room = scenario.room
        self.configured_ms = START_MS
        self.calm_ms = START_MS + int(
            1000 * max((max(one.at_s, one.until_s) for one in scenario.faults), default=0)
        )
        self._operated = OperatedRoom(scenario.room)
        self.followed: FollowedOrigin | None = None
        if isinstance(self.system, LeaseModel):
            self.system.on_configured = self._configured
            self.followed = FollowedOrigin(self.agenda, self.links, self.system, streams)
        self.on_sample: Callable[[int], None] | None = None
        self.broken_laws: list[str] = []
        self._draw = streams("faults")
        for fault in scenario.faults:
            self._plan(fault)
        self.agenda.at(START_MS, self._sample)

    def _make_system(self, algorithm: str, streams: Streams) -> SystemUnderTest:
        if algorithm == "greenroom":
            return LeaseModel(self.scenario, self.agenda, self.links, streams)
        return Published(GENERATIONS[algorithm], self.scenario, self.agenda, self.links, streams)

    def run(self, progress: OnProgress | None = None) -> None:
        lasts_ms = int(self.scenario.lasts_s * 1000)
        step_ms = max(1_000, min(30_000, lasts_ms // 100))
        passed_ms = 0
        while passed_ms < lasts_ms and not (self.scenario.ends_with_crowd and self.crowd.settled):
            passed_ms = min(lasts_ms, passed_ms + step_ms)
            self.agenda.run(START_MS + passed_ms)
            if progress:
                progress(
                    self.crowd.share_done if self.scenario.ends_with_crowd else passed_ms / lasts_ms
                )

    @property
    def passed_s(self) -> float:
        return (self.agenda.now_ms - START_MS) / 1000

    def _sample(self) -> None:
        if self.ground_truth.limits.behind and isinstance(self.system, LeaseModel):
            self.ground_truth.limits.follow(self.agenda.now_ms, self.system.follows)
        self.ground_truth.sample(self.agenda.now_ms)
        self.agenda.after(SAMPLE_MS, self._sample)
        if self.on_sample:
            self.on_sample(self.agenda.now_ms)

    # -- faults ------------------------------------------------------------------------------------

    def _plan(self, fault: Fault) -> None:
        action = FAULT_HANDLERS[fault.kind]
        self.agenda.at(START_MS + int(fault.at_s * 1000), action, self, fault, 1)
        if fault.until_s:
            self.agenda.at(START_MS + int(fault.until_s * 1000), action, self, fault, -1)

    def partition(self, fault: Fault, change: int) -> None:
        for center in fault.centers:
            self.links.cut(center, change)

    def outage(self, fault: Fault, change: int) -> None:
        self.partition(fault, change)
        for center in fault.centers:
            self.system.shut(center, change)

    def stop(self, fault: Fault, change: int) -> None:
        for center in fault.centers:
            if change > 0:
                self.system.part(center)
            self.system.shut(center, change)

    def crash(self, fault: Fault, change: int) -> None:
        for center in fault.centers:
            if change > 0:
                self.system.lose_ledger(center)
        self.outage(fault, change)

    def old_disk(self, fault: Fault, change: int) -> None:
        for center in fault.centers:
            if change > 0:
                self.system.restore_old(center)
        self.outage(fault, change)

    def coordinator_down(self, _: Fault, change: int) -> None:
        self.system.silence(change)

    def coordinator_loss(self, fault: Fault, change: int) -> None:
        if change < 0:
            self.system.lose_coordinator()
        self.coordinator_down(fault, change)

    def loss(self, fault: Fault, change: int) -> None:
        self.links.loss = round(self.links.loss + change * fault.amount / 100, 9)

    def churn(self, fault: Fault, change: int) -> None:
        if change > 0 and self.agenda.now_ms < START_MS + fault.until_s * 1000:
            self.system.worker_dies(between(self._draw, 0, self.scenario.centers - 1))
            self.agenda.after(between(self._draw, 1, CHURN_MS), self.churn, fault, 1)

    def flood(self, fault: Fault, change: int) -> None:
        if change > 0 and self.agenda.now_ms < START_MS + fault.until_s * 1000:
            self.crowd.flood(fault.centers[self.crowd.flooded % len(fault.centers)])
            self.agenda.after(max(1, int(1000 / fault.amount)), self.flood, fault, 1)

    def provisional_flood(self, fault: Fault, change: int) -> None:
        """Above 1,000 a second several per millisecond."""
        if change > 0 and self.agenda.now_ms < START_MS + fault.until_s * 1000:
            for _ in range(max(1, round(fault.amount / 1000))):
                self.provisional.request(fault.centers[self.provisional.sent % len(fault.centers)])
            self.agenda.after(max(1, int(1000 / fault.amount)), self.provisional_flood, fault, 1)

    def operate(self, action: Fault, change: int) -> None:
        if change > 0:
            self._operated.begin(action)
        else:
            self._operated.end(action)
        self.configure(self._operated.in_force)

    def end_sessions(self, _: Fault, change: int) -> None:
        if change > 0:
            self._operated.end_sessions(self.agenda.now_ms)
            self.configure(self._operated.in_force)

    def origin_down(self, _: Fault, change: int) -> None:
        self.crowd.origin_down += change
        if self.followed is not None:
            self.followed.down = self.crowd.origin_down > 0

    def follow_origin(self, fault: Fault, change: int) -> None:
        if self.followed is None:
            return
        if change > 0:
            knee = max(1, self.scenario.room.total_active_users * fault.amount / 100)
            self.followed.begin(knee, self._follows, self._followed)
        else:
            self.followed.end()

    def push_figures(self, fault: Fault, change: int) -> None:
        if self.followed is not None:
            self.followed.pushes(fault.amount / 100 if change > 0 else None)

    def _follows(self) -> Room:
        return replace(self._operated.room, capacity="follow")

    def _followed(self) -> None:
        self._operated.followed = self.followed.state if self.followed else None
        room = self._operated.in_force
        if room != self.room:
            self.configure(room)

    def prequeue(self, action: Fault, change: int) -> None:
        if change < 0 and action.amount:
            self.crowd.draw()
        self.operate(action, change)

    def removed(self, action: Fault, change: int) -> None:
        fenced = 0 < self.scenario.fence_s < action.until_s - action.at_s
        if change > 0:
            (self.stop if action.amount else self.outage)(action, change)
        for center in action.centers:
            self.system.enlist(center, change < 0)
            if change < 0 and not (fenced and int(action.at_s) % 2):
                self.system.lose_ledger(center)
        if change < 0:
            (self.stop if action.amount else self.outage)(action, change)

    def clock_step(self, fault: Fault, change: int) -> None:
        for center in fault.centers:
            self.system.step_clock(center, change * int(fault.amount * 1000))

    def configure(self, room: Room) -> None:
        self.room, self.configured_ms = room, self.agenda.now_ms
        self.ground_truth.change(room, self.agenda.now_ms)
        self.crowd.configure(room)
        self.system.configure(room)
        self.agenda.after(HEARS_MOST_MS, self._settle, room)

    def _settle(self, room: Room) -> None:
        if room is self.room:
            self.ground_truth.settle(room)

    def _configured(self, center: int, ended: bool) -> None:
        if isinstance(self.system, LeaseModel):
            self.ground_truth.retime(
                center, self.system.centers[center].ledger.life_ms, ended, self.agenda.now_ms
            )


FAULT_HANDLERS: dict[str, Callable[[World, Fault, int], None]] = {
    "partition": World.partition,
    "outage": World.outage,
    "stop": World.stop,
    "crash": World.crash,
    "old disk": World.old_disk,
    "coordinator down": World.coordinator_down,
    "coordinator loss": World.coordinator_loss,
    "loss": World.loss,
    "churn": World.churn,
    "flood": World.flood,
    "provisional flood": World.provisional_flood,
    "clock step": World.clock_step,
    "origin down": World.origin_down,
    "follow": World.follow_origin,
    "pushes": World.push_figures,
    "end sessions": World.end_sessions,
    "removed": World.removed,
    **dict.fromkeys(CHANGES, World.operate),
    "pre-queue": World.prequeue,
}
