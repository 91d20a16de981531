"""Rooms that hold while their origin is unhealthy: no new visitor gets in, places and sessions
stay, and everything is as it was afterwards.
"""

import json
from pathlib import Path

import pytest
from admission_world import START_MS, small_room
from hypothesis import given
from hypothesis import strategies as st
from visitors import Browser, Site

from greenroom.decision.room_schedule import RoomSchedule
from greenroom.decision.verdict import Forward
from greenroom.health.rules.origin import (
    RELEASE_MS,
    OriginChecks,
    OriginHold,
    held_after,
    origin_status,
)
from greenroom.model.answer import Answer
from greenroom.model.event import Event
from greenroom.model.health_check import HealthCheck, HttpCheck
from greenroom.model.room import Room
from greenroom.model.route import Route

JSON = ((b"accept", b"application/json"),)


def shop(folder: Path, *events: Event, **settings: object) -> Site:
    return Site(
        folder,
        small_room(json_response_enabled=True, on_unhealthy_origin="hold", **settings),
        events=events,
    )


def schedule(site: Site) -> RoomSchedule:
    (found,) = site.decisions.table.rooms.values()
    return found


def told(browser: Browser) -> dict:
    reply = browser.visit("/", headers=JSON)
    assert isinstance(reply, Answer)
    return json.loads(reply.body)


@pytest.mark.parametrize("method", ["fifo", "random", "passthrough"])
def test_no_new_visitor_gets_in_and_those_inside_stay(tmp_path: Path, method: str) -> None:
    site = shop(tmp_path, queueing_method=method)
    inside = Browser(site)
    assert isinstance(inside.visit("/"), Forward)
    assert schedule(site).hold_for_origin(True)
    newcomer = Browser(site)
    found = told(newcomer)
    assert found["greenroom"]["originUnhealthy"] is True
    assert found["cfWaitingRoom"]["waitTimeKnown"] is False
    assert isinstance(inside.visit("/"), Forward)
    assert site.events_seen[-2].reason == "origin"
    assert schedule(site).hold_for_origin(False)
    site.advance(60_000)
    assert isinstance(newcomer.visit("/"), Forward)
    assert schedule(site).now.effective.origin_down is False


def test_those_who_wait_keep_their_places(tmp_path: Path) -> None:
    site = shop(tmp_path, total_active_users=1, new_users_per_minute=100)
    assert isinstance(Browser(site).visit("/"), Forward)
    first, second = Browser(site), Browser(site)
    for browser in (first, second):
        browser.visit("/")
        site.advance(3_000)
        told(browser)
    schedule(site).hold_for_origin(True)
    site.advance(20_000)
    assert [told(browser)["greenroom"]["position"] for browser in (first, second)] == [1, 2]


def test_a_room_that_turns_away_goes_on_turning_away(tmp_path: Path) -> None:
    site = shop(tmp_path, queueing_method="reject")
    schedule(site).hold_for_origin(True)
    assert schedule(site).now.turns_away
    assert schedule(site).now.effective.ledger_room.queue_all is False


def test_an_event_that_begins_meanwhile_holds_too_and_its_settings_count_afterwards(
    tmp_path: Path,
) -> None:
    event = Event(
        id="e",
        name="sale",
        event_start_ms=START_MS + 60_000,
        event_end_ms=START_MS + 600_000,
        session_duration=1,
    )
    site = shop(tmp_path, event)
    schedule(site).hold_for_origin(True)
    site.advance(120_000)
    newcomer = Browser(site)
    assert told(newcomer)["greenroom"]["originUnhealthy"] is True
    assert schedule(site).now.room.session_duration == 1
    schedule(site).hold_for_origin(False)
    site.advance(60_000)
    assert isinstance(newcomer.visit("/"), Forward)


def test_what_was_written_down_never_changes(tmp_path: Path) -> None:
    site = shop(tmp_path)
    before = schedule(site).now
    schedule(site).hold_for_origin(True)
    assert schedule(site).now.room is before.room
    assert schedule(site).hold_for_origin(True) is False, "twice is once"
    schedule(site).hold_for_origin(False)
    assert schedule(site).now == before


@given(
    st.lists(
        st.tuples(st.sampled_from(["healthy", "unhealthy", "unknown", ""]), st.integers(1, 20_000)),
        max_size=40,
    )
)
def test_a_room_holds_at_once_and_lets_go_only_after_ten_seconds_without_trouble(
    course: list[tuple[str, int]],
) -> None:
    hold, now_ms, last_bad = OriginHold(), 1_000, None
    for status, wait_ms in course:
        now_ms += wait_ms
        hold = held_after(hold, status, now_ms)
        if status == "unhealthy":
            last_bad = now_ms
            assert hold.held
        elif last_bad is None:
            assert not hold.held
        elif now_ms - last_bad < RELEASE_MS:
            assert hold.held


def test_an_origin_that_stays_well_is_let_go_and_one_that_comes_and_goes_is_not() -> None:
    hold = held_after(OriginHold(), "unhealthy", 0)
    for now_ms in range(1_000, 60_000, 1_000):
        hold = held_after(hold, "unhealthy" if now_ms % 5_000 == 0 else "healthy", now_ms)
        assert hold.held
    assert not held_after(held_after(hold, "healthy", 60_000), "unknown", 60_000 + RELEASE_MS).held


def check(id: str, address: str, host: str = "", port: int = 80, **more: object) -> HealthCheck:
    config = HttpCheck(port=port, header={"Host": (host,)} if host else None)
    return HealthCheck(id=id, name=id, address=address, http_config=config, **more)  # type: ignore[arg-type]


def room(host: str, *more: str) -> Room:
    routes = tuple(Route(other) for other in more)
    return Room(
        name="r",
        host=host,
        additional_routes=routes,
        cookie_suffix="r",
        total_active_users=1,
        new_users_per_minute=1,
    )


CHECKS = OriginChecks(
    [
        check("by-host", "10.0.0.1", "shop.example.com"),
        check("by-name", "www.example.com"),
        check("by-address", "10.0.0.9", port=3000),
        check("asleep", "shop.example.com", suspended=True),
        check("other-port", "10.0.0.9", port=3001),
    ]
)


@pytest.mark.parametrize(
    ("place", "origin", "found"),
    [
        (room("shop.example.com"), None, ("by-host",)),
        (
            room("shop.example.com", "www.example.com"),
            ("10.0.0.9", 3000),
            ("by-host", "by-name", "by-address"),
        ),
        (room("*.example.com"), None, ("by-host", "by-name")),
        (room("*"), ("10.0.0.9", 3000), ("by-address",)),
        (room("elsewhere.example.com"), ("10.0.0.9", 80), ()),
    ],
)
def test_which_checks_speak_for_a_room(
    place: Room, origin: tuple[str, int] | None, found: tuple[str, ...]
) -> None:
    assert CHECKS.of(place, origin) == found


def test_one_unhealthy_check_is_enough_and_none_says_nothing() -> None:
    assert origin_status(["healthy", "unhealthy", "unknown"]) == "unhealthy"
    assert origin_status(["healthy", "unknown"]) == "healthy"
    assert origin_status(["unknown"]) == "unknown"
    assert origin_status([]) == ""
