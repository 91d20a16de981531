"""The one real clock never runs backwards, regardless of the wall clock."""

import time

import pytest

from greenroom.runtime.clock import MonotonicClock


def test_it_tells_unix_time() -> None:
    assert abs(MonotonicClock().now_ms() - time.time() * 1000) < 1000


def test_a_wall_clock_that_is_set_while_it_runs_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = MonotonicClock()
    before = clock.now_ms()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert 0 <= clock.now_ms() - before < 1000


def test_it_begins_no_earlier_than_the_books_end() -> None:
    ahead_ms = int(time.time() * 1000) + 3_600_000
    clock = MonotonicClock(ahead_ms)
    assert ahead_ms <= clock.now_ms() < ahead_ms + 1000
    clock.catch_up(ahead_ms - 5_000)
    assert clock.now_ms() >= ahead_ms


def test_books_of_the_past_do_not_move_it() -> None:
    assert abs(MonotonicClock(1_000).now_ms() - time.time() * 1000) < 1000
