"""People of single zones learn nothing of other zones from pages that ask the whole process."""

from typing import Any

import msgspec
import pytest
from config_material import room, rules
from dashboard_rig import DashboardRig

from greenroom.configuration.dashboard.parts import EXPLAINS
from greenroom.configuration.explain_request import ExplainRequest
from greenroom.dashboard.live_feed import LiveFeed, LiveWatcher, OriginLastMinute
from greenroom.decision.explain import Explanation, RoomDefinition, described_arrival, explain
from greenroom.model.rule import RuleList
from greenroom.request.canonical import Refusal
from greenroom.rules import NOTHING_KNOWN, compile_lists

SECRET = "s3cr3t-of-zone-two"
TRY = "/zones/z1/rooms/r5/rules/try"
OFFICE = [RuleList(id="l1", name="office", kind="ip", items=("192.0.2.0/24",))]


class AllRooms:
    """Explains as the running process does: with the rooms of all zones."""

    def __init__(self, rig: DashboardRig) -> None:
        self._rig = rig

    def explain(self, asked: ExplainRequest) -> Explanation:
        known = self._rig.store.read()
        plans = [
            RoomDefinition(entry.record, rules=known.rules[entry.id].record.rules)
            for entry in known.rooms.values()
            if entry.id in known.rules
        ]
        arrival = described_arrival(asked.url, asked.method, asked.headers, asked.client)
        assert not isinstance(arrival, Refusal)
        return explain(
            arrival, plans, compile_lists(OFFICE), NOTHING_KNOWN, self._rig.clock.at_ms, {}
        )


@pytest.fixture
def walled(dashboard: DashboardRig) -> DashboardRig:
    dashboard.put((room("r5", host="shop.z1.example"), "z1"))
    dashboard.put((rules("r2", f'any(http.request.headers["x-key"][*] eq "{SECRET}")'), "r2"))
    dashboard.put((rules("r5", 'http.request.uri.path eq "/own"'), "r5"))
    dashboard.app.parts.put(EXPLAINS, AllRooms(dashboard))
    return dashboard


def test_rules_of_another_zone_are_not_shown_by_trying_its_address(walled: DashboardRig) -> None:
    foreign, own = f"{TRY}?url=https://z2.example/", f"{TRY}?url=https://shop.z1.example/own"
    viewer, all_zones = walled.person("viewer", "z1"), walled.person("viewer")
    shown = viewer.get(foreign).text
    assert SECRET not in shown
    assert ">r2<" not in shown
    assert "No room of your zones covers this address" in shown
    assert SECRET in all_zones.get(foreign).text
    assert "It reaches your application" in viewer.get(own).text


def test_an_address_without_a_room_looks_like_one_in_another_zone(walled: DashboardRig) -> None:
    viewer = walled.person("viewer", "z1")
    pages = [
        viewer.get(f"{TRY}?url=https://{host}/").text.replace(host, "")
        for host in ("z2.example", "nowhere.example")
    ]
    assert pages[0] == pages[1]


def test_what_is_on_a_list_is_not_found_out_by_trying(walled: DashboardRig) -> None:
    walled.put((rules("r5", "ip.src in $office"), "r5"))
    members = ("192.0.2.7", "198.51.100.7")

    def pages(*zones: str) -> set[str]:
        person = walled.person("viewer", *zones)
        return {
            person.get(f"{TRY}?url=https://shop.z1.example/&client={client}").text.replace(
                client, ""
            )
            for client in members
        }

    assert len(pages("z1")) == 1
    assert len(pages()) == 2


def test_origin_errors_of_all_zones_are_not_on_the_live_page_of_one(
    walled: DashboardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, live = walled.app.feed, "/zones/z1/rooms/r5/live"
    monkeypatch.setattr(feed.origin, "last_minute", lambda: OriginLastMinute(777, 0.5))
    assert "777" in walled.person("viewer").get(live).text
    shown = walled.person("viewer", "z1").get(live).text
    assert "777" not in shown
    assert "Origin errors" not in shown


async def _no_sessions(_known: object) -> None:
    """These watchers have none."""


@pytest.mark.parametrize(("sees_all", "errors"), [(False, None), (True, 777)])
def test_the_stream_counts_origin_errors_for_those_who_see_all(
    walled: DashboardRig, monkeypatch: pytest.MonkeyPatch, sees_all: bool, errors: int | None
) -> None:
    feed: LiveFeed = walled.app.feed
    monkeypatch.setattr(feed.origin, "last_minute", lambda: OriginLastMinute(777, 0.5))
    monkeypatch.setattr(feed, "_end_sessions", _no_sessions)

    async def frame() -> dict[str, Any]:
        watcher = LiveWatcher("r5", "z1", "secret", sees_all=sees_all)
        async for message in feed.watch(watcher):
            if message.startswith(b"data: "):
                found: dict[str, Any] = msgspec.json.decode(message[6:])
                return found
        return {}

    assert walled.run(frame())["origin_errors"] == errors
