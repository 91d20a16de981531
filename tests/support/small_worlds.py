"""Small worlds for the simulator, and what goes wrong in them."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from greenroom.simulator.campaign import random_scenario
from greenroom.simulator.checks import Watch, verdict
from greenroom.simulator.report import SimulationReport, report
from greenroom.simulator.scenario import Behaviour, Fault, Scenario
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
    scenario = Scenario("little", room(40, 60), 3, crowd, 420, Behaviour(visit_s=20), laws_every_s=1)
    return replace(scenario, **changes)


TRIALS = range(1, 5)


def trials(**changes: Any) -> list[str]:
    """What went wrong in the little world, changed so, until something has."""
    return next((found for seed in TRIALS if (found := verdict(watched(little(**changes), seed)))), [])


def moves_while_the_coordinator_loses_its_state() -> list[str]:
    """World 209 with all that goes wrong there but an orderly stop and requests that cannot wait."""
    world = random_scenario(streams_of(209))
    faults = tuple(fault for fault in world.faults if fault.kind not in ("stop", "provisional flood"))
    return verdict(watched(replace(world, faults=faults), 209))


GHOSTS = {
    "centers": 2,
    "room": room(10, 2),
    "arrivals": [(3_000 * number, number % 2) for number in range(133)],
    "behaviour": Behaviour(visit_s=20, patience_s=20, leaving=1.0),
}
"""Two may enter a minute, and most who wait have gone when it is their turn."""

CUT = {"behaviour": Behaviour(visit_s=300, page_gap_s=3), "faults": (Fault("partition", 100, 400, (0,)),), "fence_s": 20}

LOST = {
    "room": replace(room(40, 120), strong_sessions=True),
    "behaviour": Behaviour(visit_s=60, page_gap_s=3),
    "faults": (Fault("partition", 100, 300, (0,)), Fault("coordinator loss", 104, 106)),
    "fence_s": 20,
}
"""A data center is cut off when the coordinator loses its state."""

STOPPED = {"behaviour": Behaviour(visit_s=300, page_gap_s=3), "faults": (Fault("stop", 100, 300, (0,)),), "fence_s": 180}

STEPPED = {"behaviour": Behaviour(visit_s=100, page_gap_s=3)}


def stepped(seconds: float, **changes: Any) -> dict[str, Any]:
    return {**STEPPED, "faults": (Fault("clock step", 100, 300, (0,), seconds),), **changes}
