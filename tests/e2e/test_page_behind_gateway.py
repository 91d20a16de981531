"""The built-in page in a real Chromium in front of a real greenroom: waiting, being let in,
leaving.
"""

import contextlib
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from playwright.sync_api import TimeoutError as NotInTime
from tests.conftest import eventually

PATIENCE_MS = 30_000
"""A waiting visitor polls every two seconds when called, and this machine may be busy."""


@pytest.fixture
def full(greenroom: Any, origin: Any) -> tuple[Any, Any]:
    """A room for one, and the visitor who is in it."""
    running = greenroom.room(origin.url, 1, 60)
    inside = running.visitor()
    inside.wait_until_in("/inside")
    return running, inside


def pages_of(origin: Any) -> list[str]:
    """What the origin was asked for, but for the first visitor and the browser's wish for an icon."""
    return [line for line in origin.requests if "/inside" not in line and "favicon" not in line]


@pytest.mark.parametrize("script", [True, False], ids=["with a script", "without a script"])
def test_who_waits_is_let_in_and_the_origin_sees_one_page_load(
    browser: Browser, full: Any, origin: Any, script: bool
) -> None:
    running, inside = full
    context = browser.new_context(java_script_enabled=script)
    page = context.new_page()
    loads: list[str] = []
    page.on(
        "request",
        lambda request: loads.append(request.url) if request.is_navigation_request() else None,
    )
    page.goto(f"http://{running.address[0]}:{running.address[1]}/shop?item=5")
    expect(page.locator("h1")).to_have_text("You are in line", timeout=PATIENCE_MS)
    expect(page.locator("#hero")).to_have_text("1")
    assert pages_of(origin) == []
    assert not script or len(loads) == 1
    inside.get("/inside?greenroom=leave", method="POST")
    expect(page.locator("body")).to_contain_text('"path": "/shop?item=5"', timeout=PATIENCE_MS)
    assert pages_of(origin) == ["GET /shop?item=5"]
    assert not script or len(loads) == 2
    context.close()


def has_left(page: Page) -> bool:
    """Presses the button. Without a script the page may load itself again, and hide it, before."""
    if page.locator("#leave:not([open])").count():
        page.locator("summary").click()
    with contextlib.suppress(NotInTime):
        page.get_by_role("button", name="Yes, leave the line").click(timeout=2_000)
    return page.locator("h1").inner_text() == "You have left the line"


@pytest.mark.parametrize("script", [True, False], ids=["with a script", "without a script"])
def test_who_leaves_is_out_of_the_line_and_may_join_again(
    browser: Browser, full: Any, script: bool
) -> None:
    running, _ = full
    context = browser.new_context(java_script_enabled=script)
    page = context.new_page()
    page.goto(f"http://{running.address[0]}:{running.address[1]}/shop")
    expect(page.locator("h1")).to_have_text("You are in line", timeout=PATIENCE_MS)
    eventually(lambda: has_left(page), "the visitor has left")
    expect(page.locator("h1")).to_have_text("You have left the line")
    assert running.room()["waiting_users"] == 0
    assert context.cookies() == []
    page.get_by_role("link", name="Join again").click()
    expect(page.locator("h1")).to_have_text("You are in line", timeout=PATIENCE_MS)
    assert running.room()["waiting_users"] == 1
    context.close()
