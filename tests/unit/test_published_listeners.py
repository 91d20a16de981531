"""What processes on one store know of each other's listeners."""

from pathlib import Path

import pytest

from greenroom.configuration.store import SqlStore, default_url
from greenroom.model.account import LISTENERS
from greenroom.outbound.guard import reaches_listener
from greenroom.outbound.policy import read_address
from greenroom.runtime import published_listeners
from greenroom.runtime.published_listeners import FORGOTTEN_S, PublishedListeners


class World:
    """Processes on one store, in virtual time."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows = SqlStore(default_url(folder)).sessions
        self.now_ms = 1_000_000
        self._patch = monkeypatch

    def process(
        self, *places: tuple[str, int], machine: str = "one", address: str = "192.0.2.1"
    ) -> PublishedListeners:
        self._patch.setattr(published_listeners, "this_machine", lambda: machine)
        self._patch.setattr(published_listeners, "own_addresses", lambda: ("127.0.0.1", address))
        made = PublishedListeners(places, self.rows, lambda: self.now_ms)
        made.publish()
        return made


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_processes_of_one_machine_know_all_listeners_as_their_own(world: World) -> None:
    first = world.process(("127.0.0.1", 8081), ("0.0.0.0", 8080))
    second = world.process(("127.0.0.1", 8082), ("/run/greenroom.sock", 0))
    expected = {
        ("127.0.0.1", 8081),
        ("0.0.0.0", 8080),
        ("127.0.0.1", 8082),
        ("/run/greenroom.sock", 0),
    }
    for one in (first, second):
        assert set(one.everywhere_now()) == set(one.here()) == expected


def test_listeners_of_another_machine_count_by_the_addresses_of_that_machine(world: World) -> None:
    here = world.process(("127.0.0.1", 8080))
    world.process(("0.0.0.0", 8081), ("/run/x.sock", 0), machine="two", address="192.0.2.2")
    everywhere = here.everywhere_now()
    assert here.here() == [("127.0.0.1", 8080)]
    for address, refused in (("127.0.0.1", True), ("192.0.2.2", True), ("192.0.2.1", False)):
        found = read_address(address)
        assert found is not None
        assert reaches_listener(found, 8081, everywhere) is refused, address
    assert all(port for _, port in everywhere), "a file means nothing on another machine"


def test_a_process_that_ended_or_was_killed_long_ago_is_forgotten(world: World) -> None:
    first = world.process(("127.0.0.1", 8081))
    world.process(("127.0.0.1", 8082)).withdraw()
    world.process(("127.0.0.1", 8083))
    assert [port for _, port in first.everywhere_now()] == [8081, 8083]
    world.now_ms += int(FORGOTTEN_S * 1000)
    first.publish()
    world.now_ms += 1
    first.publish()
    assert [port for _, port in first.everywhere_now()] == [8081]
    assert len(world.rows.rows(LISTENERS)) == 1
