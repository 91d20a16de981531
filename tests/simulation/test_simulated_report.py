"""What analytics would show of a simulated run, asked by the same question as the dashboard's,
against what its visitors went through.
"""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from analytics_material import nearest_rank

from greenroom.analytics.rollup import MINUTE_MS, PERCENTS, SLOT_MS
from greenroom.cli.simulate import recorded_figures
from greenroom.model.visit import Outcome, Standing
from greenroom.simulator.arrivals import from_curve
from greenroom.simulator.campaign import random_scenario
from greenroom.simulator.chance import Streams
from greenroom.simulator.recording import RecordedFigures, RunRecording
from greenroom.simulator.report import report
from greenroom.simulator.sale import sale
from greenroom.simulator.scenario import START_MS, Behaviour, Scenario
from greenroom.simulator.visitor import SimulatedVisitor
from greenroom.simulator.world import ALGORITHMS, World

LIMITS = {"total_active_users": 60, "new_users_per_minute": 80, "session_duration": 1}
HABITS = Behaviour(visit_s=20, leaving=0.5, patience_s=240, reloading=0.1, page_gap_s=5)


def streams_of(seed: int) -> Streams:
    return lambda name: Random(f"{seed}/{name}")


def a_sale(seed: int, visitors: int = 500) -> Scenario:
    return sale(LIMITS, from_curve(streams_of(seed)("arrivals"), "rush", visitors, 4, 3), 3, HABITS)


class Diary:
    """What visitors went through, noted beside the recording."""

    def __init__(self, world: World, recording: RunRecording) -> None:
        self.world, self.recording = world, recording
        self.answers: Counter[Standing] = Counter()
        self.left_at_all = 0
        self.entered_ms: dict[int, int] = {}
        self.seen_ms: dict[int, int] = {}
        self.waited_ms: list[int] = []
        self.held: set[int] = set()
        self.active: list[int] = []
        world.crowd.listener = self
        world.agenda.at(START_MS - START_MS % SLOT_MS + SLOT_MS, self._look)

    def answered(self, visitor: SimulatedVisitor, outcome: Outcome, now_ms: int) -> None:
        self.answers[outcome.standing] += 1
        if outcome.standing is Standing.WAITING:
            self.held.add(visitor.number)
        elif outcome.standing is Standing.ADMITTED:
            assert visitor.number not in self.entered_ms
            self.entered_ms[visitor.number] = now_ms
            if visitor.number in self.held:
                self.waited_ms.append(now_ms - visitor.came_ms)
        self.seen_ms[visitor.number] = now_ms
        self.recording.answered(visitor, outcome, now_ms)

    def left(self, visitor: SimulatedVisitor, now_ms: int) -> None:
        self.left_at_all += 1
        self.recording.left(visitor, now_ms)

    def _look(self) -> None:
        self.active.append(
            sum(len(center.ledger.sessions.inside) for center in self.world.system.centers)
        )  # type: ignore[attr-defined]
        self.world.agenda.after(SLOT_MS, self._look)


@pytest.mark.parametrize("seed", range(3))
def test_the_report_of_a_run_says_what_its_visitors_went_through(seed: int) -> None:
    world = World(a_sale(seed), streams_of(seed))
    diary = Diary(world, RunRecording(world))
    world.run()
    world.agenda.run(world.agenda.now_ms + 10 * MINUTE_MS)  # until all sessions have ended
    told = recorded_figures(diary.recording)

    entered = Counter(at_ms // MINUTE_MS for at_ms in diary.entered_ms.values())
    assert told["max"]["newUsersPerMinute"] == max(entered.values())
    exact = {
        "newUsersPerMinute": world.ground_truth.entered,
        "usersWaited": len(diary.waited_ms),
        "sessionsEnded": len(diary.entered_ms),
        "usersLeft": diary.left_at_all,
        "requestsHeld": diary.answers[Standing.WAITING],
        "requestsPassed": diary.answers[Standing.ACTIVE],
    }
    assert {name: told["sum"][name] for name in exact} == exact
    assert all(exact.values())
    assert told["max"]["totalActiveUsers"] == max(diary.active) <= LIMITS["total_active_users"]
    assert told["avg"]["totalActiveUsers"] > 0
    assert told["max"]["totalQueuedUsers"] <= world.ground_truth.most_waiting
    assert (
        told["max"]["totalActiveUsersConfig"]
        == told["min"]["totalActiveUsersConfig"]
        == LIMITS["total_active_users"]
    )
    percentiles(told, "totalTimeWaited", diary.waited_ms)
    percentiles(
        told,
        "timeOnOrigin",
        [diary.seen_ms[number] - at_ms for number, at_ms in diary.entered_ms.items()],
    )


def test_the_longest_wait_of_a_crowd_whose_first_pages_told_none_is_the_one_that_its_visitors_were_told() -> (
    None
):
    limits = {"total_active_users": 40, "new_users_per_minute": 40, "session_duration": 5}
    world = World(
        sale(limits, [(at_ms * 40, 0) for at_ms in range(400)], 1, Behaviour(visit_s=120)),
        streams_of(1),
    )
    diary = Diary(world, RunRecording(world))
    world.run()
    told_s = recorded_figures(diary.recording)["max"]["estimatedWaitTime"]
    assert 0.5 < told_s * 1_000 / max(diary.waited_ms) < 2.0


def percentiles(told: RecordedFigures, stem: str, truth_ms: list[int]) -> None:
    """Within the precision of the histogram, and of two decimals."""
    for percent in PERCENTS:
        exact_s = nearest_rank(sorted(truth_ms), percent) / 1_000
        assert (
            exact_s - 0.01 <= told["percentile"][f"{stem}P{percent}"] <= exact_s * 1.001 + 0.01
        ), (stem, percent)


@pytest.mark.parametrize("seed", [2, 3, 6, 10, 13])
def test_recording_a_run_with_faults_changes_nothing_in_it(seed: int) -> None:
    """These seeds have old disks, lost coordinators, partitions, clock steps, floods and changes of
    limits.
    """
    alone, recorded = (World(random_scenario(streams_of(seed)), streams_of(seed)) for _ in range(2))
    recording = RunRecording(recorded)
    for world in (alone, recorded):
        world.run()
    assert report(alone) == report(recorded)
    told = recorded_figures(recording)
    assert (
        told["sum"]["newUsersPerMinute"]
        == recorded.ground_truth.entered - recorded.provisional.passed
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_is_asked_the_same_and_says_what_it_can_know(algorithm: str) -> None:
    scenario = replace(
        a_sale(1, 150), centers=1, arrivals=[(at_ms, 0) for at_ms, _ in a_sale(1, 150).arrivals]
    )
    world = World(scenario, streams_of(1), algorithm)
    recording = RunRecording(world)
    world.run()
    told = recorded_figures(recording)
    assert told["sum"]["newUsersPerMinute"] == world.ground_truth.entered > 0
    assert told["max"]["totalQueuedUsers"] > 0
    assert ("sessionsEnded" in told["sum"]) == (algorithm == "greenroom")
    assert any(name.startswith("timeOnOrigin") for name in told["percentile"]) == (
        algorithm == "greenroom"
    )


def test_a_run_in_which_nothing_happened_has_zeros() -> None:
    world = World(replace(a_sale(1), arrivals=[], lasts_s=0.0), streams_of(1))
    told = recorded_figures(RunRecording(world))
    assert told["sum"]["newUsersPerMinute"] == 0
