"""The first seconds of a crowd, before any forecast: what visitors are told follows from the pace
at which they are let in.
"""

from collections.abc import Iterable
from random import Random
from statistics import fmean

import pytest

from greenroom.admission import pacing
from greenroom.admission.estimate import crowd_estimate
from greenroom.admission.lease import Lease
from greenroom.simulator.arrivals import arrivals, shares
from greenroom.simulator.scenario import START_MS, Behaviour, Scenario
from greenroom.simulator.traces import level, room
from greenroom.simulator.visitor import SimulatedVisitor
from greenroom.simulator.world import World


def crowd(seed: int) -> Iterable[SimulatedVisitor]:
    """300 a second for ten seconds come to an empty room for 6,000, and 3,600 a minute; those who
    were held in seconds two to seven.
    """

    def streams(name: str) -> Random:
        return Random(f"{seed}/{name}")

    part = shares(streams("part"), 8)
    found = arrivals(streams("trace"), 10, lambda _: level(part, 300))
    world = World(Scenario("crowd", room(6_000, 3_600), 8, found, 60, Behaviour()), streams)
    world.run()
    return [
        visitor
        for visitor in world.crowd.visitors
        if visitor.tries and 2_000 <= visitor.first_ms - START_MS < 7_000
    ]


def test_the_first_of_a_crowd_are_told_what_the_pace_makes_of_their_place() -> None:
    held = crowd(1)
    told = [
        (visitor.first_guess[2], (visitor.entered_ms - visitor.first_guess[0]) / 1000)
        for visitor in held
        if visitor.first_guess
    ]
    assert len(told) > 500
    wait_s = fmean(took for _, took in told)
    assert fmean(abs(guess - took) for guess, took in told) <= 0.47 * wait_s
    assert fmean(guess for guess, _ in told) >= 0.6 * wait_s
    assert max(took for _, took in told) <= 20, "no permit lies idle while those in front sleep"


def test_a_permit_that_the_pace_holds_back_is_a_wait() -> None:
    lease = Lease()
    lease.permits, lease.gap_us = 100, 50_000
    assert lease.paced_s(20, START_MS) == 0
    assert lease.paced_s(60, START_MS) == pytest.approx(2)
    for _ in range(20):
        lease.spent_until_us = pacing.spent(lease.spent_until_us, lease.gap_us, START_MS)
    assert lease.paced_s(1, START_MS) == pytest.approx(0.05)
    assert lease.paced_s(1, START_MS + 100) == 0
    lease.queueing, lease.permits = True, 20
    assert lease.paced_s(20, START_MS) == 0, "the coordinator sets the pace while people wait"


def test_permits_of_a_quiet_minute_come_at_twice_the_even_pace_and_then_slower() -> None:
    waits = [crowd_estimate(1, here, 600, 0) for here in (10, 100, 300, 599)]
    assert [round(wait.p50_s, 1) for wait in waits if wait] == [0.6, 5.3, 17.3, 41.6]
    assert crowd_estimate(1, 600, 600, 0) is None
    assert crowd_estimate(200, 0, 600, 401) is None


@pytest.mark.parametrize("quiet_s", [0, 30], ids=["at once", "after a quiet time"])
def test_a_crowd_of_one_second_is_not_told_that_the_line_is_empty(quiet_s: int) -> None:
    """After a quiet time there are permits, and visitors have only to show their tickets."""

    def streams(name: str) -> Random:
        return Random(f"7103/{name}")

    part = shares(streams("part"), 20)
    found = arrivals(
        streams("trace"), quiet_s + 1, lambda second: level(part, 1 if second < quiet_s else 3_000)
    )
    world = World(Scenario("crowd", room(1_000, 600), 20, found, 60, Behaviour()), streams)
    world.run()
    held = [visitor for visitor in world.crowd.visitors if visitor.tries]
    told = [visitor.first_guess[2] for visitor in held if visitor.first_guess]
    assert len(held) > 2_000
    assert sum(guess < 5 for guess in told) <= len(held) / 20
