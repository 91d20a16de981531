"""An operator lets more visitors in now: both limits are higher by so many for a minute, in every
stage of the room, and then as before.
"""

import html
from dataclasses import replace

import pytest
from admission_laws import GroundTruth
from admission_world import small_room, ticket_id
from dashboard_rig import DashboardRig
from hypothesis import given
from hypothesis import strategies as st

from greenroom.admission.schedule import Phase, course, effective
from greenroom.configuration import operations, rooms
from greenroom.model.event import Event
from greenroom.model.room import LIMIT_MAX, Room
from greenroom.model.visit import Standing

LIVE = "/zones/z2/rooms/r2/live"
MINUTE_MS = 60_000
AT_MS = 1_750_000_000_000


def room_of(dashboard: DashboardRig) -> Room:
    """As every process runs it."""
    return dashboard.store.read().room_in_operation("r2")


def admit(dashboard: DashboardRig, count: int) -> None:
    dashboard.config.change("ada", operations.begin("z2", "r2", "admit", "ada", count=count))


def limits(room: Room) -> tuple[int, int]:
    return room.total_active_users, room.new_users_per_minute


def test_it_is_audited_shown_and_over_after_a_minute(dashboard: DashboardRig) -> None:
    before = limits(room_of(dashboard))
    admit(dashboard, 7)
    now_ms = dashboard.clock.at_ms
    assert (room_of(dashboard).let_in, room_of(dashboard).let_in_until_ms) == (
        7,
        now_ms + MINUTE_MS,
    )
    assert limits(effective(room_of(dashboard), [], now_ms).room) == (before[0] + 7, before[1] + 7)
    assert (
        limits(effective(room_of(dashboard), [], now_ms + MINUTE_MS).room)
        == before
        == limits(room_of(dashboard))
    )
    entry = dashboard.store.audit(1)[0]
    assert (entry.author, entry.kind, entry.name) == ("ada", "operation", "r2")
    assert (entry.after or {})["operations"][0]["count"] == 7
    log = html.unescape(dashboard.person("viewer").get("/audit").text)
    assert "admitted 7 more visitors to r2" in log
    assert "Letting in 7 extra visitors" in html.unescape(dashboard.person("viewer").get(LIVE).text)


def test_other_changes_keep_it(dashboard: DashboardRig) -> None:
    admit(dashboard, 7)
    dashboard.config.change("ada", rooms.change("z2", "r2", {"description": "new"}, whole=False))
    assert room_of(dashboard).let_in == 7


def test_changed_limits_do_not_keep_what_is_let_in_for_a_minute(dashboard: DashboardRig) -> None:
    before, visitor = limits(room_of(dashboard)), dashboard.person("operator")
    admit(dashboard, 7)
    asked = visitor.get(f"{LIVE}/do/limits").text
    for name, value in zip(("total_active_users", "new_users_per_minute"), before, strict=True):
        assert f'name="{name}" id="f-{name}" value="{value}"' in asked
    assert "7 extra visitors" in asked
    form = {
        "revision": str(dashboard.store.read().rooms["r2"].revision),
        "total_active_users": str(before[0]),
        "new_users_per_minute": str(before[1] - 1),
    }
    shown = html.unescape(visitor.post(f"{LIVE}/do/limits", **form).text)
    assert f"Active visitors at once: {before[0]} (unchanged)" in shown
    assert f"New visitors per minute: {before[1]} → {before[1] - 1}" in shown
    assert visitor.post(f"{LIVE}/do/limits", step="save", **form).status_code == 303
    assert limits(room_of(dashboard)) == (before[0], before[1] - 1)


@pytest.mark.parametrize("count", ["0", "-1", "many", "", "100001"])
def test_a_wrong_number_is_refused_beside_its_field(dashboard: DashboardRig, count: str) -> None:
    visitor, known = dashboard.person("operator"), dashboard.store.read()
    answer = visitor.post(
        f"{LIVE}/do/let-in", revision=str(known.rooms["r2"].revision), count=count
    )
    assert answer.status_code == 400
    assert "must be a number from 1 to 100000" in html.unescape(answer.text)
    assert room_of(dashboard).let_in == 0


def test_twice_within_the_minute_is_refused_and_a_viewer_always(dashboard: DashboardRig) -> None:
    assert dashboard.person("viewer").post(f"{LIVE}/do/let-in", count="1").status_code == 403
    for status in (303, 400):
        found = dashboard.store.read().operations.get("r2")
        revision = str(found.revision) if found else ""
        assert (
            dashboard.person("operator")
            .post(f"{LIVE}/do/let-in", revision=revision, count="3")
            .status_code
            == status
        )
    assert room_of(dashboard).let_in == 3


@given(
    st.integers(0, 200_000),
    st.integers(0, 200_000),
    st.integers(1, 100_000),
    st.integers(-90_000, 90_000),
    st.booleans(),
)
def test_no_stage_has_higher_limits_than_were_asked_for(
    opens: int, lasts: int, count: int, until: int, shuffles: bool
) -> None:
    room = small_room(
        let_in=count, let_in_until_ms=AT_MS + until, total_active_users=LIMIT_MAX - 50_000
    )
    event = Event(
        id="e", name="e", event_start_ms=AT_MS + opens, event_end_ms=AT_MS + opens + 60_000 + lasts, new_users_per_minute=9,
        total_active_users=9, prequeue_start_ms=AT_MS + opens - 300_000 if shuffles else None, shuffle_at_event_start=shuffles,
    )  # fmt: skip
    stages = course(room, [event], AT_MS)
    assert [from_ms for from_ms, _ in stages] == sorted(from_ms for from_ms, _ in stages)
    for from_ms, stage in stages:
        plain = effective(replace(room, let_in=0), [event], from_ms).room
        wanted = tuple(
            min(LIMIT_MAX, limit + (count if from_ms < AT_MS + until else 0))
            for limit in limits(plain)
        )
        assert limits(stage.room) == wanted or stage.phase is Phase.PREQUEUE
    assert limits(stages[-1][1].room) == limits(room)


def test_exactly_so_many_more_come_in_and_none_afterwards() -> None:
    """The laws of admission hold throughout: both limits, and the order of the line."""
    law = GroundTruth(small_room(total_active_users=5, new_users_per_minute=6, session_duration=5))
    waiting = [ticket_id(number) for number in range(20)]
    for one in waiting:
        law.arrive(one)
    inside = set(law.inside)

    def refresh(seconds: int) -> None:
        for _ in range(seconds):
            law.advance(1_000)
            law.tick()
            for one in [one for one in waiting if one not in law.inside]:
                place = law.places.get(one)
                due = place is None or law.now_ms >= place.attempted_ms + place.refresh_ms
                if due and law.poll(one).standing is Standing.ADMITTED:
                    inside.add(one)
            for one in law.inside:
                law.view(one)

    refresh(62)
    assert len(inside) == 5
    law.configure(total_active_users=8, new_users_per_minute=9)
    refresh(60)
    law.configure(total_active_users=5, new_users_per_minute=6)
    assert len(inside) == 8
    refresh(120)
    assert len(inside) == 8
    assert law.found == []
