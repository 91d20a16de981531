"""The overview of a room: the settings that make it what it is are seen at once, the others are
folded and readable without a script.
"""

import re

from config_material import HOUR_MS, event, room
from dashboard_rig import DashboardRig

from greenroom.configuration import rooms
from greenroom.configuration.state import RoomState
from greenroom.dashboard.pages.rooms import FORM
from greenroom.decision.room_view import CenterView, Figures

FOLDED = re.compile(
    r'<details class="kept-settings"><summary>Default settings \((\d+)\)</summary>(.*?)</details>',
    re.S,
)


def settings(rig: DashboardRig, room_id: str) -> tuple[list[str], list[str]]:
    """Labels of the settings that are seen at once, and of those that are folded."""
    text = rig.person("viewer").get(f"/zones/z1/rooms/{room_id}").text
    folded = FOLDED.search(text)
    assert folded
    labels = re.findall(r"<dt>([^<]+)</dt>", folded[2])
    assert len(labels) == int(folded[1])
    return re.findall(r"<dt>([^<]+)</dt>", FOLDED.sub("", text)), labels


def test_settings_that_still_have_their_default_are_folded(dashboard: DashboardRig) -> None:
    dashboard.put(
        (room("plain"), "z1"),
        (room("own", session_duration=7, queueing_method="random", description="sale"), "z1"),
    )
    seen, folded = settings(dashboard, "plain")
    assert seen == ["Name", "Host", "Active visitors at once", "New visitors per minute"]
    assert {
        "Session length",
        "Queueing method",
        "Note",
        "More hosts and paths",
        "Hold all new visitors",
    } <= set(folded)
    changed, rest = settings(dashboard, "own")
    assert set(changed) - set(seen) == {"Session length", "Queueing method", "Note"}
    assert sorted(changed + rest) == sorted(seen + folded)


def test_a_room_of_several_data_centers_has_a_row_for_each_and_shows_their_sum(
    dashboard: DashboardRig,
) -> None:
    shop = room("shop")
    dashboard.put((shop, "z1"))
    others = [CenterView("nyc", 3, 60, 2, 1, 75.0, silent=True), CenterView("ams", 1, 2, 3, 4, 0.4)]
    figures = Figures(active=4, waiting=40, last_minute=4).with_others("fra", others)
    dashboard.shown.rooms = (RoomState(shop, figures, {}),)
    viewer = dashboard.person("viewer")
    for page in ("", "/live"):
        text = viewer.get(f"/zones/z1/rooms/shop{page}").text
        rows = re.findall(r'<tr><th scope="row">(.*?)</tr>', text.partition('id="data-centers"')[2])
        cells = [re.findall(r">([^<>]+)<", f">{row}<") for row in rows[:3]]
        assert cells == [
            ["fra ", "(this one)", "0 s ago", "4", "4", "40", "0"],
            ["ams", "0 s ago", "1", "3", "2", "4"],
            ["nyc", "silent for 75 seconds", "3", "2", "60", "1"],
        ], page
        assert re.search(r">102<", text), "the sum of those who wait"


def test_what_is_ready_for_the_next_event_is_listed_with_links_and_renews(
    dashboard: DashboardRig,
) -> None:
    at, visitor = "/zones/z2/rooms/shop", dashboard.person("operator")
    dashboard.put((room("shop", host="shop.z2.example"), "z2"))
    assert "Ready for" not in visitor.get(at).text
    start_ms = dashboard.clock.at_ms + 33 * HOUR_MS
    sale = event("sale", start_ms, total_active_users=1200, new_users_per_minute=900)
    dashboard.put((sale, "shop"))
    text = visitor.get(at, **{"HX-Request": "true"}).text
    assert "<!doctype" not in text
    assert "(in 33 h), 1,200 at once" in text
    assert "Ready for sale? 1 of 5" in text
    for path in ("/events/sale", "/page", "/dry-run?event=sale"):
        assert f'href="{at}{path}"' in text
    assert 'href="/notifications"' in text
    assert "nobody is notified about this room" in text
    assert "Ready for" not in dashboard.person("viewer").get(at).text


def test_a_new_room_is_named_after_its_display_name(dashboard: DashboardRig) -> None:
    operator = dashboard.person("operator")
    defaults = {
        one.name: str(one.default).lower() if isinstance(one.default, bool) else one.default
        for one in rooms.ROOM.fields
        if one.name in FORM and isinstance(one.default, (str, int)) and one.default is not False
    }
    form = defaults | {
        "site_name": "Früher Verkauf: 40 %",
        "name": "",
        "host": "https://early.z1.example/sale",
        "total_active_users": "500",
        "new_users_per_minute": "500",
    }
    new = "/zones/z1/rooms/new"
    review = operator.post(new, **form).text
    assert "Review fruher-verkauf-40" in review
    assert re.search(r"Display name</th><td[^>]*>Früher Verkauf: 40 %", review)
    where = operator.post(new, **form, step="save").headers["location"].partition("?")[0]
    made = dashboard.store.read().rooms[where.rpartition("/")[2]].record
    assert (made.name, made.branding.site_name) == ("fruher-verkauf-40", "Früher Verkauf: 40 %")
    assert 'class="room-title muted">Früher Verkauf: 40 %' in operator.get(where).text
    assert "Früher Verkauf: 40 %" in operator.get("/rooms").text
    refused = operator.post(new, **form | {"site_name": "x" * 61})
    assert refused.status_code == 400
    assert re.search(r'id="f-site_name"[^>]*aria-invalid', refused.text)
