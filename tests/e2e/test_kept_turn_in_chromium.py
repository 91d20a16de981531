"""A real application is killed while visitors are inside, and starts again after their sessions
would have ended: seen in a real Chromium, in front of a real greenroom.
"""

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, expect
from ports import free_port

APPLICATION = """
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Shop(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"<!doctype html><title>Shop</title><h1>Welcome to the shop</h1>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("X-Origin", "shop")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): ...
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Shop).serve_forever()
"""
SESSION_S = 61
PATIENCE_MS = 30_000
DOCUMENT = {"Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate"}


class Shop:
    """An application in a process of its own."""

    def __init__(self) -> None:
        self.port = free_port()
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", APPLICATION, str(self.port)])
        for _ in range(1_200):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)  # it is another process
        raise AssertionError("the shop does not start")

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()


@pytest.fixture
def shop() -> Iterator[Shop]:
    shop = Shop()
    yield shop
    shop.kill()


@pytest.fixture
def running(greenroom: Any, shop: Shop) -> Any:
    return greenroom.config(
        f'origin = "http://127.0.0.1:{shop.port}"\n[[rooms]]\nname = "main"\nhost = "*"\n'
        "total_active_users = 2\nnew_users_per_minute = 60\nsession_duration = 1\n"
        "confirm_newcomers = false\n"
    )


def until_sessions_end(running: Any, *waiting: Any) -> None:
    ended_s = time.monotonic() + SESSION_S + 4
    entered: set[int] = set()
    while time.monotonic() < ended_s or len(entered) < len(waiting):
        assert time.monotonic() < ended_s + PATIENCE_MS / 1000, "who waits is let in when one ends"
        for visitor in waiting:
            if visitor.get("/", headers=DOCUMENT).status == 502:
                entered.add(id(visitor))
        assert running.room()["active_users"] <= 2
        time.sleep(2)  # the session of a real process ends in real time


def test_a_visitor_whom_the_application_failed_is_in_again_at_once(
    browser: Browser, running: Any, shop: Shop
) -> None:
    address = f"http://{running.address[0]}:{running.address[1]}/shop"
    context = browser.new_context(locale="en-US", timezone_id="Asia/Kolkata")
    page = context.new_page()
    page.goto(address)
    expect(page.locator("h1")).to_have_text("Welcome to the shop")
    other, third = running.visitor(), running.visitor()
    assert not other.get("/", headers=DOCUMENT).waiting
    assert third.get("/", headers=DOCUMENT).waiting

    shop.kill()
    failed_s = time.time()
    assert page.reload().status == 502  # type: ignore[union-attr]
    notice = page.locator("#notice")
    expect(notice).to_contain_text("Your turn is safe until")
    said = re.search(r"(\d\d):(\d\d)", notice.inner_text())
    assert said is not None
    until = datetime.fromtimestamp(failed_s + SESSION_S + 900, ZoneInfo("Asia/Kolkata"))
    later = (int(said[1]) - until.hour) * 60 + int(said[2]) - until.minute
    assert (later + 1) % 720 <= 2, (
        notice.inner_text()
    )  # within a minute, on a clock of twelve hours
    assert other.get("/", headers=DOCUMENT).status == 502
    page.goto("about:blank")  # a closed laptop

    until_sessions_end(running, third)
    shop.start()
    page.goto(address)
    expect(page.locator("h1")).to_have_text("Welcome to the shop")
    assert running.metric('greenroom_room_requests_total{result="reentered",room="main"}') == 1
    held = other.get("/", headers=DOCUMENT)
    assert held.waiting, "the limit is exact"
    assert running.room()["active_users"] == 2
    page.goto(f"{address}?greenroom=leave")
    third.get("/?greenroom=leave", method="POST", headers={"Sec-Fetch-Site": "same-origin"})
    other.wait_until_in()
    assert running.metric('greenroom_room_requests_total{result="reentered",room="main"}') == 2
    context.close()


def test_a_kept_turn_is_that_of_the_device_to_which_its_visitor_has_moved(
    browser: Browser, running: Any, shop: Shop
) -> None:
    old, other, third, fourth = [running.visitor() for _ in range(4)]
    for visitor in (old, other):
        assert not visitor.get("/", headers=DOCUMENT).waiting
    for visitor in (third, fourth):
        assert visitor.get("/", headers=DOCUMENT).waiting
    shop.kill()
    for visitor in (old, other):
        assert visitor.get("/", headers=DOCUMENT).status == 502

    asked = {"Accept": "application/json"}
    found = json.loads(old.get("/shop?greenroom=move", headers=asked).body)["greenroom"]["move"]
    query = found["url"].partition("?")[2]
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    page.goto(f"http://{running.address[0]}:{running.address[1]}/shop?{query}")
    page.get_by_role("button").click()
    expect(page.locator("#notice")).to_contain_text("Your turn is safe until")
    address = page.url
    assert "Your place is on another device" in old.get("/").text
    page.goto("about:blank")
    until_sessions_end(running, third, fourth)

    shop.start()
    assert old.get("/", headers=DOCUMENT).waiting
    page.goto(address)
    expect(page.locator("h1")).not_to_have_text("Welcome to the shop")
    assert running.room()["active_users"] == 2
    third.get("/?greenroom=leave", method="POST", headers={"Sec-Fetch-Site": "same-origin"})
    expect(page.locator("h1")).to_have_text("Welcome to the shop", timeout=PATIENCE_MS)
    assert old.get("/", headers=DOCUMENT).waiting, "the turn was kept once"
    assert running.metric('greenroom_room_requests_total{result="reentered",room="main"}') == 1
    assert running.room()["active_users"] == 2
    context.close()
