"""The order of the table of rooms: what needs a person stands first, and rows keep their places
between two refreshes.
"""

import re

import pytest
from config_material import HOUR_MS, event, room, rules
from dashboard_rig import DashboardRig

from greenroom.admission.schedule import Effective
from greenroom.configuration.state import RoomState
from greenroom.decision.room_view import Figures
from greenroom.model.visit import Estimate

FIRST = [
    "no-storage",
    "sick-origin",
    "long-wait",
    "long-line",
    "short-line",
    "a-quiet",
    "b-quiet",
    "suspended",
]


def fill(rig: DashboardRig, **figures: Figures) -> None:
    """Rooms of zone z2 in every state, made in another order than any that is shown."""
    names = (
        "b-quiet",
        "short-line",
        "suspended",
        "no-storage",
        "a-quiet",
        "long-line",
        "sick-origin",
        "long-wait",
    )
    records = {
        name: room(name, host=f"{name}.z2.example", suspended=name == "suspended") for name in names
    }
    rig.put(*[(one, "z2") for one in records.values()])
    known = {
        "no-storage": Figures(storage_failed=True),
        "short-line": Figures(waiting=3, estimate=Estimate(60.0, 60.0, 60.0)),
        "long-line": Figures(waiting=900, estimate=Estimate(60.0, 60.0, 60.0)),
        "long-wait": Figures(waiting=3, estimate=Estimate(1200.0, 1200.0, 1200.0)),
        "suspended": Figures(waiting=5000),
        **figures,
    }
    nows = {"sick-origin": Effective(records["sick-origin"], origin_down=True)}
    rig.shown.rooms = tuple(
        RoomState(one, known.get(name, Figures()), {}, nows.get(name))
        for name, one in records.items()
    )


def order(rig: DashboardRig, query: str = "") -> list[str]:
    text = rig.person("viewer", "z2").get(f"/rooms{query}").text
    return [
        name for name in re.findall(r'<th scope="row"><a [^>]*>([^<]+)</a>', text) if name != "r2"
    ]


def test_the_most_urgent_room_is_first_unless_another_order_is_asked_for(
    dashboard: DashboardRig,
) -> None:
    fill(dashboard)
    assert order(dashboard) == FIRST
    assert order(dashboard, "?sort=state") == FIRST
    assert order(dashboard, "?sort=nonsense") == FIRST
    assert order(dashboard, "?sort=name") == sorted(FIRST)
    assert order(dashboard, "?sort=waiting")[:2] == ["suspended", "long-line"]
    assert order(dashboard, "?sort=active") == sorted(FIRST)


def test_a_refresh_asks_for_the_order_that_is_shown(dashboard: DashboardRig) -> None:
    fill(dashboard)
    text = dashboard.person("viewer", "z2").get("/rooms").text
    assert '<option value="state" selected>Needs attention</option>' in text
    assert re.search(r'hx-get="/rooms\?[^"]*sort=state', text)


def test_rooms_whose_waits_and_lines_are_about_the_same_keep_their_places(
    dashboard: DashboardRig,
) -> None:
    for one, other in ((410, 400), (400, 410)):
        fill(
            dashboard,
            **{
                "a-quiet": Figures(
                    waiting=one, estimate=Estimate(280.0 + one / 100, 280.0 + one / 100, 300.0)
                ),
                "b-quiet": Figures(
                    waiting=other,
                    estimate=Estimate(280.0 + other / 100, 280.0 + other / 100, 300.0),
                ),
            },
        )
        assert [name for name in order(dashboard) if name.endswith("quiet")] == [
            "a-quiet",
            "b-quiet",
        ]


@pytest.mark.parametrize(("waiting", "first"), [(100, "short-line"), (3000, "a-quiet")])
def test_a_wait_that_is_not_known_counts_as_what_the_line_needs_at_least(
    dashboard: DashboardRig, waiting: int, first: str
) -> None:
    """A room lets 200 in within a minute."""
    fill(
        dashboard,
        **{
            "a-quiet": Figures(waiting=waiting),
            "short-line": Figures(waiting=3, estimate=Estimate(300.0, 300.0, 300.0)),
        },
    )
    assert next(name for name in order(dashboard) if name in ("a-quiet", "short-line")) == first


def test_a_row_names_its_event_with_the_time_and_its_bypass_rules(dashboard: DashboardRig) -> None:
    now_ms = dashboard.clock.at_ms
    on, later = ("on", -HOUR_MS), ("later", HOUR_MS)
    for name, from_ms in (on, later):
        dashboard.put((room(name, host=f"{name}.z2.example"), "z2"))
        dashboard.put((event(f"e-{name}", now_ms + from_ms, name=f"sale-{name}"), name))
    dashboard.put((rules("on", "ssl"), "on"))
    text = dashboard.person("viewer", "z2").get("/rooms").text
    assert "sale-on is running" not in text  # over at this moment
    dashboard.put((event("e-on", now_ms - HOUR_MS // 2, name="sale-on"), "on"))
    text = dashboard.person("viewer", "z2").get("/rooms").text
    assert re.search(r"sale-on is running until \d\d:\d\d \(30 minutes left\)</a>", text)
    later = r"sale-later starts (tomorrow )?\d\d:\d\d \(in 60 minutes\), 200 at once</a>"
    assert re.search(later, text)
    assert ">1 bypass rule<" in text
