"""One run: puts crowd, door, network and faults on one agenda, and lets time pass."""

from collections.abc import Callable
from dataclasses import replace

from greenroom.admission.laws import problems
from greenroom.simulator.agenda import Agenda
from greenroom.simulator.chance import Streams, between
from greenroom.simulator.crowd import Crowd
from greenroom.simulator.escrow import Escrow
from greenroom.simulator.links import Links
from greenroom.simulator.scenario import START_MS, Fault, Scenario
from greenroom.simulator.visitor import Door
from greenroom.simulator.witness import SAMPLE_MS, Witness

WARM_MS = 5_000
"""Data centers greet the coordinator before the first visitor comes."""
LAWS_EVERY_MS = 1_000
CHURN_MS = 2_000

Progress = Callable[[float], None]
"""Is told which part of the run is done."""


class World:
    """Everything that takes part in one run of our own protocol."""

    def __init__(self, scenario: Scenario, streams: Streams) -> None:
        self.scenario = scenario
        self.agenda = Agenda(START_MS - WARM_MS)
        self.links = Links(scenario.network, scenario.centers, self.agenda, streams)
        self.witness = Witness(scenario)
        self.door = self._make_door(streams)
        self.crowd = Crowd(scenario, self.agenda, self.door, self.witness, streams)
        self.broken_laws: list[str] = []
        self._draw = streams("faults")
        for fault in scenario.faults:
            self._plan(fault)
        self.agenda.at(START_MS, self._sample)

    def _make_door(self, streams: Streams) -> Door:
        return Escrow(self.scenario, self.agenda, self.links, streams)

    def run(self, progress: Progress | None = None) -> None:
        """To the end of the scenario."""
        steps = 100
        for step in range(1, steps + 1):
            self.agenda.run(START_MS + int(self.scenario.lasts_s * 1000) * step // steps)
            if progress:
                progress(step / steps)

    def _sample(self) -> None:
        self.witness.sample(self.agenda.now_ms)
        self.agenda.after(SAMPLE_MS, self._sample)
        if (self.agenda.now_ms - START_MS) % LAWS_EVERY_MS == 0 and isinstance(self.door, Escrow) and len(self.broken_laws) < 10:
            self.broken_laws += problems(self.door.coordinator, [center.ledger for center in self.door.centers])

    # -- faults ------------------------------------------------------------------------------------------------------------------

    def _plan(self, fault: Fault) -> None:
        deed = DEEDS[fault.kind]
        self.agenda.at(START_MS + int(fault.at_s * 1000), deed, self, fault, 1)
        if fault.until_s:
            self.agenda.at(START_MS + int(fault.until_s * 1000), deed, self, fault, -1)

    def partition(self, fault: Fault, change: int) -> None:
        """Messages between these data centers and the coordinator are lost."""
        for center in fault.centers:
            self.links.cut(center, change)

    def outage(self, fault: Fault, change: int) -> None:
        """The data centers are gone."""
        self.partition(fault, change)
        if isinstance(self.door, Escrow):
            for center in fault.centers:
                self.door.centers[center].down += change

    def crash(self, fault: Fault, change: int) -> None:
        """Books are lost."""
        if isinstance(self.door, Escrow) and change > 0:
            for center in fault.centers:
                self.door.lose_books(center)

    def coordinator_down(self, _: Fault, change: int) -> None:
        """The coordinator is silent."""
        if isinstance(self.door, Escrow):
            self.door.coordinator_down += change

    def loss(self, fault: Fault, change: int) -> None:
        """Messages are lost."""
        self.links.loss += change * fault.amount / 100

    def churn(self, fault: Fault, change: int) -> None:
        """Workers come and go until the fault is over."""
        if change > 0 and self.agenda.now_ms < START_MS + fault.until_s * 1000:
            if isinstance(self.door, Escrow):
                self.door.worker_dies(between(self._draw, 0, self.scenario.centers - 1))
            self.agenda.after(between(self._draw, 1, CHURN_MS), self.churn, fault, 1)

    def limits(self, fault: Fault, change: int) -> None:
        """The operator writes down other limits."""
        room = self.scenario.room
        if change > 0:
            factor = fault.amount / 100
            room = replace(
                room,
                total_active_users=max(1, int(room.total_active_users * factor)),
                new_users_per_minute=max(1, int(room.new_users_per_minute * factor)),
            )
        self.witness.change(room.total_active_users, room.new_users_per_minute, self.agenda.now_ms)
        if isinstance(self.door, Escrow):
            self.door.configure(room)


DEEDS: dict[str, Callable[[World, Fault, int], None]] = {
    "partition": World.partition,
    "outage": World.outage,
    "crash": World.crash,
    "coordinator down": World.coordinator_down,
    "loss": World.loss,
    "churn": World.churn,
    "limits": World.limits,
}
