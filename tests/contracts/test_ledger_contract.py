"""What every ledger promises, whichever keeps the books."""

from collections.abc import Callable, Iterator

import pytest
from admission_world import START_MS, small_room, ticket_id
from ledger_kinds import KINDS, InMemory, InRedis
from redis_world import RedisServer

from greenroom.model.visit import Outcome, Standing, make_key

Ledger = InMemory | InRedis
Make = Callable[..., Ledger]


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def make(request: pytest.FixtureRequest, server: RedisServer) -> Iterator[Make]:
    made: list[Ledger] = []

    def one(**changes: object) -> Ledger:
        made.append(request.param(small_room(**changes), server))
        return made[-1]

    yield one
    for ledger in made:
        ledger.close()


def arrivals(ledger: Ledger, numbers: range) -> list[Outcome]:
    return [
        ledger.ask("arrive", ticket_id(number), make_key(ledger.clock.ms, number))
        for number in numbers
    ]


def wait_in_line(ledger: Ledger, numbers: range) -> list[Outcome]:
    return [ledger.ask("poll", ticket_id(number), make_key(START_MS, number)) for number in numbers]


def standings(outcomes: list[Outcome]) -> list[str]:
    return [outcome.standing.name for outcome in outcomes]


def test_newcomers_come_in_up_to_the_limit_and_the_others_are_held_outside_the_line(
    make: Make,
) -> None:
    ledger = make(total_active_users=3, new_users_per_minute=100)
    outcomes = arrivals(ledger, range(6))
    assert standings(outcomes) == ["ADMITTED"] * 3 + ["WAITING"] * 3
    assert [outcome.position for outcome in outcomes[3:]] == [0, 0, 0]
    assert all(1_500 <= outcome.refresh_ms <= 2_500 for outcome in outcomes[3:])
    gauges = ledger.gauges()
    assert (gauges.active, gauges.waiting, gauges.admitted_last_minute, gauges.storage_failed) == (
        3,
        0,
        3,
        False,
    )


def test_no_more_than_the_minute_allows(make: Make) -> None:
    ledger = make(total_active_users=100, new_users_per_minute=2)
    assert standings(arrivals(ledger, range(4))) == ["ADMITTED", "ADMITTED", "WAITING", "WAITING"]


def test_a_place_is_real_when_its_ticket_comes_back_and_follows_the_key(make: Make) -> None:
    ledger = make(total_active_users=1)
    arrivals(ledger, range(1))
    later, first = wait_in_line(ledger, range(5, 6)) + wait_in_line(ledger, range(2, 3))
    assert (later.position, later.ahead, later.waiting) == (1, 0, 1)
    assert (first.position, first.ahead, first.waiting) == (1, 0, 2)
    assert ledger.ask("peek", ticket_id(5), make_key(START_MS, 5)).position == 2


def test_a_visitor_who_was_let_in_and_did_not_hear_of_it_is_active_by_the_same_ticket(
    make: Make,
) -> None:
    ledger = make()
    (admitted,) = arrivals(ledger, range(1))
    again = ledger.ask("poll", ticket_id(0), make_key(START_MS, 0))
    assert again.standing is Standing.ACTIVE
    assert (again.expires_ms, again.renewed_ms) == (admitted.expires_ms, admitted.renewed_ms)
    assert ledger.gauges().active == 1


def test_a_session_is_renewed_when_the_last_renewal_is_older_than_q_and_ends_by_itself(
    make: Make,
) -> None:
    ledger = make()  # sessions of a minute, q = 1 s
    arrivals(ledger, range(1))
    ledger.pass_time(900)
    assert ledger.ask("view", ticket_id(0)).renewed_ms == START_MS
    ledger.pass_time(200)
    assert ledger.ask("view", ticket_id(0)).renewed_ms == START_MS + 1_100
    ledger.pass_time(60_999)
    assert ledger.ask("view", ticket_id(0)).standing is Standing.ACTIVE
    ledger.pass_time(61_000)
    assert ledger.ask("view", ticket_id(0)).standing is Standing.GONE


def test_without_renewal_a_session_ends_after_its_duration(make: Make) -> None:
    ledger = make(disable_session_renewal=True)
    arrivals(ledger, range(1))
    ledger.pass_time(59_000)
    assert ledger.ask("view", ticket_id(0)).expires_ms == START_MS + 60_000
    ledger.pass_time(1_000)
    assert ledger.ask("view", ticket_id(0)).standing is Standing.GONE


def test_an_id_has_one_session_in_its_life(make: Make) -> None:
    ledger = make()
    arrivals(ledger, range(1))
    ledger.tell("leave", ticket_id(0))
    assert ledger.gauges().active == 0
    assert ledger.ask("view", ticket_id(0)).standing is Standing.GONE
    assert ledger.ask("poll", ticket_id(0), make_key(START_MS, 0)).standing is Standing.GONE


def test_a_visitor_who_leaves_makes_room_for_the_next_in_line(make: Make) -> None:
    ledger = make(total_active_users=1, new_users_per_minute=100)
    arrivals(ledger, range(1))
    wait_in_line(ledger, range(1, 3))
    ledger.tell("leave", ticket_id(0))
    ledger.pass_time(2_500)
    assert standings(wait_in_line(ledger, range(1, 3))) == ["ADMITTED", "WAITING"]


def test_a_ghost_leaves_the_line_and_finds_its_old_place_when_it_comes_back(make: Make) -> None:
    ledger = make(total_active_users=1)
    arrivals(ledger, range(1))
    wait_in_line(ledger, range(1, 4))
    for _ in range(10):
        ledger.pass_time(2_000)
        wait_in_line(ledger, range(2, 4))
    assert ledger.gauges().waiting == 2
    (back,) = wait_in_line(ledger, range(1, 2))
    assert (back.position, back.waiting) == (1, 3)


def test_settings_count_from_the_next_operation_on_and_no_visitor_is_expelled(make: Make) -> None:
    ledger = make(total_active_users=2, new_users_per_minute=100)
    arrivals(ledger, range(2))
    ledger.tell("configure", small_room(total_active_users=1, new_users_per_minute=100))
    assert standings([ledger.ask("view", ticket_id(number)) for number in range(2)]) == [
        "ACTIVE",
        "ACTIVE",
    ]
    assert standings(arrivals(ledger, range(2, 3))) == ["WAITING"]
    ledger.tell("configure", small_room(total_active_users=5, new_users_per_minute=100))
    ledger.pass_time(1_500)
    assert standings(arrivals(ledger, range(3, 4))) == ["ADMITTED"]


def test_queue_all_holds_every_newcomer_and_reject_takes_no_one_into_the_line(make: Make) -> None:
    ledger = make(queue_all=True)
    assert standings(arrivals(ledger, range(1))) == ["WAITING"]
    assert wait_in_line(ledger, range(1))[0].position == 1
    ledger.tell("configure", small_room(queueing_method="reject"))
    (rejected,) = wait_in_line(ledger, range(1, 2))
    assert (rejected.standing, rejected.position, rejected.refresh_ms) == (Standing.WAITING, 0, 0)
    assert wait_in_line(ledger, range(1))[0].position == 1


def test_passthrough_counts_and_holds_no_visitor(make: Make) -> None:
    ledger = make(queueing_method="passthrough", total_active_users=1, new_users_per_minute=1)
    assert standings(arrivals(ledger, range(4))) == ["ADMITTED"] * 4
    assert ledger.gauges().active == 4


def test_after_passthrough_a_newcomer_is_let_in_as_soon_as_there_is_room(make: Make) -> None:
    ledger = make(queueing_method="passthrough", total_active_users=20, new_users_per_minute=100)
    assert standings(arrivals(ledger, range(900))) == ["ADMITTED"] * 900
    ledger.tell("configure", small_room(total_active_users=20, new_users_per_minute=100))
    for _ in range(66):
        ledger.pass_time(1_000)
    assert standings(arrivals(ledger, range(900, 901))) == ["ADMITTED"]


def test_random_lets_in_someone_who_waits(make: Make) -> None:
    ledger = make(queueing_method="random", total_active_users=1, new_users_per_minute=100)
    arrivals(ledger, range(1))
    wait_in_line(ledger, range(1, 5))
    ledger.tell("leave", ticket_id(0))
    ledger.pass_time(2_500)
    found = [standings(wait_in_line(ledger, range(1, 5))) for _ in range(2)]
    assert [row.count("ADMITTED") + row.count("ACTIVE") for row in found] == [1, 1]


def test_a_draw_gives_other_keys_to_those_in_line_before_a_moment(make: Make) -> None:
    ledger = make(queue_all=True)
    wait_in_line(ledger, range(4))
    present = ledger.ask("before", make_key(START_MS, 3))
    assert list(present) == [ticket_id(number) for number in range(3)]
    assert (
        ledger.ask(
            "rekey",
            {one: make_key(START_MS, 50 - place) for place, one in enumerate(present)}
            | {ticket_id(9): 7},
        )
        is True
    )
    assert list(ledger.ask("before", make_key(START_MS + 1, 0))) == [
        ticket_id(number) for number in (3, 2, 1, 0)
    ]
    assert ledger.ask("peek", ticket_id(0), make_key(START_MS, 0)).position == 4


def test_an_estimate_comes_from_the_minute_or_is_not_there(make: Make) -> None:
    ledger = make(total_active_users=100, new_users_per_minute=2)
    arrivals(ledger, range(2))
    (held,) = wait_in_line(ledger, range(5, 6))
    assert held.estimate is not None
    assert 55 <= held.estimate.p50_s <= 60
    full = make(total_active_users=1, new_users_per_minute=100)
    arrivals(full, range(1))
    assert wait_in_line(full, range(5, 6))[0].estimate is None


def test_a_newcomer_is_told_no_wait_before_anybody_has_shown_a_ticket(make: Make) -> None:
    ledger = make(total_active_users=100, new_users_per_minute=2)
    held = arrivals(ledger, range(30))[2:]
    assert {outcome.estimate for outcome in held} == {None}
    assert wait_in_line(ledger, range(2, 3))[0].estimate is not None
    assert arrivals(ledger, range(40, 41))[0].estimate is not None


def test_the_room_may_ask_for_confirmed_newcomers(make: Make) -> None:
    ledger = make(confirm_newcomers=True)
    (held,) = arrivals(ledger, range(1))
    assert held.standing.name == "WAITING"
    assert held.refresh_ms < 1_000, "there is room: only the ticket has to be shown"
    assert standings(wait_in_line(ledger, range(1))) == ["ADMITTED"]
    full = make(confirm_newcomers=True, total_active_users=1)
    wait_in_line(full, range(1))
    assert arrivals(full, range(1, 2))[0].refresh_ms >= 1_500


def test_the_line_can_be_told_to_everybody_as_one_small_table(make: Make) -> None:
    ledger = make(total_active_users=2, new_users_per_minute=100, line_table=True)
    arrivals(ledger, range(2))
    assert ledger.ask("line_table").knots == ()
    places = [make_key(START_MS + number * 1_000, 0) for number in range(30)]
    for number, key in enumerate(places):
        ledger.ask("poll", ticket_id(100 + number), key)
    table = ledger.ask("line_table")
    assert (table.waiting, table.open, table.due, table.up_to_ms) == (30, True, 1, START_MS)
    assert (table.knots[0].arrival_ms, table.knots[0].ahead) == (START_MS, 0)
    assert (table.knots[-1].arrival_ms, table.knots[-1].ahead) == (START_MS + 29_000, 29)
    assert table.made_ms == ledger.clock.ms
