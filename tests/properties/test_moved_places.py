"""One place stays one place, however often and in whatever order its links and tickets are used, and
whenever the process dies or the disk fails.
"""

import inspect
from collections.abc import Callable, Iterator
from random import Random

import pytest
import redis
from admission_world import START_MS, FlakyJournal, HandClock, answer_of, small_room, ticket_id
from examples import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from place_trials import PureCenter, RedisCenter, TwoCenters
from redis_world import TRIAL_LIBRARY, broken_library

from greenroom.admission.ledger import moving_places
from greenroom.admission.ledger.failures import KEPT, USED, WINDOW_MS
from greenroom.admission.ledger.moving_turns import MovingTurns
from greenroom.admission.ledger.state import LedgerState
from greenroom.admission.messages.places import ASK, CANCEL, COMMIT
from greenroom.admission.messages.turns import EVERYWHERE, TurnsDown
from greenroom.decision.moving_place import CODE_MS, successor
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.visit import PLACE_KEPT_MS, Outcome, Standing, make_key

PAUSES = st.sampled_from((0, 1, 300, 2_000, 20_000, 59_999, 61_000, 250_000, 301_000))
MINUTE_MS = 60_000
ACTIVE, WAITING, GONE = Standing.ACTIVE, Standing.WAITING, Standing.GONE


class Person:
    """A place with everything that devices may keep of it. `seen_ms`: by id, when its waiting
    ticket was answered last.
    """

    def __init__(self, ticket_id: bytes, key: int, now_ms: int) -> None:
        self.ids = [ticket_id]
        self.key = key
        self.seen_ms = {ticket_id: now_ms}
        self.codes: list[tuple[bytes, int, int]] = []  # id, its last check-in, made at
        self.admitted = 0


class MovingMachine(RuleBasedStateMachine):
    @initialize(
        inside=st.integers(1, 3),
        minute=st.integers(1, 4),
        method=st.sampled_from(("fifo", "random")),
    )
    def opens(self, inside: int, minute: int, method: str) -> None:
        self.clock, self.disk, self.random = HandClock(), FlakyJournal(), Random(7)
        self.room = small_room(
            total_active_users=inside, new_users_per_minute=minute, queueing_method=method
        )
        self.ledger = MemoryLedger(self.room, self.clock, self.random.getrandbits, self.disk)
        self.people: list[Person] = []
        self.admissions: list[int] = []

    @property
    def now_ms(self) -> int:
        return self.clock.now_ms()

    def entered(self, person: Person, outcome: Outcome) -> None:
        if outcome.standing is Standing.ADMITTED:
            person.admitted += 1
            self.admissions.append(self.now_ms)

    @rule(count=st.integers(1, 3))
    def newcomers(self, count: int) -> None:
        for _ in range(count):
            number = len(self.people)
            ticket_id = (number + 1).to_bytes(12, "big")
            person = Person(ticket_id, make_key(self.now_ms, number), self.now_ms)
            self.people.append(person)
            outcome = answer_of(self.ledger.arrive, ticket_id, person.key)
            self.entered(person, outcome)
            if outcome.standing is Standing.WAITING:
                self.clock.ms += outcome.refresh_ms
                self.try_with(person, ticket_id)

    def pick(self, index: int, which: int) -> tuple[Person, bytes]:
        person = self.people[index % len(self.people)]
        return person, person.ids[which % len(person.ids)]

    @precondition(lambda self: self.people)
    @rule(index=st.integers(0, 99), which=st.integers(0, 99))
    def a_device_tries(self, index: int, which: int) -> None:
        person, ticket_id = self.pick(index, which)
        if self.now_ms - person.seen_ms.get(ticket_id, -PLACE_KEPT_MS) > PLACE_KEPT_MS:
            return
        self.try_with(person, ticket_id)

    def try_with(self, person: Person, ticket_id: bytes) -> None:
        outcome = answer_of(self.ledger.poll, ticket_id, person.key)
        self.entered(person, outcome)
        if outcome.standing is Standing.WAITING:
            person.seen_ms[ticket_id] = self.now_ms

    @precondition(lambda self: self.people)
    @rule(index=st.integers(0, 99), which=st.integers(0, 99))
    def a_device_browses(self, index: int, which: int) -> None:
        answer_of(self.ledger.view, self.pick(index, which)[1])

    @precondition(lambda self: self.people)
    @rule(index=st.integers(0, 99), which=st.integers(0, 99), press=st.booleans())
    def a_link_is_made(self, index: int, which: int, press: bool) -> None:
        person, ticket_id = self.pick(index, which)
        person.codes.append((ticket_id, person.seen_ms.get(ticket_id, 0), self.now_ms))
        if press:
            self.press(person, len(person.codes) - 1, 1)

    @precondition(lambda self: any(person.codes for person in self.people))
    @rule(index=st.integers(0, 99), which=st.integers(0, 99), presses=st.integers(1, 3))
    def a_link_is_pressed(self, index: int, which: int, presses: int) -> None:
        person = self.people[index % len(self.people)]
        if person.codes:
            self.press(person, which, presses)

    def press(self, person: Person, which: int, presses: int) -> None:
        old, checked_ms, made_ms = person.codes[which % len(person.codes)]
        if self.now_ms - made_ms > CODE_MS:
            return
        absent = self.now_ms - checked_ms <= PLACE_KEPT_MS
        moved = sum(self.move(person, old, absent) for _ in range(presses))
        assert moved <= 1, "a link was used twice"

    @precondition(lambda self: self.people)
    @rule(index=st.integers(0, 99), which=st.integers(0, 99))
    def a_place_is_taken_back(self, index: int, which: int) -> None:
        person, _ = self.pick(index, which)
        holding = [one for one in person.ids if self.holds(one)]
        if holding:
            self.move(person, holding[0], False)

    def move(self, person: Person, old: bytes, absent: bool) -> bool:
        new, unknown = successor(old), []
        held = self.holds(old)
        self.ledger.move(old, new, absent, unknown.append)
        (outcome,) = unknown
        moved = outcome.standing is not Standing.GONE and not outcome.storage_failed
        if held and not moved:
            assert self.holds(old), "a place was lost that did not move"
            seen = answer_of(self.ledger.peek, old, person.key)
            assert seen.standing is not Standing.GONE, "a place was barred that did not move"
        if moved:
            assert not self.holds(old)
            assert self.holds(new) is held
            person.ids = list(dict.fromkeys((*person.ids, new)))
            person.seen_ms[new] = self.now_ms
        return moved

    def holds(self, ticket_id: bytes) -> bool:
        ledger = self.ledger.ledger
        renewed_ms = ledger.sessions.renewed(ticket_id)
        lives = renewed_ms is not None and self.now_ms < renewed_ms + ledger.life_ms
        return lives or ticket_id in ledger.line.slots

    @rule(pause_ms=PAUSES)
    def time_passes(self, pause_ms: int) -> None:
        self.clock.ms += pause_ms
        self.ledger.tick()

    @rule()
    def the_process_is_killed(self) -> None:
        whole = not self.ledger.storage_failed
        held = [one for person in self.people for one in person.ids if self.holds(one)]
        self.disk.failing = False
        self.ledger = MemoryLedger.restore(
            self.room, self.clock, self.random.getrandbits, self.disk, list(self.disk.payloads)
        )
        assert not whole or all(map(self.holds, held)), "a place was not written down"

    @rule(fails=st.booleans())
    def the_disk_changes(self, fails: bool) -> None:
        self.disk.failing = fails

    @invariant()
    def one_place_is_one_place(self) -> None:
        for person in getattr(self, "people", ()):
            assert sum(map(self.holds, person.ids)) <= 1
            assert person.admitted <= 1

    @invariant()
    def limits_are_kept(self) -> None:
        if hasattr(self, "people"):
            inside = sum(self.holds(one) for one in self.ledger.ledger.sessions.inside)
            assert inside <= self.room.total_active_users
            recent = [at_ms for at_ms in self.admissions if at_ms > self.now_ms - MINUTE_MS]
            assert len(recent) <= self.room.new_users_per_minute
            assert self.ledger.problems() == []


def test_one_place_stays_one_place() -> None:
    run_state_machine_as_test(
        MovingMachine, settings=settings(max_examples=examples(150), stateful_step_count=40)
    )


# -- among data centers ------------------------------------------------------


def two(params: object, client: redis.Redis, **changes: object) -> TwoCenters:
    room = small_room(
        **{"total_active_users": 1, "new_users_per_minute": 60, "session_duration": 1} | changes
    )
    names = ("dc0", "dc1")
    if params == "memory":
        return TwoCenters([PureCenter(room, name) for name in names])
    client.flushall()
    return TwoCenters([RedisCenter(client, room, name) for name in names])


@pytest.fixture(params=["memory", "redis"])
def world(request: pytest.FixtureRequest, client: redis.Redis) -> Iterator[TwoCenters]:
    found = two(request.param, client)
    yield found
    for center in (found.here, found.there):
        assert not isinstance(center, RedisCenter) or center.found == []


KEY = make_key(START_MS, 1)


@pytest.mark.parametrize("pressed", [0, 1])
def test_a_kept_turn_moves_and_is_given_once(world: TwoCenters, pressed: int) -> None:
    centers = (world.here, world.there)[:: -1 if pressed else 1]
    here, one, new = centers[0], world.one, world.new
    world.keeps_a_turn(world.here, one)
    assert here.move(one, new, False, 7, world.now_ms).searching
    for center in centers:
        world.sync(1, *centers)
        assert not center.view(one, world.now_ms).kept_ms
        assert center.reenter(one, KEY, world.now_ms).standing in (WAITING, GONE)
        assert center.view(one, world.now_ms).standing is not ACTIVE
    world.sync(6, *centers)
    assert world.has_moved(here, one)
    for center in centers:
        assert center.view(one, world.now_ms).moved
        assert center.reenter(one, KEY, world.now_ms).moved
    assert world.turn_after_a_failure(centers[1], new).standing is GONE
    assert not world.here.view(new, world.now_ms).kept_ms


def test_a_turn_that_did_not_move_is_where_it_was(world: TwoCenters) -> None:
    here, one = world.here, world.one
    world.keeps_a_turn(here, one)
    assert here.move(one, world.new, False, 7, world.now_ms).searching
    assert here.reenter(one, KEY, world.now_ms).searching
    world.sync(2, here, every_ms=8_000)
    assert world.move(here, one).storage_failed
    world.sync(6, here, world.there)
    assert here.view(one, world.now_ms).kept_ms
    assert here.reenter(one, KEY, world.now_ms).standing is not GONE


def test_the_turn_of_a_session_that_has_moved_is_taken_back(world: TwoCenters) -> None:
    here, there, one, new = world.here, world.there, world.one, world.new
    assert world.admits(here, one, here, there)
    assert world.move(here, one).searching
    world.sync(6, here, there)
    assert world.move(here, one).standing is ACTIVE
    assert here.fail(new, world.now_ms).standing is ACTIVE
    world.sync(8, here, there, every_ms=9_000)
    for center in (here, there):
        assert center.view(one, world.now_ms).moved
    assert here.view(new, world.now_ms).kept_ms
    assert there.move(new, successor(new), False, 8, world.now_ms).searching
    world.sync(6, here, there)
    assert there.move(new, successor(new), False, 8, world.now_ms).standing is WAITING
    assert world.admits(there, successor(new), here, there)
    assert here.reenter(new, KEY, world.now_ms).moved


@pytest.mark.parametrize("left_ms", [2_500, 3_500, 4_500, 5_500])
def test_a_session_whose_time_ends_on_its_way_is_a_kept_turn(
    world: TwoCenters, left_ms: int
) -> None:
    here, there, one, new = world.here, world.there, world.one, world.new
    assert world.admits(here, one, here, there)
    failed = here.fail(one, world.now_ms)
    while (more_ms := failed.expires_ms - left_ms - world.now_ms) > 0:
        world.sync(1, here, there, every_ms=min(more_ms, 2_000))
    assert there.move(one, new, False, 8, world.now_ms).searching
    for _ in range(8):
        world.sync(1, there, here)
        moved = there.move(one, new, False, 8, world.now_ms)
        if not moved.searching:
            break
    active = there.view(new, world.now_ms).standing is ACTIVE
    assert moved.standing is (ACTIVE if active else WAITING)


@pytest.mark.parametrize("state", [KEPT, USED])
def test_what_comes_late_of_the_old_id_goes_on_to_the_new_one(
    world: TwoCenters, state: int
) -> None:
    there, one, new = world.there, world.one, world.new
    world.fill(there)
    world.relays(there, (one, new, world.here.name, 1, COMMIT))
    row = (one, world.here.name, 5, 60_000, 30 if state == USED else 600, state)
    for _ in range(2):
        world.tells(there, turns=TurnsDown(True, rows=(row,)))
    assert world.asks(there, one).moved
    assert there.reenter(one, KEY, world.now_ms).moved
    moves = there.report(world.now_ms).moves
    assert moves is not None
    assert moves.turns is not None
    sent = {(found[:2], found[-1]) for found in moves.turns.rows}
    assert sent == {
        ((new, to), state)
        for to in ((world.here.name,) if state == KEPT else (world.here.name, EVERYWHERE))
    }


def test_a_kept_turn_that_is_on_its_way_follows_the_move(world: TwoCenters) -> None:
    """It was sought from the other data center before that heard of the press."""
    here, there, one = world.here, world.there, world.one
    world.keeps_a_turn(here, one)
    world.sync(1, here, there)
    assert there.visit(one, KEY, here.name, world.now_ms - 70_000, world.now_ms).searching
    world.sync(1, there)
    assert here.move(one, world.new, False, 7, world.now_ms).searching
    world.sync(8, here, there)
    assert world.has_moved(here, one)


def stories(worlds: Callable[[], TwoCenters]) -> None:
    for pressed in (0, 1):
        test_a_kept_turn_moves_and_is_given_once(worlds(), pressed)
    test_a_turn_that_did_not_move_is_where_it_was(worlds())
    test_the_turn_of_a_session_that_has_moved_is_taken_back(worlds())
    for state in (KEPT, USED):
        test_what_comes_late_of_the_old_id_goes_on_to_the_new_one(worlds(), state)
    test_a_kept_turn_that_is_on_its_way_follows_the_move(worlds())


def revives(ledger: LedgerState, ticket_id: bytes) -> None:
    ledger.sessions.revive(ticket_id)


@pytest.mark.parametrize(
    ("where", "name", "broken"),
    [
        (LedgerState, "_revive", revives),
        (moving_places, "take_turn", lambda *_: False),
        (moving_places, "row_moves", lambda *_: False),
        (moving_places, "arrived", lambda *_: None),
        (MovingTurns, "leave", lambda *_: []),
    ],
)
def test_a_kept_turn_that_moves_badly_is_found(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch, where: object, name: str, broken: object
) -> None:
    monkeypatch.setattr(where, name, broken)
    with pytest.raises(AssertionError):
        stories(lambda: two("memory", client))


@pytest.mark.parametrize(
    ("whole", "broken"),
    [
        ("if failures.is_kept(old) then return ID_SESSION end", ""),
        ("if told then return told end\n  if not (failures", "if not (failures"),
        ("if bar and bar[7] then return end", ""),
        ("elseif failures.use(ask.new) then", "elseif false then"),
        ("local late = failures.rename(old, new)", "local late"),
        ("elseif late or moved == WAITING then", "elseif moved == WAITING then"),
        ("do places.arrived(id_of(row[1])) end", "do end"),
    ],
)
def test_a_redis_that_moves_kept_turns_badly_is_found(
    client: redis.Redis, whole: str, broken: str
) -> None:
    pairs: list[TwoCenters] = []

    def world() -> TwoCenters:
        pairs.append(two("redis", client))
        return pairs[-1]

    with broken_library(client, whole, broken), pytest.raises(AssertionError):
        stories(world)
        for center in [center for pair in pairs for center in (pair.here, pair.there)]:
            assert isinstance(center, RedisCenter)
            assert center.found == []


AWAY_ROOM = small_room(
    total_active_users=40, new_users_per_minute=60, session_duration=1, calendar_after_minutes=1
)
"""Its tickets are good for a day."""


def test_of_too_many_bars_the_oldest_go_and_the_ids_stay_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(moving_places, "BARRED_MAX", 4)
    world = TwoCenters([PureCenter(AWAY_ROOM, name) for name in ("dc0", "dc1")])
    assert moves_on_when_full(world) == []


@pytest.mark.parametrize(
    "broken", ["bar.moved and ", " and bar.at_ms <= old_ms", "del barred[one]"]
)
def test_a_ledger_that_forgets_bars_badly_is_found(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead = "pass" if broken.startswith("del") else ""
    source = inspect.getsource(moving_places._thin)
    assert source.count(broken) == 1
    exec(source.replace(broken, instead), moving_places.__dict__, found := {})
    monkeypatch.setattr(moving_places, "_thin", found["_thin"])
    monkeypatch.setattr(moving_places, "BARRED_MAX", 4)
    world = TwoCenters([PureCenter(AWAY_ROOM, name) for name in ("dc0", "dc1")])
    assert moves_on_when_full(world)


def moves_on_when_full(world: TwoCenters) -> list[str]:
    """What is wrong, where four bars are too many, and the end of one move is never heard of."""
    found, stuck, source = [], ticket_id(50), world.here.name
    world.relays(world.there, (stuck, successor(stuck), "dc9", 1, ASK))
    moved = [ticket_id(number) for number in range(1, 5)]
    for one in moved:
        assert world.move(world.here, one).searching
        world.sync(6, world.here, world.there)
        assert world.has_moved(world.here, one)
    another = ticket_id(9)
    world.sync(1, world.here, world.there, every_ms=WINDOW_MS // 2)
    age_ms = WINDOW_MS // 2 + 40_000  # of a failure before the move
    row = (moved[0], source, 1, age_ms, age_ms // 1_000 + 600, KEPT)
    world.tells(world.there, turns=TurnsDown(True, rows=(row,)))
    if world.there.view(moved[0], world.now_ms).kept_ms:
        found.append("the old device has the turn")
    assert world.move(world.here, another).storage_failed or found
    world.sync(1, world.here, world.there, every_ms=WINDOW_MS // 2 + 60_000)
    world.sync(3, world.here, world.there)
    if not world.move(world.here, another).searching:
        found.append("no move is begun")
    for _ in range(22):
        for one in moved:
            for center in (world.here, world.there):
                if world.asks(center, one).standing is not Standing.GONE:
                    found.append("the old device has a place")
        world.sync(1, world.here, world.there, every_ms=3_600_000)
    world.relays(world.there, (stuck, successor(stuck), "dc9", 1, CANCEL))
    if world.asks(world.there, stuck).standing is Standing.GONE:
        found.append("a place that did not move is lost")
    return found


@pytest.mark.parametrize("broken", ["", "bar[6] and ", " and bar[4] <= old_ms", "places.unbar(id)"])
def test_redis_forgets_the_same_bars(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    monkeypatch.setattr(moving_places, "BARRED_MAX", 4)
    text = TRIAL_LIBRARY.text
    whole = text[text.index("places.most =") : text.index("function places.save_bar")]
    assert not broken or whole.count(broken) == 1
    client.flushall()
    with broken_library(client, whole, whole.replace("MOVE_BARRED_MAX", "4").replace(broken, "")):
        pair = [RedisCenter(client, AWAY_ROOM, name) for name in ("dc0", "dc1")]
        moves_on_when_full(TwoCenters(list(pair)))
    assert any(center.found for center in pair) == (broken != "")
