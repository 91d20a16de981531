"""Small worlds for the simulator, and what goes wrong in them."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from greenroom.simulator.campaign import random_scenario
from greenroom.simulator.checks import Watch, verdict
from greenroom.simulator.lease_model import LeaseModel
from greenroom.simulator.report import SimulationReport, report
from greenroom.simulator.scenario import START_MS, Behaviour, Fault, Scenario
from greenroom.simulator.traces import room
from greenroom.simulator.world import World


def streams_of(seed: int) -> Callable[[str], Random]:
    return lambda name: Random(f"{seed}/{name}")


def watched(scenario: Scenario, seed: int = 1) -> Watch:
    """A run that is over, and what was seen."""
    watch = Watch(World(scenario, streams_of(seed)))
    watch.world.run()
    return watch


def campaign(seeds: range) -> list[str]:
    """What went wrong, until something has."""
    for seed in seeds:
        found = verdict(watched(random_scenario(streams_of(seed)), seed))
        if found:
            return [f"seed {seed}: {problem}" for problem in found]
    return []


def run(scenario: Scenario, algorithm: str = "greenroom", seed: int = 1) -> SimulationReport:
    world = World(scenario, streams_of(seed), algorithm)
    world.run()
    return report(world)


def little(**changes: Any) -> Scenario:
    """Three data centers, a visitor every half second for four minutes, room for forty."""
    crowd = [(500 * number, number % 3) for number in range(480)]
    scenario = Scenario(
        "little", room(40, 60), 3, crowd, 420, Behaviour(visit_s=20), laws_every_s=1
    )
    return replace(scenario, **changes)


def trial(seed: int = 1, **changes: Any) -> list[str]:
    """What went wrong in the little world, changed so."""
    return verdict(watched(little(**changes), seed))


def moves_while_the_coordinator_loses_its_state() -> list[str]:
    """World 80 with room for five and many moves, where the state is lost twice."""
    world = random_scenario(streams_of(80))
    lost = (Fault("coordinator loss", 200, 202), Fault("coordinator loss", 300, 303))
    world = replace(
        world,
        room=replace(world.room, total_active_users=5),
        behaviour=replace(world.behaviour, moving=0.2),
        faults=(*(fault for fault in world.faults if fault.kind != "stop"), *lost),
    )
    return verdict(watched(world, 80))


def loses_the_coordinator(seed: int, at_s: int, moving: float) -> list[str]:
    """That world with room for five, many moves and strong sessions, and the state is lost."""
    world = random_scenario(streams_of(seed))
    world = replace(
        world,
        room=replace(world.room, total_active_users=5, strong_sessions=True),
        behaviour=replace(world.behaviour, moving=moving),
        faults=(*world.faults, Fault("coordinator loss", at_s, at_s + 2)),
    )
    return verdict(watched(world, seed))


def on_the_way() -> list[str]:
    """A session is between two data centers then."""
    return loses_the_coordinator(6, 120, 0.5)


def removed_before() -> list[str]:
    """A data center was taken off the list five seconds before."""
    return loses_the_coordinator(75, 200, 0.2)


def lost_together() -> list[str]:
    """World 88, where a ledger is lost two seconds before the coordinator's state."""
    return campaign(range(88, 89))


GHOSTS = {
    "centers": 2,
    "room": room(10, 2),
    "arrivals": [(3_000 * number, number % 2) for number in range(133)],
    "behaviour": Behaviour(visit_s=20, patience_s=20, leaving=1.0),
}
"""Two may enter a minute, and most who wait have gone when it is their turn."""

CUT = {
    "behaviour": Behaviour(visit_s=300, page_gap_s=3),
    "faults": (Fault("partition", 100, 400, (0,)),),
    "fence_s": 20,
}

LOST = {
    "room": replace(room(40, 120), strong_sessions=True),
    "behaviour": Behaviour(visit_s=60, page_gap_s=3),
    "faults": (Fault("partition", 100, 300, (0,)), Fault("coordinator loss", 104, 106)),
    "fence_s": 20,
}
"""A data center is cut off when the coordinator loses its state."""

STOPPED = {
    "behaviour": Behaviour(visit_s=300, page_gap_s=3),
    "faults": (Fault("stop", 100, 300, (0,)),),
    "fence_s": 180,
}

OUTAGE = {
    "centers": 2,
    "arrivals": [(500 * number, number % 2) for number in range(1_000)],
    "faults": (Fault("outage", 100, 350, (0,)),),
}
"""Of two data centers with a line one dies."""


FAILED = {"faults": (Fault("origin down", 60, 330),), "lasts_s": 450}

MOVED = FAILED | {"behaviour": Behaviour(visit_s=20, moving=0.3)}

MOVED_BEHIND_A_CUT = MOVED | {
    "faults": (Fault("origin down", 60, 330), Fault("partition", 100, 200, (1,)))
}


def given_up(seed: int = 1) -> list[str]:
    """One dies, and an operator says so; its ledger comes back as it was, behind its fence."""
    watch = Watch(World(little(**OUTAGE, fence_s=60), streams_of(seed)))
    system, agenda = watch.world.system, watch.world.agenda
    assert isinstance(system, LeaseModel)

    def say() -> None:
        system.coordinator.give_up("dc000", agenda.now_ms)

    agenda.at(START_MS + 110_000, say)
    watch.world.run()
    assert system.centers[0].ledger.epoch > 1
    return verdict(watch)


REMOVED = {**OUTAGE, "faults": (Fault("removed", 100, 350, (0,), 1),)}
"""It is stopped, and taken off the list."""

PASSED = {
    "room": room(150, 300),
    "arrivals": [(500 * number, number % 3) for number in range(1_000)],
    "faults": (Fault("passthrough", 100, 160), Fault("flood", 100, 130, (0, 1, 2), 50)),
    "lasts_s": 560,
}
"""A crowd is let pass, and then a line forms."""

FIRST_LINE = {
    "room": room(40, 60, method="random"),
    "arrivals": [(6_000 * number, number % 3) for number in range(20)]
    + [(125_000 + 500 * number, number % 3) for number in range(480)],
    "faults": (Fault("partition", 120, 400, (0, 1)),),
}
"""The first line of a random room forms behind a cut."""

LOWERED = {
    "room": room(400, 300),
    "arrivals": [(250 * number, number % 3) for number in range(1_600)],
    "faults": (Fault("rate", 100, 400, amount=10), Fault("partition", 110, 400, (0, 1))),
}
"""The rate is lowered, and soon after most data centers are cut off."""

OPERATED = {
    "a data center dies": OUTAGE,
    "it is taken off the list": REMOVED,
    "all pass": PASSED,
    "a first line": FIRST_LINE,
    "lowered": LOWERED,
}

STEPPED = {"behaviour": Behaviour(visit_s=100, page_gap_s=3)}


def stepped(seconds: float, **changes: Any) -> dict[str, Any]:
    return {**STEPPED, "faults": (Fault("clock step", 100, 300, (0,), seconds),), **changes}
