"""The event that runs, from the live page: extended, ended and taken back, when no one else has
changed it since.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from config_material import room
from dashboard_rig import DashboardRig, Visitor, dashboard_in

from greenroom.configuration import rooms
from greenroom.dashboard.pages.rooms import LABELS
from greenroom.model.event import Event
from greenroom.model.fields import specs
from greenroom.model.room import Room
from greenroom.web.pages.forms import flat

LIVE = "/zones/z1/rooms/r3/live"
MINUTE_MS = 60_000


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[DashboardRig]:
    with dashboard_in(tmp_path) as found:
        found.fill()
        at_ms = found.clock.at_ms
        found.put((room("r3", host="z1.example", path="/sale"), "z1"))
        running = {"event_start_ms": at_ms - 30 * MINUTE_MS, "event_end_ms": at_ms + 30 * MINUTE_MS}
        found.put(
            (
                Event(
                    id="e3", name="sale", total_active_users=9, new_users_per_minute=7, **running
                ),
                "r3",
            )
        )
        yield found


def event_of(rig: DashboardRig) -> Event:
    return rig.store.read().events["e3"].record


def do(rig: DashboardRig, visitor: Visitor, name: str, **form: str) -> tuple[int, str]:
    answer = visitor.post(
        f"{LIVE}/do/{name}", revision=str(rig.store.read().events["e3"].revision), **form
    )
    return answer.status_code, html.unescape(answer.text)


def undo(visitor: Visitor) -> int:
    """0 when no undo is offered."""
    number = re.search(r'name="number" value="(\d+)"', visitor.get(LIVE).text)
    return visitor.post(f"{LIVE}/undo", number=number[1]).status_code if number else 0


def test_an_event_is_extended_and_the_extension_taken_back(rig: DashboardRig) -> None:
    before, visitor = event_of(rig), rig.person("operator")
    assert "Extend the event" in visitor.get(LIVE).text
    assert do(rig, visitor, "extend", minutes="45")[0] == 303
    assert event_of(rig).event_end_ms == before.event_end_ms + 45 * MINUTE_MS
    assert "moved the end of the event" in visitor.get(LIVE).text
    assert undo(visitor) == 303
    assert event_of(rig).event_end_ms == before.event_end_ms


@pytest.mark.parametrize("minutes", ["0", "-5", "many", "", "10081", "9" * 30])
def test_a_wrong_number_of_minutes_is_refused_beside_its_field(
    rig: DashboardRig, minutes: str
) -> None:
    before = event_of(rig)
    status, text = do(rig, rig.person("operator"), "extend", minutes=minutes)
    assert status == 400
    assert "must be a number from 1 to 10080" in text
    assert event_of(rig) == before


def test_an_event_is_not_extended_into_the_next_one(rig: DashboardRig) -> None:
    before = event_of(rig)
    start_ms = before.event_end_ms + 10 * MINUTE_MS
    rig.put(
        (
            Event(
                id="e4",
                name="next",
                event_start_ms=start_ms,
                event_end_ms=start_ms + 60 * MINUTE_MS,
            ),
            "r3",
        )
    )
    status, text = do(rig, rig.person("operator"), "extend", minutes="30")
    assert status == 400
    assert "next" in text
    assert event_of(rig) == before


def test_an_event_that_was_ended_goes_on_after_an_undo(rig: DashboardRig) -> None:
    before, visitor = event_of(rig), rig.person("operator")
    assert do(rig, visitor, "end-event")[0] == 303
    assert event_of(rig).event_end_ms == rig.clock.at_ms
    assert "Extend the event" not in visitor.get(LIVE).text
    assert undo(visitor) == 303
    assert event_of(rig).event_end_ms == before.event_end_ms
    assert "Extend the event" in visitor.get(LIVE).text


def test_an_event_in_its_first_minute_ends_as_soon_as_an_event_can(rig: DashboardRig) -> None:
    rig.put((replace(event_of(rig), event_start_ms=rig.clock.at_ms - 1_000), "r3"))
    assert do(rig, rig.person("operator"), "end-event")[0] == 303
    assert event_of(rig).event_end_ms == rig.clock.at_ms + 59_000


def test_a_pre_queue_that_is_ended_is_suspended_and_comes_back(rig: DashboardRig) -> None:
    at_ms, visitor = rig.clock.at_ms, rig.person("operator")
    times = {"prequeue_start_ms": at_ms - MINUTE_MS, "event_start_ms": at_ms + 9 * MINUTE_MS}
    rig.put((replace(event_of(rig), **times, event_end_ms=at_ms + 60 * MINUTE_MS), "r3"))
    assert "Extend the event" not in visitor.get(LIVE).text
    assert do(rig, visitor, "end-event")[0] == 303
    assert event_of(rig).suspended
    assert undo(visitor) == 303
    assert not event_of(rig).suspended


def test_limits_during_an_event_are_changed_and_taken_back_in_the_event(rig: DashboardRig) -> None:
    before, visitor = event_of(rig), rig.person("operator")
    assert (
        do(rig, visitor, "limits", total_active_users="20", new_users_per_minute="15", step="save")[
            0
        ]
        == 303
    )
    assert (event_of(rig).total_active_users, event_of(rig).new_users_per_minute) == (20, 15)
    assert rig.store.read().rooms["r3"].record.total_active_users == room("r3").total_active_users
    assert undo(visitor) == 303
    assert event_of(rig) == replace(before, written_times=event_of(rig).written_times)


def test_only_the_one_who_made_the_last_change_takes_it_back_and_soon(rig: DashboardRig) -> None:
    visitor, other = rig.person("operator"), rig.person("admin")
    assert do(rig, visitor, "extend", minutes="10")[0] == 303
    assert undo(other) == 0
    rig.clock.at_ms += 31 * MINUTE_MS
    assert undo(visitor) == 0
    rig.clock.at_ms -= 31 * MINUTE_MS
    number = re.search(r'name="number" value="(\d+)"', visitor.get(LIVE).text)
    assert number
    assert do(rig, other, "extend", minutes="10")[0] == 303
    assert undo(visitor) == 0
    assert visitor.post(f"{LIVE}/undo", number=number[1]).status_code == 409


def test_settings_changed_in_the_form_are_taken_back_too(rig: DashboardRig) -> None:
    visitor = rig.person("operator")
    entry = rig.store.read().rooms["r3"]
    form = {
        "name": "r3",
        "host": "z1.example",
        "path": "/sale",
        "total_active_users": "200",
        "new_users_per_minute": "200",
    }
    form |= {
        "session_duration": "11",
        "queueing_method": "fifo",
        "refresh_max_seconds": "33",
        "step": "save",
    }
    selects = [name for name, rule in specs(Room).items() if name in LABELS and rule.choices]
    kept = {
        name: str(getattr(entry.record, name)) for name in selects if hasattr(entry.record, name)
    }
    shown = flat(rooms.show(rig.store.read(), entry, rig.clock.at_ms))
    kept |= {name: str(shown[name]) for name in LABELS if type(shown.get(name)) is int}
    ticked = [name for name in LABELS if getattr(entry.record, name, None) is True]
    answer = visitor.post(
        "/zones/z1/rooms/r3/edit",
        revision=str(entry.revision),
        **kept | form | dict.fromkeys(ticked, "true"),
    )
    assert answer.status_code == 303, answer.text
    changed = rig.store.read().rooms["r3"].record
    assert changed == replace(entry.record, session_duration=11, refresh_max_seconds=33)
    assert undo(visitor) == 303
    assert rig.store.read().rooms["r3"].record == entry.record


def test_a_room_that_was_moved_is_not_moved_back_by_an_undo(rig: DashboardRig) -> None:
    visitor, entry = rig.person("operator"), rig.store.read().rooms["r3"]
    rig.config.change(
        rig.app.sign_in.find(rig.store.read(), visitor.cookies["greenroom_session"]).person.author,
        rooms.change("z1", "r3", {"path": "/other"}, whole=False),
    )
    assert rig.store.read().rooms["r3"].revision > entry.revision
    assert undo(visitor) == 0
