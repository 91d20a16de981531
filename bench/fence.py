"""What the fence costs and what it saves, for several T (`datacenter_fence_seconds`): capacity
unused while visitors waited.

    python bench/fence.py                      the four traces with faults, T from 30 seconds to
    never
    python bench/fence.py outage --seed 2      these

Each cell is a run of half an hour in virtual time, and takes about a minute of a processor.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from random import Random

from greenroom.simulator.report import report
from greenroom.simulator.traces import TRACES
from greenroom.simulator.world import World

SOME = ("outage-and-partition", "outage", "partition", "coordinator-down")
FENCES_S = (0, 30, 60, 120, 180)
"""0 is never."""


def unused(trace: str, seed: int, fence_s: int) -> float:
    """Part of the narrower limit that was not used while visitors waited."""

    def streams(name: str) -> Random:
        return Random(f"{seed}/{name}")

    world = World(replace(TRACES[trace](streams), fence_s=fence_s), streams)
    world.run()
    return report(world).unused or 0.0


def main() -> None:
    """Prints a row for each T."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("traces", nargs="*", metavar="trace")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if unknown := set(options.traces) - set(TRACES):
        parser.error(
            f"there is no trace {', '.join(sorted(unknown))}; there are {', '.join(TRACES)}"
        )
    traces = options.traces or SOME
    print(f"{'T':8}" + "".join(f"{trace:>24}" for trace in traces))
    with ProcessPoolExecutor(2) as pool:
        rows = [
            [pool.submit(unused, trace, options.seed, fence_s) for trace in traces]
            for fence_s in FENCES_S
        ]
        for fence_s, row in zip(FENCES_S, rows, strict=True):
            told = f"{fence_s} s" if fence_s else "never"
            print(f"{told:8}" + "".join(f"{one.result():>24.2%}" for one in row), flush=True)


if __name__ == "__main__":
    main()
