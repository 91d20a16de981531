"""More time in a real Chromium, with the script in an application's page and without a script; the
answers are those of the decision service, on a clock set by hand.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from dashboard_browser import violations_in_both_themes
from decision_sites import full, sites_in
from playwright.sync_api import Browser, Page, Route, expect
from visitors import Site

from greenroom.model.answer import Answer
from greenroom.pages.language import language

WORDS = language("en-US").session
SHOP = "https://shop.example/"
APPLICATION = """<!doctype html><html lang=en><title>Shop</title><main><h1>Shop</h1><a href="#">Basket</a></main>
<script src="/?greenroom=session.js" defer></script>
<noscript><iframe src="/?greenroom=session" title="Your session" width=320 height=220></iframe></noscript>"""


class Inside:
    """A visitor inside, in a window."""

    def __init__(self, site: Site, page: Page) -> None:
        self.site, self.page, self.visitor = site, page, full(site)
        page.route("**/*", self._answer)
        page.goto(SHOP)

    def _answer(self, route: Route) -> None:
        request = route.request
        query = request.url.partition("?")[2]
        if not query:
            route.fulfill(content_type="text/html", body=APPLICATION)
            return
        headers = tuple(
            (name.lower().encode(), value.encode())
            for name, value in request.all_headers().items()
            if name.lower() in ("accept", "origin") or name.lower().startswith("sec-fetch-")
        )
        reply = self.visitor.visit(method=request.method, query=query, headers=headers)
        assert isinstance(reply, Answer)
        sent = {name.decode(): value.decode() for name, value in reply.headers.pairs}
        if reply.status == 303:  # Playwright follows no redirect of a fulfilled request
            reply = self.visitor.visit(query="greenroom=session", headers=headers)
            assert isinstance(reply, Answer)
            sent = {name.decode(): value.decode() for name, value in reply.headers.pairs}
        sent.pop("Refresh", None)  # the frame's own timer runs in real time
        route.fulfill(status=reply.status, headers=sent, body=reply.body)

    def wait(self, seconds: int) -> None:
        self.site.advance(seconds * 1_000)


Open = Callable[[Page], Inside]


@pytest.fixture
def inside(tmp_path: Path) -> Open:
    site = sites_in(tmp_path)(
        session_extensions=1, disable_session_renewal=True, session_duration=5
    )
    return lambda page: Inside(site, page)


def test_the_script_warns_before_the_end_and_one_key_gives_more_time(
    browser: Browser, inside: Open
) -> None:
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    page.clock.install()
    visit = inside(page)
    message, press = page.locator("#greenroom-session p"), page.get_by_role("button")
    expect(message).to_have_attribute("aria-live", "polite")
    expect(message).to_have_text("")
    expect(press).to_have_count(0)  # hidden: neither seen nor read out
    expect(page.locator("#greenroom-session button")).to_have_text(WORDS["more"])  # it has heard
    visit.wait(155)
    page.clock.run_for(155_000)
    expect(message).to_contain_text(WORDS["soon"])
    expect(press).to_have_text(WORDS["more"])
    for _ in range(3):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "BUTTON":
            break
    page.keyboard.press("Enter")
    expect(message).to_have_text(WORDS["given"])
    visit.wait(290)
    page.clock.run_for(150_000)
    expect(message).to_contain_text(WORDS["soon"])
    page.get_by_role("button").click()
    expect(message).to_have_text(WORDS["last"])
    visit.wait(200)
    page.clock.run_for(200_000)
    expect(message).to_have_text(WORDS["over"])
    expect(press).to_have_count(0)
    context.close()


def test_axe_finds_nothing_on_the_warning_and_on_the_page(browser: Browser, inside: Open) -> None:
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    visit = inside(page)
    visit.wait(200)
    page.reload()
    expect(page.get_by_role("button")).to_have_text(WORDS["more"])
    assert violations_in_both_themes(page) == []
    page.goto(f"{SHOP}?greenroom=session")
    expect(page.get_by_role("alert")).to_have_text(WORDS["soon"])
    assert violations_in_both_themes(page) == []
    context.close()


def test_without_a_script_the_frame_warns_and_gives_more_time(
    browser: Browser, inside: Open
) -> None:
    context = browser.new_context(java_script_enabled=False, locale="en-US")
    page = context.new_page()
    visit = inside(page)
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading")).to_have_text(WORDS["left"].format(time="5 minutes"))
    visit.wait(200)
    page.reload()
    expect(frame.get_by_role("alert")).to_have_text(WORDS["soon"])
    frame.get_by_role("button", name=WORDS["more"]).press("Enter")
    expect(frame.get_by_role("heading")).to_have_text(WORDS["left"].format(time="5 minutes"))
    context.close()
