"""A visitor who is away keeps the place until `claim_minutes` after its turn, holds nobody up, and
never enters twice, with whatever copies of tickets and links, whenever the process dies.
"""

from dataclasses import replace
from random import Random

import pytest
from admission_world import START_MS, FlakyJournal, HandClock, answer_of, small_room, ticket_id
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from redis_twin import Twin
from redis_world import RedisServer, broken_library

from greenroom.admission.ledger import ledger as ledger_module
from greenroom.admission.ledger.turns import STEP_MS, Turns
from greenroom.decision.moving_place import successor
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.room import Room
from greenroom.model.visit import AWAY_MAX_MS, Outcome, Standing, make_key

PAUSES = st.sampled_from((0, 300, 2_000, 14_999, 20_000, 61_000, 250_000, 595_000, 700_000))
CLAIM_MS = 600_000
MINUTE_MS = 60_000
WAITING, ADMITTED, GONE = Standing.WAITING, Standing.ADMITTED, Standing.GONE


def away_room(**more: object) -> Room:
    return small_room(**{"calendar_after_minutes": 1, "claim_minutes": 10} | more)


class Person:
    """`taken_ms`: by id, when its ticket of somebody absent was given out; copies never go away."""

    def __init__(self, ticket_id: bytes, key: int) -> None:
        self.ids = [ticket_id]
        self.key = key
        self.taken_ms: dict[bytes, int] = {}
        self.admitted = 0
        self.left = False


class AbsentMachine(RuleBasedStateMachine):
    @initialize(inside=st.integers(1, 3), minute=st.integers(1, 4), session=st.integers(1, 3))
    def opens(self, inside: int, minute: int, session: int) -> None:
        self.clock, self.disk, self.random = HandClock(), FlakyJournal(), Random(7)
        self.room = away_room(
            total_active_users=inside, new_users_per_minute=minute, session_duration=session
        )
        self.ledger = MemoryLedger(self.room, self.clock, self.random.getrandbits, self.disk)
        self.people: list[Person] = []
        self.admissions: list[int] = []
        self.turns: list[tuple[int, int]] = []  # when, the highest key that had a turn by then
        self.idle_ms = 0

    @property
    def now_ms(self) -> int:
        return self.clock.now_ms()

    def turn_came_ms(self, key: int) -> int | None:
        """By what was seen from outside."""
        return next((at_ms for at_ms, passed in self.turns if passed >= key), None)

    def entered(self, person: Person, outcome: Outcome, waited: bool = True) -> None:
        if outcome.standing is ADMITTED:
            person.admitted += 1
            self.admissions.append(self.now_ms)
            if waited:
                self.turns.append((self.now_ms, person.key))

    @rule(count=st.integers(1, 3))
    def newcomers(self, count: int) -> None:
        for _ in range(count):
            number = len(self.people)
            person = Person(ticket_id(number + 1), make_key(self.now_ms, number))
            self.people.append(person)
            outcome = answer_of(self.ledger.arrive, person.ids[0], person.key)
            self.entered(person, outcome, waited=False)
            if outcome.standing is WAITING:
                self.clock.ms += outcome.refresh_ms
                self.polls(person, person.ids[0])

    def polls(self, person: Person, one: bytes) -> Outcome:
        outcome = answer_of(self.ledger.poll, one, person.key)
        self.entered(person, outcome)
        if outcome.standing is WAITING:
            person.taken_ms[one] = self.now_ms
        return outcome

    def pick(self, index: int, which: int) -> tuple[Person, bytes]:
        person = self.people[index % len(self.people)]
        return person, person.ids[which % len(person.ids)]

    @precondition(lambda self: self.people)
    @rule(index=st.integers(0, 99), which=st.integers(0, 99))
    def somebody_returns(self, index: int, which: int) -> None:
        person, one = self.pick(index, which)
        if self.now_ms - person.taken_ms.get(one, -AWAY_MAX_MS) > AWAY_MAX_MS:
            return
        promised = self.is_promised(person, one)
        known = answer_of(self.ledger.reclaim, one, person.key)
        assert not promised or known.standing is not GONE, "a place was not kept"
        if known.standing is not GONE:
            outcome = self.polls(person, one)
            line = self.ledger.ledger.line
            if outcome.standing is WAITING:
                assert line.rank(person.key) == sum(
                    line.keys[slot] < person.key for slot in line.slots.values()
                ), "somebody who returned is not at the old place"

    def is_promised(self, person: Person, one: bytes) -> bool:
        came_ms = self.turn_came_ms(person.key)
        over = came_ms is not None and self.now_ms >= came_ms + CLAIM_MS
        idle = 0 < self.idle_ms <= self.now_ms - CLAIM_MS
        latest = one == person.ids[-1]
        return latest and not (over or idle or person.admitted or person.left)

    @precondition(lambda self: self.people)
    @rule(index=st.integers(0, 99), which=st.integers(0, 99))
    def somebody_browses(self, index: int, which: int) -> None:
        answer_of(self.ledger.view, self.pick(index, which)[1])

    @precondition(lambda self: self.people)
    @rule(index=st.integers(0, 99))
    def somebody_leaves(self, index: int) -> None:
        person, one = self.pick(index, -1)
        self.ledger.leave(one)
        person.left = True

    @precondition(lambda self: self.people)
    @rule(index=st.integers(0, 99), which=st.integers(0, 99), presses=st.integers(1, 2))
    def a_link_is_pressed(self, index: int, which: int, presses: int) -> None:
        """The link of an entry is good as long as the ticket."""
        person, old = self.pick(index, which)
        known = answer_of(self.ledger.reclaim, old, person.key)
        if old not in person.taken_ms or known.standing is GONE:
            return
        new, answers = successor(old), []
        for _ in range(presses):
            self.ledger.move(old, new, True, answers.append)
        moved = [one for one in answers if one.standing is not GONE and not one.storage_failed]
        assert len(moved) <= 1, "a link was used twice"
        if moved:
            person.ids = [*(one for one in person.ids if one != new), new]
            person.taken_ms[new] = self.now_ms

    @rule(pause_ms=PAUSES)
    def time_passes(self, pause_ms: int) -> None:
        self.clock.ms += pause_ms
        self.ledger.tick()

    @rule()
    def the_process_is_killed(self) -> None:
        self.ledger = MemoryLedger.restore(
            self.room, self.clock, self.random.getrandbits, self.disk, list(self.disk.payloads)
        )

    @rule()
    def the_journal_is_written_afresh(self) -> None:
        self.disk.payloads[:] = list(self.ledger.snapshot())

    @invariant()
    def nobody_enters_twice_and_limits_are_kept(self) -> None:
        if not hasattr(self, "people"):
            return
        ledger = self.ledger.ledger
        if ledger._would_admit_anybody():
            self.idle_ms = self.idle_ms or self.now_ms
        for person in self.people:
            assert person.admitted <= 1, "one place let somebody in twice"
            assert sum(one in ledger.line.slots for one in person.ids) <= 1, "two places"
        living = [
            renewed_ms
            for renewed_ms in ledger.sessions.renewals().values()
            if self.now_ms < renewed_ms + ledger.life_ms
        ]
        assert len(living) <= self.room.total_active_users
        recent = [at_ms for at_ms in self.admissions if at_ms > self.now_ms - MINUTE_MS]
        assert len(recent) <= self.room.new_users_per_minute
        assert self.ledger.problems() == []


def walks(count: int) -> None:
    run_state_machine_as_test(
        AbsentMachine,
        settings=settings(max_examples=count, stateful_step_count=40, deadline=None),
    )


def test_absent_visitors_keep_their_place_and_enter_once() -> None:
    walks(examples(150))


# -- one walk, and rules that break it -------------------------------------------------------------


PAUSES_AFTER_MS = (1_000, 340_000, CLAIM_MS - 20_000, CLAIM_MS + 30_000, 2_000_000)


def story(pause_ms: int) -> list[str]:
    """Somebody goes away for hours and returns so long after the turn; what is wrong then."""
    clock, disk, random = HandClock(), FlakyJournal(), Random(3)
    room = away_room(total_active_users=1, new_users_per_minute=60, session_duration=1)
    ledger = MemoryLedger(room, clock, random.getrandbits, disk)
    keys = {number: make_key(clock.ms + number, number) for number in range(1, 8)}
    answer_of(ledger.arrive, ticket_id(20), 0)
    for number, key in keys.items():
        answer_of(ledger.poll, ticket_id(number), key)
    ledger.leave(ticket_id(20))
    entered: list[int] = []
    for _ in range(500):  # 1 goes away at once, the others come in turn and leave
        clock.ms += 2_000
        ledger.tick()
        number = len(entered) + 2
        if answer_of(ledger.poll, ticket_id(number), keys[number]).standing is ADMITTED:
            entered.append(number)
            ledger.leave(ticket_id(number))
        if len(entered) == 2:
            break
    for step in range(pause_ms // 1_000):
        clock.ms += 1_000
        if step % 10 == 0:
            ledger.tick()
    ledger = MemoryLedger.restore(room, clock, random.getrandbits, disk, list(disk.payloads))
    wrong = []
    known = answer_of(ledger.reclaim, ticket_id(1), keys[1])
    if (known.standing is not GONE) is (pause_ms >= CLAIM_MS + STEP_MS):
        wrong.append("the place was given up too soon, or kept too long")
    if known.called is (known.standing is GONE):
        wrong.append("it is not said that the turn has come")
    for number in entered:
        if answer_of(ledger.reclaim, ticket_id(number), keys[number]).standing is not GONE:
            wrong.append("a copy of the ticket leads in again")
    return wrong


@pytest.mark.parametrize("pause_ms", PAUSES_AFTER_MS)
def test_a_place_waits_for_ten_minutes_after_its_turn(pause_ms: int) -> None:
    assert story(pause_ms) == []


BROKEN = {
    "spent ids are forgotten early": lambda m: m.setattr(ledger_module, "KEPT_MS", 300_000),
    "the claim is shorter": lambda m: m.setattr(
        Turns, "holds", lambda self, key, claim_ms, now_ms: key > self.passed
    ),
    "turns are not noted": lambda m: m.setattr(Turns, "admitted", lambda self, key, now_ms: 0),
    "turns are not written down": lambda m: m.setattr(
        ledger_module, "pack_turn", lambda at_ms, key: ledger_module.pack(0, bytes(12), 0)
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_rules_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BROKEN[name](monkeypatch)
    assert any(story(pause_ms) for pause_ms in PAUSES_AFTER_MS)


def test_a_place_that_moved_is_not_taken_by_an_old_copy() -> None:
    clock, random = HandClock(), Random(3)
    room = away_room(total_active_users=1, session_duration=60)
    ledger = MemoryLedger(room, clock, random.getrandbits)
    answer_of(ledger.arrive, ticket_id(9), 0)
    key = make_key(clock.ms, 1)
    answer_of(ledger.poll, ticket_id(1), key)
    ledger.move(ticket_id(1), ticket_id(2), False, lambda _: None)
    clock.ms += 3_000_000
    ledger.tick()
    assert answer_of(ledger.reclaim, ticket_id(1), key).standing is GONE
    assert answer_of(ledger.reclaim, ticket_id(2), key).standing is WAITING


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 60_000), st.integers(0, 9)), max_size=200),
    st.integers(0, 2_000_000),
    st.integers(0, 1_000),
)
def test_a_place_is_over_when_its_turn_no_longer_holds(
    admissions: list[tuple[int, int]], pause_ms: int, key: int
) -> None:
    turns, now_ms, last = Turns(), 0, 0
    for gap_ms, more in admissions:
        now_ms, last = now_ms + gap_ms, last + more
        if last > turns.passed:
            turns.admitted(last, now_ms)
    now_ms += pause_ms
    assert (key <= turns.over(CLAIM_MS, now_ms)) is not turns.holds(key, CLAIM_MS, now_ms)


# -- capacity --------------------------------------------------------------------------------------


MINUTES = 21


def crowd(absent: bool) -> tuple[int, int, int]:
    """How many of 1,700 enter at 60 a minute, with half of them away until their turn or later: in
    all, of those who were away, and how many came too late.
    """
    clock, random = HandClock(), Random(5)
    room = away_room(
        total_active_users=10_000, new_users_per_minute=60, session_duration=60, queue_all=True
    )
    ledger = MemoryLedger(room, clock, random.getrandbits)
    keys = {number: make_key(START_MS + number, number) for number in range(1, 1_701)}
    away = [number for number in keys if absent and number % 2]
    due = {2 + start: list(keys)[start::5] for start in range(5)}
    returned: set[int] = set()
    entered = late = missed = 0
    for second in range(60 * MINUTES):
        clock.ms = START_MS + 4_000 + second * 1_000
        if second == 8:
            ledger.configure(replace(room, queue_all=False))
        ledger.tick()
        turns = ledger.ledger.turns
        while turns and away and keys[away[0]] <= turns.passed:
            number = away.pop(0)
            back = second + random.choice((1, 30, 120, 300, 590, 640))
            returned.add(number)
            due.setdefault(back, []).append(number)
        for number in due.pop(second, ()):
            one, key = ticket_id(number), keys[number]
            if absent and number % 2 and second > 7 and number not in returned:
                continue
            if answer_of(ledger.reclaim, one, key).standing is GONE:
                missed += 1
                continue
            outcome = answer_of(ledger.poll, one, key)
            if outcome.standing is ADMITTED:
                entered += 1
                late += number in returned
            elif outcome.standing is WAITING:
                due.setdefault(second + max(1, outcome.refresh_ms // 1_000), []).append(number)
    return entered, late, missed


def test_half_of_the_line_away_leaves_no_capacity_unused() -> None:
    present, _, _ = crowd(absent=False)
    entered, late, missed = crowd(absent=True)
    print(f"{present} enter, with half away {entered}, {late} of those; {missed} came too late")
    assert late > 300
    assert missed > 50
    assert entered >= present * 0.995


# -- Redis -----------------------------------------------------------------------------------------


def walk(server: RedisServer) -> list[str]:
    """Of a growing line some stay away, and all try with old tickets again."""
    twin = Twin(server.client(), away_room(total_active_users=1, session_duration=1), 4)
    twin.sync()
    keys: dict[int, int] = {}
    for step in range(300):
        twin.advance((2_000, 9_000, 16_000, 31_000)[step % 4])
        twin.sync()
        if step % 3 == 0 and step < 120:
            number = len(keys) + 1
            keys[number] = make_key(twin.now_ms, number)
            twin.arrive(ticket_id(number))
            twin.poll(ticket_id(number), keys[number])
        for number, key in keys.items():
            known = twin.reclaim(ticket_id(number), key)
            absent = number % 3 == 1
            if not absent and known.standing is not GONE:
                twin.poll(ticket_id(number), key)
            if (
                not absent
                and step % 11 == number % 11
                and (known.standing is Standing.ACTIVE or step % 5 == 0)
            ):
                twin.leave(ticket_id(number))
        if step % 50 == 45:
            twin.move(ticket_id(step // 50 * 7 + 20), ticket_id(100 + step), True)
        twin.compare()
        if twin.found:
            break
    return twin.found


def moved(server: RedisServer) -> list[str]:
    """An old ticket is tried again long after its place moved, before the turn came."""
    twin = Twin(server.client(), away_room(total_active_users=1, session_duration=60), 5)
    twin.sync()
    twin.arrive(ticket_id(9))
    key = make_key(twin.now_ms, 1)
    twin.poll(ticket_id(1), key)
    twin.move(ticket_id(1), ticket_id(2), False)
    for _ in range(30):
        twin.advance(100_000)
        twin.sync()
        twin.reclaim(ticket_id(1), key)
    return twin.found


def test_redis_keeps_the_same_places(server: RedisServer) -> None:
    assert walk(server) == []
    assert moved(server) == []


@pytest.mark.parametrize(
    ("whole", "broken"),
    [
        ("(watches_turns() and PLACE_CLAIMED_MS or PLACE_KEPT_MS)", "PLACE_KEPT_MS"),
        ("now + (watches_turns() and AWAY_MAX_MS or 0)", "now"),
        ("if watches_turns() then turn_came(key) end", ""),
        ("now < at_ms + s.claim_ms + TURN_STEP_MS", "now < at_ms + s.claim_ms"),
        ("or key > state.passed then return", "then return"),
        ("at_ms > now - s.claim_ms - TURN_STEP_MS", "at_ms > now - s.claim_ms"),
    ],
)
def test_a_broken_redis_is_found(server: RedisServer, whole: str, broken: str) -> None:
    client = server.client()
    with broken_library(client, whole, broken):
        assert walk(server) or moved(server)
