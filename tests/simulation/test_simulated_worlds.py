"""Small worlds under the simulator: runs repeat exactly, limits hold under random faults, and broken builds are found by the same campaign."""

from collections.abc import Callable
from dataclasses import asdict, replace
from random import Random
from typing import Any

import pytest

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.coordinator.data_center import DataCenter
from greenroom.admission.coordinator.pace import Pace
from greenroom.admission.lease import Lease
from greenroom.admission.ledger import exchange
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger_time import LedgerTime
from greenroom.admission.messages import moves
from greenroom.admission.messages.moves import Moves
from greenroom.admission.queueing.line import Line
from greenroom.admission.queueing.methods import Fifo
from greenroom.admission.transfers import session_transfers, transfers
from greenroom.admission.transfers.session_transfers import SessionTransfers
from greenroom.simulator.campaign import random_scenario
from greenroom.simulator.checks import Watch, verdict
from greenroom.simulator.fairness import fairness
from greenroom.simulator.report import SimulationReport, report
from greenroom.simulator.scenario import FAULTS, Behaviour, Fault, NetworkProfile, Scenario
from greenroom.simulator.traces import TRACES, room
from greenroom.simulator.world import ALGORITHMS, FAULT_HANDLERS, World

SEEDS = range(100, 108)


def streams_of(seed: int) -> Callable[[str], Random]:
    return lambda name: Random(f"{seed}/{name}")


def watched(scenario: Scenario, seed: int = 1) -> Watch:
    """A run that is over, and what was seen."""
    watch = Watch(World(scenario, streams_of(seed)))
    watch.world.run()
    return watch


def campaign(seeds: range) -> list[str]:
    """What went wrong, until something has."""
    for seed in seeds:
        found = verdict(watched(random_scenario(streams_of(seed)), seed))
        if found:
            return [f"seed {seed}: {problem}" for problem in found]
    return []


def run(scenario: Scenario, algorithm: str = "greenroom", seed: int = 1) -> SimulationReport:
    world = World(scenario, streams_of(seed), algorithm)
    world.run()
    return report(world)


def little(**changes: Any) -> Scenario:
    """Three data centers, a visitor every half second for four minutes, room for forty."""
    crowd = [(500 * number, number % 3) for number in range(480)]
    scenario = Scenario("little", room(40, 60), 3, crowd, 420, Behaviour(visit_s=20), laws_every_s=1)
    return replace(scenario, **changes)


def test_the_same_seed_gives_the_same_run_and_another_one_does_not() -> None:
    scenarios = [random_scenario(streams_of(seed)) for seed in (3, 3, 4)]
    one, same, other = (asdict(run(scenario, seed=seed)) for scenario, seed in zip(scenarios, (3, 3, 4), strict=True))
    assert one == same
    assert one != other


def test_limits_and_laws_hold_under_random_faults() -> None:
    assert campaign(SEEDS) == []


@pytest.mark.campaign
def test_limits_and_laws_hold_in_three_hundred_worlds() -> None:
    assert campaign(range(1, 301)) == []


def test_permits_that_reach_only_ghosts_do_not_hold_up_the_line() -> None:
    assert campaign(range(1027, 1028)) == []


def test_every_kind_of_fault_can_happen() -> None:
    assert set(FAULTS) == set(FAULT_HANDLERS)
    seen = {fault.kind for seed in range(200) for fault in random_scenario(streams_of(seed)).faults}
    assert seen == set(FAULTS)


def test_who_was_let_in_elsewhere_meanwhile_does_not_wait_again() -> None:
    scenario = little(behaviour=Behaviour(visit_s=60, page_gap_s=3, moving=0.4), faults=(Fault("partition", 100, 160, (0,)),))
    assert verdict(watched(scenario)) == []


@pytest.mark.parametrize("strong", [True, False])
def test_sessions_follow_visitors_who_move_all_the_time(strong: bool) -> None:
    scenario = little(room=replace(room(40, 60), strong_sessions=strong), behaviour=Behaviour(visit_s=60, page_gap_s=5, moving=0.3))
    watch = watched(scenario)
    world = watch.world
    given = sum(center.ledger.moves.given for center in world.system.centers)  # type: ignore[attr-defined]
    assert given > 200
    assert verdict(watch) == []
    assert report(world).over_active == 0
    assert report(world).lost_sessions <= 0.02 * given


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
    scenario = little(faults=(Fault("partition", 60, 120, (0, 1)),), network=NetworkProfile(loss=0.2, twice=0.2, skew_ms=30_000))
    figures = run(scenario)
    assert figures.over_active == figures.over_minute == 0
    assert figures.broken_laws == []
    assert figures.entered >= 200


def test_a_random_room_is_fair_to_late_comers_and_to_the_patient() -> None:
    scenario = replace(TRACES["random-fair"](streams_of(2)), centers=3)
    scenario = replace(
        scenario, arrivals=[(at_ms, center % 3) for at_ms, center in scenario.arrivals[::3]], room=room(300, 200, method="random")
    )
    world = World(scenario, streams_of(2))
    world.run()
    found = fairness(world)
    assert found is not None
    assert found.distance <= 0.2
    assert 0.75 <= found.advantage <= 1.25


@pytest.mark.parametrize("algorithm", ALGORITHMS[1:])
def test_the_published_allocations_see_the_same_crowd_and_overshoot_in_a_spike(algorithm: str) -> None:
    crowd = [(1_000 * number, number % 3) for number in range(120)] + [(130_000 + 20 * number, number % 3) for number in range(600)]
    figures = run(little(arrivals=crowd), algorithm)
    assert figures.visitors >= 720
    assert figures.over_active + figures.over_minute > 0
    assert run(little(arrivals=crowd)).over_active == 0


# -- builds that the campaign must find ------------------------------------------------------------------------------------------

Break = Callable[[pytest.MonkeyPatch], None]
TRIALS = range(1, 5)


def trials(**changes: Any) -> list[str]:
    """What went wrong in the little world, changed so, until something has."""
    return next((found for seed in TRIALS if (found := verdict(watched(little(**changes), seed)))), [])


BROKEN: list[tuple[Callable[[], list[str]], Break]] = []


def broken(seed: int) -> Callable[[Break], Break]:
    """A build that the campaign finds with this seed, or soon after."""

    def noted(build: Break) -> Break:
        BROKEN.append((lambda: campaign(range(seed, seed + 25)), build))
        return build

    return noted


def broken_in(**changes: Any) -> Callable[[Break], Break]:
    """A build that is found in the little world, changed so."""

    def noted(build: Break) -> Break:
        BROKEN.append((lambda: trials(**changes), build))
        return build

    return noted


def moves_while_the_coordinator_loses_its_state() -> list[str]:
    """World 209 with all that goes wrong there but an orderly stop and requests that cannot wait."""
    world = random_scenario(streams_of(209))
    faults = tuple(fault for fault in world.faults if fault.kind not in ("stop", "provisional flood"))
    return verdict(watched(replace(world, faults=faults), 209))


def test_a_session_that_moves_while_the_coordinator_loses_its_state_keeps_its_unit() -> None:
    assert moves_while_the_coordinator_loses_its_state() == []


def takes_units_that_were_given_back_for_units_that_are_remembered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("greenroom.admission.coordinator.coordinator.remembered_units", lambda center, up, adopted, returned: adopted)


BROKEN.append((moves_while_the_coordinator_loses_its_state, takes_units_that_were_given_back_for_units_that_are_remembered))


GHOSTS = {
    "centers": 2,
    "room": room(10, 2),
    "arrivals": [(3_000 * number, number % 2) for number in range(133)],
    "behaviour": Behaviour(visit_s=20, patience_s=20, leaving=1.0),
}
"""Two may enter a minute, and most who wait have gone when it is their turn."""


def test_a_line_of_ghosts_moves_on() -> None:
    assert trials(**GHOSTS) == []


@broken_in(**GHOSTS)
def takes_a_turn_of_the_line_for_a_permit_that_let_no_visitor_in(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pace, "return_unused", lambda self, count: None)


CUT = {"behaviour": Behaviour(visit_s=300, page_gap_s=3), "faults": (Fault("partition", 100, 400, (0,)),), "fence_s": 20}


def test_the_units_of_a_data_center_behind_the_fence_are_used_by_the_others() -> None:
    cut, never = (run(little(**{**CUT, "fence_s": fence_s})) for fence_s in (20, 0))
    assert cut.broken_laws == []
    assert cut.over_active == cut.over_minute == 0
    assert cut.entered > never.entered


@broken_in(**CUT)
def renews_sessions_behind_the_fence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "view", renewing(Ledger.view))


def renewing(view: Any) -> Any:
    def always(self: Ledger, ticket_id: bytes, now_ms: int) -> Any:
        fence_ms, self.lease.fence_ms = self.lease.fence_ms, 0
        try:
            return view(self, ticket_id, now_ms)
        finally:
            self.lease.fence_ms = fence_ms

    return always


@broken_in(**CUT)
def frees_what_is_behind_the_fence_before_sessions_have_ended(patch: pytest.MonkeyPatch) -> None:
    begin = Coordinator._begin_epoch

    def hasty(self: Coordinator, center: DataCenter, epoch: int, now_ms: int) -> None:
        begin(self, center, epoch, now_ms)
        center.orphans_until_ms = now_ms

    patch.setattr(Coordinator, "_begin_epoch", hasty)


@broken_in(**CUT)
def counts_the_fence_from_before_the_last_contact(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("greenroom.admission.coordinator.data_center.FENCE_SLACK_MS", -25_000)


STOPPED = {"behaviour": Behaviour(visit_s=300, page_gap_s=3), "faults": (Fault("stop", 100, 300, (0,)),), "fence_s": 180}


def test_the_units_of_a_data_center_that_is_stopped_in_order_are_used_by_the_others_sooner() -> None:
    stop = Fault("stop", 100, 300, (0,))
    stopped, dead = (run(little(faults=(fault,), fence_s=180)) for fault in (stop, replace(stop, kind="outage")))
    assert stopped.broken_laws == []
    assert stopped.over_active == stopped.over_minute == 0
    assert stopped.entered > dead.entered


def test_a_data_center_that_is_back_after_its_farewell_goes_on_with_its_sessions() -> None:
    watch = watched(little(**{**STOPPED, "faults": (Fault("stop", 100, 104, (0,)), Fault("stop", 150, 160, (0,)))}))
    assert verdict(watch) == []
    assert watch.world.crowd.lost == 0


@broken_in(**STOPPED)
def frees_the_units_of_sessions_at_the_farewell(patch: pytest.MonkeyPatch) -> None:
    part = Coordinator._part

    def hasty(self: Coordinator, center: DataCenter, *more: Any) -> None:
        part(self, center, *more)
        self.pool, center.orphans = self.pool + center.orphans, 0

    patch.setattr(Coordinator, "_part", hasty)


@broken_in(**{**STOPPED, "faults": (Fault("stop", 100, 100.3, (0,)), Fault("partition", 101, 400, (0,)))})
def goes_on_in_the_epoch_of_its_farewell(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(exchange, "_begin_epoch", lambda *_: None)


STEPPED = {"behaviour": Behaviour(visit_s=100, page_gap_s=3)}


def stepped(seconds: float, **changes: Any) -> dict[str, Any]:
    return {**STEPPED, "faults": (Fault("clock step", 100, 300, (0,), seconds),), **changes}


@pytest.mark.parametrize("seconds", [3_600, 30, -30, -3_600])
@pytest.mark.parametrize("method", ["fifo", "random"])
def test_a_step_of_a_servers_clock_changes_nothing(seconds: float, method: str) -> None:
    limits = room(40, 60, method=method)
    watch, plain = watched(little(**stepped(seconds, room=limits))), run(little(**STEPPED, room=limits))
    figures = report(watch.world)
    assert verdict(watch) == []
    assert figures.over_active == figures.over_minute == figures.lost_sessions == 0
    assert figures.entered >= 0.95 * plain.entered


@broken_in(**stepped(3_600))
def believes_a_server_whose_clock_was_stepped(patch: pytest.MonkeyPatch) -> None:
    def read(self: LedgerTime, server_ms: int, expected_ms: int, slack_ms: int) -> int:
        self.latest_ms = max(self.latest_ms, server_ms)
        return self.latest_ms

    patch.setattr(LedgerTime, "read", read)
    patch.setattr(LedgerTime, "put_right", lambda self, server_ms, expected_ms, line_ms: self.latest_ms)


@broken_in(**{**CUT, "faults": (Fault("partition", 100, 400, (0,)), Fault("clock step", 110, 410, (0,), -3_600))})
def stands_still_behind_the_fence_after_a_step_back(patch: pytest.MonkeyPatch) -> None:
    def read(self: LedgerTime, server_ms: int, expected_ms: int, slack_ms: int) -> int:
        self.latest_ms = max(self.latest_ms, server_ms)
        return self.latest_ms

    patch.setattr(LedgerTime, "read", read)


@broken(1)
def grants_beyond_the_minute(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Coordinator, "_spare", lambda self, now_ms: self.pool)


@broken_in(faults=(Fault("partition", 110, 180, (0,)), Fault("coordinator loss", 120, 125)))
def grants_before_everybody_was_heard(patch: pytest.MonkeyPatch) -> None:
    allot = Coordinator._allot

    def trusting(self: Coordinator, *arguments: Any) -> int:
        self.doubted.clear()
        return allot(self, *arguments)

    patch.setattr(Coordinator, "_allot", trusting)


@broken_in(faults=(Fault("crash", 120, 122, (0,)),), behaviour=Behaviour(visit_s=60, page_gap_s=5))
def forgets_orphans(patch: pytest.MonkeyPatch) -> None:
    begin = Coordinator._begin_epoch

    def forgetful(self: Coordinator, center: DataCenter, epoch: int, now_ms: int) -> None:
        begin(self, center, epoch, now_ms)
        self.pool += center.orphans
        center.orphans = 0

    patch.setattr(Coordinator, "_begin_epoch", forgetful)


def test_a_spike_out_of_a_quiet_time_reaches_the_origin_at_twice_the_even_pace_at_most() -> None:
    crowd = [(2_000 * number, number % 3) for number in range(60)] + [(120_000 + 20 * number, number % 3) for number in range(1_500)]
    limits = room(2_000, 600)
    paced, unpaced = (run(little(arrivals=crowd, room=replace(limits, pace_admissions=on))) for on in (True, False))
    assert paced.burst <= 3
    assert unpaced.burst > 1.5 * paced.burst
    assert paced.unused is not None
    assert paced.unused <= 0.15  # the crowd comes in the first of the six minutes that the line lasts


@broken(0)
def keeps_the_session_that_it_gives(patch: pytest.MonkeyPatch) -> None:
    def give(ledger: Any, ticket_id: bytes, to: str, now_ms: int) -> None:
        if ticket_id in ledger.sessions.inside:
            ledger.moves.give(ticket_id, to, ledger.sessions.renewed(ticket_id), 0)

    patch.setattr(transfers, "give", give)


@broken(0)
def takes_an_arrival_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Moves, "new_arrivals", lambda self, down: down.arrivals)


@broken(41)
def gives_an_orphan_for_nothing(patch: pytest.MonkeyPatch) -> None:
    def orphan(
        self: SessionTransfers, owner: DataCenter, ticket_id: bytes, to: str, now_ms: int, until_ms: int, renewed_ms: int | None = None
    ) -> bool:
        if owner.orphans:
            self._bring(ticket_id, to, now_ms, until_ms)
        return bool(owner.orphans)

    patch.setattr(session_transfers.SessionTransfers, "_orphan", orphan)


@broken(0)
def books_every_gift_again(patch: pytest.MonkeyPatch) -> None:
    def confirm(self: Moves, down: moves.MovesDown, newest: bool) -> None:
        self.given += len(self._gifts)

    patch.setattr(Moves, "confirm", confirm)


@broken(4)
def serves_on_trust_in_strong_mode(patch: pytest.MonkeyPatch) -> None:
    trusting = transfers.visit

    def visit(ledger: Any, *arguments: Any) -> Any:
        ledger.strong, strong = False, ledger.strong
        outcome = trusting(ledger, *arguments)
        ledger.strong = strong
        return outcome

    patch.setattr("greenroom.simulator.lease_model.visit", visit)


@broken(0)
def lets_in_whoever_tries_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fifo, "turn", lambda self, *_: True)


@broken(0)
def stands_by_another_key(patch: pytest.MonkeyPatch) -> None:
    join = Line.join
    patch.setattr(Line, "join", lambda self, ticket_id, key, now_ms, refresh_ms: join(self, ticket_id, key + 1, now_ms, refresh_ms))


@broken(4)
def never_gives_freed_units_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lease, "give_back", lambda self, now_ms: None)


@broken(57)
def believes_an_old_copy(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("greenroom.simulator.lease_model.doubted", lambda memory, now_ms: memory)


@pytest.mark.parametrize(("trial", "build"), BROKEN, ids=[build.__name__ for _, build in BROKEN])
def test_the_simulator_finds_a_build_that(trial: Callable[[], list[str]], build: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    build(monkeypatch)
    try:
        found = trial()
    except (AssertionError, ValueError, KeyError, IndexError, TypeError) as error:  # broken so badly that the books fall apart
        found = [repr(error)]
    assert found
