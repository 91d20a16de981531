"""What the fence costs and what it saves, for several T (`datacenter_fence_seconds`): capacity
unused while visitors waited, and visitors sent back to the line.

    python bench/fence.py                      all faults, T 180, 300 and 600 seconds and never
    python bench/fence.py dead --seed 2        these

A room for 400 in 20 data centers; a fifth more visitors come than it can take. A quarter of the data
centers are cut off, two die.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from random import Random

from greenroom.simulator.arrivals import arrivals, shares
from greenroom.simulator.report import report
from greenroom.simulator.scenario import Fault, Scenario
from greenroom.simulator.traces import CENTERS, level, room
from greenroom.simulator.world import World

TOTAL = 400
QUARTER = tuple(range(0, CENTERS, 4))
FAULTS = {
    "coordinator-180": Fault("coordinator down", 300, 480),
    "coordinator-360": Fault("coordinator down", 300, 660),
    "partition-400": Fault("partition", 300, 700, QUARTER),
    "dead": Fault("outage", 300, 1000, QUARTER[:2]),
    "dead-removed": Fault("removed", 300, 1000, QUARTER[:2]),
}
"""`dead-removed`: an operator takes two dead data centers off the list as soon as they die."""
FENCES_S = (180, 300, 600, 0)
"""0 is never."""


def cost(name: str, seed: int, fence_s: int) -> str:
    """Part of the narrower limit that was not used while visitors waited, and who was sent back."""

    def streams(name: str) -> Random:
        return Random(f"{seed}/{name}")

    draw = streams("trace")
    part = shares(draw, CENTERS)
    per_s = TOTAL / 120
    found = arrivals(draw, 900, lambda second: level(part, per_s * (1.2 if second > 150 else 0.7)))
    scenario = Scenario(name, room(TOTAL, TOTAL), CENTERS, found, 1_000)
    scenario = replace(scenario, fence_s=fence_s, faults=(FAULTS[name],))
    world = World(scenario, streams)
    world.run()
    found = report(world)
    return f"{found.unused or 0:.1%}, {found.lost_sessions}"


def main() -> None:
    """Prints a row for each T."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("faults", nargs="*", metavar="fault")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if unknown := set(options.faults) - set(FAULTS):
        parser.error(
            f"there is no fault {', '.join(sorted(unknown))}; there are {', '.join(FAULTS)}"
        )
    faults = options.faults or list(FAULTS)
    print(f"{'T':8}" + "".join(f"{fault:>20}" for fault in faults))
    with ProcessPoolExecutor(2) as pool:
        rows = [
            [pool.submit(cost, fault, options.seed, fence_s) for fault in faults]
            for fence_s in FENCES_S
        ]
        for fence_s, row in zip(FENCES_S, rows, strict=True):
            told = f"{fence_s} s" if fence_s else "never"
            print(f"{told:8}" + "".join(f"{one.result():>20}" for one in row), flush=True)


if __name__ == "__main__":
    main()
