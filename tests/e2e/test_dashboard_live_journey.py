"""Operators in the hour of a sale, in real Chromium in front of a real greenroom: the line grows,
limits are raised, undone, held.
"""

import re
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest
from dashboard_browser import violations_in_both_themes
from live_rig import LiveRig, operator, plain_origin, started
from playwright.sync_api import expect

PATIENCE_MS = 30_000


@pytest.fixture(scope="module")
def process(shared_greenroom) -> Iterator[LiveRig]:
    with plain_origin() as origin:
        yield LiveRig.start(shared_greenroom, origin)


@pytest.fixture
def rig(process) -> LiveRig:
    process.set(total_active_users=10, new_users_per_minute=10, queue_all=False, suspended=False)
    return process


def test_a_change_by_another_person_is_not_overwritten(rig, browser) -> None:
    with operator(browser, rig) as page:
        page.goto(f"{rig.path}/live/do/limits")
        rig.set(total_active_users=77)
        page.get_by_label("Active visitors at once").fill("40")
        page.get_by_role("button", name="Show the effect").click()
        expect(page.get_by_role("alert")).to_contain_text("changed by another person")
        assert rig.room["total_active_users"] == 77


def test_the_stream_ends_with_the_session_and_the_page_asks_to_sign_in(rig, browser) -> None:
    with operator(browser, rig) as page:
        page.goto(f"{rig.path}/live")
        expect(page.locator("#live-sign")).to_have_text("Live", timeout=PATIENCE_MS)
        cookie = next(one for one in page.context.cookies() if one["name"] == "greenroom_session")[
            "value"
        ]
        connection = HTTPConnection(*rig.api.address)
        csrf = page.locator('meta[name="csrf-token"]').get_attribute("content") or ""
        headers = {
            "Cookie": f"greenroom_session={cookie}",
            "Origin": rig.base,
            "X-CSRF-Token": csrf,
            "Content-Length": "0",
        }
        connection.request("POST", "/sign-out", headers=headers)
        assert connection.getresponse().status == 303
        page.wait_for_url("**/sign-in**", timeout=PATIENCE_MS)


def test_axe_finds_nothing_wrong_with_the_live_page(rig, browser) -> None:
    with operator(browser, rig, color_scheme="dark", reduced_motion="reduce") as page:
        begun = rig.api.ask(
            "PUT",
            f"/zones/{rig.zone_id}/waiting_rooms/{rig.room_id}/operations/message",
            {"message": "Soon"},
        )
        assert begun.status == 200
        for path in ("/live", "/live/do/message"):
            page.goto(f"{rig.path}{path}")
            assert violations_in_both_themes(page) == [], path


IN_VIEW = """(names) => names.filter((name) => {
  const box = document.querySelector(name).getBoundingClientRect();
  const bar = document.querySelector(".live-bar").getBoundingClientRect();
  return box.top < 0 || box.left < 0 || box.right > innerWidth || box.bottom > (name === ".live-bar" ? innerHeight : bar.top);
})"""
"""What of these is not wholly in view, above the bar."""
FIRST_SCREEN = [".live-verdict", ".live-figures", ".live-main", ".live-bar"]


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_first_screen_has_all_and_an_action_opens_beside_the_figures(
    rig, browser, width: int, height: int
) -> None:
    size = {"width": width, "height": height}
    operations = f"/zones/{rig.zone_id}/waiting_rooms/{rig.room_id}/operations"
    rig.api.ask("DELETE", f"{operations}/message")
    with operator(browser, rig, viewport=size, reduced_motion="reduce") as page:
        page.goto(f"{rig.path}/live")
        expect(page.locator("#live-sign")).to_have_text("Live", timeout=PATIENCE_MS)
        assert page.evaluate(IN_VIEW, FIRST_SCREEN) == []
        page.keyboard.press("3")
        expect(page.get_by_label("Minutes")).to_be_focused()
        assert page.url.endswith("/live")
        seen = page.locator(".live-figures").bounding_box()
        panel = page.locator("#live-panel").bounding_box()
        assert seen["y"] >= 0
        assert seen["y"] + seen["height"] <= (panel["y"] if width < 960 else height)
        assert violations_in_both_themes(page) == []
        page.keyboard.press("Escape")
        expect(page.locator("#live-panel")).to_be_hidden()
        page.keyboard.press("3")
        page.get_by_label("Minutes").fill("x")
        page.get_by_role("button", name="Hold all new visitors").click()
        expect(page.get_by_text("ust be a number from 1")).to_be_visible()
        page.get_by_label("Minutes").fill("5")
        page.get_by_role("button", name="Hold all new visitors").click()
        expect(page.locator("#live-toast")).to_have_text("New visitors are on hold.")
        expect(page.locator("[data-until]")).to_contain_text(" left")
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("#live-toast")).to_have_text("Your last change was undone.")


def test_the_page_works_without_scripts(rig, browser) -> None:
    with operator(browser, rig) as page:
        state = page.context.storage_state()
    context = browser.new_context(storage_state=state, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{rig.path}/live")
    expect(page.locator('[data-live="title"]')).to_have_text("No limit is reached")
    page.locator("summary", has_text="More").click()
    page.get_by_role("link", name="Suspend the room").click()
    page.get_by_role("button", name="Suspend the room").click()
    expect(page.locator('[data-live="title"]')).to_have_text("The room is suspended")
    page.get_by_role("button", name="Undo").click()
    assert rig.room["suspended"] is False
    context.close()


def test_an_operator_sees_the_line_grow_and_raises_the_limits(
    shared_greenroom, rig, browser
) -> None:
    with operator(browser, rig, viewport={"width": 1280, "height": 900}) as page:
        page.goto(f"{rig.path}/live")
        expect(page.get_by_role("heading", name="sale")).to_be_visible()
        expect(page.locator("#live-sign")).to_have_text("Live", timeout=PATIENCE_MS)
        cookies = rig.crowd(24)
        expect(page.locator('[data-live="waiting"]')).to_have_text(
            re.compile(r"^1[0-9]$"), timeout=PATIENCE_MS
        )
        expect(page.locator('[data-live="title"]')).to_have_text("Both limits are reached")
        expect(page.locator(".live-chart svg")).to_have_count(2)

        page.keyboard.press("1")
        page.get_by_label("Active visitors at once").fill("5")
        page.get_by_role("button", name="Show the effect").click()
        expect(page.get_by_text("Can't be higher than Active visitors at once")).to_be_visible()
        page.get_by_label("Active visitors at once").fill("40")
        page.get_by_label("New visitors per minute").fill("40")
        page.get_by_role("button", name="Show the effect").click()
        expect(page.get_by_text("of those who wait come in within the next minute")).to_be_visible()
        assert rig.room["total_active_users"] == 10  # nothing has changed yet
        page.get_by_role("button", name="Change the limits").click()
        page.wait_for_url("**/live?notice=did-limits")
        expect(page.locator('[data-live="active_limit"]')).to_have_text("40", timeout=PATIENCE_MS)
        shared_greenroom.eventually(
            lambda: all(rig.visit(cookie)[0] == 0 for cookie in cookies[-3:]),
            "those who waited come in",
        )

        page.get_by_role("button", name="Undo").click()
        page.wait_for_url("**/live?notice=undone")
        assert rig.room["total_active_users"] == 10
        audit = page.request.get(f"{rig.base}/audit").text()
        assert "operator" in audit
        assert audit.count("in the dashboard") >= 2


def test_the_page_comes_back_by_itself_after_greenroom_was_restarted(
    shared_greenroom, rig, browser
) -> None:
    with operator(browser, rig) as page:
        page.goto(f"{rig.path}/live")
        expect(page.locator("#live-sign")).to_have_text("Live", timeout=PATIENCE_MS)
        rig.running.stop()
        expect(page.locator("#live-sign")).to_have_text(
            re.compile("^(Connecting again|No figures for)"), timeout=PATIENCE_MS
        )
        rig.running = started(
            shared_greenroom, "http://127.0.0.1:9", "--control", f"127.0.0.1:{rig.api.address[1]}"
        )
        expect(page.locator("#live-sign")).to_have_text("Live", timeout=PATIENCE_MS)
