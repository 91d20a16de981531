"""In a real Chromium: somebody takes a calendar entry, closes the page, and comes back after the turn
in another profile. The answers are those of the decision service, on a clock set by hand.
"""

import re
from pathlib import Path

from dashboard_browser import violations_in_both_themes
from decision_sites import full, held, sites_in
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect
from visitors import Browser as Visitor
from visitors import Site

from greenroom.decision.verdict import Forward
from greenroom.model.visit import Arrival

SHOP = "https://shop.example/"


def profile(browser: Browser, site: Site) -> tuple[BrowserContext, Page]:
    """A browser with cookies of its own."""
    context = browser.new_context(locale="en-US")

    def answer(route: Route) -> None:
        request = route.request
        headers = tuple(
            (name.lower().encode(), value.encode())
            for name, value in request.all_headers().items()
            if not name.startswith(":")
        )
        query = request.url.partition("?")[2]
        arrival = Arrival(
            request.method, "https", "shop.example", "/", query,
            (*headers, (b"host", b"shop.example")), "192.0.2.1",
        )  # fmt: skip
        reply = site.ask(arrival)
        cookie = {"Set-Cookie": reply.set_cookie.decode()} if reply.set_cookie else {}
        if isinstance(reply, Forward):
            route.fulfill(content_type="text/html", headers=cookie, body="<h1>Shop</h1>")
            return
        sent = {name.decode(): value.decode() for name, value in reply.headers.pairs}
        if reply.status == 303:  # Playwright follows no redirect of a fulfilled request
            sent.pop("Location")
            body = b'<meta http-equiv=refresh content="0; url=/">'
            route.fulfill(status=200, headers=cookie | {"Content-Type": "text/html"}, body=body)
            return
        route.fulfill(status=200, headers=sent | cookie, body=reply.body)

    context.route("**/*", answer)
    return context, context.new_page()


def until_inside(site: Site, visitor: Visitor) -> None:
    for _ in range(600):
        site.advance(2_000)
        if isinstance(visitor.visit(), Forward):
            return
    raise AssertionError("never admitted")


def test_close_the_page_and_come_back_in_another_profile(browser: Browser, tmp_path: Path) -> None:
    site = sites_in(tmp_path)(total_active_users=100, calendar_after_minutes=1)
    full(site)
    ahead = [held(site)[0] for _ in range(4)]
    for visitor in ahead:
        visitor.wait()
        visitor.visit()
    home, page = profile(browser, site)
    page.goto(SHOP)
    for _ in range(2):
        site.advance(2_000)
        for visitor in ahead:
            visitor.visit()
    page.reload()
    expect(page.locator("#kept")).to_contain_text("Keep this tab open")
    link = page.get_by_role("link", name="Add to your calendar")
    # Playwright cancels a download that it answers itself, before its cookie is kept
    taken = link.evaluate("async link => (await fetch(link.href)).text()")
    entry = taken.replace("\r\n ", "")
    url = re.search(r"^URL:(\S+)\r$", entry, re.M)
    assert url is not None, entry
    site.advance(20_000)
    page.reload()
    expect(page.locator("#kept")).to_contain_text("You may close the waiting page")
    assert violations_in_both_themes(page) == []
    page.close()

    behind = held(site)[0]
    behind.wait()
    behind.visit()
    for _ in range(20):
        site.advance(20_000)
        behind.visit()
    until_inside(site, behind)
    site.advance(60_000)
    phone, other = profile(browser, site)
    other.goto(url[1])
    other.get_by_role("button", name="Continue here").press("Enter")
    expect(other.get_by_role("heading", name="Shop")).to_be_visible()
    again = home.new_page()
    again.goto(SHOP)
    expect(again.locator("body")).to_contain_text("Your place is on another device")
    assert site.errors == []
    phone.close()
    home.close()
