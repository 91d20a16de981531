"""Journeys in a real Chromium: the first ones from an empty installation, later ones in one that is
in use.
"""

import time

import pytest
from dashboard_browser import DashboardBrowser, sign_in_link
from playwright.sync_api import Browser, expect

EMPTY = "[log]\nlevel = 'warning'\n"
SCRIPTED_S = 120


@pytest.fixture
def running(greenroom, origin):
    return greenroom.config(f'origin = "{origin.url}"\n{EMPTY}')


@pytest.fixture(scope="module")
def used(browser, shared_greenroom) -> DashboardBrowser:
    """Ada is signed in, and her room has no application yet."""
    running = shared_greenroom.config(f'origin = "http://127.0.0.1:9"\n{EMPTY}')
    at = window(browser, running)
    at.first_sign_in(running.output)
    make_room(at)
    at.room = at.page.url.split("?")[0]  # type: ignore[attr-defined]
    return at


def window(browser: Browser, running, **options) -> DashboardBrowser:
    host, port = running.control
    return DashboardBrowser(browser.new_context(**options), f"http://{host}:{port}")


def make_room(at: DashboardBrowser, name: str = "tickets") -> None:
    page = at.page
    page.get_by_role("link", name="New zone").click()
    page.get_by_label("Domain").fill("example.com")
    page.get_by_role("button", name="Create the zone").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Host", exact=True).fill("shop.example.com")
    page.get_by_label("Active visitors at once").fill("1")
    page.get_by_label("New visitors per minute").fill("1")
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_text("At most 1 person")).to_be_visible()
    page.get_by_role("button", name="Create the room").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()


def test_from_the_first_link_to_a_protecting_room(browser, running) -> None:
    begun = time.monotonic()
    at = window(browser, running)
    at.first_sign_in(running.output)
    make_room(at)
    first, second = running.visitor(), running.visitor()
    until = time.monotonic() + 60
    while first.get().waiting and time.monotonic() < until:
        time.sleep(0.1)  # another process takes over the room
    assert second.get().waiting
    second.take_place()
    page = at.go("/rooms")
    row = page.get_by_role("row").filter(has_text="tickets")
    expect(row.get_by_text("Queueing", exact=True)).to_be_visible()  # the table renews itself
    expect(row).to_contain_text("1 of 1")
    assert time.monotonic() - begun < SCRIPTED_S
    assert at.complaints == []
    used = window(browser, running).go(sign_in_link(running.output))
    expect(used.get_by_role("heading", name="This link does not work any more")).to_be_visible()


def test_everything_wrong_is_shown_beside_its_field(used) -> None:
    page = used.go(used.room)
    page.get_by_role("link", name="Settings", exact=True).click()
    page.get_by_label("Active visitors at once").fill("many")
    page.get_by_label("Host", exact=True).fill("wr ong")
    page.get_by_role("button", name="Review").click()
    limit = page.get_by_label("Active visitors at once")
    expect(limit).to_have_value("many")
    expect(limit).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_text("must be a whole number, not 'many'")).to_be_visible()
    expect(page.get_by_text("must be a host name in lower case")).to_be_visible()
    assert used.complaints == []


def test_pages_are_read_and_forms_sent_without_scripts(browser, running) -> None:
    at = window(browser, running, java_script_enabled=False)
    at.first_sign_in(running.output)
    make_room(at)
    page = at.go("/rooms?state=open")
    expect(page.get_by_role("row").filter(has_text="tickets")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are signed out.")).to_be_visible()


def test_the_keyboard_reaches_everything_in_order(used) -> None:
    page = used.go("/rooms")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("audit")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=audit")
    page.get_by_role("link", name="Audit log", exact=True).and_(
        page.locator("main a")
    ).first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/audit")
    assert used.complaints == []
