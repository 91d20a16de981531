"""A line whose pages read the shared table and check in once a minute, beside the same line
without: half of it leaves without a word.
"""

from dataclasses import replace
from random import Random

from greenroom.model.line_table import LOOK_S
from greenroom.simulator.arrivals import arrivals
from greenroom.simulator.report import report
from greenroom.simulator.scenario import Behaviour, Fault, Scenario
from greenroom.simulator.traces import room
from greenroom.simulator.world import World


def line(table: bool, told: bool = True) -> World:
    """1,200 visitors in two minutes at a room for few, whose limits rise eightfold while most of
    its line sleeps. `told`: when to check in.
    """

    def streams(name: str) -> Random:
        return Random(f"1/{name}")

    found = arrivals(streams("trace"), 120, lambda _: [10.0])
    faults = (Fault("limits", 240, 3000, amount=800),)
    limits = replace(room(60, 60), line_table=table)
    world = World(
        Scenario("jump", limits, 1, found, 540, Behaviour(patience_s=400, once=0.1), faults=faults),
        streams,
    )
    world.crowd.reads_table = table and told
    world.run()
    return world


def test_a_line_that_suddenly_moves_faster_finds_no_sleepers_although_they_check_in_less() -> None:
    without, shared, untold = line(False), line(True), line(True, told=False)
    other, figures = report(without), report(shared)
    assert shared.crowd.looks > shared.crowd.checks / 2
    assert shared.crowd.checks < without.crowd.checks * 0.7
    assert (figures.over_active, figures.over_minute, figures.broken_laws) == (0, 0, [])
    assert figures.unused is not None
    assert other.unused is not None
    assert figures.unused <= other.unused + 0.01
    assert figures.overtaking_p50_s <= other.overtaking_p50_s + LOOK_S
    assert figures.waits_p95_s <= other.waits_p95_s * 1.1
    assert (
        report(untold).unused or 0
    ) > figures.unused + 0.02  # what the word to check in is good for
