"""The example crowd beside the limits of a room: as long as arithmetic says, soon enough, and
honest where it was ended early.
"""

from random import Random
from typing import Any

import pytest

from greenroom.simulator import dry_run
from greenroom.simulator.chance import Streams
from greenroom.simulator.dry_run import MINUTES, VISIT_S, VISITORS, last_wait

ROOM = {"session_duration": 5, "disable_session_renewal": False, "queueing_method": "fifo"}


def streams() -> Streams:
    return lambda name: Random(f"7/{name}")


def minutes(active: int, rate: int, **more: Any) -> float:
    found = last_wait(
        {**ROOM, "total_active_users": active, "new_users_per_minute": rate, **more}, streams
    )
    assert not found.least
    return found.seconds / 60


def by_arithmetic(active: int, rate: int, stay_minutes: float) -> float:
    return VISITORS / min(rate, active / stay_minutes) - MINUTES


def test_the_last_waits_as_long_as_the_tighter_limit_says() -> None:
    assert minutes(3_000, 370) == pytest.approx(
        by_arithmetic(3_000, 370, 5 + VISIT_S / 60), rel=0.15
    )


def test_the_end_of_a_long_wait_follows_from_its_pace() -> None:
    assert minutes(50, 50) == pytest.approx(by_arithmetic(50, 50, 7), rel=0.12)


def test_visits_of_a_fixed_length_come_and_go_together() -> None:
    assert minutes(500, 500, disable_session_renewal=True) == pytest.approx(
        by_arithmetic(500, 500, 5), rel=0.12
    )


def test_with_enough_room_no_one_waits() -> None:
    assert minutes(20_000, 5_000) < 1


def test_a_run_that_was_too_short_for_a_pace_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dry_run, "SEEN_MAX_S", 1_200)
    found = last_wait(
        {**ROOM, "total_active_users": 50, "new_users_per_minute": 50, "session_duration": 60},
        streams,
    )
    assert found.least
    assert found.seconds == 1_200 - MINUTES * 60
