"""A branded waiting page in a real Chromium: name and place in the title, the accent in both
themes, how old the news is, on a phone.
"""

from typing import Any

import pytest
from page_rig import stop_clock
from playwright.sync_api import Browser, Page, Route, expect

from greenroom.model.branding import Branding, LocalMessage
from greenroom.model.room import Room
from greenroom.model.visit import Held
from greenroom.pages import compile_page

LOGO = "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHdpZHRoPSI0MCIgaGVpZ2h0PSI0MCI+PGNpcmNsZSBjeD0iMjAiIGN5PSIyMCIgcj0iMjAiLz48L3N2Zz4="
SHOP = compile_page(
    Room(
        name="shop", host="*", total_active_users=1, new_users_per_minute=1, follow_accept_language=True,
        branding=Branding(site_name="Shop & Söhne", logo=LOGO, accent_color="#ffcc00", message="The sale lasts until midnight.", help_url="https://help.example.com/"),
        branding_messages=(LocalMessage("de-DE", "Der Verkauf dauert bis Mitternacht."),),
    )
)  # fmt: skip
AT_MS = 1_790_000_000_000


def waiting(**changes: Any) -> Held:
    said = {
        "position": 3,
        "ahead": 2,
        "waiting": 9,
        "in_line": True,
        "joined_ms": AT_MS - 60_000,
        "next_try_s": 1,
    } | changes
    return Held(AT_MS, "fifo", AT_MS, 20, estimate=None, **said)


def open_page(browser: Browser, held: Held, stopped: bool = False, **context: Any) -> Page:
    """The page of the shop, whose updates say the same again; its clock may be moved by hand."""
    page = browser.new_context(**{"locale": "en-US", **context}).new_page()
    if stopped:
        stop_clock(page)
    page.problems = []  # type: ignore[attr-defined]
    page.on("console", lambda message: page.problems.append(message.text))  # type: ignore[attr-defined]

    def answer(route: Route) -> None:
        spoken = SHOP.speaking((context.get("locale") or "en-US").encode())
        update = route.request.headers.get("greenroom-update")
        headers = spoken.json_headers if update else spoken.html_headers
        body = spoken.update(held, update.encode()) if update else spoken.html(held)
        route.fulfill(
            status=200,
            headers={name.decode(): value.decode() for name, value in headers.pairs},
            body=body,
        )

    page.route("**/*", answer)
    page.goto("http://shop.example.com/")
    return page


def test_the_page_belongs_to_the_site(browser: Browser) -> None:
    page = open_page(browser, waiting())
    assert page.title() == "3 in line · Shop & Söhne"
    expect(page.locator("#site")).to_have_text("Shop & Söhne")
    assert page.evaluate("document.querySelector('#site img').naturalWidth") == 40
    expect(page.locator("#message")).to_have_text("The sale lasts until midnight.")
    expect(page.locator("#help")).to_have_attribute("href", "https://help.example.com/")
    assert page.problems == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("locale", ["en-US", "de-DE", "ar-EG", "ja-JP"])
def test_how_old_the_news_is_is_said_in_the_language_of_the_page(
    browser: Browser, locale: str
) -> None:
    page = open_page(browser, waiting(next_try_s=60), stopped=True, locale=locale)
    wanted = page.evaluate(
        "locale => [...Array(3).keys()].map(s => new Intl.RelativeTimeFormat(locale).format(-s, 'second'))",
        locale,
    )
    for seconds in (0, 2):
        page.clock.run_for(seconds * 1_000)
        expect(page.locator("#updated")).to_have_text(wanted[seconds])


def test_the_language_of_the_browser_chooses_the_message(browser: Browser) -> None:
    page = open_page(browser, waiting(position=1, ahead=0), locale="de-DE")
    expect(page.locator("#message")).to_have_text("Der Verkauf dauert bis Mitternacht.")
    expect(page.locator("#first")).to_have_text("Sie sind als Nächstes dran")
    assert page.title() == "Platz 1 in der Warteschlange · Shop & Söhne"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_accent_can_be_read_in_both_themes(browser: Browser, scheme: Any) -> None:
    page = open_page(browser, waiting(position=1, ahead=0), color_scheme=scheme)
    ratio = page.evaluate(
        """() => {
          const light = color => { const [r, g, b] = color.match(/[\\d.]+/g).map(Number).map(c => c / 255)
            .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
          const of = (id, what) => light(getComputedStyle(document.querySelector(id))[what]);
          const pair = [of("summary ~ form button, #help", "color"), of("body", "backgroundColor")].sort((a, b) => b - a);
          return (pair[0] + .05) / (pair[1] + .05); }"""
    )
    assert ratio >= 4.5


def test_on_a_phone_the_question_before_leaving_is_seen(browser: Browser) -> None:
    page = open_page(browser, waiting(next_try_s=50), viewport={"width": 320, "height": 480})
    page.locator("summary").click()
    expect(page.locator("#leave button")).to_be_in_viewport()


def test_blocked_cookies_are_said_where_they_are_seen(browser: Browser) -> None:
    held = waiting(position=0, ahead=0, in_line=False)
    page = open_page(browser, held, viewport={"width": 375, "height": 600})
    expect(page.locator("#notice")).to_contain_text("keeps no cookies")
    expect(page.locator("#notice")).to_be_in_viewport()
    assert page.locator("main").inner_text().count("keeps no cookies") == 1, (
        "said once, and no promise that a place is kept"
    )
    expect(page.locator("#keep")).to_be_hidden()
