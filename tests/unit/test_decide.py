"""Which question an arrival puts to the ledger."""

import pytest

from greenroom.core.decide import Question, decide, rank
from greenroom.model.room import Room
from greenroom.model.visit import PLACE_KEPT_MS, Ticket, make_key

NOW = 1_800_000_000_000


def room(**changes):
    return Room(name="r", host="a.example", total_active_users=5, new_users_per_minute=5, **changes)


def ticket(*, arrived=NOW - 60_000, accepted=0, checked=NOW - 20_000, refresh=20_000, name=b"t"):
    return Ticket(name.ljust(12, b"-"), make_key(arrived, 0), accepted, checked, refresh)


def asked(tickets, able=True, **changes):
    return decide(room(**changes), rank(tickets, NOW), NOW, able)


def test_a_suspended_room_asks_nothing_whatever_the_visitor_brings():
    assert asked([], suspended=True) is asked([ticket(accepted=NOW)], suspended=True) is Question.NONE


def test_a_newcomer_that_can_show_a_page_arrives():
    assert asked([]) is Question.ARRIVE


def test_a_newcomer_that_cannot_show_a_page_gets_no_place():
    assert asked([], able=False) is Question.PLACELESS


def test_an_accepted_ticket_is_looked_up():
    assert asked([ticket(accepted=NOW - 5_000)]) is Question.VIEW


@pytest.mark.parametrize(
    ("age", "question"), [(20_000, Question.POLL), (19_900, Question.POLL), (19_899, Question.PEEK), (0, Question.PEEK)]
)
def test_a_waiting_ticket_is_a_try_only_when_its_interval_has_passed(age, question):
    assert asked([ticket(checked=NOW - age)]) is question


def test_a_place_is_kept_five_minutes_after_the_last_check_in():
    assert asked([ticket(checked=NOW - PLACE_KEPT_MS)]) is Question.POLL
    assert asked([ticket(checked=NOW - PLACE_KEPT_MS - 1)]) is Question.ARRIVE


def test_of_several_tickets_an_accepted_one_goes_first_then_the_earliest_place():
    early, late = ticket(arrived=NOW - 90_000, name=b"e"), ticket(arrived=NOW - 30_000, name=b"l")
    inside, fresher = ticket(accepted=NOW - 9, checked=NOW - 9, name=b"i"), ticket(accepted=NOW - 9, checked=NOW - 3, name=b"f")
    assert rank([late, inside, early, fresher], NOW) == [fresher, inside, early, late]
