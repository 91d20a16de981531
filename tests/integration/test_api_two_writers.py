"""Two writers on one store: a plan is made again when another one was quicker, and given up with a
clear word when it always is.
"""

import sqlite3
import threading

import pytest
from api_in_process import StandingClock, api_in

from greenroom.configuration import rooms, zones
from greenroom.configuration.store import SqlStore, default_url
from greenroom.model.configuration import Configuration
from greenroom.web.config_service import (
    ATTEMPTS,
    ChangeContext,
    ConfigService,
    PlannedChange,
)
from greenroom.web.refusals import Code, Refused

ROOM = {"host": "shop.example.com", "total_active_users": 300, "new_users_per_minute": 200}


@pytest.fixture
def desks(tmp_path):
    stores = [SqlStore(default_url(tmp_path)) for _ in range(2)]
    yield [ConfigService(store, StandingClock()) for store in stores]
    for store in stores:
        store.close()


@pytest.fixture
def zone(desks) -> str:
    return desks[0].change("one", zones.create({"name": "example.com"}, lambda _pointer, _url: []))[
        "id"
    ]


def interrupted(plan, interruptions):
    """The plan, with another one writing between its reading and its writing, so many times."""

    def planned(known: Configuration, at: ChangeContext) -> PlannedChange:
        result = plan(known, at)
        if interruptions:
            interruptions.pop()()
        return result

    return planned


def test_a_change_beside_another_one_is_planned_again_and_both_count(desks, zone) -> None:
    one, other = desks
    room = one.change("one", rooms.create(zone, {"name": "shop", **ROOM}))["id"]
    between = [
        lambda: other.change("other", rooms.change(zone, room, {"suspended": True}, whole=False))
    ]
    edited = one.change(
        "one", interrupted(rooms.change(zone, room, {"queue_all": True}, whole=False), between)
    )
    assert (edited["queue_all"], edited["suspended"]) == (True, True)
    assert [entry.author for entry in one.store.audit(2)] == ["one", "other"]


def test_a_name_that_someone_else_took_in_between_is_taken(desks, zone) -> None:
    one, other = desks
    between = [lambda: other.change("other", rooms.create(zone, {"name": "shop", **ROOM}))]
    with pytest.raises(Refused) as caught:
        one.change(
            "one",
            interrupted(
                rooms.create(zone, {"name": "shop", **ROOM, "host": "two.example.com"}), between
            ),
        )
    assert [fault.code for fault in caught.value.faults] == [Code.TAKEN]
    assert len(one.store.read().rooms) == 1


def test_changes_through_one_service_wait_for_each_other(desks, zone) -> None:
    desk, planned, writers = desks[0], threading.Event(), []

    def second(known: Configuration, at: ChangeContext) -> PlannedChange:
        planned.set()
        return rooms.create(zone, {"name": "two", **ROOM, "path": "/two"})(known, at)

    def first(known: Configuration, at: ChangeContext) -> PlannedChange:
        writers.append(threading.Thread(target=desk.change, args=("second", second)))
        writers[0].start()
        assert not planned.wait(0.2)
        return rooms.create(zone, {"name": "one", **ROOM})(known, at)

    desk.change("first", first)
    writers[0].join(timeout=60)
    assert [entry.author for entry in desk.store.audit(2)] == ["second", "first"]


def test_a_writer_who_is_never_quick_enough_hears_of_it_and_has_changed_nothing(
    desks, zone
) -> None:
    one, other = desks
    numbers = iter(range(100))
    between = [
        lambda: other.change(
            "other",
            rooms.create(zone, {"name": f"n{next(numbers)}", **ROOM, "path": f"/{next(numbers)}"}),
        )
    ] * ATTEMPTS
    with pytest.raises(Refused) as caught:
        one.change("one", interrupted(rooms.create(zone, {"name": "shop", **ROOM}), between))
    assert (caught.value.status, caught.value.faults[0].code) == (409, Code.CHANGED_MEANWHILE)
    assert all(entry.author == "other" for entry in one.store.audit(ATTEMPTS))


def test_a_store_that_cannot_be_used_is_said_in_the_envelope(tmp_path) -> None:
    with api_in(tmp_path) as api:
        zone = api.make("/zones", {"name": "example.com"})["id"]
        with sqlite3.connect(tmp_path / "config.db") as database:
            database.execute("DROP TABLE state")
        for method, path, document in (
            ("GET", f"/zones/{zone}", None),
            ("PATCH", f"/zones/{zone}", {"paused": True}),
        ):
            response = api.ask(method, path, document)
            assert (response.status_code, response.json()["errors"][0]["code"]) == (503, 28060)


def test_a_fault_of_our_own_is_answered_in_the_envelope_and_tells_nothing_of_the_inside(
    tmp_path,
) -> None:
    with api_in(tmp_path) as api:
        zone = api.make("/zones", {"name": "example.com"})["id"]
        room = api.make(f"/zones/{zone}/waiting_rooms", {"name": "shop", **ROOM})["id"]
        api.watched.clock = None
        response = api.ask("GET", f"/zones/{zone}/waiting_rooms/{room}/status")
        assert (response.status_code, response.json()["errors"][0]["code"]) == (500, 28061)
        assert "NoneType" not in response.text
        assert len(response.headers["CF-Ray"]) == 16
