"""A Django shop whose orders are behind a room: the form of a visitor who must wait is sent, once,
when it is the visitor's turn.
"""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect

SHOP = Path(__file__).resolve().parents[1] / "support" / "django_shop.py"
PATIENCE_MS = 30_000
ROOM = """
[[rooms]]
name = "{name}"
host = "{host}"
path = "/order"
total_active_users = 1
new_users_per_minute = 60
pace_admissions = false
"""
HOSTS = ("shop.example", "one.localhost", "two.localhost", "three.localhost", "four.localhost")
UPLOAD = 7_000_000
"""Bytes of a picture as a phone takes it: more than any buffer on the way holds, so a connection
that closes too early resets the upload.
"""
NOTE = 'two\nlines "quoted" & <b>bold</b> ü €'


class Django(NamedTuple):
    port: int

    def received(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/received") as answer:
            return json.loads(answer.read())


@pytest.fixture(scope="module")
def django() -> Iterator[Django]:
    process = subprocess.Popen([sys.executable, SHOP], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    yield Django(int(process.stdout.readline()))
    process.terminate()
    process.wait()


class Full(NamedTuple):
    """A room for one, and the visitor who is in it."""

    host: str
    url: str
    inside: Any

    def let_in(self) -> None:
        self.inside.get("/order?greenroom=leave", method="POST")


@pytest.fixture(scope="module")
def full(shared_greenroom: Any, django: Django) -> Callable[[str], Full]:
    rooms = "".join([ROOM.format(host=host, name=host.partition(".")[0]) for host in HOSTS])
    running = shared_greenroom.config(f'origin = "http://127.0.0.1:{django.port}"\n{rooms}')

    def opened(host: str) -> Full:
        inside = running.visitor(host)
        inside.get("/order")
        assert running.room(host.partition(".")[0])["active_users"] == 1
        return Full(host, f"http://{host}:{running.address[1]}", inside)

    return opened


def order(page: Page, shop: str, query: str = "", next_page: str = "/done") -> None:
    """Fills in the form and sends it."""
    page.goto(f"{shop}/shop{query}")
    page.fill("[name=cake]", "3")
    page.fill("[name=note]", NOTE)
    page.evaluate(
        "to => { document.getElementById('order').action += '?next=' + encodeURIComponent(to) }",
        next_page,
    )
    page.click("button")


# Over http, browsers send Sec-Fetch-Site to localhost only: at shop.example the form is proven by
# its Origin.


@pytest.mark.parametrize(("host", "query"), [("shop.example", ""), ("one.localhost", "?multipart")])
def test_the_form_is_kept_and_sent_once_with_its_token_and_may_lead_to_another_site(
    browser: Browser, full: Callable[[str], Full], django: Django, host: str, query: str
) -> None:
    room, page = full(host), browser.new_context().new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    order(page, f"http://{host}:{django.port}", query)
    expect(page).to_have_title("Thank you")
    direct = django.received()
    order(page, room.url, query, f"http://pay.example:{django.port}/done")
    expect(page.locator("#kept")).to_contain_text(
        "Your form is kept on this page, and is sent when it is your turn."
    )
    expect(page.locator("h1")).to_have_text("You are in line", timeout=PATIENCE_MS)
    assert page.locator("#kept button").count() == 0
    assert django.received() == direct
    room.let_in()
    expect(page).to_have_title("Thank you", timeout=PATIENCE_MS)
    assert page.url == f"http://pay.example:{django.port}/done"
    assert django.received() == [*direct, direct[-1]], (
        "what Django is given when no room is in front"
    )
    assert [text for text in problems if "Content Security Policy" in text] == []
    page.context.close()


def test_without_a_script_there_is_a_button(
    browser: Browser, full: Callable[[str], Full], django: Django
) -> None:
    room, before = full("two.localhost"), django.received()
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(f"{room.url}/shop")
    page.fill("[name=note]", NOTE)
    page.click("button")
    expect(page.locator("#kept")).to_contain_text(
        "To send it, press this button every few minutes until then."
    )
    page.get_by_role("button", name="Send the form").click()
    expect(page.locator("#kept")).to_be_visible()
    room.let_in()
    for _ in range(10):
        page.wait_for_timeout(1_000)  # a visitor who presses now and then
        with page.expect_navigation():
            page.get_by_role("button", name="Send the form").click()
        if page.title() == "Thank you":
            break
    assert django.received() == [
        *before,
        {"cake": "", "note": NOTE.replace("\n", "\r\n"), "submit": "7", "how": "now"},
    ]
    page.context.close()


def test_a_file_is_not_kept_the_page_says_so_and_never_repeats_it(
    browser: Browser, full: Callable[[str], Full], django: Django
) -> None:
    room, before = full("three.localhost"), django.received()
    page = browser.new_context().new_page()
    page.goto(f"{room.url}/shop?multipart")
    page.set_input_files(
        "[name=photo]", files=[{"name": "a.png", "mimeType": "image/png", "buffer": bytes(UPLOAD)}]
    )
    page.click("button")
    expect(page.locator("#lost")).to_have_text(
        "What you sent was not kept. Please send it again when it is your turn."
    )
    room.let_in()
    expect(page).to_have_title("No form", timeout=PATIENCE_MS)
    assert django.received() == before, "the page was loaded, not sent again"
    page.go_back()
    page.set_input_files(
        "[name=photo]", files=[{"name": "a.png", "mimeType": "image/png", "buffer": bytes(UPLOAD)}]
    )
    page.click("button")
    expect(page).to_have_title("Thank you")
    assert django.received()[-1]["photo"] == UPLOAD
    page.context.close()


def test_the_form_of_another_site_is_never_repeated(
    browser: Browser, full: Callable[[str], Full], django: Django
) -> None:
    room, before = full("four.localhost"), django.received()
    page = browser.new_context().new_page()
    sent: list[str] = []
    page.on(
        "request",
        lambda request: sent.append(request.method) if request.is_navigation_request() else None,
    )
    page.goto(f"{room.url}/order")
    expect(page.locator("h1")).to_have_text("You are in line", timeout=PATIENCE_MS)
    page.goto(f"http://evil.example:{django.port}/shop")
    page.evaluate("to => { document.getElementById('order').action = to }", f"{room.url}/order")
    page.click("button")
    expect(page.locator("body")).to_contain_text("what you sent was not kept")
    room.let_in()
    page.wait_for_timeout(3_000)  # longer than any update takes
    assert sent.count("POST") == 1
    assert django.received() == before
    page.context.close()
