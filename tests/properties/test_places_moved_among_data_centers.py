"""A place that moves to another device stays one place in all data centers: pressed at two of them
at once, links replayed, messages lost and late, data centers cut off, the coordinator killed.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from admission_world import START_MS, small_room, ticket_id
from place_trials import Center, PlaceTrial, PureCenter, RedisCenter
from redis_world import TRIAL_LIBRARY, RedisServer

from greenroom.admission.coordinator import place_relay
from greenroom.admission.ledger import barred_places, moving_places
from greenroom.admission.messages.places import SESSION, PlacesUp
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


class TwoCenters:
    """The first one can be cut off. A visitor who has not checked in yet moves."""

    def __init__(self, centers: list[Center]) -> None:
        self.trial = PlaceTrial(ROOM, centers, 1, 0, faults=False)
        self.here, self.there = centers
        self.one, self.new = ticket_id(1), successor(ticket_id(1))
        self.sync(3, *centers)

    @property
    def now_ms(self) -> int:
        return self.trial.now_ms

    def sync(self, rounds: int, *centers: Center, every_ms: int = 1_000) -> None:
        for _ in range(rounds):
            self.trial.now_ms += every_ms
            for center in centers:
                self.trial.sync(center)

    def move(self, center: Center, old: bytes, nonce: int = 7) -> Outcome:
        """The same press, however often."""
        return center.move(old, successor(old), True, nonce, self.now_ms)

    def pressed_at_one_moment(self) -> list[bool]:
        """Who is refused."""
        presses = ((self.here, 8), (self.there, 7))
        for center, nonce in presses:
            assert self.move(center, ticket_id(9), nonce).searching
        self.sync(6, self.here, self.there)
        return [self.move(center, ticket_id(9), nonce).storage_failed for center, nonce in presses]

    def takes_back_what_has_not_moved(self, cut_s: int) -> Outcome:
        """While the end of the cancelled move is on its way to a data center."""
        here, there = self.here, self.there
        assert self.move(here, self.one).searching
        self.sync(1, here, there)
        self.sync(cut_s // 10, there, every_ms=10_000)
        assert self.move(here, self.one).storage_failed
        assert there.view(self.one, self.now_ms).moved
        assert self.move(there, self.new).searching
        self.sync(6, there, here)
        return self.move(there, self.new)


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
    assert world.move(world.here, ticket_id(1)).standing is Standing.WAITING
    world.sync(barred_places.PENDING_MS // 500, world.here, world.there)
    assert world.move(world.here, ticket_id(5)).searching


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

    def hold(ledger, old, new, source, serial, known, now_ms):  # type: ignore[no-untyped-def]
        if known != SESSION:
            original(ledger, old, new, source, serial, known, now_ms)

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
