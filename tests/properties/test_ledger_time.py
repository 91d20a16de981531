"""A ledger's time goes on at the pace of true time although the clock of its server is stepped; and
Redis reads it as the pure rule does.
"""

import pytest
from admission_world import START_MS, small_room, ticket_id
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import msgpack, structs
from redis_world import TRIAL_LIBRARY, RedisServer

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.ledger_time import STEP_MS, Expectation, LedgerTime
from greenroom.ledgers.redis.answers import (
    ARRIVE,
    EXPECTED,
    QUESTION,
    VIEW,
    Reader,
    settings_of,
)
from greenroom.ledgers.redis.sync_batch import arguments_of, report_of
from greenroom.model.visit import Standing

HOUR_MS = 3_600_000
steps = st.sampled_from((0, 0, 0, HOUR_MS, -HOUR_MS, 30_000, -30_000, 1_500, -1_500))


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.tuples(st.integers(1, 60_000), steps), max_size=40))
def test_time_goes_on_evenly_for_a_process_that_has_asked_before(
    moves: list[tuple[int, int]],
) -> None:
    time, expectation = LedgerTime(), Expectation()
    true_ms = server_ms = START_MS
    before_ms = time.read(server_ms, *expectation.at(true_ms))
    expectation.hear(before_ms, true_ms)
    for passed_ms, step_ms in moves:
        true_ms += passed_ms
        server_ms += passed_ms + step_ms
        now_ms = time.read(server_ms, *expectation.at(true_ms))
        assert now_ms >= before_ms
        assert (
            abs(now_ms - before_ms - passed_ms) <= STEP_MS + passed_ms // 1_000
            or abs(step_ms) <= STEP_MS
        )
        expectation.hear(now_ms, true_ms)
        before_ms = now_ms


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from((0, 1, 2)), steps, st.integers(-500, 500))
def test_of_three_clocks_the_one_that_is_wrong_is_put_right(
    wrong: int, step_ms: int, jitter_ms: int
) -> None:
    time, clocks = LedgerTime(), [START_MS, START_MS + jitter_ms, START_MS - jitter_ms]
    clocks[wrong] += step_ms
    right_ms = time.put_right(*clocks)
    assert abs(right_ms - START_MS) <= 500 or abs(step_ms) <= STEP_MS
    assert abs(clocks[0] + time.shift_ms - START_MS) <= STEP_MS + 500


def test_an_answer_that_was_long_on_its_way_is_not_taken_for_the_time() -> None:
    expectation = Expectation()
    assert expectation.at(5) == (0, 0)
    expectation.hear(START_MS, 1_000)
    expectation.hear(START_MS + 100, 10_000)
    assert expectation.at(10_000)[0] == START_MS + 9_000
    expectation.hear(START_MS + 60_000, 10_000)  # the process was paused
    assert expectation.at(10_000)[0] == START_MS + 60_000


class Stepped:
    """One ledger in a Redis whose clock can be stepped, one process, and the coordinator."""

    def __init__(self, server: RedisServer, place: str) -> None:
        self.client = server.client()
        self.place = f"greenroom:{{{place}}}"
        self.room = small_room(total_active_users=4, new_users_per_minute=40)
        self.coordinator = Coordinator(["here"], self.room, START_MS)
        self.true_ms, self.step_ms = START_MS, 0
        self.expectation = Expectation()
        self.reader = Reader(self.room)

    def call(self, name: str, *arguments: bytes | str | int) -> object:
        self.client.set(f"{self.place}:clock", self.true_ms + self.step_ms)
        given = settings_of(self.room) + EXPECTED.pack(*self.expectation.at(self.true_ms))
        return self.client.fcall(
            TRIAL_LIBRARY.function(name).decode(), 1, self.place, given, *arguments
        )

    def ask(self, what: int, one: bytes) -> Standing:
        reply = self.call("handle", QUESTION.pack(what, one, 0, 0), 0, 0)
        ((outcome, _),) = self.reader.read(*reply)  # type: ignore[misc]
        self.expectation.hear(self.reader.now_ms, self.true_ms)
        return outcome.standing

    def sync(self) -> None:
        up = report_of(self.call("report", "here", 0))  # type: ignore[arg-type]
        self.expectation.hear(up.sent_ms, self.true_ms)
        down = self.coordinator.sync(up, self.true_ms + 5_000_000, 0)
        self.expectation.hear(
            self.call("apply", *arguments_of(structs.replace(down, wait_table=None))), self.true_ms
        )  # type: ignore[arg-type]

    @property
    def state(self) -> dict[str, int]:
        return dict(msgpack.decode(self.call("inspect")))  # type: ignore[arg-type]


@pytest.mark.parametrize("step_ms", [HOUR_MS, 30_000, -30_000, -HOUR_MS])
def test_a_stepped_redis_ends_no_session_and_does_not_stand_still(
    server: RedisServer, step_ms: int
) -> None:
    stepped = Stepped(server, f"step {step_ms}")
    stepped.sync()
    assert [stepped.ask(ARRIVE, ticket_id(number)) for number in range(4)] == [
        Standing.ADMITTED
    ] * 4
    stepped.true_ms += 10_000
    stepped.step_ms = step_ms
    assert [stepped.ask(VIEW, ticket_id(number)) for number in range(3)] == [Standing.ACTIVE] * 3
    assert stepped.state["now_ms"] == stepped.true_ms
    stepped.sync()
    assert stepped.state["shift_ms"] == pytest.approx(-step_ms, abs=STEP_MS)
    stepped.expectation = Expectation()  # another process, which has not asked yet
    assert stepped.ask(ARRIVE, ticket_id(9)) is Standing.WAITING
    assert stepped.state["inside"] == 4
    stepped.true_ms += 57_000  # of the four one has been away for longer than a session lasts
    stepped.sync()
    assert stepped.state["inside"] == 3
    assert stepped.state["now_ms"] == pytest.approx(stepped.true_ms, abs=STEP_MS)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.lists(st.tuples(st.integers(0, 20_000), steps, st.booleans()), max_size=12),
)
def test_redis_reads_its_time_as_the_pure_rule_does(
    server: RedisServer, number: int, moves: list[tuple[int, int, bool]]
) -> None:
    stepped, time, pure = (
        Stepped(server, f"twin {number} {len(moves)}"),
        LedgerTime(),
        Expectation(),
    )
    stepped.client.flushall()
    stepped.ask(VIEW, ticket_id(1))
    pure.hear(time.read(START_MS, 0, 0), START_MS)
    for passed_ms, step_ms, forgets in moves:
        stepped.true_ms += passed_ms
        stepped.step_ms += step_ms
        if forgets:
            stepped.expectation, pure = Expectation(), Expectation()
        stepped.ask(VIEW, ticket_id(1))
        now_ms = time.read(stepped.true_ms + stepped.step_ms, *pure.at(stepped.true_ms))
        pure.hear(now_ms, stepped.true_ms)
        assert stepped.reader.now_ms <= now_ms  # a look alone is not written down
        stepped.call("report", "here", 0)
        assert stepped.state["now_ms"] == now_ms
