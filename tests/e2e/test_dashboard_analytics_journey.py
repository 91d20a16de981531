"""Analytics in real Chromium: dragging over a chart zooms all of them, and the back button steps
out.
"""

import time
from collections.abc import Iterator

import pytest
from dashboard_browser import violations_in_both_themes
from live_rig import LiveRig, operator, plain_origin, sale_parts
from playwright.sync_api import expect

PATIENCE_MS = 30_000
MINUTES = 600


@pytest.fixture(scope="module")
def rig(shared_greenroom) -> Iterator[LiveRig]:
    with plain_origin() as origin:
        found = LiveRig.start(shared_greenroom, origin)
        found.restart_with(shared_greenroom, sale_parts(found.room_id, int(time.time()), MINUTES))
        yield found


def test_dragging_over_a_chart_zooms_and_the_back_button_steps_out(rig, browser) -> None:
    with operator(browser, rig, viewport={"width": 1280, "height": 1400}) as page:
        page.goto(f"{rig.path}/analytics?span=24h")
        expect(page.get_by_text("This range contains sample data.")).to_be_visible()
        expect(page.locator(".panel svg").nth(6)).to_be_attached()
        chart = page.locator('[data-panel="users"]')
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        assert box is not None
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + box["width"] * 0.7, middle)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.8, middle, steps=4)
        page.mouse.move(box["x"] + box["width"] * 0.9, middle, steps=4)
        page.mouse.up()
        page.wait_for_url("**from=*", timeout=PATIENCE_MS)
        expect(
            page.get_by_text("in steps of 5 minutes").or_(
                page.get_by_text("in steps of 60 seconds")
            )
        ).to_be_visible()
        page.go_back()
        page.wait_for_url("**/analytics?span=24h", timeout=PATIENCE_MS)
        csv = page.request.get(f"{rig.path}/analytics/csv?span=1h")
        assert csv.headers["content-type"].startswith("text/csv")
        assert csv.text().count("\r\n") >= 60


def test_axe_finds_nothing_wrong_with_figures(rig, browser) -> None:
    """Of pages without any, and of events, other tests ask it."""
    with operator(browser, rig, color_scheme="dark", reduced_motion="reduce") as page:
        page.goto(f"{rig.path}/analytics?compare=before")
        assert violations_in_both_themes(page) == []
