"""Redis and memory say the same: any row of operations, settings and messages gets the same answers
from both.
"""

import pytest
import redis
from admission_walks import METHODS, PAUSES_MS
from admission_world import START_MS, small_room, ticket_id
from examples import examples
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from redis_flood import crowd_in_line, crowded_at_once
from redis_twin import Twin
from redis_twin_walks import (
    brought_again,
    flooded,
    flooded_for_seconds,
    moving,
    parting,
    searching,
    trickling,
    walk,
)
from redis_world import RedisServer, broken_library

from greenroom.admission.messages.moves import MovesUp
from greenroom.admission.messages.sync import SyncDown, SyncUp
from greenroom.model.visit import Standing, make_key

pytestmark = pytest.mark.slow

LIMITS = st.sampled_from((1, 2, 3, 7))


def machine(server: RedisServer) -> type[RuleBasedStateMachine]:
    client = server.client()

    class Agreement(RuleBasedStateMachine):
        @initialize(
            inside=LIMITS,
            minute=LIMITS,
            method=st.sampled_from(METHODS),
            confirm=st.sampled_from((False, True, "auto", "auto")),
            seed=st.integers(0, 1 << 32),
            alone=st.booleans(),
            fence_ms=st.sampled_from((0, 3_000, 30_000)),
        )
        def opens(
            self,
            inside: int,
            minute: int,
            method: str,
            confirm: bool | str,
            seed: int,
            alone: bool,
            fence_ms: int,
        ) -> None:
            room = small_room(
                total_active_users=inside,
                new_users_per_minute=minute,
                queueing_method=method,
                confirm_newcomers=confirm,
            )
            self.twin = Twin(
                client, room, seed, ("here",) if alone else ("here", "there"), fence_ms
            )
            self.keys: list[int] = []
            self.passed = 0
            self.ups: list[tuple[SyncUp, SyncUp]] = []
            self.downs: list[SyncDown] = []
            self.alone = alone
            self.reports_from_there = 0
            if not alone:  # the other one is heard, so that permits are granted
                self.hear_from_there(())

        def hear_from_there(self, claims: tuple[tuple[bytes, str, int], ...]) -> None:
            self.reports_from_there += 1
            now_ms, arrived = self.twin.now_ms, self.twin.arrived_there
            moves = MovesUp(0, (), arrived, claims)
            up = SyncUp(
                "there",
                1,
                self.reports_from_there,
                now_ms,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                (),
                0,
                0,
                0,
                (),
                0.0,
                moves=moves,
            )
            self.twin.hear_from_there(up)

        @rule(pause_ms=st.sampled_from(PAUSES_MS))
        def time_passes(self, pause_ms: int) -> None:
            self.twin.advance(pause_ms)

        @rule(count=st.integers(1, 4), come_back=st.booleans())
        def newcomers(self, count: int, come_back: bool) -> None:
            for _ in range(count):
                number = len(self.keys)
                self.keys.append(make_key(self.twin.now_ms, number))
                outcome = self.twin.arrive(ticket_id(number))
                if come_back and outcome.standing is Standing.WAITING:
                    self.twin.advance(outcome.refresh_ms)
                    self.twin.poll(ticket_id(number), self.keys[number])

        @precondition(lambda self: self.keys)
        @rule(index=st.integers(0, 1 << 16), late_ms=st.sampled_from((0, 0, 1, 2_999, 3_300)))
        def a_ticket_comes_back_in_time(self, index: int, late_ms: int) -> None:
            number = index % len(self.keys)
            outcome = self.twin.peek(ticket_id(number), self.keys[number])
            if outcome.standing is Standing.WAITING:
                self.twin.advance(
                    max(0, outcome.attempted_ms + outcome.refresh_ms + late_ms - self.twin.now_ms)
                )
            self.twin.poll(ticket_id(number), self.keys[number])

        @precondition(lambda self: self.keys)
        @rule(index=st.integers(0, 1 << 16))
        def a_ticket_comes_back_at_once(self, index: int) -> None:
            number = index % len(self.keys)
            self.twin.poll(ticket_id(number), self.keys[number])

        @precondition(lambda self: self.keys)
        @rule(index=st.integers(0, 1 << 16))
        def somebody_comes_back_after_hours(self, index: int) -> None:
            number = index % len(self.keys)
            outcome = self.twin.reclaim(ticket_id(number), self.keys[number])
            if outcome.standing is not Standing.GONE:
                self.twin.poll(ticket_id(number), self.keys[number])

        @rule(minutes=st.sampled_from((0, 1, 10)))
        def places_of_absent_visitors_are_kept(self, minutes: int) -> None:
            self.twin.configure(calendar_after_minutes=1, claim_minutes=minutes)

        @rule(number=st.integers(0, 20), count=st.integers(1, 3))
        def requests_that_cannot_wait(self, number: int, count: int) -> None:
            for more in range(count):
                self.twin.arrive_provisionally(ticket_id(10**6 + self.passed + more))
            self.passed += count
            self.twin.view(ticket_id(10**6 + number))

        @precondition(lambda self: self.keys)
        @rule(
            index=st.integers(0, 1 << 16),
            gap_ms=st.sampled_from((1, 10_000, 45_000, 180_000, 10**12)),
        )
        def a_place_is_kept(self, index: int, gap_ms: int) -> None:
            self.twin.keep(ticket_id(index % len(self.keys)), gap_ms)

        @precondition(lambda self: self.keys)
        @rule(index=st.integers(0, 1 << 16))
        def somebody_browses(self, index: int) -> None:
            self.twin.view(ticket_id(index % len(self.keys)))

        @precondition(lambda self: self.keys)
        @rule(index=st.integers(0, 1 << 16))
        def somebody_leaves(self, index: int) -> None:
            self.twin.leave(ticket_id(index % len(self.keys)))

        @precondition(lambda self: self.keys)
        @rule(index=st.integers(0, 1 << 16), absent=st.booleans())
        def somebody_moves(self, index: int, absent: bool) -> None:
            number = index % len(self.keys)
            new = len(self.keys)
            moved = self.twin.move(ticket_id(number), ticket_id(new), absent)
            key = make_key(self.twin.now_ms, new) if moved is Standing.GONE else self.keys[number]
            self.keys.append(key)  # two visitors of one key would have one place in memory

        @precondition(lambda self: self.keys and self.alone)
        @rule(index=st.integers(0, 1 << 16), times=st.sampled_from((0, 1, 2, 10)))
        def somebody_asks_for_more_time(self, index: int, times: int) -> None:
            self.twin.extend(ticket_id(index % len(self.keys)), times)

        @precondition(lambda self: not self.alone)
        @rule(
            index=st.integers(0, 30),
            age_ms=st.sampled_from((0, 1_000, 30_000, 61_000)),
            there=st.booleans(),
            served=st.booleans(),
        )
        def a_session_of_elsewhere_is_brought(
            self, index: int, age_ms: int, there: bool, served: bool
        ) -> None:
            key = self.keys[index] if index < len(self.keys) else make_key(START_MS, index)
            self.twin.visit(
                ticket_id(index),
                key,
                "there" if there else "here",
                self.twin.now_ms - age_ms,
                self.twin.now_ms - age_ms // 2 if served else None,
            )

        @precondition(lambda self: self.keys and not self.alone)
        @rule(indexes=st.lists(st.integers(0, 20), min_size=1, max_size=3, unique=True))
        def somebody_is_there_now(self, indexes: list[int]) -> None:
            self.hear_from_there(tuple((ticket_id(index), "here", 500) for index in indexes))

        @rule()
        def they_sync(self) -> None:
            self.twin.sync()

        @rule(want=st.sampled_from((0, 0, 1, 3)))
        def a_report_is_sent(self, want: int) -> None:
            self.ups.append(self.twin.report(want))

        @precondition(lambda self: self.ups)
        @rule(index=st.integers(0, 1 << 16))
        def some_report_arrives(self, index: int) -> None:
            self.downs.append(self.twin.answered(self.ups[index % len(self.ups)]))

        @precondition(lambda self: self.downs)
        @rule(index=st.integers(0, 1 << 16))
        def some_answer_arrives(self, index: int) -> None:
            self.twin.apply(self.downs[index % len(self.downs)])

        @rule(inside=LIMITS, minute=LIMITS)
        def limits_change(self, inside: int, minute: int) -> None:
            self.twin.configure(total_active_users=inside, new_users_per_minute=minute)

        @rule(method=st.sampled_from(METHODS), queue_all=st.booleans())
        def the_method_changes(self, method: str, queue_all: bool) -> None:
            self.twin.configure(queueing_method=method, queue_all=queue_all)

        @rule(minutes=st.sampled_from((1, 2, 5)), fixed=st.booleans())
        def sessions_change(self, minutes: int, fixed: bool) -> None:
            self.twin.configure(session_duration=minutes, disable_session_renewal=fixed)

        @rule(off_ms=st.sampled_from((0, 0, 1, 500, -500)))
        def all_sessions_are_ended(self, off_ms: int) -> None:
            self.twin.end_all_sessions(off_ms)

        @precondition(lambda self: self.keys)
        @rule(seed=st.integers(0, 1 << 16))
        def a_draw_is_held(self, seed: int) -> None:
            drawn = self.twin.before(make_key(self.twin.now_ms + 1, 0))
            start = make_key(self.twin.now_ms, 0) - len(drawn)
            self.twin.rekey(
                {
                    one: start + (place * 7 + seed) % max(1, len(drawn))
                    for place, one in enumerate(drawn)
                }
                if len(drawn) % 7
                else {}
            )

        @invariant()
        def they_agree(self) -> None:
            if hasattr(self, "twin"):
                self.twin.compare()
                assert not self.twin.found, "\n".join(self.twin.found)

    return Agreement


def test_redis_and_memory_agree_on_any_row_of_operations(server: RedisServer) -> None:
    run_state_machine_as_test(
        machine(server),
        settings=settings(
            max_examples=examples(100),
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )


BREAKS = (
    ("state.entered + 1, state.slot_admitted + 1", "state.entered, state.slot_admitted + 1", 0),
    ("- s.life_ms - 1, limit", "- s.life_ms - 300, limit", 60),
    ("not (joins and is_new(key))", "true", 7),
    ("CALLED_REFRESH_MS * state.waiting", "CALLED_REFRESH_MS * 20", 60),
    ("< s.refresh_max_ms end", "< 3000 end", 7),
    ("and down.number > state.applied then", "then", 0),
    ("state.opened_ms, state.pardoned_ms = now,", "state.opened_ms, state.pardoned_ms = 0,", 101),
    ("if attempted_ms then expect(id, refresh_ms) end", "", 0),
    ("(s.rejecting and PLACE_KEPT_MS or 0)", "0", 82),
    ("if admitted < BELIEVED or", "if admitted < 4 or", 3),
    ("if renewed_ms + spent_ms() > now then return nil, true end", "", 0),
    (
        "if attempted_ms and attempted_ms < renewed_ms then",
        "if attempted_ms and attempted_ms <= renewed_ms - 1000 then",
        61,
    ),
    ("floor(before * 5 / 6)", "floor(before * 6 / 6)", 3),
    ("(most - 2 * math.sqrt(most))", "(most - 1 * math.sqrt(most))", 14),
    ("if fenced() then return 0 end", "", 63),
    ("if fenced() then\n      note_seen(id)", "if false then\n      note_seen(id)", 6),
    (
        "if rows[place] ~= state.kept or floor(state.kept_ms / CELL_MS) < cell then",
        "if true then",
        1,
    ),
    ("state.kept == id or state.kept == 0 or state.kept_ms < now", "true", 1),
    ("* 115 / 100", "* 110 / 100", 87),
    ("state.pace * HELD_MS < 1000 and is_called", "is_called", 4),
    ("'HSET', k.seen, id, now", "'HSET', k.seen, id, 0", 67),
    ("now, 0 -- the fence stays", "now, state.contact_ms -- the fence stays", 62),
    ("elseif down.epoch > state.epoch then", "elseif false then", 62),
    (
        "if rank >= permits and arrival_ms(key) > first_ms() + OVERTAKING_MS then return false end",
        "",
        67,
    ),
    ("ceil(state.pace * TABLE_LOOK_S)", "ceil(state.pace)", 3),
    ("close(end_every_session())", "free(end_every_session())", 0),
    (
        "if s.sessions_ended_ms > state.told_ended_ms then",
        "if s.sessions_ended_ms >= state.told_ended_ms then",
        0,
    ),
    (
        "state.ended_to = max(state.ended_to, now - 1)\n",
        "state.ended_to = max(state.ended_to, now)\n",
        72,
    ),
    (
        "or renewed_ms <= state.all_ended_ms then\n    if state.moving",
        "then\n    if state.moving",
        3,
    ),
    ("if is_old(middle) then old = middle else young = middle end", "old = middle", 0),
    ("if not may_borrow() then", "if not may_borrow() or newcomers.confirm() then", 113),
    ("passes_left > 0 and may_borrow() and BORROWS", "may_borrow() and BORROWS", 10),
    ("return connected() and now >= state.borrow_ms", "return connected()", 7),
    ("minute_most - call('ZCARD', k.passed))", "minute_most)", 10),
)
"""What is replaced by what, and the seed of the walk that finds it out: it is tried first, and
others when it has ceased to.
"""


@pytest.mark.parametrize("seed", range(20))
def test_they_agree_on_the_life_of_a_crowd(server: RedisServer, seed: int) -> None:
    assert walk(server.client(), seed, table=seed % 4 == 3) == []


def test_they_agree_on_a_flood_without_cookies(server: RedisServer) -> None:
    twin = flooded(server.client(), 1)
    assert twin.found == []
    assert 100 < twin.confirmed < 500
    pausing = flooded_for_seconds(server.client(), 1)
    assert pausing.found == []
    assert 60 < pausing.confirmed < 380
    assert trickling(server.client(), 1) == []


def test_they_agree_on_a_crowd_with_images_in_one_moment(server: RedisServer) -> None:
    for gap_us in (100_000, 500_000):
        assert crowded_at_once(server.client(), gap_us) == []


def test_they_agree_on_what_the_first_of_a_crowd_are_told(server: RedisServer) -> None:
    assert crowd_in_line(server.client()) == []


CROWD_BREAKS = (
    ("+ place * state.gap_us - saved_us()", "+ place * state.gap_us"),
    ("60 * math.log", "90 * math.log"),
    ("max(granted_s, paced_s(without + state.permits))", "granted_s"),
    ("if before + without > per_minute then", "if true then"),
)


@pytest.mark.parametrize(("part", "instead"), CROWD_BREAKS, ids=[part for part, _ in CROWD_BREAKS])
def test_a_library_that_tells_a_crowd_something_else_is_found_out(
    server: RedisServer, part: str, instead: str
) -> None:
    client = server.client()
    with broken_library(client, part, instead):
        assert crowd_in_line(client) != []


def test_they_agree_on_places_in_a_line_of_two_data_centers(server: RedisServer) -> None:
    twin = Twin(server.client(), small_room(queue_all=True, line_table=True), 5, ("here", "there"))
    line = [(START_MS + number * 1_100, number) for number in range(8)]
    for number, (arrival_ms, one) in enumerate(line):
        twin.advance(1_000)
        if number % 3 == 0:
            continue  # these wait there
        twin.poll(ticket_id(one), make_key(arrival_ms, one))
    for late_ms in (0, 8_000):
        twin.advance(late_ms)
        there = [(at_ms // 1000, 1) for at_ms, _ in line[::3]]
        twin.hear_from_there_alive(False, there)
        twin.sync()
        outcomes = [
            twin.peek(ticket_id(one), make_key(at_ms, one))
            for number, (at_ms, one) in enumerate(line)
            if number % 3
        ]
        twin.line_table()
        assert [outcome.waiting for outcome in outcomes] == 5 * [8]
    twin.compare()
    assert not twin.found, "\n".join(twin.found)
    assert [outcome.about for outcome in outcomes] == 5 * [False]
    assert [outcome.position for outcome in outcomes] == [2, 3, 5, 6, 8]
    twin.advance(5_000)
    assert twin.peek(ticket_id(1), make_key(*line[1])).about is True
    assert not twin.found, "\n".join(twin.found)


def test_they_agree_on_a_place_that_is_kept_for_less_than_before(server: RedisServer) -> None:
    twin = Twin(server.client(), small_room(), 1)
    for one in range(3):
        twin.poll(ticket_id(one), make_key(START_MS, one))
    for gap_ms in (45_000, 1):
        twin.keep(ticket_id(0), gap_ms)
        for _ in range(4):
            twin.advance(3_000)
            twin.poll(ticket_id(2), make_key(START_MS, 2))
            twin.compare()
            assert not twin.found, "\n".join(twin.found)
        assert (ticket_id(0) in twin.ledgers.line.slots) is (gap_ms > 1)


def test_they_agree_on_farewells(server: RedisServer) -> None:
    assert parting(server.client(), 1) == []


def test_they_agree_on_sessions_that_go_and_come(server: RedisServer) -> None:
    assert moving(server.client(), 1) == []
    assert searching(server.client(), 1) == []
    assert brought_again(server.client(), 1) == []


MOVING_BREAKS = (
    ("state.returned_freed = state.returned_freed + 1 --", "take_over(id, now - age_ms) --"),
    ("call('ZREMRANGEBYSCORE', k.kept_gifts, number, number)", ""),
    ("call('ZADD', k.kept_gifts, number,", "call('ZADD', k.kept_gifts, number + 1,"),
    (" and not (state.moving and call('ZSCORE', k.elsewhere, id))", ""),
    ("  call('SREM', k.unknown_told, id)\n", ""),
    ("if over and now < served_ms + s.life_ms and renewed_ms", "if over and renewed_ms"),
    (
        "served_ms + s.life_ms and renewed_ms > state.all_ended_ms then",
        "served_ms + s.life_ms then",
    ),
    ("{home = '', renewed_ms = served_ms", "{home = 'there', renewed_ms = served_ms"),
    (
        "if claim.denied or not connected() or now - claim.since_ms >= CUT_OFF_MS then",
        "if false then",
    ),
    ("if claim.denied or not connected()", "if not connected()"),
    ("+ SEARCHING, now", ", now"),
    ("s.renews and now - renewed_ms or 0", "now - renewed_ms"),
    ("if s.renews then claim.served_ms = now end", "claim.served_ms = now"),
    ("hopeful and until_ms - now < CUT_OFF_MS then", "false then"),
    ("    call('HSET', k.left, id, to)\n", ""),
    ("max(renewed_ms, tonumber(call('ZSCORE', k.provisional, id) or 0))", "renewed_ms"),
)


@pytest.mark.parametrize(
    ("part", "instead"), MOVING_BREAKS, ids=[part for part, _ in MOVING_BREAKS]
)
def test_a_library_that_moves_sessions_wrongly_is_found_out(
    server: RedisServer, part: str, instead: str
) -> None:
    client = server.client()
    with broken_library(client, part, instead):
        assert moving(client, 1) + searching(client, 1) + brought_again(client, 1) != []


FAREWELL_BREAKS = (
    ("if last then return_above(0) end", ""),
    ("state.epoch = max(now, epoch + 2)", "state.epoch = epoch"),
)


@pytest.mark.parametrize(
    ("part", "instead"), FAREWELL_BREAKS, ids=[part for part, _ in FAREWELL_BREAKS]
)
def test_a_library_that_parts_wrongly_is_found_out(
    server: RedisServer, part: str, instead: str
) -> None:
    client = server.client()
    with broken_library(client, part, instead):
        assert parting(client, 1) != []


FLOOD_BREAKS = (
    ("nil, nil, s.watches)", "nil, nil, false)"),
    ("if unshown then newcomers.see(id, renewed_ms) end", ""),
    ("if call('ZREM', k.unshown, id) == 1 then count(begun_ms, -1) end", ""),
    (
        "  call('ZREM', k.unshown, id)\n  state.inside, state.inside_rows",
        "  state.inside, state.inside_rows",
    ),
    ("if count > 0 then call('ZREMRANGEBYSCORE', k.unshown, '-inf', border) end", ""),
    ("PART * max(1, state.data_centers)", "PART"),
    ("WINDOW_MS / SLOT_MS + 1", "WINDOW_MS / SLOT_MS"),
    ("return minute >= max(1, floor(s.minute_limit / parts)) or ", "return "),
    (" or call('ZCARD', k.unshown) >= max(1, floor(s.total_limit / parts))", ""),
    ("if s.total_limit > 1 and free <= state.waiting + 1 then return true end", ""),
    ("return state.minute_rows >= most", "return false"),
)


@pytest.mark.parametrize(("part", "instead"), FLOOD_BREAKS, ids=[part for part, _ in FLOOD_BREAKS])
def test_a_library_that_confirms_newcomers_wrongly_is_found_out(
    server: RedisServer, part: str, instead: str
) -> None:
    client = server.client()
    with broken_library(client, part, instead):
        assert (
            flooded(client, 1).found or flooded_for_seconds(client, 1).found or trickling(client, 1)
        )


PACE_BREAKS = (
    ("+ state.gap_us end\n", "+ 2 * state.gap_us end\n"),
    ("min(count, max(0, floor(left_us / state.gap_us)))", "count"),
    ("SAVED_VISITORS * state.gap_us", "state.gap_us"),
    ("source_of(s.overdraws, true)", "source_of(s.overdraws, false)"),
    ("spend(source, true)", "spend(source, false)"),
)


@pytest.mark.parametrize(("part", "instead"), PACE_BREAKS, ids=[part for part, _ in PACE_BREAKS])
def test_a_library_that_paces_wrongly_is_found_out(
    server: RedisServer, part: str, instead: str
) -> None:
    client = server.client()
    with broken_library(client, part, instead):
        assert crowded_at_once(client, 100_000) + crowded_at_once(client, 500_000) != []


@pytest.mark.parametrize(("part", "instead", "first"), BREAKS, ids=[part for part, _, _ in BREAKS])
def test_a_library_that_is_broken_on_purpose_is_found_out(
    server: RedisServer, part: str, instead: str, first: int
) -> None:
    client = server.client()
    with broken_library(client, part, instead):
        assert any(found_out(client, seed, "TABLE" in part) for seed in (first, *range(60)))


def found_out(client: redis.Redis, seed: int, table: bool) -> bool:
    try:
        return bool(walk(client, seed, table=table))
    except redis.ResponseError:
        return True
