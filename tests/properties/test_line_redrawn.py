"""People in line may be given other keys all at once, as a draw does, and nothing else about them
changes.
"""

from random import Random

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

from greenroom.admission.queueing.line import Line
from greenroom.admission.records import remember
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.visit import arrival_ms_of, make_key

KEYS = st.integers(0, 30).map(lambda number: make_key(START_MS + number * 300, number % 3))


@given(
    st.dictionaries(st.integers(0, 40), KEYS, max_size=40),
    st.dictionaries(st.integers(0, 60), KEYS, max_size=60),
)
def test_new_keys_order_the_line_as_if_everybody_had_come_by_them(
    places: dict[int, int], drawn: dict[int, int]
) -> None:
    line = Line()
    for number, key in places.items():
        line.join(ticket_id(number), key, START_MS, 20_000)
    slots = dict(line.slots)
    moved = line.rekey({ticket_id(number): key for number, key in drawn.items()})
    wanted = places | {number: key for number, key in drawn.items() if number in places}
    assert set(moved) == {
        ticket_id(number) for number, key in wanted.items() if places[number] != key
    }
    assert dict(line.in_order()) == {ticket_id(number): key for number, key in wanted.items()}
    assert [key for _, key in line.in_order()] == sorted(wanted.values())
    assert line.slots == slots
    assert sum(line.seconds.values()) == len(wanted)
    assert line.seconds.keys() == {arrival_ms_of(key) // 1000 for key in wanted.values()}
    for number in places:
        line.remove(ticket_id(number))
    assert len(line) == 0
    assert not line.seconds


def waiting_room(count: int, journal: FlakyJournal) -> tuple[MemoryLedger, dict[bytes, int]]:
    ledger = MemoryLedger(small_room(queue_all=True), HandClock(), bits(1), journal)
    keys = {ticket_id(number): make_key(START_MS - 1000 * number, 0) for number in range(count)}
    for one, key in keys.items():
        answer_of(ledger.poll, one, key)
    return ledger, keys


def test_new_keys_are_remembered_over_a_restart_and_asking_twice_changes_nothing() -> None:
    journal = FlakyJournal()
    ledger, keys = waiting_room(50, journal)
    order = list(keys)
    Random(3).shuffle(order)
    drawn = {one: make_key(START_MS, rank) for rank, one in enumerate(order)}
    said: list[bool] = []
    ledger.rekey(drawn, said.append)
    size = len(journal.payloads)
    ledger.rekey(drawn, said.append)
    assert said == [True, True]
    assert len(journal.payloads) == size
    assert remember(journal.payloads).places == drawn
    back = MemoryLedger.restore(
        small_room(), HandClock(), bits(2), FlakyJournal(), journal.payloads
    )
    found: list[bytes] = []
    back.before(make_key(START_MS + 1, 0), found.extend)
    assert found == order


def test_new_keys_that_cannot_be_written_down_are_said_to_be_so_and_no_visitor_is_let_in() -> None:
    journal = FlakyJournal()
    ledger, keys = waiting_room(5, journal)
    journal.failing = True
    said: list[bool] = []
    ledger.rekey({one: key + 1 for one, key in keys.items()}, said.append)
    assert said == [False]
    assert ledger.storage_failed


def test_those_before_a_key_are_those_who_came_before_it() -> None:
    ledger, keys = waiting_room(10, FlakyJournal())
    found: list[bytes] = []
    ledger.before(make_key(START_MS - 5_000, 0), found.extend)
    assert found == sorted(
        (one for one, key in keys.items() if key < make_key(START_MS - 5_000, 0)),
        key=keys.__getitem__,
    )
    assert len(found) == 4
