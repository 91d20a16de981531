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


def test_a_new_event_opens_with_tomorrow_in_the_viewers_zone(dashboard: DashboardRig) -> None:
    visitor = dashboard.person("operator")
    visitor.cookies["greenroom_tz"] = "Europe/Berlin"
    form = form_of(visitor.get("/zones/z1/rooms/r1/events/new").text)
    begins = [form[f"{name}_time"] for name in ("prequeue_start", "event_start", "event_end")]
    assert [one[-5:] for one in begins] == ["09:30", "10:00", "12:00"]
    assert len({one[:10] for one in begins}) == 1
    answer = visitor.post("/zones/z1/rooms/r1/events/new", **form, name="next", step="save")
    assert answer.status_code == 303


def test_an_event_has_a_page_of_its_own_that_is_previewed_reviewed_and_saved(
    dashboard: DashboardRig,
) -> None:
    put(dashboard, *TIMES["with seconds"])
    visitor = dashboard.person("operator")
    form = {**form_of(visitor.get(EVENT).text), "name": "sale"}
    own = {"custom_page_html": "<p>Sale {{queueingMethod}}</p>\r\n"}
    preview = "/zones/z1/rooms/r1/events/preview"
    for moment, seen in (("before", False), ("prequeue", True), ("line", True), ("reject", True)):
        shown = visitor.post(preview, **form, **own, moment=moment)
        assert ("<p>Sale " in shown.text) is seen, moment
        assert "frame-ancestors 'self'" in shown.headers["content-security-policy"]
    assert "<p>Sale reject</p>" in visitor.post(preview, **own, moment="reject").text
    wrong = visitor.post(preview, custom_page_html="{{#nothing}}")
    assert (wrong.status_code, "Line 1" in wrong.text) == (400, True)
    assert "own HTML, 31 characters" in visitor.post(EVENT, **form, **own).text
    assert visitor.post(EVENT, **form, **own, step="save").status_code == 303
    event = dashboard.store.read().events["e5"].record
    assert event.custom_page_html == "<p>Sale {{queueingMethod}}</p>\n"
    form = {**form_of(visitor.get(EVENT).text), "name": "sale"}
    assert visitor.post(EVENT, **form, custom_page_html=" ", step="save").status_code == 303
    assert dashboard.store.read().events["e5"].record.custom_page_html is None
