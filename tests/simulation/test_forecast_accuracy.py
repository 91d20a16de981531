"""What visitors are told against what came of it, in the simulator: the whole product in virtual
time, data centers and network included.

The error is the mean distance between the median that was told and the wait, as a part of the mean
wait. Behind a cut it may be larger: no one knows how long one lasts. Larger trials:
bench/estimates.py.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random
from statistics import fmean

import pytest

from greenroom.simulator.arrivals import arrivals, shares
from greenroom.simulator.chance import Streams
from greenroom.simulator.report import SimulationReport, report
from greenroom.simulator.scenario import Behaviour, Fault, Scenario
from greenroom.simulator.traces import level, room, small_room
from greenroom.simulator.world import World

CENTERS = 4


def streams_of(seed: int) -> Streams:
    return lambda name: Random(f"{seed}/{name}")


def flash_sale(streams: Streams) -> Scenario:
    """6,000 people within a minute, to a room for 1,200."""
    draw = streams("trace")
    found = arrivals(draw, 60, lambda _: level(shares(streams("part"), CENTERS), 100))
    return Scenario(
        "flash sale", room(1_200, 720), CENTERS, found, 720, Behaviour(patience_s=7_200)
    )


def wave(streams: Streams, faults: tuple[Fault, ...] = (), pausing: float = 0.05) -> Scenario:
    """A third more visitors than may enter for twelve minutes; some give up, some never come back,
    some miss a minute.
    """
    draw = streams("trace")
    part = shares(draw, CENTERS)
    found = arrivals(draw, 1_200, lambda second: level(part, 5.5 if 120 <= second < 840 else 2.5))
    habits = Behaviour(patience_s=2_400, once=0.02, pausing=pausing)
    return Scenario("wave", room(500, 300), CENTERS, found, 1_500, habits, faults=faults)


def steady_wave(streams: Streams) -> Scenario:
    """The same without those who miss a minute."""
    return wave(streams, pausing=0.0)


def cut(streams: Streams) -> Scenario:
    """As "wave", and for three minutes a data center cannot reach the coordinator."""
    return wave(streams, (Fault("partition", 420, 600, (1,)),))


def crowd_of_a_draw(streams: Streams) -> Scenario:
    """570 people within two minutes, to a random room for 150, and few afterwards."""
    draw = streams("trace")
    found = arrivals(draw, 120, lambda _: level(shares(streams("part"), 3), 5))
    drawn = replace(room(150, 120), queueing_method="random")
    return Scenario("crowd of a draw", drawn, 3, found, 900, Behaviour(reloading=0.1))


MAKERS: dict[str, Callable[[Streams], Scenario]] = {
    "flash sale": flash_sale,
    "small room": small_room,
    "wave": wave,
    "steady wave": steady_wave,
    "cut": cut,
    "draw": crowd_of_a_draw,
}


@cache
def run(name: str, seed: int) -> SimulationReport:
    streams = streams_of(seed)
    world = World(MAKERS[name](streams), streams)
    world.run()
    return report(world)


@pytest.mark.parametrize(
    ("name", "seeds", "joining", "polls"),
    [
        ("flash sale", (7,), 0.25, 0.15),
        ("small room", (7,), 0.25, 0.15),
        ("wave", (7, 2), 0.15, 0.12),
        ("cut", (7,), 0.2, 0.2),
    ],
)
def test_the_median_is_near_what_comes_of_it(
    name: str, seeds: tuple[int, ...], joining: float, polls: float
) -> None:
    """The errors of one crowd differ from those of another by a fifth, so the tightest bar is for
    the mean of several.
    """
    found = [run(name, seed) for seed in seeds]
    assert fmean(one.error_joining or 1 for one in found) <= joining
    assert fmean(one.error_polls or 1 for one in found) <= polls


def test_the_first_page_counts_those_whose_tickets_have_not_come_back() -> None:
    errors = [run("wave", seed).error_first or 1.0 for seed in (7, 2)]
    assert fmean(errors) <= 0.08


@pytest.mark.parametrize(("name", "most"), [("steady wave", 0.07), ("wave", 0.2)])
def test_a_quarter_a_half_and_three_quarters_are_in_by_the_quartiles_that_are_told_later_on(
    name: str, most: float
) -> None:
    """Those who miss a minute come back in front of visitors who were told nothing of them, so
    0.3 to 0.35 are in by the median in "wave" (seeds 1 to 4 and 7).
    """
    found = [run(name, seed).coverage_polls or (0.0, 0.0, 0.0) for seed in (7, 2)]
    for which, nominal in enumerate((0.25, 0.5, 0.75)):
        assert abs(fmean(coverage[which] for coverage in found) - nominal) <= most


def test_in_a_random_room_half_of_a_crowd_is_in_by_the_median_that_it_is_told_when_it_comes() -> (
    None
):
    """About as many as came in the last minute are expected once more: 0.57 to 0.7 of a crowd are
    in by the median, 0.62 on the mean. With twice as many, 0.72 were.
    """
    found = [run("draw", seed).coverage_joining or (0.0, 0.0, 0.0) for seed in range(1, 9)]
    assert abs(fmean(median for _, median, _ in found) - 0.5) <= 0.14


@pytest.mark.parametrize(
    ("name", "seeds"),
    [("flash sale", (7,)), ("small room", (7, 1, 2)), ("wave", (7,)), ("cut", (7,))],
)
def test_between_the_quartiles_is_where_half_of_the_waits_end_or_more(
    name: str, seeds: tuple[int, ...]
) -> None:
    """Half is what is said, and seven points less may do: this flash sale has 0.54; of five small
    rooms one has 0.42, another 0.47, so their mean counts. Much more would say nothing.
    """
    assert 0.43 <= fmean(run(name, seed).inside_quartiles or 0 for seed in seeds) <= 0.9


@pytest.mark.parametrize(
    ("name", "most"), [("flash sale", 0.15), ("small room", 0.02), ("wave", 0.02), ("cut", 0.02)]
)
def test_little_is_unknown_and_in_a_flash_sale_only_until_the_first_sessions_have_ended(
    name: str, most: float
) -> None:
    unknown = run(name, 7).unknown
    assert unknown is not None
    assert unknown <= most
