"""The calendar of events on the page: months to turn, links to the events, and only those that the
person may see.
"""

import re

from config_material import HOUR_MS
from dashboard_rig import DashboardRig, Visitor

from greenroom.model.event import Event
from greenroom.model.room import Room

MAY_2040_MS = 2_219_400_000_000


def in_month(visitor: Visitor, path: str) -> list[str]:
    text = visitor.get(path).text.partition('id="calendar"')[2].partition("</table>")[0]
    return re.findall(r'class="calendar-event[^>]*>(\w+)<', text)


def test_months_are_turned_and_events_lead_to_their_form(dashboard: DashboardRig) -> None:
    dashboard.put(
        (
            Event(
                id="e5", name="may", event_start_ms=MAY_2040_MS, event_end_ms=MAY_2040_MS + HOUR_MS
            ),
            "r1",
        )
    )
    visitor = dashboard.person("operator")
    assert in_month(visitor, "/events?month=2040-05") == ["may"]
    assert in_month(visitor, "/events?month=2040-06") == []
    page = visitor.get("/events?month=2040-05").text
    assert 'href="/events?month=2040-04#calendar"' in page
    assert '/zones/z1/rooms/r1/events/e5"' in page
    assert in_month(visitor, "/zones/z1/rooms/r1/events?month=2040-05") == ["may"]
    assert in_month(dashboard.person("viewer"), "/events?month=2040-05") == ["may"]
    assert in_month(dashboard.person("viewer", "z2"), "/events?month=2040-05") == []
    assert visitor.get("/events?month=<script>").status_code == 200


def test_a_new_event_is_offered_in_thirty_rooms_and_the_way_to_the_others_is_told(
    dashboard: DashboardRig,
) -> None:
    visitor = dashboard.person("operator")
    assert "in another of" not in visitor.get("/events").text
    rooms = [
        Room(
            id=f"n{number}",
            name=f"n{number}",
            host=f"n{number}.a.example",
            total_active_users=9,
            new_users_per_minute=9,
        )
        for number in range(31)
    ]
    dashboard.put(*((room, "z1") for room in rooms))
    page = visitor.get("/events").text
    offered = re.findall(r'/rooms/\w+/events/new"', page)
    assert len(offered) == 30
    left = len(dashboard.store.read().rooms) - 30
    assert f"in another of {left} rooms: find it, then choose Events" in page
