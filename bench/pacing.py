"""What pacing costs: the largest burst of admissions and the capacity left unused, with
`pace_admissions` and without.

    python bench/pacing.py                     the traces that begin with a quiet time, half a
    minute each
    python bench/pacing.py steady --seed 3     these

A burst is the most admissions within five seconds, in parts of an even pace. Unused is the part of
the narrower limit while someone waited.
"""

import argparse
from dataclasses import replace
from random import Random

from greenroom.simulator.report import SimulationReport, report
from greenroom.simulator.traces import TRACES
from greenroom.simulator.world import World

SOME = ("global-spike", "one-site-spike", "moving-spike", "steady", "small-room")


def run(trace: str, seed: int, paced: bool) -> SimulationReport:
    def streams(name: str) -> Random:
        return Random(f"{seed}/{name}")

    scenario = TRACES[trace](streams)
    world = World(replace(scenario, room=replace(scenario.room, pace_admissions=paced)), streams)
    world.run()
    return report(world)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("traces", nargs="*", metavar="trace")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{'trace':20}{'burst':>16}{'unused':>18}{'queued although there was room':>34}")
    print(f"{'':20}{'not paced, paced':>16}" + f"{'not paced, paced':>18}{'not paced, paced':>34}")
    for trace in options.traces or SOME:
        off, on = (run(trace, options.seed, paced) for paced in (False, True))
        unused = f"{100 * (off.unused or 0):.2f} %, {100 * (on.unused or 0):.2f} %"
        early = f"{100 * off.queued_early:.3f} %, {100 * on.queued_early:.3f} %"
        print(
            f"{trace:20}{f'{off.burst:.1f}, {on.burst:.1f}':>16}{unused:>18}{early:>34}", flush=True
        )


if __name__ == "__main__":
    main()
