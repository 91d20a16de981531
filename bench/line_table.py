"""What the shared table of the line changes for visitors: the same crowd with `line_table` and
without, many of whom leave without a word.

    python bench/line_table.py                         traces with a long line, a minute or two each
    python bench/line_table.py flash-sale --seed 3     these; `jump` is a line whose limits rise
    eightfold at once

Unused is the part of the narrower limit while someone waited. Overtaking: how much later someone
came who entered first. The errors are those of the estimated wait at joining and at later
check-ins, as parts of the mean wait.
"""

import argparse
from dataclasses import replace
from random import Random

from greenroom.simulator.arrivals import arrivals, shares
from greenroom.simulator.chance import Streams
from greenroom.simulator.report import report
from greenroom.simulator.scenario import Fault, Scenario
from greenroom.simulator.traces import TRACES, level, room
from greenroom.simulator.world import World

SOME = ("steady", "global-spike", "flash-sale", "jump")
PATIENCE_S = 600.0
"""Mean time until a visitor leaves for good, unseen."""
ONCE = 0.1
"""Part of the visitors who never come back after they have joined."""


def jump(streams: Streams) -> Scenario:
    """One data center, 6,000 visitors in five minutes at a room for few; after ten minutes both
    limits are eight times as high.
    """
    draw = streams("trace")
    part = shares(draw, 1)
    found = arrivals(draw, 300, lambda _: level(part, 20))
    return Scenario(
        "jump", room(400, 240), 1, found, 1500, faults=(Fault("limits", 600, 3000, amount=800),)
    )


def world(trace: str, seed: int, table: bool) -> World:
    def streams(name: str) -> Random:
        return Random(f"{seed}/{name}")

    scenario = jump(streams) if trace == "jump" else TRACES[trace](streams)
    habits = replace(scenario.behaviour, patience_s=PATIENCE_S, once=ONCE)
    run = World(
        replace(scenario, room=replace(scenario.room, line_table=table), behaviour=habits), streams
    )
    run.run()
    return run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("traces", nargs="*", metavar="trace")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(
        f"{'trace':14}{'table':>6}{'unused':>9}{'overtaking p50, p99':>21}{'wait p50, p95':>16}{'error':>14}{'check-ins':>11}{'tables':>9}"
    )
    for trace in options.traces or SOME:
        for table in (False, True):
            run = world(trace, options.seed, table)
            found = report(run)
            error = (
                f"{100 * (found.error_joining or 0):.1f}, {100 * (found.error_polls or 0):.1f} %"
            )
            beyond = (
                "   BEYOND A LIMIT"
                if found.over_active or found.over_minute or found.broken_laws
                else ""
            )
            print(
                f"{trace:14}{'yes' if table else 'no':>6}{100 * (found.unused or 0):>7.2f} %"
                f"{f'{found.overtaking_p50_s:.1f}, {found.overtaking_p99_s:.1f} s':>21}"
                f"{f'{found.waits_p50_s:.0f}, {found.waits_p95_s:.0f} s':>16}"
                f"{error:>14}{run.crowd.checks:>11,}{run.crowd.looks:>9,}{beyond}",
                flush=True,
            )


if __name__ == "__main__":
    main()
