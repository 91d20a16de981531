"""Which message a visitor who wants to be called is sent, and when the row ends."""

import pytest

from greenroom.calls.rules import (
    CONFIRM_MS,
    LOOK_MAX_MS,
    RETURNED_MS,
    Absent,
    CallStep,
    drawn,
    rekeyed,
    step,
    stocked,
)
from greenroom.model.call import CONFIRM, EMAIL, NOW, RETURNED, SOON, VisitorCall
from greenroom.model.record import replace
from greenroom.model.visit import Estimate, Outcome, Standing

T = 1_750_000_000_000
ASKED = VisitorCall(EMAIL, "a@b.example", 7, T, "en-US", "https://shop.example/", 600_000)
CALLS = replace(ASKED, confirmed=True)


def waits(p25_min: float, ahead: int = 50) -> Outcome:
    estimate = Estimate(p25_min * 60, p25_min * 70, p25_min * 80)
    return Outcome(Standing.WAITING, ahead=ahead, estimate=estimate)


@pytest.mark.parametrize("call", [ASKED, CALLS, replace(CALLS, sent=SOON)])
def test_who_has_no_place_is_sent_nothing(call: VisitorCall) -> None:
    assert step(call, Outcome(Standing.GONE), True, T) == CallStep(ends=True)


def test_an_address_is_confirmed_first_within_half_an_hour() -> None:
    assert step(ASKED, waits(1), True, T).message == CONFIRM
    told = replace(ASKED, sent=CONFIRM)
    assert step(told, waits(1), True, T) == CallStep()
    assert step(told, waits(1), True, T + CONFIRM_MS + 1) == CallStep(ends=True)
    assert step(ASKED, Outcome(Standing.ACTIVE), True, T) == CallStep(ends=True)


def test_soon_comes_at_the_lower_quartile_minus_the_travel_time_and_once() -> None:
    assert step(CALLS, waits(10.1), True, T).message == ""
    assert step(CALLS, waits(10), True, T).message == SOON
    assert step(replace(CALLS, sent=SOON), waits(9), True, T).message == ""
    assert step(CALLS, waits(10), True, T, absent_ahead=51).message == "", "twice as many ahead"


def test_now_comes_at_the_head_of_the_line_or_on_admission_and_ends_the_row() -> None:
    passed = replace(waits(5), called=True)
    for outcome in (waits(5, ahead=0), waits(0.2), passed, Outcome(Standing.ACTIVE)):
        assert step(CALLS, outcome, True, T)[:2] == (NOW, True)
    assert step(replace(CALLS, sent=NOW), waits(5), True, T) == CallStep(ends=True)


def test_nothing_is_sent_while_nobody_is_admitted_or_nothing_is_known() -> None:
    assert step(CALLS, waits(5, ahead=0), False, T) == CallStep()
    unknown = Outcome(Standing.WAITING, ahead=3)
    assert step(CALLS, unknown, True, T) == CallStep()
    assert step(CALLS, replace(unknown, storage_failed=True), True, T) == CallStep()


def test_before_a_draw_soon_comes_when_it_is_time_to_set_out_and_no_turn_comes() -> None:
    early = Outcome(Standing.WAITING, position=1)
    start_ms = T + 600_001
    assert step(CALLS, early, False, T, 0, start_ms) == CallStep(again_ms=3_000)
    assert step(CALLS, early, False, T + 1, 0, start_ms).message == SOON
    assert step(replace(CALLS, sent=SOON), early, False, T + 1, 0, start_ms).message == ""


def test_after_a_draw_soon_comes_again_only_where_the_turn_is_farther_than_the_way() -> None:
    told = replace(CALLS, sent=SOON)
    assert drawn(told, 8, waits(10.1), 0) == replace(CALLS, key=8)
    assert drawn(told, 8, waits(10), 0) == replace(told, key=8)
    assert drawn(told, 8, waits(10), 51) == replace(CALLS, key=8), "twice as many ahead"
    assert drawn(told, 7, waits(30), 0) == told, "the same place"
    assert drawn(told, 8, Outcome(Standing.WAITING, ahead=3), 0) == told, "not known yet"
    assert drawn(ASKED, 8, waits(30), 0) == replace(ASKED, key=8)


def test_who_moves_before_the_place_drawn_is_known_may_be_sent_soon_again() -> None:
    told = replace(CALLS, sent=SOON)
    assert rekeyed(told, 8) == replace(CALLS, key=8)
    assert rekeyed(told, 7) == told, "the same place"
    assert rekeyed(replace(ASKED, sent=CONFIRM), 8) == replace(ASKED, key=8, sent=CONFIRM)


def test_what_comes_back_is_told_at_once_but_the_turn_goes_first() -> None:
    gone = stocked(CALLS, True, T)
    early = Outcome(Standing.WAITING, position=1)
    assert step(gone, waits(60), True, T, sold_out=True).message == ""
    assert step(gone, waits(60), True, T).message == RETURNED
    assert step(gone, waits(5), True, T).message == RETURNED, "soon comes after it"
    assert step(gone, waits(60), False, T).message == RETURNED, "also while nobody is admitted"
    assert step(gone, early, False, T, 0, T + 3_600_000).message == RETURNED, "also before a draw"
    assert step(gone, waits(5, ahead=0), True, T)[:2] == (NOW, True)
    assert step(CALLS, waits(60), True, T).message == "", "nothing was sold out"


def test_who_did_not_confirm_hears_of_nothing_and_nobody_too_often() -> None:
    assert stocked(ASKED, True, T) == ASKED
    told = replace(CALLS, returned_ms=T)
    assert stocked(told, True, T + RETURNED_MS - 1) == told
    assert stocked(told, True, T + RETURNED_MS) == replace(told, sold_out=True)
    assert stocked(replace(told, sold_out=True), False, T + RETURNED_MS).sold_out, (
        "until it is sent"
    )


def test_a_row_far_from_its_turn_is_looked_at_once_a_minute() -> None:
    assert step(CALLS, waits(60), True, T).again_ms == LOOK_MAX_MS
    assert step(CALLS, waits(10.5), True, T).again_ms == 7_500


def test_absent_visitors_ahead_are_counted_once() -> None:
    absent = Absent()
    for key in (5, 3, 9, 3):
        absent.note(key, True)
    assert [absent.ahead(key) for key in (3, 4, 6, 10)] == [0, 1, 2, 3]
    absent.note(3, False)
    absent.note(4, False)
    assert absent.ahead(10) == 2
