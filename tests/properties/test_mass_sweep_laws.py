"""Many ghosts and ended sessions at once: visitors are served in between, and the end is the same
as if all had gone in one sweep.
"""

from collections import Counter

from admission_world import (
    START_MS,
    FlakyJournal,
    HandClock,
    answer_of,
    bits,
    small_room,
    ticket_id,
)
from hypothesis import given
from hypothesis import strategies as st

from greenroom.admission.ledger.ledger import SWEEP_SLICE, Ledger
from greenroom.admission.records import END, RECORD, remember
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.visit import Standing, make_key

GHOSTS, FAITHFUL = 4 * SWEEP_SLICE + 7, 30


def abandoned() -> tuple[MemoryLedger, HandClock, FlakyJournal, list[bytes]]:
    """A full room; many have left the line without a word, some between them have just tried again.
    Returns who stays, in order.
    """
    clock, journal = HandClock(), FlakyJournal()
    ledger = MemoryLedger(
        small_room(total_active_users=1, session_duration=30), clock, bits(1), journal
    )
    assert (
        answer_of(ledger.arrive, ticket_id(0), make_key(START_MS, 0)).standing is Standing.ADMITTED
    )
    keys = {
        ticket_id(1 + number): make_key(START_MS + number // 8, number % 8)
        for number in range(GHOSTS + FAITHFUL)
    }
    for one, key in keys.items():
        ledger.poll_now(one, key, clock.ms)
    staying = list(keys)[:: len(keys) // FAITHFUL][:FAITHFUL]
    for _ in range(8):
        clock.ms += 20_000
        for one in staying:
            ledger.poll_now(one, keys[one], clock.ms)
        if len(ledger.ledger.line) < len(keys):
            break
    return ledger, clock, journal, staying


def line_of(ledger: MemoryLedger) -> list[bytes]:
    return [one for one, _ in ledger.ledger.line.in_order()]


def test_ghosts_go_a_few_at_a_time_and_none_waits_for_the_next_quarter_of_a_second() -> None:
    ledger, clock, journal, staying = abandoned()
    sizes = [len(ledger.ledger.line)]
    assert sizes[0] >= GHOSTS + FAITHFUL - SWEEP_SLICE, "one try takes a slice of them"
    while ledger.tick() <= clock.ms:
        sizes.append(len(ledger.ledger.line))
        assert SWEEP_SLICE - FAITHFUL <= sizes[-2] - sizes[-1] <= SWEEP_SLICE, (
            "each tick takes a slice, and asks for the next one now"
        )
    assert line_of(ledger) == staying
    assert ledger.problems() == []
    ends = Counter(
        one
        for payload in journal.payloads
        for kind, one, _ in RECORD.iter_unpack(payload)
        if kind == END
    )
    assert len(ends) == GHOSTS
    assert set(ends.values()) == {1}
    assert set(remember(journal.payloads).places) == set(staying)


def test_one_try_does_not_wait_for_all_ghosts() -> None:
    ledger, clock, _, staying = abandoned()
    clock.ms += 300
    before = len(ledger.ledger.line)
    ledger.poll_now(staying[0], 0, clock.ms)
    ledger.poll_now(staying[1], 0, clock.ms)
    assert SWEEP_SLICE - FAITHFUL <= before - len(ledger.ledger.line) <= SWEEP_SLICE, (
        "and one quarter of a second has one slice, however many come"
    )


def test_a_visitor_who_comes_back_before_being_swept_keeps_the_place() -> None:
    ledger, clock, _, staying = abandoned()
    ghost = next(one for one in line_of(ledger) if one not in staying)
    ledger.poll_now(ghost, 0, clock.ms)
    while ledger.tick() <= clock.ms:
        pass
    assert sorted(line_of(ledger)) == sorted([*staying, ghost])


def test_new_settings_reach_the_coordinator_although_ghosts_are_left() -> None:
    ledger, clock, _, _ = abandoned()
    assert ledger.tick() == clock.ms, "behind"
    ledger.configure(small_room(total_active_users=9, new_users_per_minute=9, session_duration=30))
    assert ledger.ledger.lease.permits + len(ledger.ledger.sessions.inside) > 1


def test_new_settings_do_not_wait_for_all_ghosts() -> None:
    ledger, clock, _, staying = abandoned()
    clock.ms += 300
    before = len(ledger.ledger.line)
    ledger.configure(small_room(total_active_users=1, new_users_per_minute=9, session_duration=30))
    assert before - len(ledger.ledger.line) <= 2 * SWEEP_SLICE, (
        "one slice before them, and one of the tick that tells the coordinator"
    )
    while ledger.tick() <= clock.ms:
        pass
    assert line_of(ledger) == staying


MOVES = st.lists(
    st.tuples(
        st.integers(0, 3_000), st.integers(0, 40), st.sampled_from(["poll", "arrive", "leave"])
    ),
    max_size=60,
)


@given(MOVES, st.integers(1, 4), st.integers(0, 200_000))
def test_many_small_sweeps_end_where_one_sweep_does(
    moves: list[tuple[int, int, str]], limit: int, later_ms: int
) -> None:
    small, whole = (Ledger(small_room(), "1", START_MS, START_MS) for _ in range(2))
    now_ms = START_MS
    for pause_ms, number, move in moves:
        now_ms += pause_ms
        for ledger in (small, whole):
            if move == "poll":
                ledger.poll(ticket_id(number), make_key(now_ms, number), now_ms, 7)
            elif move == "arrive":
                ledger.arrive(ticket_id(number), now_ms, 7)
            else:
                ledger.leave(ticket_id(number), now_ms)
    now_ms += later_ms
    for ledger in (small, whole):
        ledger.log.clear()
    while small.sweep(now_ms, limit):
        pass
    assert whole.sweep(now_ms) is False
    assert list(small.line.in_order()) == list(whole.line.in_order())
    assert small.sessions.inside == whole.sessions.inside
    assert small.sessions.spent == whole.sessions.spent
    assert sorted(small.log) == sorted(whole.log)
    assert len(small.lease.window) == len(whole.lease.window)
