"""The flash sale of the articles in real Chromium: planned, rehearsed, gathered, drawn, watched and
steered, ended, and looked at afterwards.

Time is compressed: the pre-queue opened before the test, and the operator moves the start to now
when everyone is there.
"""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from dashboard_browser import violations_in_both_themes
from live_rig import LiveRig, operator, plain_origin, started
from playwright.sync_api import Browser, Page, expect

PATIENCE_MS = 60_000
VIEWER_ZONE = ZoneInfo("Europe/Berlin")
"""Of the operator's browser."""

CROWD = 12


def moment(**away: float) -> str:
    """A time as it is typed, so far from now."""
    return f"{datetime.now(VIEWER_ZONE) + timedelta(**away):%Y-%m-%dT%H:%M:%S}"


def sound_in_both_themes(page: Page) -> None:
    assert violations_in_both_themes(page) == [], page.url


def plan_and_rehearse(page: Page, rig: LiveRig) -> None:
    page.goto(f"{rig.path}/events/new")
    page.get_by_label("Pre-queue opens").fill(moment(minutes=-10))
    page.get_by_label("Start", exact=True).fill(moment(minutes=30))
    page.get_by_label("End", exact=True).fill(moment(hours=2))
    page.get_by_label("Randomize the pre-queue").check()
    page.get_by_label("Active visitors at once").fill("4")
    page.get_by_label("New visitors per minute").fill("4")
    page.get_by_label("Name").fill("friday")
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_text("The pre-queue is randomized")).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_role("button", name="Create the event").click()
    expect(page.get_by_role("row", name="friday Pre-queue")).to_be_visible(timeout=PATIENCE_MS)
    page.goto(f"{rig.path}/events")
    event = (
        page.get_by_role("row", name="friday Pre-queue")
        .get_by_role("link", name="friday", exact=True)
        .get_attribute("href")
        or ""
    )
    page.get_by_role("link", name="Dry run of friday").click()
    page.get_by_text("From a table instead").click()
    arrivals = b"second,visitors\n0,30\n2400,30\n"
    page.locator("#rows-file").set_input_files(
        {"name": "friday.csv", "mimeType": "text/csv", "buffer": arrivals}
    )
    expect(page.get_by_label("Arrivals", exact=True)).to_have_value(
        arrivals.decode(), timeout=PATIENCE_MS
    )
    page.get_by_label("Other limit: active").fill("40")
    page.get_by_label("Other limit: new").fill("40")
    page.get_by_role("button", name="Start the dry run").click()
    expect(page.get_by_text("The other limits save the last visitor")).to_be_visible(
        timeout=PATIENCE_MS
    )
    expect(page.get_by_text("a randomized pre-queue")).to_be_visible(timeout=PATIENCE_MS)
    sound_in_both_themes(page)
    page.goto(f"{rig.base}{event}")


def waits(rig: LiveRig, cookie: str) -> bool:
    """A visitor who comes back as the page says, until it is their turn."""
    until = time.monotonic() + PATIENCE_MS / 1000
    while time.monotonic() < until:
        refresh_s, cookie = rig.visit(cookie)
        if not refresh_s:
            return True
        time.sleep(
            min(refresh_s, 1)
        )  # the gateway holds the answer to a try that comes before its turn
    return False


def steer(page: Page) -> None:
    """The first four are inside; the operator raises the limits."""
    expect(page.locator('[data-live="title"]')).to_have_text(
        "Both limits are reached", timeout=PATIENCE_MS
    )
    expect(page.locator('[data-live="active"]')).to_have_text("4", timeout=PATIENCE_MS)
    expect(page.locator('[data-live="event"]')).to_contain_text("friday", timeout=PATIENCE_MS)
    page.keyboard.press("1")
    page.get_by_label("Active visitors at once").fill("40")
    page.get_by_label("New visitors per minute").fill("40")
    page.get_by_role("button", name="Show the effect").click()
    expect(page.get_by_text("of those who wait come in")).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_role("button", name="Change the limits").click()
    page.wait_for_url("**/live?notice=did-limits")


def test_a_flash_sale_from_the_plan_to_the_figures(shared_greenroom, browser: Browser) -> None:
    with plain_origin() as origin:
        rig = LiveRig.start(shared_greenroom, origin)
        with operator(browser, rig, viewport={"width": 1280, "height": 900}) as page:
            plan_and_rehearse(page, rig)
            form = page.url

            page.goto(f"{rig.path}/live")
            title = page.locator('[data-live="title"]')
            expect(title).to_have_text("Pre-queue", timeout=PATIENCE_MS)
            cookies = rig.crowd(CROWD)
            expect(page.locator('[data-live="waiting"]')).to_have_text(
                str(CROWD), timeout=PATIENCE_MS
            )
            assert page.locator('[data-live="active"]').inner_text() == "0"

            page.goto(form)
            page.get_by_label("Start", exact=True).fill(moment(seconds=2))
            page.get_by_role("button", name="Review").click()
            page.get_by_role("button", name="Save").click()
            page.goto(f"{rig.path}/live")
            with ThreadPoolExecutor(CROWD) as people:
                visitors = [people.submit(waits, rig, cookie) for cookie in cookies]
                steer(page)
                assert all(visitor.result() for visitor in visitors)
            expect(page.locator('[data-live="active"]')).to_have_text(
                str(CROWD), timeout=PATIENCE_MS
            )

            page.get_by_role("link", name="Extend the event").click()
            page.get_by_role("button", name="Extend the event").click()
            page.get_by_role("button", name="Undo").click()
            page.wait_for_url("**/live?notice=undone")

        rig.running.stop()  # its minutes are written; in real life they appear one by one
        rig.running = started(shared_greenroom, "http://127.0.0.1:9")
        rig.api.address = rig.running.control
        with operator(browser, rig, viewport={"width": 1280, "height": 900}) as page:
            row = page.get_by_role("row", name="friday").filter(
                has=page.get_by_role("link", name="Analytics of friday")
            )
            result = row.get_by_role("link", name="Result")
            shared_greenroom.eventually(
                lambda: page.goto(f"{rig.path}/events") and result.count(),
                "the result of the draw is shown",
            )
            sound_in_both_themes(page)
            row.get_by_role("link", name="Analytics of friday").click()
            figure = page.locator(".glance dl > div").filter(
                has_text=re.compile(r"^\s*Let in\s*\d")
            )
            expect(figure).to_have_text(re.compile(rf"Let in\s*{CROWD}\b"), timeout=PATIENCE_MS)
            audit = page.request.get(f"{rig.base}/audit").text()
            assert audit.count("friday") >= 4
