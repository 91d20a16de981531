"""Chromium that keeps no cookies, in front of a real greenroom: the waiting page finds out and says
so; nothing of the kind is said to others.
"""

import json
from pathlib import Path
from typing import Any

from dashboard_browser import ARGUMENTS, WHOLE_CHROMIUM
from playwright.sync_api import Browser, Page, expect

PATIENCE_MS = 30_000
"""A waiting visitor asks every two seconds, and this machine may be busy."""
SAID = "Your browser keeps no cookies for this site, so we cannot keep a place for you. Please allow them."


CONFIG = """
origin = "{origin}"
[[rooms]]
name = "main"
host = "shop.example"
total_active_users = 1
new_users_per_minute = 60
queue_all = {all_wait}
cookie_attributes = {{ samesite = "lax", secure = "{secure}" }}
"""
"""A browser drops a cookie that is for HTTPS only where it comes without, as if it were blocked."""


def opened(greenroom: Any, origin: Any, secure: str, all_wait: bool = False) -> tuple[Any, str]:
    """A room in which visitors wait, because of `all_wait` or of one who is in it; and an address
    there.
    """
    running = greenroom.config(
        CONFIG.format(origin=origin.url, secure=secure, all_wait=str(all_wait).lower())
    )
    if not all_wait:
        assert running.visitor("shop.example").get("/inside").status == 200
    return running, f"http://shop.example:{running.address[1]}/shop"


def told_to_allow_them(page: Page) -> None:
    expect(page.locator("#notice")).to_have_text(SAID, timeout=PATIENCE_MS)
    expect(page.locator("#notice")).to_be_visible()
    expect(page.locator("#keep")).to_be_hidden()
    expect(page.locator("#say")).to_have_text(SAID)


def test_it_is_said_where_the_browser_blocks_them(
    browser: Browser, greenroom: Any, origin: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "profile" / "Default"
    folder.mkdir(parents=True)
    (folder / "Preferences").write_text(
        json.dumps({"profile": {"default_content_setting_values": {"cookies": 2}}})
    )
    context = browser.browser_type.launch_persistent_context(
        str(folder.parent), executable_path=WHOLE_CHROMIUM, args=ARGUMENTS
    )
    page = context.new_page()
    _, url = opened(greenroom, origin, "never")
    page.goto(url)
    told_to_allow_them(page)
    assert context.cookies() == []
    context.close()


def test_it_is_said_at_once_where_the_browser_says_so_itself(
    browser: Browser, greenroom: Any, origin: Any
) -> None:
    context = browser.new_context()
    context.add_init_script(
        "Object.defineProperty(Navigator.prototype, 'cookieEnabled', { get: () => false })"
    )
    page = context.new_page()
    _, url = opened(greenroom, origin, "always")
    page.goto(url, wait_until="commit")
    page.locator("#notice:not([hidden])").wait_for(timeout=PATIENCE_MS)
    told_to_allow_them(page)
    context.close()


def test_it_is_said_when_they_do_not_come_back_and_no_longer_when_they_do(
    browser: Browser, greenroom: Any, origin: Any
) -> None:
    context = browser.new_context(locale="de-DE")
    page = context.new_page()
    _, url = opened(greenroom, origin, "always", all_wait=True)
    page.add_init_script(
        "addEventListener('load', () => { window.first = document.getElementById('notice').hidden; })"
    )
    page.goto(url)
    assert page.evaluate("first") is True, "nothing is said before it is known"
    expect(page.locator("#notice")).to_contain_text(
        "Ihr Browser speichert keine Cookies dieser Website", timeout=PATIENCE_MS
    )
    (greenroom.folder / "greenroom.toml").write_text(
        CONFIG.format(origin=origin.url, secure="never", all_wait="true")
    )
    expect(page.locator("#notice")).to_be_hidden(timeout=PATIENCE_MS)
    expect(page.locator("#hero")).to_have_text("1", timeout=PATIENCE_MS)
    expect(page.locator("#keep")).to_be_visible()
    context.close()


def test_nothing_of_it_is_said_to_those_who_keep_them(
    browser: Browser, greenroom: Any, origin: Any
) -> None:
    context = browser.new_context()
    page = context.new_page()
    _, url = opened(greenroom, origin, "never")
    page.goto(url)
    expect(page.locator("#hero")).to_have_text("1", timeout=PATIENCE_MS)
    for _ in range(2):
        with page.expect_response(
            lambda answer: "greenroom-update" in answer.request.headers, timeout=PATIENCE_MS
        ):
            pass
        expect(page.locator("#notice")).to_be_hidden()
    context.close()
