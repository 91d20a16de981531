"""What holds in a picture of a running greenroom, and when it becomes the start and the end of an
incident.
"""

from dataclasses import replace

import pytest
from config_material import event, room
from hypothesis import given
from hypothesis import strategies as st

from greenroom.alerts.rules.conditions import (
    DAY_MS,
    AlertCondition,
    Certificate,
    Picture,
    RoomPicture,
    conditions,
    speaks_for,
)
from greenroom.alerts.rules.tracker import Tracker
from greenroom.model.clock import LastMinute

MINUTE = 60_000
LIMITS = {
    "greenroom_wait_time": (10,),
    "greenroom_event_soon": (15,),
    "greenroom_origin_errors": (5,),
    "greenroom_certificate_expiring": (14,),
}


def picture(now_ms: int = 0, rooms: tuple[RoomPicture, ...] = (), **more) -> Picture:
    return Picture(
        **{
            "now_ms": now_ms,
            "process": "edge-1 127.0.0.1:8081",
            "rooms": rooms,
            "limits": LIMITS,
            **more,
        }
    )


def types(found: Picture) -> set[str]:
    return {condition.type for condition in conditions(found)}


def steps(tracker: Tracker, *pictures: Picture) -> list[tuple[str, str, int]]:
    found = []
    for each in pictures:
        found += [
            (alert.type, alert.state, each.now_ms)
            for alert in tracker.step(conditions(each), speaks_for(each), each.now_ms)
        ]
    return found


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, set()),
        ({"waiting": 1}, {"greenroom_queueing"}),
        ({"waiting": 1, "wait_s": 600.0}, {"greenroom_queueing"}),
        ({"waiting": 1, "wait_s": 600.1}, {"greenroom_queueing", "greenroom_wait_time"}),
        ({"wait_s": float("inf")}, set()),
        ({"storage_failed": True}, {"greenroom_admissions_stopped"}),
        ({"origin_slow": True}, {"greenroom_admissions_stopped"}),
        ({"origin_slow": True, "storage_failed": True}, {"greenroom_admissions_stopped"}),
        ({"unmeasured": True}, {"greenroom_capacity_unmeasured"}),
        ({"room": room(queueing_method="reject")}, {"greenroom_rejecting"}),
        ({"confirms": True}, {"greenroom_newcomers_confirmed"}),
        ({"confirms": True, "room": room(confirm_newcomers=True)}, set()),
        ({"room": room(queueing_method="reject", suspended=True), "waiting": 1}, set()),
    ],
)
def test_what_holds_of_a_room(changed: dict, expected: set) -> None:
    assert types(picture(rooms=(RoomPicture(**{"room": room(), **changed}),))) == expected


def test_an_event_is_soon_then_running_then_over_and_its_settings_count() -> None:
    planned = event(start_ms=60 * MINUTE, queueing_method="reject")

    def at(minute: int) -> set[str]:
        return types(picture(minute * MINUTE, (RoomPicture(room(), events=(planned,)),)))

    assert [at(minute) for minute in (44, 45, 59, 60, 119, 120)] == [
        set(),
        {"greenroom_event_soon"},
        {"greenroom_event_soon"},
        {"greenroom_event", "greenroom_rejecting"},
        {"greenroom_event", "greenroom_rejecting"},
        set(),
    ]
    assert (
        types(
            picture(70 * MINUTE, (RoomPicture(room(), events=(replace(planned, suspended=True),)),))
        )
        == set()
    )


def test_what_holds_of_a_process() -> None:
    assert types(picture(requests=100, failed=5)) == set()
    assert types(picture(requests=100, failed=6)) == {"greenroom_origin_errors"}
    assert types(picture(requests=19, failed=19)) == set()
    assert types(picture(cut_off_s=4.5)) == {"greenroom_data_center_cut_off"}
    assert types(picture(silent={})) == set()
    assert types(picture(silent={"nyc": (20.0, 40)})) == {"greenroom_data_center_silent"}
    assert types(picture(config_problems={"file": ("line 3: wrong",), "store": ()})) == {
        "greenroom_config_refused"
    }
    good, late = (Certificate(("a.example",), days * DAY_MS, "f" * 64) for days in (14, 13))
    assert types(picture(certificate=good)) == set()
    assert types(picture(certificate=late)) == {"greenroom_certificate_expiring"}
    assert types(picture(1, certificate=good)) == {"greenroom_certificate_expiring"}


def test_without_a_policy_that_sets_a_limit_nothing_is_compared() -> None:
    full = RoomPicture(room(), waiting=1, wait_s=1e6)
    assert types(picture(rooms=(full,), requests=100, failed=100, limits={})) == {
        "greenroom_queueing"
    }


def test_a_line_that_comes_and_goes_is_one_incident() -> None:
    tracker, empty, full = Tracker(), RoomPicture(room()), RoomPicture(room(), waiting=5)
    seconds = [
        (0, full),
        (1, empty),
        (2, full),
        (4, full),
        (5, full),
        (6, empty),
        (30, full),
        (31, empty),
        (90, empty),
        (91, empty),
    ]
    told = steps(tracker, *(picture(second * 1000, (found,)) for second, found in seconds))
    assert told == [("greenroom_queueing", "start", 5_000), ("greenroom_queueing", "end", 91_000)]


def test_start_and_end_share_what_makes_them_one() -> None:
    tracker, full = Tracker(), RoomPicture(room(queueing_method="reject"), zone_id="z1")
    (start,) = [
        *tracker.step(conditions(picture(0, (full,))), speaks_for(picture(0)), 0)
    ] or tracker.step(conditions(picture(1_000, (full,))), speaks_for(picture(0)), 1_000)
    tracker.step((), speaks_for(picture(0)), 2_000)
    (end,) = tracker.step((), speaks_for(picture(0)), 12_000)
    assert (start.state, end.state) == ("start", "end")
    assert (start.correlation_id, start.subject_name, start.zone_id) == (
        end.correlation_id,
        end.subject_name,
        "z1",
    )


def test_a_restart_neither_tells_a_start_again_nor_forgets_an_end() -> None:
    full, empty = RoomPicture(room(), waiting=5), RoomPicture(room())
    before = Tracker()
    steps(before, picture(0, (full,)), picture(3_000, (full,)))
    after = Tracker()
    after.adopt(before.open.values())
    assert steps(after, picture(10_000, (full,)), picture(20_000, (full,))) == []
    (end,) = [
        alert
        for second in (30, 91)
        for alert in after.step((), speaks_for(picture(0, (empty,))), second * 1000)
    ]
    assert end.correlation_id == next(iter(before.open.values())).correlation_id


def test_a_restart_does_not_end_an_incident_before_its_condition_has_been_over_for_long_enough() -> (
    None
):
    full, empty = RoomPicture(room(), waiting=5), RoomPicture(room())
    before, after = Tracker(), Tracker()
    steps(before, picture(0, (full,)), picture(3_000, (full,)))
    after.adopt(before.open.values())
    told = steps(
        after,
        *(
            picture(second * 1_000, (found,))
            for second, found in ((10, empty), (11, full), (15, full), (16, empty), (75, empty))
        ),
    )
    assert told == []
    assert steps(after, picture(76_000, (empty,))) == [("greenroom_queueing", "end", 76_000)]


@pytest.mark.parametrize(
    "found",
    [
        picture(0, (RoomPicture(room(), waiting=1),)),
        picture(70 * MINUTE, (RoomPicture(room(), events=(event(start_ms=60 * MINUTE),)),)),
        picture(0, certificate=Certificate(("a.example",), 0, "f" * 64)),
        picture(0, cut_off_s=4.0, data_center="fra"),
        picture(0, silent={"nyc": (20.0, 40)}),
        picture(0, config_problems={"file": ("wrong",)}),
        picture(0, requests=100, failed=50),
    ],
    ids=["room", "event", "certificate", "center", "silent", "config", "origin"],
)
def test_every_kind_of_incident_is_taken_over_under_its_own_name(found: Picture) -> None:
    first, second = Tracker(), Tracker()
    for later_ms in (0, 60_000):
        first.step(conditions(found), speaks_for(found), later_ms)
    second.adopt(first.open.values())
    assert set(second.open) == set(first.open) != set()
    assert all(map(speaks_for(found), second.open))


def test_a_new_coordinator_goes_on_with_what_the_one_before_said_of_a_silent_data_center() -> None:
    tracker = Tracker()
    silent = {"nyc": (20.0, 40)}
    assert steps(
        tracker,
        picture(0, silent=silent),
        picture(11_000, silent=silent),
        picture(20_000),
        picture(60_000),
        picture(70_000, silent={}),
        picture(75_000, silent={}),
    ) == [("greenroom_data_center_silent", "start", 11_000)]


def test_a_process_that_no_longer_speaks_for_the_rooms_ends_nothing_of_theirs() -> None:
    tracker, full = Tracker(), RoomPicture(room(), waiting=5)
    assert steps(
        tracker,
        picture(0, (full,)),
        picture(3_000, (full,)),
        picture(4_000, speaks_for_rooms=False),
        picture(99_000, speaks_for_rooms=False),
    ) == [("greenroom_queueing", "start", 3_000)]
    assert tracker.open == {}


def test_a_ledger_that_cannot_be_written_is_told_also_by_a_process_that_does_not_speak_for_the_rooms() -> (
    None
):
    broken = RoomPicture(room(), waiting=5, storage_failed=True)
    assert types(picture(0, (broken,), speaks_for_rooms=False)) == {"greenroom_admissions_stopped"}


def test_of_two_processes_that_see_the_same_the_second_tells_nothing_and_ends_what_the_first_began() -> (
    None
):
    full, trackers = RoomPicture(room(queueing_method="reject")), (Tracker(), Tracker())
    first, second = (
        [
            alert
            for later_ms in (0, 1_000)
            for alert in tracker.step(
                conditions(picture(0, (full,))), speaks_for(picture()), later_ms + shift
            )
        ]
        for shift, tracker in enumerate(trackers)
    )
    assert first[0].correlation_id != second[0].correlation_id
    assert trackers[1].without_open(second, first) == []
    assert trackers[0].without_open(first, first) == first
    trackers[1].step((), speaks_for(picture()), 5_000)
    (end,) = trackers[1].step((), speaks_for(picture()), 50_000)
    assert end.correlation_id == first[0].correlation_id


def test_an_alert_that_stands_for_itself_is_told_once() -> None:
    tracker = Tracker()
    soon = RoomPicture(room(), events=(event(start_ms=60 * MINUTE),))
    assert steps(tracker, picture(50 * MINUTE, (soon,)), picture(51 * MINUTE, (soon,))) == [
        ("greenroom_event_soon", "none", 50 * MINUTE)
    ]


@given(st.lists(st.tuples(st.integers(1, 30), st.booleans()), max_size=60))
def test_starts_and_ends_always_alternate(course: list[tuple[int, bool]]) -> None:
    tracker, now_ms, told = Tracker(), 0, []
    condition = AlertCondition(
        "greenroom_rejecting", "room:here:greenroom_rejecting:r1:", {**_DATA}, "r1", "shop"
    )
    for seconds, holds in course:
        now_ms += seconds * 1000
        told += tracker.step([condition] if holds else [], lambda _incident: True, now_ms)
    assert [alert.state for alert in told] == ["start", "end"] * (len(told) // 2) + ["start"] * (
        len(told) % 2
    )
    assert len({alert.correlation_id for alert in told}) == (len(told) + 1) // 2


_DATA = {"waiting_room_id": "r1", "waiting_room_name": "shop", "host": "h", "path": "/"}


def test_the_last_minute_of_counters_that_only_grow() -> None:
    minute = LastMinute()
    for now_ms, requests, failed, grown in (
        (0, 1_000, 10, (0, 0)),
        (30_000, 1_050, 20, (50, 10)),
        (60_000, 1_100, 20, (100, 10)),
        (90_000, 1_100, 20, (50, 0)),
        (91_000, 5, 0, (0, 0)),
    ):
        minute.add(now_ms, requests, failed)
        assert minute.growth() == grown
    assert minute.span_ms == 0


def test_of_several_data_centers_one_tells_what_concerns_the_whole_room() -> None:
    rooms = (RoomPicture(room(), waiting=5, storage_failed=True, confirms=True),)
    own = {"greenroom_admissions_stopped", "greenroom_newcomers_confirmed"}
    first = picture(rooms=rooms, data_center="ams", several=True)
    second = picture(rooms=rooms, data_center="fra", several=True, speaks_for_all=False)
    assert (types(first), types(second)) == (own | {"greenroom_queueing"}, own)

    def line(found: Picture) -> str:
        return next(one.incident for one in conditions(found) if one.type == "greenroom_queueing")

    takes_over = replace(second, speaks_for_all=True)
    assert line(first) == line(takes_over), "the same incident goes on"
    assert [speaks_for(one)(line(first)) for one in (first, second, takes_over)] == [
        True,
        False,
        True,
    ]
