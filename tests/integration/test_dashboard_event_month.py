"""The calendar of events on the page: months to turn, links to the events, and only those that the person may see."""

import re

from config_material import HOUR_MS
from dashboard_rig import DashboardRig, Visitor

from greenroom.model.event import Event

MAY_2040_MS = 2_219_400_000_000


def in_month(visitor: Visitor, path: str) -> list[str]:
    text = visitor.get(path).text.partition('id="calendar"')[2].partition("</table>")[0]
    return re.findall(r'class="calendar-event[^>]*>(\w+)<', text)


def test_months_are_turned_and_events_lead_to_their_form(dashboard: DashboardRig) -> None:
    dashboard.put((Event(id="e5", name="may", event_start_ms=MAY_2040_MS, event_end_ms=MAY_2040_MS + HOUR_MS), "r1"))
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
