"""The live page of rooms that follow their origin: a suggestion is applied by one button, expires,
and is undone; a limit is taken over and given back.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from config_material import room
from dashboard_rig import DashboardRig, dashboard_in

from greenroom.analytics.dashboard.parts import ANALYTICS_STORE
from greenroom.analytics.rollup import MINUTE_MS, Part, Rollup, RoomTarget
from greenroom.analytics.store.duck import DuckEngine
from greenroom.analytics.store.keeper import Keeper, RoomPlace
from greenroom.capacity.room_capacity import CapacityState, Proposal
from greenroom.configuration.operations import note_capacity
from greenroom.configuration.state import RoomState
from greenroom.decision.room_view import Figures
from greenroom.model.configuration import Configuration

LIVE = "/zones/z1/rooms/r3/live"
REASON = "p95 of documents 2.40 s over the objective of 1 s in two windows: 200 → 160"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[DashboardRig]:
    with dashboard_in(tmp_path) as found:
        found.fill()
        yield found


def make(rig: DashboardRig, mode: str) -> None:
    limits = {"total_active_users": 200, "new_users_per_minute": 200}
    rig.put((room("r3", host="z1.example", path="/sale", capacity=mode, **limits), "z1"))


def show(rig: DashboardRig, mode: str, proposal: Proposal | None = None) -> None:
    state = CapacityState(
        mode=mode,
        sessions=160,
        limit=160,
        stopped=False,
        reason=REASON,
        measured_ms=rig.clock.at_ms,
        proposal=proposal,
    )
    record = rig.store.read().rooms["r3"].record
    rig.shown.rooms = (RoomState(record, Figures(active=190), {}, capacity=state),)


def test_one_button_applies_a_suggestion_until_it_expires(rig: DashboardRig) -> None:
    visitor = rig.person("operator")
    make(rig, "suggest")
    show(rig, "suggest", Proposal(160, REASON, rig.clock.at_ms + 60_000))
    page = visitor.get(LIVE).text
    assert "Set the limit to 160" in page
    assert REASON in page
    sent = dict(
        re.findall(
            r'type="hidden" name="(\w+)" value="(\w+)"', page.partition("/live/do/limits")[2]
        )
    )
    form = {
        name: sent[name]
        for name in ("step", "revision", "until_ms", "total_active_users", "new_users_per_minute")
    }
    late = visitor.post(f"{LIVE}/do/limits", **form | {"until_ms": str(rig.clock.at_ms)})
    assert "the suggestion has expired" in late.text
    assert visitor.post(f"{LIVE}/do/limits", **form).status_code == 303
    changed = rig.store.read().rooms["r3"].record
    assert (changed.total_active_users, changed.new_users_per_minute) == (160, 160)


def test_a_suggestion_for_a_room_of_the_file_says_where_to_set_it(
    rig: DashboardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(rig, "suggest")
    show(rig, "suggest", Proposal(160, REASON, rig.clock.at_ms + 60_000))
    read = rig.store.read

    def with_file() -> Configuration:
        known = read()
        return known.changed(known.revision, [replace(known.rooms["r3"], read_only=True)])

    monkeypatch.setattr(rig.store, "read", with_file)
    page = rig.person("operator").get(LIVE).text
    assert "Proposed: 160. Set total_active_users in the configuration file." in page
    assert "/live/do/limits" not in page


def test_a_limit_is_taken_over_and_given_back(rig: DashboardRig) -> None:
    visitor = rig.person("operator")
    make(rig, "follow")
    show(rig, "follow")
    note_capacity(rig.store, rig.store.read().rooms["r3"].record, 160, REASON, rig.clock.at_ms)
    page = visitor.get(LIVE).text
    assert "Following the origin: it takes 160 active visitors" in page
    assert page.count(REASON) >= 2, "now, and among the last changes"
    assert 'value="160"' in visitor.get(f"{LIVE}/do/take-over").text
    assert visitor.post(f"{LIVE}/do/take-over", count="150").status_code == 303
    found = rig.store.read().room_in_operation("r3")
    assert (found.capacity, found.total_active_users) == ("fixed", 150)
    taken = visitor.get(LIVE).text
    assert "Taken over: at most 150 active visitors" in taken
    assert "/live/do/limits" not in taken, "the limit of the room does not count meanwhile"
    asked = visitor.get(f"{LIVE}/do/follow").text
    (revision,) = re.findall(r'name="revision" value="(\d+)"', asked)
    assert visitor.post(f"{LIVE}/do/follow", revision=revision).status_code == 303
    assert rig.store.read().room_in_operation("r3").capacity == "follow"
    audit = rig.person("admin").get("/audit").text
    assert "active visitors: p95 of documents 2.40 s over the objective" in audit
    only = rig.person("admin").get("/audit?kind=capacity").text
    assert f"160 active visitors: {REASON}" in only
    assert "took over the limit" not in only


def test_analytics_show_what_the_origin_takes_where_that_is_known(
    rig: DashboardRig, tmp_path: Path
) -> None:
    minute = rig.clock.at_ms // MINUTE_MS - 5
    rollup = Rollup(target=RoomTarget(minute * MINUTE_MS, 160, 190))
    keeper = Keeper(DuckEngine(tmp_path / "analytics.duckdb"), lambda _: RoomPlace("z1", "sale"))
    keeper.write([Part("one", minute, "r3", rollup)], minute * 60 + 60)
    rig.app.parts.put(ANALYTICS_STORE, keeper)
    viewer, path = rig.person("viewer"), "/zones/z1/rooms/r3/analytics?span=1h"
    title = "What your application takes"
    make(rig, "observe")
    page = html.unescape(viewer.get(path).text)
    assert title in page
    drawn = re.findall(r'"label": "(Found|Limit in force)".*?"values": \[(.*?)\]', page)
    values = {label: {one for one in found.split(", ") if one != "null"} for label, found in drawn}
    assert values == {"Found": {"160"}, "Limit in force": {"190"}}
    make(rig, "fixed")
    assert title not in viewer.get(path).text
    keeper.close()
