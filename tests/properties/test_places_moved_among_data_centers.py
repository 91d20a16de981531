"""A place that moves to another device stays one place in all data centers: pressed at two of them
at once, links replayed, messages lost and late, data centers cut off, the coordinator killed.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis
from admission_world import START_MS, small_room, ticket_id
from place_trials import Center, PlaceTrial, PureCenter, RedisCenter, TwoCenters
from redis_world import TRIAL_LIBRARY, RedisServer, broken_library

from greenroom.admission.coordinator import place_relay
from greenroom.admission.ledger import barred_places, moving_places
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.messages.places import (
    ASK,
    BUSY,
    CANCEL,
    COMMIT,
    DONE,
    FREE,
    SESSION,
    PlacesDown,
    PlacesUp,
)
from greenroom.decision.moving_place import successor
from greenroom.model.visit import Outcome, Standing, make_key

ROOM = small_room(total_active_users=40, new_users_per_minute=60, session_duration=1)
STEPS = 320
"""Of a quarter of a second."""


def trial(seed: int, steps: int = STEPS, faults: bool = True) -> PlaceTrial:
    names = [f"dc{number}" for number in range(2 + seed % 2)]
    found = PlaceTrial(ROOM, [PureCenter(ROOM, name) for name in names], seed, 10_000, faults)
    found.run(steps)
    return found


@pytest.mark.parametrize(("seed", "faults"), [(0, True), (1, True), (2, False)])
def test_one_place_stays_one_place_in_all_data_centers(seed: int, faults: bool) -> None:
    found = trial(seed, faults=faults)
    assert found.found == []
    assert found.moved > 20
    assert found.back > 0


STRONG = replace(ROOM, strong_sessions=True)


def test_a_strong_room_loses_no_session_of_who_comes_back_while_it_follows() -> None:
    found = PlaceTrial(STRONG, [PureCenter(STRONG, f"dc{one}") for one in range(3)], 1, 0, False)
    found.run(STEPS)
    assert found.found == []


World = Callable[..., TwoCenters]


@pytest.fixture(params=["memory", "redis"])
def world_of(request: pytest.FixtureRequest) -> Iterator[World]:
    found: list[RedisCenter] = []

    def world(**changes: object) -> TwoCenters:
        room, names = replace(ROOM, **changes), ("dc0", "dc1")
        if request.param == "memory":
            return TwoCenters([PureCenter(room, name) for name in names])
        client: redis.Redis = request.getfixturevalue("client")
        client.flushall()
        found.extend([RedisCenter(client, room, name) for name in names])
        return TwoCenters(list(found))

    yield world
    assert all(center.found == [] for center in found)


@pytest.fixture
def world(world_of: World) -> TwoCenters:
    return world_of()


def test_a_session_that_is_sought_is_sought_no_more_while_it_moves(world: TwoCenters) -> None:
    """The unit that would come for it may be the orphan of another visitor."""
    here, there = world.here, world.there
    for center in (here, there):
        found = center.visit(world.one, make_key(START_MS, 1), "lost", world.now_ms, world.now_ms)
        assert found.standing is Standing.ACTIVE  # on trust
        moves = center.report(world.now_ms).moves
        assert moves is not None
        assert [one for one, *_ in moves.claims] == [world.one]
    assert world.move(here, world.one).searching
    world.relays(there, (world.one, world.new, here.name, 1, ASK))
    for center in (here, there):
        moves = center.report(world.now_ms).moves
        assert moves is not None
        assert moves.claims == ()


def test_who_was_not_asked_takes_the_old_id_out_of_the_line(world: TwoCenters) -> None:
    there = world.there
    world.fill(there)
    assert world.asks(there, world.one).position > 0
    waiting = there.report(world.now_ms).waiting
    world.relays(there, (world.one, world.new, world.here.name, 1, COMMIT))
    assert there.report(world.now_ms).waiting == waiting - 1
    assert world.asks(there, world.one).moved


def test_what_is_asked_again_is_answered_again_and_what_is_late_changes_nothing(
    world_of: World,
) -> None:
    world = world_of(calendar_after_minutes=1)  # tickets, and so bars, last for a day
    one, new, there, source = world.one, world.new, world.there, world.here.name
    assert world.relays(there, (one, new, source, 5, ASK)) == ((one, source, 5, ASK, FREE),)
    for _ in range(4):  # as long as it is relayed
        world.trial.now_ms += barred_places.SEEN_MS - 1_000
        assert world.relays(there, (one, new, source, 5, ASK)) == ((one, source, 5, ASK, FREE),)
    assert world.relays(there, (one, new, source, 5, CANCEL)) == ((one, source, 5, CANCEL, DONE),)
    assert world.relays(there, (one, new, source, 5, ASK)) == ()
    assert world.relays(there, (one, new, source, 4, CANCEL)) == ((one, source, 4, CANCEL, DONE),)
    assert world.asks(there, one).standing is not Standing.GONE


def test_a_bar_is_lifted_only_by_its_own_move(world: TwoCenters) -> None:
    """A source that lost its state may have committed what it asks about again."""
    one, new, there, source = world.one, world.new, world.there, world.here.name
    world.relays(there, (one, new, source, 5, ASK))
    assert world.relays(there, (one, new, source, 6, ASK)) == ((one, source, 6, ASK, BUSY),)
    world.relays(there, (one, new, source, 6, CANCEL))
    assert world.asks(there, one).searching
    world.relays(there, (one, new, "dc2", 5, CANCEL))
    assert world.asks(there, one).searching
    world.trial.now_ms += barred_places.TOLD_MS
    assert world.asks(there, one).moved


def test_a_session_that_comes_late_goes_on_to_its_visitor(world: TwoCenters) -> None:
    here, there, arrivals = world.here, world.there, ((world.one, 0),)
    world.relays(there, (world.one, world.new, here.name, 5, COMMIT))
    world.tells(there, arrived=1, arrivals=arrivals)
    moves = there.report(world.now_ms).moves
    assert moves is not None
    assert [gift[:2] for gift in moves.gifts] == [(world.new, here.name)]
    assert there.view(world.one, world.now_ms).moved


@pytest.mark.parametrize("on_the_way", [False, True])
def test_of_two_sessions_the_old_device_has_none_when_the_new_one_enters(
    world: TwoCenters, on_the_way: bool
) -> None:
    """A copied ticket, or a permit that replaced a session behind a cut."""
    here, there, one = world.here, world.there, world.one
    for center in (here, there):
        assert world.admits(center, one, here, there)
    if on_the_way:
        world.tells(there, wanted=((one, "dc2"),))
    assert world.move(here, one).searching
    world.sync(1, here, there, there, here)
    if on_the_way:
        world.tells(there, arrived=1, arrivals=((one, 0),))
    assert there.view(one, world.now_ms).standing is Standing.ACTIVE
    assert world.move(here, one).searching
    world.sync(1, here, there)
    assert there.view(one, world.now_ms).moved
    world.sync(1, there, here)
    assert world.move(here, one).standing is Standing.ACTIVE


def test_what_nobody_knows_does_not_move(world: TwoCenters) -> None:
    """A code of a session that is over everywhere."""
    press = (world.one, world.new, False, 7)
    assert world.here.move(*press, world.now_ms).searching
    world.sync(6, world.here, world.there)
    assert world.here.move(*press, world.now_ms).standing is Standing.GONE
    assert rows_of(world.here)["barred"] == rows_of(world.there)["barred"] == 0


def test_a_second_press_finds_the_link_used_while_the_first_is_not_known_everywhere(
    world: TwoCenters,
) -> None:
    here, there, another = world.here, world.there, 8
    assert world.move(here, world.one).searching
    assert world.move(here, world.one, another).standing is Standing.GONE
    world.sync(1, here, there, there, here)
    assert world.has_moved(here, world.one)
    assert world.move(here, world.one, another).standing is Standing.GONE


def test_a_data_center_that_was_given_up_is_not_waited_for(world: TwoCenters) -> None:
    assert world.move(world.here, world.one).searching
    world.sync(2, world.here, every_ms=6_000)
    assert world.move(world.here, world.one).searching
    world.trial.coordinator.give_up(world.there.name, world.now_ms)
    world.sync(1, world.here)
    assert world.has_moved(world.here, world.one)


def test_what_a_ledger_asked_before_it_lost_its_state_is_asked_no_more() -> None:
    here, there = (PureCenter(ROOM, name) for name in ("dc0", "dc1"))
    world = TwoCenters([here, there])
    assert world.move(here, world.one).searching
    world.sync(1, here)
    here.ledger = Ledger(ROOM, here.name, world.now_ms, world.now_ms)
    world.sync(2, here, there)
    assert rows_of(there)["barred"] == 0


def test_a_session_is_waited_for_from_the_commit_on(world: TwoCenters) -> None:
    here, one = world.here, world.one
    assert world.move(here, one).searching
    moves = here.report(world.now_ms).moves
    assert moves is not None
    assert moves.places is not None
    ((*_, serial, _),) = moves.places.asks
    world.sync(2, here, every_ms=6_000)
    world.tells(here, places=PlacesDown((), ((one, serial, ASK, SESSION),)))
    world.sync(1, here, every_ms=6_000)
    assert world.move(here, one).searching
    world.sync(1, here, every_ms=9_000)
    assert world.move(here, one).standing is Standing.GONE


@pytest.mark.parametrize(
    ("source_too", "presses"), [(False, False), (False, True), (True, False), (True, True)]
)
def test_a_data_center_that_lost_its_state_learns_what_has_moved_before_it_admits(
    world: TwoCenters, source_too: bool, presses: bool
) -> None:
    """`source_too`: the data center where it was pressed, before the other one knows of the end.
    `presses`: the link, once more.
    """
    here, there = world.here, world.there
    assert world.move(here, world.one).searching
    if source_too:
        world.sync(1, here, there, there, here)
        assert there.view(world.one, world.now_ms).searching
    else:
        world.sync(8, here, there)
    assert world.has_moved(here, world.one)
    lost, other = (here, there) if source_too else (there, here)
    lost.lose(world.now_ms)
    if presses:
        world.sync(1, lost)
        assert world.move(lost, world.one, 9).searching
    assert not world.admits(lost, world.one, lost, other)
    assert lost.view(world.one, world.now_ms).moved
    assert world.admits(lost, ticket_id(2), lost, other)


def test_one_that_knows_nothing_of_moves_would_admit_the_old_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(place_relay.PlaceRelay, "has_learned", lambda *_: True)
    world = TwoCenters([PureCenter(ROOM, name) for name in ("dc0", "dc1")])
    assert world.move(world.here, world.one).searching
    world.sync(8, world.here, world.there)
    world.there.lose(world.now_ms)
    assert world.admits(world.there, world.one, world.there, world.here)


def lossy(seed: int) -> PlaceTrial:
    """Ledgers lose their state every 25 seconds."""
    centers = [PureCenter(ROOM, name) for name in ("dc0", "dc1")]
    found = PlaceTrial(ROOM, list(centers), seed, 10_000, faults=False, losses=0.04)
    found.run(400)
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_ledgers_that_lose_their_state_move_no_place_twice(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = lossy(seed)
    assert found.found == []
    assert found.moved > 20
    assert found.lost > 1
    monkeypatch.setattr(
        place_relay.PlaceRelay, "forget", lambda self, name, _: self._heard.pop(name, None)
    )
    assert lossy(seed).found, "without what others name"


def test_a_data_center_that_was_given_up_learns_what_has_moved_since(world: TwoCenters) -> None:
    here, there = world.here, world.there
    world.sync(2, here, every_ms=6_000)
    world.trial.coordinator.give_up(there.name, world.now_ms)
    assert world.move(here, world.one).searching
    world.sync(6, here)
    assert world.has_moved(here, world.one)
    world.sync(1, there)
    assert not world.admits(there, world.one, there, here)
    assert there.view(world.one, world.now_ms).moved


def test_who_does_not_say_what_has_moved_is_waited_for_as_long_as_messages_take(
    world: TwoCenters,
) -> None:
    here, there = world.here, world.there
    assert world.move(here, world.one).searching
    world.sync(8, here, there)
    there.lose(world.now_ms)
    assert not world.admits(there, ticket_id(2), there)
    world.sync(1, there, every_ms=place_relay.LEARNS_MS)
    assert world.admits(there, ticket_id(2), there)


def test_a_place_on_its_way_is_not_moved_on(world: TwoCenters) -> None:
    assert world.move(world.here, world.one).searching
    assert world.move(world.here, world.new).storage_failed


def test_a_data_center_that_is_cut_off_refuses_a_press_at_once(world: TwoCenters) -> None:
    world.trial.now_ms += 60_000
    assert world.move(world.here, world.one).storage_failed
    assert rows_of(world.here)["barred"] == 0


@pytest.mark.parametrize(("moves", "then"), [(True, 0), (True, 1), (False, 0)])
def test_a_place_that_a_kept_turn_gave_gives_no_second_one_by_moving(
    world_of: World, moves: bool, then: int
) -> None:
    """`then`: where its visitor enters next."""
    world = world_of(total_active_users=1)
    here, one = world.here, world.one
    assert world.turn_after_a_failure(here, one).standing is Standing.WAITING
    world.sync(4, here, world.there)
    assert world.move(here, one).searching
    if moves:
        world.sync(6, here, world.there)
        assert world.has_moved(here, one)
        one = world.new
    else:
        world.trial.now_ms += barred_places.PENDING_MS
        assert world.move(here, one).storage_failed
        world.sync(6, here, world.there)
    center = (here, world.there)[then]
    assert world.turn_after_a_failure(center, one).standing is Standing.GONE


def test_of_two_presses_at_one_moment_one_wins() -> None:
    world = TwoCenters([PureCenter(ROOM, name) for name in ("dc0", "dc1")])
    assert world.pressed_at_one_moment() == [True, False]


@pytest.mark.parametrize("cut_s", [70, 7_200])
def test_a_place_that_has_not_moved_is_not_taken_back(cut_s: int) -> None:
    room = small_room(total_active_users=40, calendar_after_minutes=1)  # tickets last for a day
    world = TwoCenters([PureCenter(room, name) for name in ("dc0", "dc1")])
    assert world.takes_back_what_has_not_moved(cut_s).storage_failed
    for center in (world.here, world.there):
        found = center.poll(world.one, make_key(START_MS, 1), world.now_ms)
        assert found.standing is not Standing.GONE


def test_taking_back_what_has_not_moved_would_make_two_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(barred_places.MovingPlaces, "arrives", lambda *_: False)
    world = TwoCenters([PureCenter(ROOM, name) for name in ("dc0", "dc1")])
    taken = world.takes_back_what_has_not_moved(70)
    assert (taken.standing, taken.storage_failed) == (Standing.WAITING, False)


def test_open_moves_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving_places, "ASKED_MAX", 3)
    world = TwoCenters([PureCenter(ROOM, name) for name in ("dc0", "dc1")])
    pressed = [world.move(world.here, ticket_id(number)) for number in range(1, 6)]
    assert [outcome.storage_failed for outcome in pressed] == [False] * 3 + [True] * 2
    world.sync(6, world.here, world.there)
    assert world.has_moved(world.here, ticket_id(1))
    world.sync(barred_places.PENDING_MS // 500, world.here, world.there)
    assert world.move(world.here, ticket_id(5)).searching


TABLES = ("barred", "place_asks", "place_olds", "place_seen")


def rows_of(center: Center) -> dict[str, int]:
    """What is stored of moves."""
    if isinstance(center, RedisCenter):
        return {name: center.server.hlen(f"{center.place}:{name}") for name in TABLES}
    assert isinstance(center, PureCenter)
    places = center.ledger.moving_places
    tables = (places.barred, places.asked, places.olds, places.seen)
    return {name: len(table) for name, table in zip(TABLES, tables, strict=True)}


def test_questions_about_moves_are_bounded_and_forgotten() -> None:
    world = TwoCenters([PureCenter(ROOM, name) for name in ("dc0", "dc1")])
    is_asked_about_too_many(world, barred_places.ASKED_MAX, barred_places.SEEN_MAX)


def test_redis_bounds_and_forgets_questions_about_moves(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving_places, "SEEN_MAX", 40)
    client.flushall()
    with broken_library(client, "MOVE_SEEN_MAX", "40"):
        pair = [RedisCenter(client, ROOM, name) for name in ("dc0", "dc1")]
        is_asked_about_too_many(TwoCenters(list(pair)), 20, 40)
    assert [center.found for center in pair] == [[], []]


def is_asked_about_too_many(world: TwoCenters, most: int, remembered: int) -> None:
    """As many ids as a data center may ask about, four times one after the other."""
    there, source = world.there, world.here.name
    rounds = [
        [
            (ticket_id(1 + at * most + one), successor(b"%d" % one), source, 1 + at, ASK)
            for one in range(most)
        ]
        for at in range(4)
    ]
    for asks in rounds:
        said = world.relays(there, *asks)
        assert [answer for *_, answer in said] == [FREE] * most
        assert rows_of(there)["place_seen"] <= remembered + most
    assert rows_of(there)["barred"] == 4 * most
    first, *_ = rounds[0]
    assert [answer for *_, answer in world.relays(there, first)] == [BUSY]  # it has been forgotten
    world.relays(there, *[(*ask[:4], CANCEL) for asks in rounds for ask in asks])
    assert rows_of(there)["barred"] == 0
    assert world.asks(there, first[0]).standing is not Standing.GONE
    world.trial.now_ms += barred_places.SEEN_MS
    there.report(world.now_ms)
    assert rows_of(there) == dict.fromkeys(TABLES, 0)


def test_moves_are_refused_while_too_many_ids_have_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving_places, "BARRED_MAX", 3)
    world = TwoCenters([PureCenter(ROOM, name) for name in ("dc0", "dc1")])
    refuses_a_fourth(world)


def test_redis_refuses_moves_while_too_many_ids_have_moved(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving_places, "BARRED_MAX", 3)
    client.flushall()
    with broken_library(client, "MOVE_BARRED_MAX", "3"):
        pair = [RedisCenter(client, ROOM, name) for name in ("dc0", "dc1")]
        refuses_a_fourth(TwoCenters(list(pair)))
    assert [center.found for center in pair] == [[], []]


def refuses_a_fourth(world: TwoCenters) -> None:
    here, there = world.here, world.there
    for number in range(1, 4):
        assert world.move(here, ticket_id(number)).searching
    world.sync(6, here, there)
    for center in (here, there):
        assert world.move(center, ticket_id(4)).storage_failed
    assert world.has_moved(here, ticket_id(3))
    world.sync(1, here, there, every_ms=ROOM.session_ms + 360_000)
    world.sync(3, here, there)
    assert world.move(here, ticket_id(4)).searching
    world.sync(40, here, there)
    assert [rows_of(center)["place_olds"] for center in (here, there)] == [0, 0]


def test_redis_moves_the_same_places(tmp_path: Path) -> None:
    server = RedisServer(tmp_path)
    try:
        client = server.client()
        client.function_load(TRIAL_LIBRARY.source)
        centers = [RedisCenter(client, ROOM, name) for name in ("dc0", "dc1", "dc2")]
        found = PlaceTrial(ROOM, list(centers), 1, 10_000)
        found.run(100)
        assert found.found == []
        assert [center.found for center in centers] == [[], [], []]
        assert found.moved > 0
        strong = [RedisCenter(client, STRONG, name) for name in ("dc5", "dc6")]
        PlaceTrial(STRONG, list(strong), 1, 0, faults=False).run(120)
        assert [center.found for center in strong] == [[], []]
        pair = [RedisCenter(client, ROOM, name) for name in ("dc3", "dc4")]
        world = TwoCenters(list(pair))
        assert world.pressed_at_one_moment() == [True, False]
        assert world.takes_back_what_has_not_moved(70).storage_failed
        assert world.move(world.here, ticket_id(2)).searching
        forgets_the_newest_field(client, f"{pair[0].place}:state")
        held = world.here.view(ticket_id(2), world.now_ms)
        assert (held.standing, held.searching) == (Standing.WAITING, True)
        assert [center.found for center in pair] == [[], []]
    finally:
        server.kill()


def forgets_the_newest_field(client: redis.Redis, key: str) -> None:
    """As a process of an older greenroom does that writes the state."""
    raw = client.get(key)
    assert isinstance(raw, bytes)
    assert (raw[0], raw[-1]) == (0xDC, 1)  # an array, and the field
    client.set(key, raw[:1] + (int.from_bytes(raw[1:3]) - 1).to_bytes(2) + raw[3:-1])


def commits_without_the_answer_of_all(patch: pytest.MonkeyPatch) -> None:
    original = place_relay.PlaceRelay.answer

    def answer(self, name, others):  # type: ignore[no-untyped-def]
        heard = [other for other in others if self._of(other) != PlacesUp()]
        return original(self, name, heard)

    patch.setattr(place_relay.PlaceRelay, "answer", answer)


def lets_a_session_take_part_in_two_moves(patch: pytest.MonkeyPatch) -> None:
    original = moving_places._hold

    def hold(ledger, begun, known, now_ms):  # type: ignore[no-untyped-def]
        if known != SESSION:
            original(ledger, begun, known, now_ms)

    patch.setattr(moving_places, "_hold", hold)


def gives_the_place_to_every_press(patch: pytest.MonkeyPatch) -> None:
    original = moving_places.move_among

    def move(ledger, old, new, absent, nonce, now_ms):  # type: ignore[no-untyped-def]
        asked = ledger.moving_places.asked.get(old)
        return original(ledger, old, new, absent, asked.nonce if asked else nonce, now_ms)

    patch.setattr("place_trials.move_among", move)


def lets_the_old_device_in_elsewhere(patch: pytest.MonkeyPatch) -> None:
    def told(_self: object, *_: object) -> Outcome | None:
        return None

    patch.setattr("greenroom.admission.ledger.barred_places.MovingPlaces.told", told)


def keeps_the_bar_of_a_cancelled_move(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(moving_places, "_lift", lambda *_: None)


def leaves_the_session_behind(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(moving_places, "give", lambda *_: None)


@pytest.mark.parametrize(
    "breaks",
    [
        commits_without_the_answer_of_all,
        lets_a_session_take_part_in_two_moves,
        gives_the_place_to_every_press,
        lets_the_old_device_in_elsewhere,
        keeps_the_bar_of_a_cancelled_move,
        leaves_the_session_behind,
    ],
)
def test_a_broken_move_is_found(
    breaks: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    worlds = ((2, STEPS, False), (3, STEPS, False), (1, 400, True))
    assert any(trial(*world).found for world in worlds)


def test_a_move_that_nobody_answers_is_cancelled_in_time() -> None:
    centers = [PureCenter(ROOM, name) for name in ("dc0", "dc1")]
    found = PlaceTrial(ROOM, list(centers), 1, 0, faults=False)
    found.run(40)
    person = found.people[0]
    for center in centers:  # a data center that is cut off answers nothing
        found.cut_until_ms[center.name] = found.now_ms + 60_000
    person.links = [(person.devices[0].one, True, found.now_ms)]
    found.press(person, 0, centers[0])
    waits = barred_places.PENDING_MS // 250
    for _ in range(waits + 2):
        found.now_ms += 250
        found.press_on()
    assert (found.refused, found.moved, found.presses) == (1, 0, [])
    assert person.devices[0].one not in centers[0].ledger.moving_places.barred
