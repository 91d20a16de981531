"""A page on one host calls the API on another with credentials, in a real Chromium: inside a full
room, and while its visitor waits.
"""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page

ROOM = """
origin = "http://127.0.0.1:{port}"
[[rooms]]
name = "api"
host = "api.shop.example"
total_active_users = 1
new_users_per_minute = 60
json_response_enabled = true
{listed}
"""
CALL = """async ({url, method, accept}) => {
  try {
    const answer = await fetch(url, {method, credentials: 'include', headers: {Accept: accept, 'X-App': '1'}});
    return {status: answer.status, retry: answer.headers.get('Retry-After') || answer.headers.get('Refresh'), body: await answer.text()};
  } catch (error) { return {failed: error.message}; }
}"""


class Application(BaseHTTPRequestHandler):
    """An API that allows scripts of www.shop.example, and the page with such a script."""

    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        self.server.seen.append((self.command, self.headers.get("Cookie", "")))  # type: ignore[attr-defined]
        body = b"" if self.command == "OPTIONS" else b"the application"
        self.send_response(204 if self.command == "OPTIONS" else 200)
        origin = self.headers.get("Origin", "")
        if origin.startswith("http://www.shop.example:"):
            for name, value in (
                ("Origin", origin),
                ("Credentials", "true"),
                ("Methods", "PUT"),
                ("Headers", "X-App"),
            ):
                self.send_header(f"Access-Control-Allow-{name}", value)
        self.send_header("Content-Type", "text/html")
        if body:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_OPTIONS(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def application() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Application)
    server.daemon_threads = True
    server.seen = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


class Shop(NamedTuple):
    running: Any
    api: str
    www: str
    open: Callable[[str], Page]

    def call(self, page: Page, method: str = "PUT", accept: str = "*/*") -> dict[str, Any]:
        told: dict[str, Any] = page.evaluate(
            CALL, {"url": f"{self.api}/order", "method": method, "accept": accept}
        )
        return told


@pytest.fixture
def shop(
    greenroom: Any, application: ThreadingHTTPServer, browser: Browser
) -> Callable[[bool], Shop]:
    def opened(listed: bool) -> Shop:
        www = f"http://www.shop.example:{application.server_port}"
        running = greenroom.config(
            ROOM.format(
                port=application.server_port, listed=f'cors_origins = ["{www}"]' if listed else ""
            )
        )

        def open_page(host: str) -> Page:
            page = browser.new_context().new_page()
            page.goto(f"http://{host}:{application.server_port}/")
            return page

        return Shop(running, f"http://api.shop.example:{running.address[1]}", www, open_page)

    return opened


def enter(shop: Shop, page: Page) -> None:
    """The page's visitor takes the only place of the API's room."""
    page.goto(f"{shop.api}/")
    assert page.inner_text("body") == "the application"
    page.goto(shop.www)


def test_a_script_works_inside_a_full_room_and_sees_that_another_visitor_waits(
    shop: Callable[[bool], Shop], application: ThreadingHTTPServer
) -> None:
    here = shop(True)
    inside, outside, foreign = (
        here.open("www.shop.example"),
        here.open("www.shop.example"),
        here.open("evil.example"),
    )
    enter(here, inside)
    told = here.call(inside)
    assert (told["status"], told["body"]) == (200, "the application")
    assert ("OPTIONS", "") in application.seen  # type: ignore[attr-defined]
    held = here.call(outside)
    assert held["status"] == 503
    assert int(held["retry"]) > 0
    waiting = here.call(outside, accept="application/json")
    assert '"inWaitingRoom":true' in waiting["body"]
    assert int(waiting["retry"]) > 0
    assert [cookie["name"] for cookie in outside.context.cookies()] == ["__cfwaitingroom"], (
        "its script has a place"
    )
    assert here.call(foreign) == {"failed": "Failed to fetch"}
    assert here.call(foreign, "GET") == {"failed": "Failed to fetch"}
    assert here.running.room("api")["active_users"] == 1
    assert here.running.metric('greenroom_room_requests_total{result="preflight",room="api"}') >= 2
    assert not [command for command, cookies in application.seen if "__cfwaitingroom" in cookies]  # type: ignore[attr-defined]


def test_without_the_option_the_preflight_of_a_visitor_inside_is_held(
    shop: Callable[[bool], Shop],
) -> None:
    here = shop(False)
    inside = here.open("www.shop.example")
    enter(here, inside)
    assert here.call(inside) == {"failed": "Failed to fetch"}
