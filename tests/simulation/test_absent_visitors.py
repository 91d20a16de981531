"""Half of a line closes the page and comes back from the lower quartile of the estimate on until
ten minutes after the upper one: in three data centers others lose nothing and no capacity waits.
"""

from dataclasses import replace

from small_worlds import little, watched

from greenroom.simulator.checks import verdict
from greenroom.simulator.report import report
from greenroom.simulator.scenario import Behaviour, Scenario
from greenroom.simulator.traces import room

HABITS = Behaviour(visit_s=20, leaving=1.0)
LINE = little(
    room=replace(room(150, 60), calendar_after_minutes=10, claim_minutes=10),
    centers=3,
    behaviour=HABITS,
    arrivals=[(100 * number, number % 3) for number in range(1_000)]
    + [(100_000 + 1_100 * number, number % 3) for number in range(1_000)],
    lasts_s=1_300,
    laws_every_s=60,
)
"""1,000 in two minutes and then almost as many as may enter, one a second."""
SEEDS = (1,)


def unused(scenario: Scenario) -> tuple[float, int, int, int]:
    """Capacity unused while visitors wait, and how many enter, are absent, and return too late."""
    share, entered, absent, late = 0.0, 0, 0, 0
    for seed in SEEDS:
        watch = watched(scenario, seed)
        assert verdict(watch) == []
        found, crowd = report(watch.world), watch.world.crowd
        share += (found.unused or 0.0) / len(SEEDS)
        entered += found.entered
        absent += crowd.absent
        late += crowd.too_late
    return share, entered, absent, late


def test_half_of_the_line_absent_leaves_no_more_capacity_unused() -> None:
    present = unused(LINE)
    half = unused(replace(LINE, behaviour=replace(HABITS, absent=0.5)))
    print("unused, entered, absent, too late:", present, half)
    assert half[2] > 400
    assert half[0] <= present[0] + 0.005
    assert half[1] >= present[1] * 0.995
