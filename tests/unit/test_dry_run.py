"""Dry runs: the whole crowd is counted, limits hold, a part of a crowd waits as long as all of it,
and what cannot be read is said.
"""

from random import Random
from typing import Any

import pytest

from greenroom.errors import InvalidConfig
from greenroom.simulator.chance import Streams
from greenroom.simulator.dry_run import DryRunRequest, _shaped, _world, crowd_of, dry_run
from greenroom.simulator.scenario import START_MS

SETTINGS = {
    "total_active_users": 40,
    "new_users_per_minute": 20,
    "session_duration": 1,
    "disable_session_renewal": True,
    "queueing_method": "fifo",
}


def streams() -> Streams:
    return lambda name: Random(f"7/{name}")


def run(*settings: dict[str, Any], **crowd: Any) -> list[dict[str, Any]]:
    return dry_run(DryRunRequest(settings=settings, **crowd), streams, lambda _: None)


def test_a_crowd_beyond_the_limits_waits_as_arithmetic_says() -> None:
    (found,) = run(SETTINGS, visitors=100, minutes=1, curve="flat")
    assert found["entered"] == found["visitors"] == found["simulated"] == 100
    assert found["peak_active"] <= 40
    assert (
        180 <= found["wait_longest_s"] <= 330
    )  # 100 visitors at 20 a minute are let in within five minutes
    assert found["wait_p50_s"] <= found["wait_p95_s"] <= found["wait_longest_s"]
    assert found["series"][-1][2] == 0
    assert 150 <= found["empty_after_s"] <= 400


def test_a_part_of_a_large_crowd_waits_as_long_as_the_crowd() -> None:
    small, large = (
        SETTINGS,
        {**SETTINGS, "total_active_users": 4_000, "new_users_per_minute": 2_000},
    )
    one = run(small, visitors=200, minutes=1, curve="flat")[0]
    other = run(large, visitors=20_000, minutes=1, curve="flat")[0]
    assert other["simulated"] == 500
    assert other["entered"] == 20_000
    assert other["wait_p95_s"] == pytest.approx(one["wait_p95_s"], rel=0.15)
    assert other["peak_waiting"] == pytest.approx(100 * one["peak_waiting"], rel=0.15)


def test_higher_limits_shorten_the_wait_of_the_very_same_crowd() -> None:
    first, second = run(
        SETTINGS, {**SETTINGS, "new_users_per_minute": 40}, visitors=100, minutes=1, curve="flat"
    )
    assert second["wait_p50_s"] < first["wait_p50_s"]


def test_a_table_of_arrivals_is_read_and_its_faults_have_lines() -> None:
    rows, visitors = crowd_of(
        DryRunRequest(settings=[SETTINGS], rows="second,visitors\n0,30\n60,0\n")
    )
    assert visitors == 30
    assert len(rows) == 2
    assert run(SETTINGS, rows="0,30\n60,0")[0]["entered"] == 30
    with pytest.raises(InvalidConfig) as caught:
        crowd_of(DryRunRequest(settings=[SETTINGS], rows="0,1\nx,2\n1,-3"))
    assert [problem.pointer for problem in caught.value.problems] == [
        "rows: line 2",
        "rows: line 3",
    ]


def test_before_the_start_of_an_event_no_visitor_is_let_in_and_waits_count_from_it() -> None:
    crowd = {"visitors": 100, "minutes": 1, "curve": "flat", "prequeue_s": 300.0, "early": 0.6}
    (found,) = run(SETTINGS, **crowd)
    assert found["entered"] == 100
    assert max(active for second, active, _ in found["series"] if second < 300) == 0
    assert max(waiting for second, _, waiting in found["series"] if second < 300) == pytest.approx(
        60, abs=3
    )
    assert 180 <= found["wait_longest_s"] <= 330
    assert found["empty_after_s"] <= 400


@pytest.mark.parametrize(("shuffle", "related"), [(False, True), (True, False)])
def test_with_a_draw_the_places_of_the_pre_queue_have_nothing_to_do_with_when_visitors_came(
    shuffle: bool, related: bool
) -> None:
    request = DryRunRequest(
        settings=[SETTINGS],
        visitors=120,
        minutes=1,
        curve="flat",
        prequeue_s=300.0,
        early=0.8,
        shuffle=shuffle,
    )
    draw = streams()
    world = _world(request, SETTINGS, _shaped(request, 120, draw), draw)
    world.run()
    early = [one for one in world.crowd.visitors if one.came_ms < START_MS + 300_000]
    late = [one for one in world.crowd.visitors if one.came_ms >= START_MS + 300_000]
    by_entry = [one.number for one in sorted(early, key=lambda one: one.entered_ms)]
    swaps = sum(
        first > second for at, first in enumerate(by_entry) for second in by_entry[at + 1 :]
    )
    pairs = len(early) * (len(early) - 1) / 2
    assert len(early) == 96
    assert (swaps < pairs / 10) if related else (pairs / 3 < swaps < pairs * 2 / 3)
    middle = sorted(one.entered_ms for one in late)[len(late) // 2]
    assert sum(one.entered_ms < middle for one in early) > 90, (
        "who comes after the start stands behind the pre-queue"
    )


def test_progress_is_told_over_all_settings() -> None:
    told: list[float] = []
    dry_run(
        DryRunRequest(settings=[SETTINGS, SETTINGS], visitors=30, minutes=1), streams, told.append
    )
    assert told == sorted(told)
    assert told[0] < 0.5 < told[-1] <= 1
