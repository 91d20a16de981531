"""The parts that admission stands on do what a plain and slow one would do."""

from collections import Counter
from random import Random
from time import process_time_ns

import pytest
from admission_world import START_MS, ticket_id
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.admission import records
from greenroom.admission.coordinator import pace as pace_module
from greenroom.admission.coordinator.pace import SAVED_S, Pace
from greenroom.admission.coordinator.whole_line import rounded
from greenroom.admission.ledger.refresh import spread
from greenroom.admission.queueing import line as line_module
from greenroom.admission.queueing.line import GRACE_MS, STRETCH_MAX, Line
from greenroom.admission.queueing.partial_sums import PartialSums
from greenroom.admission.records import RECORD, LedgerMemory, remember, snapshot
from greenroom.admission.sync_schedule import SLOT_MS, SLOTS_MOST
from greenroom.admission.timer_wheel import Wheel
from greenroom.model.visit import arrival_ms_of, make_key

KEYS = st.integers(0, 40).map(lambda number: make_key(START_MS + number * 400, number % 3))
LUCK = st.integers(0, (1 << 64) - 1)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 60), KEYS), max_size=200))
def test_a_line_ranks_like_a_sorted_list(moves: list[tuple[bool, int, int]]) -> None:
    line, plain = Line(), {}
    for joins, number, key in moves:
        one = ticket_id(number)
        if joins and one not in plain:
            plain[one] = key
            line.join(one, key, START_MS, 20_000)
        elif not joins and one in plain:
            del plain[one]
            line.remove(one)
        assert line.rank(key) == sum(1 for other in plain.values() if other < key)
        assert len(line) == len(plain)
    assert dict(line.in_order()) == plain
    assert [key for _, key in line.in_order()] == sorted(plain.values())
    assert [line.keys[line.at(rank)] for rank in range(len(line))] == sorted(plain.values())
    assert line.seconds == Counter(arrival_ms_of(key) // 1000 for key in plain.values())


@settings(max_examples=examples(8), deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from((1, 5_000)))
def test_a_long_line_ranks_exactly_across_its_stretches(seed: int, spread_ms: int) -> None:
    draw = Random(seed)
    keys = [
        make_key(START_MS + draw.randrange(spread_ms), draw.randrange(60))
        for _ in range(3 * STRETCH_MAX)
    ]
    line = Line()
    if draw.random() < 0.5:
        line.fill([(ticket_id(number), key) for number, key in enumerate(keys)], START_MS, 2_000)
    else:
        for number, key in enumerate(keys):
            line.join(ticket_id(number), key, START_MS, 2_000)
    gone = set(draw.sample(range(len(keys)), len(keys) // 2))
    for number in gone:
        line.remove(ticket_id(number))
    left = sorted(key for number, key in enumerate(keys) if number not in gone)
    assert [key for _, key in line.in_order()] == left
    for key in draw.sample(keys, 50):
        assert line.rank(key) == sum(1 for other in left if other < key)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("add", "insert", "delete")), st.integers(0, 40), st.integers(0, 9)
        ),
        max_size=80,
    )
)
def test_partial_sums_add_up_like_a_plain_list(moves: list[tuple[str, int, int]]) -> None:
    sums, plain = PartialSums(), list[int]()
    for kind, at, amount in moves:
        if kind == "insert" or not plain:
            plain.insert(at % (len(plain) + 1), amount)
            sums.insert(at % len(plain), amount)
        elif kind == "add":
            plain[at % len(plain)] += amount
            sums.add(at % len(plain), amount)
        else:
            sums.remove(at % len(plain))
            del plain[at % len(plain)]
        assert [sums.before(index) for index in range(len(plain) + 1)] == [
            sum(plain[:index]) for index in range(len(plain) + 1)
        ]
        places = [(index, rest) for index, size in enumerate(plain) for rest in range(size)]
        assert [sums.find(place) for place in range(len(places))] == places
        with pytest.raises(IndexError):
            sums.find(len(places))


def taken_by_turns(seed: int, per_minute: int, data_centers: int) -> list[tuple[int, int]]:
    """(when, permits) within two minutes: each data center takes its share, as rarely as it may."""
    draw, pace, every_ms = Random(seed), Pace(0), SLOT_MS * SLOTS_MOST
    phases = [draw.randrange(every_ms) for _ in range(data_centers)]
    taken = []
    for now_ms in sorted(phase + more for phase in phases for more in range(0, 120_000, every_ms)):
        pace.earn(per_minute, 0, now_ms)
        share = rounded(pace.permits, data_centers, draw.getrandbits(64))
        pace.spend(share)
        taken.append((now_ms, share))
    return taken


COMPANIES = given(st.integers(0, 1 << 32), st.integers(60, 6_000), st.integers(2, 50))


@settings(max_examples=examples(30), deadline=None)
@COMPANIES
def test_data_centers_that_take_turns_get_all_that_the_pace_earns(
    seed: int, per_minute: int, data_centers: int
) -> None:
    taken = taken_by_turns(seed, per_minute, data_centers)
    assert sum(share for _, share in taken) >= 0.92 * 2 * per_minute


def test_a_pace_that_saves_one_second_loses_permits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace_module, "SAVED_S", 1.0)
    assert sum(share for _, share in taken_by_turns(1, 375, 20)) < 0.7 * 2 * 375


@settings(max_examples=examples(30), deadline=None)
@COMPANIES
def test_no_span_of_time_gets_more_than_was_saved_and_earned_in_it(
    seed: int, per_minute: int, data_centers: int
) -> None:
    rate, earned = per_minute / 60, 0.0
    least = most = 0.0
    for now_ms, share in taken_by_turns(seed, per_minute, data_centers):
        least = min(least, earned - rate * now_ms / 1000)
        earned += share
        most = max(most, earned - rate * now_ms / 1000 - least)
    assert most <= 1 + SAVED_S * rate + 1e-6


def rank_ns(waiting: int) -> float:
    """The least time that a rank and the visitor there take at the end of a line of so many, in
    stretches of few.
    """
    line = Line()
    line.fill(
        [(ticket_id(number), make_key(START_MS + number, 0)) for number in range(waiting)],
        START_MS,
        20_000,
    )
    last = make_key(START_MS + waiting - 1, 0)
    found = []
    for _ in range(40):
        began = process_time_ns()
        for _ in range(50):
            line.rank(last)
            line.at(waiting - 1)
        found.append(process_time_ns() - began)
    return min(found) / 50


@pytest.mark.needs("patching")
def test_a_rank_takes_hardly_longer_in_a_long_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "STRETCH_MAX", 4)
    short_ns, long_ns = rank_ns(64), rank_ns(32_768)
    assert long_ns < 8 * short_ns, f"{long_ns} instead of {short_ns} ns"


@given(
    st.lists(
        st.tuples(st.integers(0, 5_000), st.integers(0, 4_000), st.integers(0, 30)), max_size=60
    )
)
def test_a_ghost_is_swept_within_a_cell_of_its_hour_and_no_one_else_is(
    moves: list[tuple[int, int, int]],
) -> None:
    line, due, now_ms = Line(), {}, START_MS
    for pause_ms, refresh_ms, number in moves:
        now_ms += pause_ms
        for one, _ in line.sweep(now_ms, 0, 1_000):
            assert due.pop(one) <= now_ms
        assert all(due_ms > now_ms - 256 for due_ms in due.values())
        one = ticket_id(number)
        due[one] = now_ms + refresh_ms + GRACE_MS
        if one in line.slots:
            line.expect(line.slots[one], now_ms, refresh_ms)  # earlier or later than before
        else:
            line.join(one, make_key(now_ms, number), now_ms, refresh_ms)
    line.sweep(now_ms + 20_000, 0, 1_000)
    assert len(line) == 0


@given(st.lists(st.integers(0, 100_000)), st.integers(1, 5))
def test_a_wheel_gives_out_everything_once_never_early_and_no_more_than_asked(
    hours: list[int], limit: int
) -> None:
    wheel: Wheel[int] = Wheel()
    for number, when_ms in enumerate(hours):
        wheel.file(when_ms, number)
    given_out: list[int] = []
    for now_ms in range(0, 101_000, 777):
        while found := wheel.due(now_ms, limit):
            assert len(found) <= limit
            assert all(hours[number] <= now_ms for number in found)
            given_out += found
        assert all(
            hours[number] > now_ms - 256 for number in set(range(len(hours))) - set(given_out)
        )
    assert sorted(given_out) == list(range(len(hours)))


IDS = st.integers(0, 8).map(ticket_id)
CHANGES = st.tuples(
    st.sampled_from((records.PLACE, records.ADMIT, records.SESSION, records.END)),
    IDS,
    st.integers(1, 1 << 62),
)


@given(st.lists(CHANGES), st.lists(CHANGES), st.integers(0, 200))
def test_a_snapshot_stands_for_everything_before_it_or_never_happened(
    before: list, after: list, cut: int
) -> None:  # type: ignore[type-arg]
    written = b"".join(records.pack(*change) for change in before)
    memory = remember([written])
    shot = list(snapshot(memory))
    assert ledgers(remember([records.pack(records.PLACE, ticket_id(99), 1), *shot])) == ledgers(
        memory
    )
    assert ledgers(remember([written, *shot[: min(cut, len(shot) - 1)]])) == ledgers(memory)
    later = [records.pack(*change) for change in after]
    assert ledgers(remember([written, *shot, *later])) == ledgers(remember([written, *later]))


def ledgers(memory: LedgerMemory) -> tuple[object, ...]:
    return memory.sessions, memory.places, memory.spent, memory.window


def test_records_that_are_cut_are_refused() -> None:
    with pytest.raises(ValueError, match="whole number"):
        remember([records.pack(records.PLACE, ticket_id(1), 1)[:-1]])


def test_a_record_of_an_unknown_kind_is_skipped_and_a_record_is_small() -> None:
    assert remember([records.pack(77, ticket_id(1), 1)]) == LedgerMemory()
    assert RECORD.size == 24


@given(st.integers(0, 1_000), st.integers(1, 1_000), LUCK)
def test_rounding_keeps_the_mean(part: int, whole: int, random_bits: int) -> None:
    assert part // whole <= rounded(part, whole, random_bits) <= part // whole + 1
    assert sum(rounded(part, whole, number) for number in range(whole)) == part


@given(st.integers(1_000, 60_000), st.sampled_from((10, 25)), LUCK)
def test_a_refresh_is_spread_as_far_as_promised_and_no_further(
    value_ms: int, percent: int, random_bits: int
) -> None:
    assert (
        value_ms * (100 - percent) // 100 - 1
        <= spread(value_ms, percent, random_bits)
        <= value_ms * (100 + percent) // 100
    )
