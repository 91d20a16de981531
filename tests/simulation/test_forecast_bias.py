"""Whether what visitors are told when joining is too long or too short on the whole, where a part
of the line or of the units is not seen.

The bias is the sum of the medians told, less the sum of the waits, as a part of that sum, over
several crowds: chance makes one crowd's waits a hundredth or two longer or shorter than another's.
"""

from collections.abc import Callable
from random import Random

import pytest

from greenroom.simulator.arrivals import arrivals
from greenroom.simulator.chance import Streams
from greenroom.simulator.scenario import START_MS, Behaviour, Fault, Scenario
from greenroom.simulator.traces import level, room
from greenroom.simulator.world import World

CENTERS = 4
SEEDS = (1, 2)


def streams_of(seed: int) -> Streams:
    return lambda name: Random(f"{seed}/{name}")


def impatient(streams: Streams) -> Scenario:
    """A line that grows, and in which everybody gives up after ten minutes on the average."""
    found = arrivals(
        streams("trace"),
        900,
        lambda second: level([1 / CENTERS] * CENTERS, 6.5 if second >= 120 else 2.5),
    )
    return Scenario("impatient", room(500, 300), CENTERS, found, 1_300, Behaviour(patience_s=600))


def stopped(streams: Streams) -> Scenario:
    """One of four data centers stops in order; visitors who were let in there go on in others."""
    found = arrivals(
        streams("trace"),
        900,
        lambda second: level([1 / CENTERS] * CENTERS, 5.0 if second >= 120 else 2.5),
    )
    return Scenario(
        "stopped",
        room(500, 300),
        CENTERS,
        found,
        1_300,
        faults=(Fault("stop", 300, 1_200, (1,)),),
        fence_s=180,
    )


@pytest.mark.parametrize(("make", "from_s"), [(impatient, 300), (stopped, 500)])
def test_medians_are_neither_too_long_nor_too_short_on_the_whole(
    make: Callable[[Streams], Scenario], from_s: int
) -> None:
    told_s = waits_s = 0.0
    for seed in SEEDS:
        streams = streams_of(seed)
        world = World(make(streams), streams)
        world.run()
        joined = [
            (visitor.guess, visitor.entered_ms)
            for visitor in world.crowd.visitors
            if visitor.guess and visitor.entered_ms
        ]
        for (at_ms, _, median_s, _), entered_ms in joined:
            if at_ms >= START_MS + from_s * 1000:
                told_s += median_s
                waits_s += (entered_ms - at_ms) / 1000
    assert told_s == pytest.approx(waits_s, rel=0.023)
