"""The one real clock never runs backwards, regardless of the wall clock."""

import time

import pytest
from admission_world import HandClock
from structlog.testing import capture_logs

from greenroom.ledgers.redis.clock import ServerClock
from greenroom.runtime.clock import ClockWatch, MonotonicClock, ahead_of_wall_ms

HOUR_MS = 3_600_000


def tells_unix_time(clock: MonotonicClock) -> bool:
    before_ms = time.time() * 1000
    told_ms = clock.now_ms()
    return before_ms - 1_000 < told_ms < time.time() * 1000 + 1_000


def test_it_tells_unix_time() -> None:
    assert tells_unix_time(MonotonicClock())


def test_a_wall_clock_that_is_set_while_it_runs_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = MonotonicClock()
    before = clock.now_ms()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert 0 <= clock.now_ms() - before < 60_000


def test_it_begins_no_earlier_than_the_books_end() -> None:
    ahead_ms = int(time.time() * 1000) + 3_600_000
    clock = MonotonicClock()
    clock.catch_up(ahead_ms)
    assert ahead_ms <= clock.now_ms() < ahead_ms + 60_000
    clock.catch_up(ahead_ms - 5_000)
    assert clock.now_ms() >= ahead_ms


def test_books_of_the_past_do_not_move_it() -> None:
    clock = MonotonicClock()
    clock.catch_up(1_000)
    assert tells_unix_time(clock)


def test_a_process_whose_machine_is_an_hour_ahead_follows_the_server_at_once_and_never_goes_back() -> (
    None
):
    own = HandClock(1_800_000_000_000 + HOUR_MS)
    clock = ServerClock(own)
    assert clock.now_ms() == own.now_ms()
    clock.hear(1_800_000_000_000, 2)
    assert clock.now_ms() == 1_800_000_000_001
    own.ms += 5_000
    assert clock.now_ms() == 1_800_000_005_001
    clock.hear(1_800_000_000_000, 2)
    assert clock.now_ms() == 1_800_000_005_001


def test_a_wall_clock_that_was_set_is_said_once_and_again_when_it_is_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_ms = wall_ms = 1_800_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: wall_ms * 1_000_000)
    watch = ClockWatch(lambda: at_ms)
    told = []
    for wall_ms in (
        at_ms + 4_000,
        at_ms + HOUR_MS,
        at_ms + HOUR_MS + 1_000,
        at_ms - HOUR_MS,
        at_ms - 6_000,
        at_ms + 100,
        at_ms,
    ):
        with capture_logs() as found:
            watch.look()
        told.append([(one["event"], one.get("seconds_ahead")) for one in found])
    assert told == [
        [],
        [("clock_differs", -3600)],
        [],
        [("clock_differs", 3600)],
        [("clock_differs", 6)],
        [("clock_agrees", None)],
        [],
    ]


def test_books_of_the_future_are_seen_as_a_clock_that_is_ahead() -> None:
    clock = MonotonicClock()
    clock.catch_up(int(time.time() * 1000) + HOUR_MS)
    assert abs(ahead_of_wall_ms(clock.now_ms()) - HOUR_MS) < 1_000
    assert abs(ahead_of_wall_ms(MonotonicClock().now_ms())) < 1_000
