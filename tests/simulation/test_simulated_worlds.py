"""Small worlds under the simulator: runs repeat exactly, and limits hold under random faults."""

from dataclasses import asdict, replace
from typing import Any

import pytest
from small_worlds import (
    CUT,
    GHOSTS,
    LOST,
    MOVED_BEHIND_A_CUT,
    OPERATED,
    STEPPED,
    STOPPED,
    campaign,
    given_up,
    little,
    lost_together,
    moves_while_the_coordinator_loses_its_state,
    on_the_way,
    removed_before,
    run,
    stepped,
    streams_of,
    trial,
    watched,
)

from greenroom.admission.coordinator.data_center import DataCenter
from greenroom.admission.ledger import visiting
from greenroom.model.visit import Outcome, Standing
from greenroom.simulator.campaign import random_scenario
from greenroom.simulator.checks import fairness, verdict
from greenroom.simulator.report import report
from greenroom.simulator.scenario import FAULTS, START_MS, Behaviour, Fault, NetworkProfile
from greenroom.simulator.traces import TRACES, room
from greenroom.simulator.visitor import SimulatedVisitor
from greenroom.simulator.world import ALGORITHMS, FAULT_HANDLERS, World

SEEDS = range(100, 108)


def test_every_trace_says_what_it_is() -> None:
    assert [name for name, trace in TRACES.items() if not trace.__doc__] == []


def test_the_same_seed_gives_the_same_run() -> None:
    one, same = (asdict(run(random_scenario(streams_of(3)), seed=3)) for _ in range(2))
    assert one == same


def test_limits_and_laws_hold_under_random_faults() -> None:
    assert campaign(SEEDS) == []


@pytest.mark.parametrize("changes", OPERATED.values(), ids=OPERATED)
def test_the_line_moves_on_and_limits_hold_when(changes: dict[str, Any]) -> None:
    assert trial(**changes) == []


@pytest.mark.campaign
def test_limits_and_laws_hold_in_three_hundred_worlds() -> None:
    assert campaign(range(1, 301)) == []


@pytest.mark.parametrize("seed", range(1, 4))
def test_limits_and_laws_hold_when_an_operator_gives_a_dead_data_center_up(seed: int) -> None:
    assert given_up(seed) == []


def test_the_place_of_a_kept_turn_is_lost_only_where_a_cut_hides_that_it_was_given() -> None:
    watch = watched(little(**MOVED_BEHIND_A_CUT), 7)
    assert verdict(watch) == []
    assert watch.world.crowd.places_untold == 1


def test_permits_that_reach_only_ghosts_do_not_hold_up_the_line() -> None:
    assert campaign(range(1027, 1028)) == []


def test_sessions_of_passthrough_that_moved_are_counted_when_their_ledger_is_lost() -> None:
    assert campaign(range(526, 527)) == []


def test_who_was_held_while_inside_is_not_counted_as_admitted_again() -> None:
    world = World(little(), streams_of(1))
    visitor, now_ms = SimulatedVisitor(1, 0, START_MS), START_MS
    for standing in (Standing.ADMITTED, Standing.WAITING, Standing.ACTIVE):
        world.crowd._answered(visitor, Outcome(standing, now_ms + 60_000, now_ms, now_ms, 2_000))
    truth = world.ground_truth
    assert (truth.entered, len(truth.minute), truth.active, truth.waiting) == (1, 1, 1, 0)


OLDER_COPIES, USED_BEHIND_A_CUT, REJECTED_ON_THE_WAY, PUSHED_WITHOUT_A_TIME = 5053, 5070, 7008, 7158
LOWERED_WITHOUT_A_COORDINATOR, RENEWED_AFTER_A_CLAIM, REMOVED_WHILE_DOUBTED = 9495, 9420, 9434


@pytest.mark.parametrize(
    "seed",
    [
        OLDER_COPIES,
        USED_BEHIND_A_CUT,
        REJECTED_ON_THE_WAY,
        PUSHED_WITHOUT_A_TIME,
        LOWERED_WITHOUT_A_COORDINATOR,
        RENEWED_AFTER_A_CLAIM,
        REMOVED_WHILE_DOUBTED,
    ],
)
def test_what_a_world_has_found_stays_repaired(seed: int) -> None:
    assert campaign(range(seed, seed + 1)) == []


def test_every_kind_of_fault_can_happen() -> None:
    assert set(FAULTS) == set(FAULT_HANDLERS)
    seen = {fault.kind for seed in range(200) for fault in random_scenario(streams_of(seed)).faults}
    assert seen == set(FAULTS)


def test_who_was_let_in_elsewhere_meanwhile_does_not_wait_again() -> None:
    scenario = little(
        behaviour=Behaviour(visit_s=60, page_gap_s=3, moving=0.4),
        faults=(Fault("partition", 100, 160, (0,)),),
    )
    assert verdict(watched(scenario)) == []


@pytest.mark.parametrize("strong", [True, False])
def test_sessions_follow_visitors_who_move_all_the_time(strong: bool) -> None:
    scenario = little(
        room=replace(room(40, 60), strong_sessions=strong),
        behaviour=Behaviour(visit_s=60, page_gap_s=5, moving=0.3),
    )
    watch = watched(scenario)
    world = watch.world
    given = sum(center.ledger.moves.given for center in world.system.centers)  # type: ignore[attr-defined]
    assert given > 200
    assert verdict(watch) == []
    assert report(world).over_active == 0
    assert report(world).lost_sessions <= 0.02 * given


@pytest.mark.needs("patching")
def test_who_moves_near_the_end_of_the_session_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = little(
        room=room(80, 60),
        behaviour=Behaviour(visit_s=120, page_gap_s=25, moving=0.5),
        laws_every_s=10,
    )
    watch = watched(scenario)
    assert verdict(watch) == []
    assert watch.world.crowd.searched
    assert watch.world.crowd.forgotten <= 2
    monkeypatch.setattr(visiting, "_search", lambda *_: visiting.GONE)
    assert watched(scenario).world.crowd.forgotten > 4


def test_visitors_of_a_data_center_that_lost_its_books_stay_inside() -> None:
    crash = Fault("crash", at_s=120, until_s=122, centers=(0,))
    scenario = little(faults=(crash,), behaviour=Behaviour(visit_s=60, page_gap_s=5))
    watch = watched(scenario)
    world = watch.world
    assert verdict(watch) == []
    assert world.crowd.lost <= 2
    assert not any(center.orphans for center in world.system.coordinator.data_centers.values())  # type: ignore[attr-defined]


def test_permits_on_their_way_count_beside_what_may_be_admitted_while_cut_off() -> None:
    center = DataCenter("here", granted=5, seen=4, used=4)
    center.allow_disconnected_rate(1, 3)
    assert center.value == 4
    center.seen = 5
    assert center.value == 3


def test_a_partition_costs_no_one_the_limits() -> None:
    scenario = little(
        faults=(Fault("partition", 60, 120, (0, 1)),),
        network=NetworkProfile(loss=0.2, twice=0.2, skew_ms=30_000),
    )
    figures = run(scenario)
    assert figures.over_active == figures.over_minute == 0
    assert figures.broken_laws == []
    assert figures.entered >= 200


def test_a_random_room_is_fair_to_late_comers_and_to_the_patient() -> None:
    scenario = replace(TRACES["random-fair"](streams_of(2)), centers=3)
    scenario = replace(
        scenario,
        arrivals=[(at_ms, center % 3) for at_ms, center in scenario.arrivals[::3]],
        room=room(300, 200, method="random"),
    )
    world = World(scenario, streams_of(2))
    world.run()
    found = fairness(world)
    assert found is not None
    assert found.distance <= 0.2
    assert 0.75 <= found.advantage <= 1.25


def test_the_published_allocations_see_the_same_crowd_and_overshoot_in_a_spike() -> None:
    crowd = [(1_000 * number, number % 3) for number in range(120)] + [
        (130_000 + 20 * number, number % 3) for number in range(600)
    ]
    assert run(little(arrivals=crowd)).over_active == 0
    for algorithm in ALGORITHMS[1:]:
        figures = run(little(arrivals=crowd), algorithm)
        assert figures.visitors >= 720, algorithm
        assert figures.over_active + figures.over_minute > 0, algorithm


def test_a_session_that_moves_while_the_coordinator_loses_its_state_keeps_its_unit() -> None:
    assert moves_while_the_coordinator_loses_its_state() == []
    assert on_the_way() == []


def test_what_the_lost_coordinator_alone_knew_is_not_given_away() -> None:
    assert removed_before() == []
    assert lost_together() == []


@pytest.mark.parametrize("fence_s", [20, 0])
def test_what_a_data_center_has_that_is_cut_off_when_the_coordinator_loses_its_state_is_given_to_no_other(
    fence_s: int,
) -> None:
    assert trial(**{**LOST, "fence_s": fence_s}) == []


def test_a_line_of_ghosts_moves_on() -> None:
    assert trial(**GHOSTS) == []


def test_the_units_of_a_data_center_behind_the_fence_are_used_by_the_others() -> None:
    cut, never = (run(little(**{**CUT, "fence_s": fence_s})) for fence_s in (20, 0))
    assert cut.broken_laws == []
    assert cut.over_active == cut.over_minute == 0
    assert cut.entered > never.entered


def test_the_units_of_a_data_center_that_is_stopped_in_order_are_used_by_the_others_sooner() -> (
    None
):
    stop = Fault("stop", 100, 300, (0,))
    stopped, dead = (
        run(little(faults=(fault,), fence_s=180)) for fault in (stop, replace(stop, kind="outage"))
    )
    assert stopped.broken_laws == []
    assert stopped.over_active == stopped.over_minute == 0
    assert stopped.entered > dead.entered


def test_a_data_center_that_is_back_after_its_farewell_goes_on_with_its_sessions() -> None:
    watch = watched(
        little(
            **{**STOPPED, "faults": (Fault("stop", 100, 104, (0,)), Fault("stop", 150, 160, (0,)))}
        )
    )
    assert verdict(watch) == []
    assert watch.world.crowd.lost == 0


@pytest.mark.parametrize(
    ("method", "steps"), [("fifo", (3_600, 30, -30, -3_600)), ("random", (-30, 3_600))]
)
def test_a_step_of_a_servers_clock_changes_nothing(method: str, steps: tuple[int, ...]) -> None:
    limits = room(40, 60, method=method)
    plain = run(little(**STEPPED, room=limits))
    for seconds in steps:
        watch = watched(little(**stepped(seconds, room=limits)))
        figures = report(watch.world)
        assert verdict(watch) == []
        assert figures.over_active == figures.over_minute == figures.lost_sessions == 0
        assert figures.entered >= 0.95 * plain.entered


def test_a_spike_out_of_a_quiet_time_reaches_the_origin_at_twice_the_even_pace_at_most() -> None:
    crowd = [(2_000 * number, number % 3) for number in range(60)] + [
        (120_000 + 20 * number, number % 3) for number in range(1_500)
    ]
    limits = room(2_000, 600)
    paced, unpaced = (
        run(little(arrivals=crowd, room=replace(limits, pace_admissions=on)))
        for on in (True, False)
    )
    assert paced.burst <= 3
    assert unpaced.burst > 1.5 * paced.burst
    assert paced.unused is not None
    assert (
        paced.unused <= 0.15
    )  # the crowd comes in the first of the six minutes that the line lasts
