"""The simulator is as slow as what it stands for: data centers report on the schedule of a process,
and pages count whole seconds.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from small_worlds import little, streams_of

from greenroom.admission.sync_schedule import ANSWER_MS
from greenroom.simulator.ground_truth import SAMPLE_MS
from greenroom.simulator.scenario import START_MS, Behaviour, Fault, NetworkProfile, Scenario
from greenroom.simulator.traces import room
from greenroom.simulator.world import World

NEAR = NetworkProfile(least_ms=10, most_ms=10, jitter=0.0)


def reports_of(scenario: Scenario, patch: pytest.MonkeyPatch) -> tuple[World, list[int]]:
    """A run that is over, and when the first data center sent its reports."""
    world = World(scenario, streams_of(1))
    sent: list[int] = []
    send = world.links.send

    def noting(center: int, receive: Callable[..., None], *message: Any) -> None:
        if center == 0 and "coordinator" in receive.__name__:
            sent.append(world.agenda.now_ms - START_MS)
        send(center, receive, *message)

    patch.setattr(world.links, "send", noting)
    world.run()
    return world, sent


def test_a_data_center_reports_as_often_as_its_own_visitors_come_however_busy_the_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One visitor in two seconds here, and one in 20 ms elsewhere; all are in line."""
    crowd = [(at_ms, 0 if at_ms % 2_000 == 0 else 1) for at_ms in range(0, 60_000, 20)]
    scenario = Scenario("busy elsewhere", room(20, 6_000), 2, crowd, 60, network=NEAR)
    _, sent = reports_of(scenario, monkeypatch)
    late = [at_ms for at_ms in sent if 20_000 < at_ms < 60_000]
    gaps = [after - before for before, after in pairwise(late)]
    assert sum(gaps) / len(gaps) >= 700
    assert len({at_ms % 250 for at_ms in late}) == 1


def test_a_data_center_waits_for_the_answer_before_it_reports_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowd = [(100 * number, number % 3) for number in range(600)]
    far = NetworkProfile(least_ms=600, most_ms=600, jitter=0.0)
    _, sent = reports_of(little(arrivals=crowd, network=far, lasts_s=60), monkeypatch)
    assert min(after - before for before, after in pairwise(sent)) >= 1_200
    cut = (Fault("coordinator down", 20, 50),)
    _, sent = reports_of(little(arrivals=crowd, faults=cut, lasts_s=50), monkeypatch)
    silent = [at_ms for at_ms in sent if at_ms > 21_000]
    assert min(after - before for before, after in pairwise(silent)) >= ANSWER_MS


def test_a_session_that_moves_waits_for_the_next_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process does not report at once because a visitor came from another data center."""
    moving = Behaviour(visit_s=60, page_gap_s=3, moving=0.5)
    world, sent = reports_of(little(behaviour=moving, network=NEAR, lasts_s=200), monkeypatch)
    queueing = [at_ms for at_ms in sent if at_ms > 60_000]
    assert sum(center.ledger.moves.given for center in world.system.centers) > 50  # type: ignore[attr-defined]
    assert len({at_ms % 250 for at_ms in queueing}) == 1


def test_pages_ask_again_after_whole_seconds() -> None:
    world = World(little(lasts_s=120), streams_of(1))
    seen: dict[int, list[int]] = {}

    def noting(_: Any, visitor: Any, now_ms: int, *__: Any) -> None:
        seen.setdefault(visitor.number, []).append(now_ms - visitor.attempted_ms)

    world.system.before_poll = noting  # type: ignore[attr-defined]
    world.run()
    waits = [wait_ms for several in seen.values() for wait_ms in several]
    assert len(waits) > 300
    assert {wait_ms % 1_000 for wait_ms in waits} == {0}


@pytest.mark.parametrize("seed", range(3))
def test_quiet_data_centers_are_heard_twice_soon_after_the_coordinator_lost_its_state(
    seed: int,
) -> None:
    """Before that nothing is granted. The first report of a quiet one takes up to 1.5 s, the second
    another slot.
    """
    lost = tuple(Fault("coordinator loss", at_s, at_s + 0.001) for at_s in (20, 30, 40, 50))
    scenario = little(centers=20, arrivals=[], faults=lost, network=NEAR, lasts_s=60)
    world = World(scenario, streams_of(seed))
    doubting: list[int] = []

    def look(now_ms: int) -> None:
        if now_ms > START_MS + 20_000 and world.system.coordinator.doubting:  # type: ignore[attr-defined]
            doubting.append(now_ms)

    world.on_sample = look
    world.run()
    assert 4_000 <= len(doubting) * SAMPLE_MS <= 4 * 2_000
