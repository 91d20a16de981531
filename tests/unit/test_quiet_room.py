"""A room that no one has come to for a long time."""

from admission_world import START_MS, HandClock, answer_of, bits, small_room, ticket_id

from greenroom.ledgers.memory import SYNC_MOST_MS, MemoryLedger
from greenroom.model.visit import Standing, make_key


def test_an_arrival_rate_that_has_nearly_vanished_is_no_rate_to_divide_by() -> None:
    """It halves again and again until it is the smallest number there is, and half a second divided
    by that is infinite.
    """
    clock = HandClock()
    ledger = MemoryLedger(small_room(), clock, bits(1))
    ledger.ledger.reporting.arrivals_per_s = 5e-324
    assert ledger.tick() == START_MS + SYNC_MOST_MS
    for _ in range(8_000):
        clock.ms = ledger.tick()
    assert (
        answer_of(ledger.arrive, ticket_id(1), make_key(clock.ms, 0)).standing is Standing.ADMITTED
    )


def test_a_session_that_was_given_up_makes_room_at_once() -> None:
    """Also a moment after a sync: the next visitor does not wait for the next one."""
    ledger = MemoryLedger(small_room(total_active_users=1), HandClock(), bits(1))
    for number in (1, 2, 3):
        assert (
            answer_of(ledger.arrive, ticket_id(number), make_key(START_MS, number)).standing
            is Standing.ADMITTED
        )
        assert (
            answer_of(ledger.arrive, ticket_id(99), make_key(START_MS, 99)).standing
            is Standing.WAITING
        )
        ledger.leave(ticket_id(number))
        assert ledger.problems() == []
