"""The form of an event keeps the times that nobody changed, to the millisecond, also in the hour
that clocks show twice.
"""

import re

import pytest
from dashboard_rig import DashboardRig

from greenroom.model.event import Event
from greenroom.web.time_format import milliseconds

EVENT = "/zones/z1/rooms/r1/events/e5"
SECOND_HALF_PAST_TWO = "2040-10-28T01:30:00Z"
"""In Berlin the clock shows 02:30 twice that night; this is the second time."""

TIMES = {
    "with seconds": ("2040-05-01T10:00:30Z", "2040-05-01T21:59:59Z"),
    "to the millisecond": ("2040-05-01T10:00:00.125Z", "2040-05-01T21:59:59.999Z"),
    "in an hour that comes twice": (SECOND_HALF_PAST_TWO, "2040-10-28T20:00:00Z"),
}


def put(rig: DashboardRig, start: str, end: str) -> Event:
    """The event of the form, as an API client made it."""
    start_ms, end_ms = milliseconds(start), milliseconds(end)
    assert start_ms is not None
    assert end_ms is not None
    found = Event(
        id="e5",
        name="sale",
        event_start_ms=start_ms,
        event_end_ms=end_ms,
        prequeue_start_ms=start_ms - 600_000,
    )
    rig.put((found, "r1"))
    return found


def form_of(page: str) -> dict[str, str]:
    """What a browser would send of the fields for times, and the revision."""
    inputs = [
        dict(re.findall(r'([\w-]+)="([^"]*)"', one)) for one in re.findall(r"<input[^>]*>", page)
    ]
    return {
        one["name"]: one.get("value", "")
        for one in inputs
        if one.get("name", "").endswith(("_time", "revision"))
    }


@pytest.mark.parametrize(("start", "end"), TIMES.values(), ids=TIMES)
def test_a_new_note_moves_no_time_of_the_event(
    dashboard: DashboardRig, start: str, end: str
) -> None:
    before = put(dashboard, start, end)
    visitor = dashboard.person("operator")
    visitor.cookies["greenroom_tz"] = "Europe/Berlin"
    form = form_of(visitor.get(EVENT).text)
    assert set(form) == {"prequeue_start_time", "event_start_time", "event_end_time", "revision"}
    answer = visitor.post(EVENT, **form, name="sale", description="for all", step="save")
    assert answer.status_code == 303
    after = dashboard.store.read().events["e5"].record
    assert after.description == "for all"
    for name in ("prequeue_start_ms", "event_start_ms", "event_end_ms"):
        assert getattr(after, name) == getattr(before, name), name


def test_a_time_that_was_changed_is_the_one_that_counts(dashboard: DashboardRig) -> None:
    put(dashboard, *TIMES["with seconds"])
    visitor = dashboard.person("operator")
    form = form_of(visitor.get(EVENT).text) | {"event_end_time": "2040-05-01T23:00"}
    assert visitor.post(EVENT, **form, name="sale", step="save").status_code == 303
    after = dashboard.store.read().events["e5"].record
    assert after.event_end_ms == milliseconds("2040-05-01T23:00:00Z")
    assert after.event_start_ms == milliseconds("2040-05-01T10:00:30Z")
