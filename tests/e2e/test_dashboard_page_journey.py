"""A waiting page themed in the dashboard, in real Chromium in front of a real greenroom: what the
preview shows is what visitors get.
"""

import re
from collections.abc import Iterator

import pytest
from dashboard_browser import violations
from live_rig import HOST, LiveRig, operator, plain_origin
from playwright.sync_api import Browser, FrameLocator, Page, expect


@pytest.fixture(scope="module")
def rig(shared_greenroom) -> Iterator[LiveRig]:
    with plain_origin() as origin:
        yield LiveRig.start(shared_greenroom, origin, queue_all=True)


def preview(page: Page) -> FrameLocator:
    return page.frame_locator("iframe:not(.coming)")


def test_a_page_is_themed_in_arabic_and_visitors_get_it(rig: LiveRig, browser: Browser) -> None:
    with operator(browser, rig) as page:
        page.goto(f"{rig.path}/page")
        steps = page.evaluate("history.length")
        page.get_by_label("Name of your site").fill("متجر")
        page.get_by_label("Colour", exact=True).fill("#ffcc00")
        expect(page.locator("#shades")).to_contain_text("Light: #896e00")
        page.get_by_label("Language of message 1").select_option("ar-EG")
        page.get_by_label("Text of message 1").fill("حتى منتصف الليل")
        page.locator("#f-default_template_language").select_option("ar-EG")
        page.get_by_label("State").select_option("reject")
        page.get_by_label("Theme").select_option("dark")
        shown = preview(page)
        expect(shown.locator("html")).to_have_attribute("dir", "rtl")
        expect(shown.locator("#message")).to_have_text("حتى منتصف الليل")
        expect(shown.locator("#room")).to_have_attribute("data-view", "closed")
        expect(shown.locator("body")).to_have_css("background-color", "rgb(16, 21, 19)")
        assert rig.room["greenroom"]["branding"]["site_name"] == ""
        assert page.evaluate("history.length") == steps, "previews do not fill the history"
        assert violations(page) == []
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Saved.")).to_be_visible()
    visitor = browser.new_context(locale="ar-EG").new_page()
    visitor.goto(f"http://{HOST}:{rig.running.address[1]}/")
    expect(visitor.locator("html")).to_have_attribute("lang", "ar-EG")
    expect(visitor.locator("#message")).to_have_text("حتى منتصف الليل")
    expect(visitor).to_have_title(re.compile("متجر"))


def test_a_template_is_edited_and_its_faults_are_marked_at_their_lines(
    rig: LiveRig, browser: Browser
) -> None:
    with operator(browser, rig) as page:
        page.goto(f"{rig.path}/page")
        page.get_by_label("Show my own HTML").check()
        page.get_by_role("button", name="Use the example").click()
        page.get_by_label("State").select_option("reject")
        expect(preview(page).get_by_role("heading", name="We are closed")).to_be_visible()
        page.get_by_role("textbox", name="HTML").focus()
        page.keyboard.press("Control+Home")
        page.keyboard.insert_text("{{/nothing}}")
        expect(page.locator("#template-problems")).to_contain_text(
            "Line 1: {{/nothing}} closes a section"
        )
        expect(
            preview(page).get_by_role("heading", name="Fix the highlighted field")
        ).to_be_visible()
        assert violations(page) == []


def test_a_template_cannot_act_for_the_operator(rig: LiveRig, browser: Browser) -> None:
    hostile = "<h1>in</h1><script>document.title = 'x'; try { parent.document.title; top.location = '/'; } catch (error) { document.querySelector('h1').textContent = error.name; }</script>"
    rig.set(custom_page_html=hostile)
    with operator(browser, rig) as page:
        page.goto(f"{rig.path}/page")
        expect(preview(page).get_by_role("heading")).to_have_text("SecurityError")
        assert page.url == f"{rig.path}/page"
    rig.set(custom_page_html="")


def test_it_works_without_scripts(rig: LiveRig, browser: Browser) -> None:
    with operator(
        browser, rig, java_script_enabled=False, viewport={"width": 390, "height": 800}
    ) as page:
        page.goto(f"{rig.path}/page")
        page.get_by_label("State").select_option("random")
        page.get_by_role("button", name="Show", exact=True).click()
        expect(page.frame_locator("iframe").locator("#room")).to_have_attribute(
            "data-view", "random"
        )
