"""Admissions after a quiet time: a crowd is spread, small rooms are not held up, and what is put
off is not lost.
"""

from dataclasses import replace
from itertools import pairwise

import pytest
from admission_world import START_MS, HandClock, answer_of, bits, small_room, ticket_id
from hypothesis import given
from hypothesis import strategies as st

from greenroom.admission import pacing
from greenroom.admission.ledger.ledger import Ledger
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.visit import Standing, make_key


def crowd_at_once(**changes: object) -> list[int]:
    """A thousand visitors come at one moment to a room that was quiet, for 600 a minute;
    milliseconds at which they are let in.
    """
    room = small_room(total_active_users=5_000, new_users_per_minute=600, **changes)
    clock = HandClock()
    ledger = MemoryLedger(room, clock, bits(1))
    clock.ms += 70_000
    ledger.tick()
    came_ms = clock.ms
    entered, due = [], {}
    for number in range(1_000):
        outcome = answer_of(ledger.arrive, ticket_id(number), 0)
        if outcome.standing is Standing.ADMITTED:
            entered.append(0)
        else:
            due[number] = clock.ms + outcome.refresh_ms
    for _ in range(240):
        clock.ms += 250
        ledger.tick()
        for number in [one for one, when_ms in due.items() if when_ms <= clock.ms]:
            outcome = answer_of(ledger.poll, ticket_id(number), make_key(came_ms, number))
            if outcome.standing is Standing.ADMITTED:
                entered.append(clock.ms - came_ms)
                del due[number]
            else:
                due[number] = clock.ms + outcome.refresh_ms
    return entered


def most_within(entered: list[int], span_ms: int) -> int:
    return max(
        sum(1 for other in entered if at_ms <= other < at_ms + span_ms) for at_ms in set(entered)
    )


def test_a_crowd_after_a_quiet_time_is_spread_over_the_minute() -> None:
    entered = crowd_at_once()
    even = 600 / 60
    assert most_within(entered, 5_000) <= 2.5 * even * 5
    assert len(entered) == 600  # and no one is left out for it


def test_without_pacing_a_minute_is_let_in_at_once() -> None:
    assert crowd_at_once(pace_admissions=False).count(0) == 600


def test_six_visitors_at_once_are_let_in_where_few_come_and_a_seventh_is_not() -> None:
    spent_until_us, entered = 0, 0
    for _ in range(7):
        if pacing.allowed(spent_until_us, 500_000, START_MS) > 0:
            spent_until_us = pacing.spent(spent_until_us, 500_000, START_MS)
            entered += 1
    assert entered == 6


def test_a_small_room_is_not_held_up() -> None:
    assert pacing.gap_us(1, 1.0, 1) == 100_000
    assert pacing.gap_us(30, 0.001, 50) == 1_000_000


@given(st.integers(1, 2_000_000), st.lists(st.integers(0, 700), min_size=2, max_size=200))
def test_never_more_than_a_second_or_six_visitors_ahead_of_the_pace(
    gap_us: int, pauses: list[int]
) -> None:
    now_ms, spent_until_us, times = START_MS, 0, []
    for pause_ms in pauses:
        now_ms += pause_ms
        if pacing.allowed(spent_until_us, gap_us, now_ms) > 0:
            spent_until_us = pacing.spent(spent_until_us, gap_us, now_ms)
            times.append(now_ms)
    for first in range(len(times)):
        for last in range(first, len(times)):
            assert (last - first) * gap_us <= (times[last] - times[first]) * 1000 + max(
                pacing.SAVED_US, 5 * gap_us
            )


@pytest.mark.parametrize("gap_us", [1, 999, 33_333, 5_000_000])
def test_who_waits_a_gap_is_allowed(gap_us: int) -> None:
    spent_until_us, times = 0, []
    for now_ms in range(START_MS, START_MS + 60_000, 50):
        if len(times) < 3 and pacing.allowed(spent_until_us, gap_us, now_ms) > 0:
            spent_until_us = pacing.spent(spent_until_us, gap_us, now_ms)
            times.append(now_ms)
    assert len(times) == 3
    assert all(after - before <= gap_us / 1000 + 50 for before, after in pairwise(times))


def test_a_room_that_let_everybody_pass_lets_in_in_order_at_once_when_they_are_gone() -> None:
    room = small_room(
        total_active_users=500,
        new_users_per_minute=600,
        queueing_method="passthrough",
        confirm_newcomers=False,
    )
    clock = HandClock()
    ledger = MemoryLedger(room, clock, bits(1))
    for number in range(3_000):
        assert answer_of(ledger.arrive, ticket_id(number), 0).standing is Standing.ADMITTED
    ledger.configure(replace(room, queueing_method="fifo"))
    for _ in range(70):
        clock.ms += 1_000
        ledger.tick()
    assert ledger.gauges().active == 0
    assert answer_of(ledger.arrive, ticket_id(3_000), 0).standing is Standing.ADMITTED


def test_visitors_whose_session_was_elsewhere_do_not_use_the_pace_of_others_up() -> None:
    ledger = Ledger(
        small_room(total_active_users=500, new_users_per_minute=600), "here", 1, START_MS
    )
    ledger.lease.permits, ledger.lease.gap_us = 300, 100_000
    for number in range(200):
        assert ledger.admit_mover(ticket_id(number), START_MS)
    assert ledger.arrive(ticket_id(200), START_MS, 0).standing is Standing.ADMITTED
