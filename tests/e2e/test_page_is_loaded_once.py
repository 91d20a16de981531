"""Admitted in a real Chromium: the origin sees exactly one request for the document, whatever its
headers.
"""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from tests.conftest import eventually

PATIENCE_MS = 30_000
ISOLATED = {"Cross-Origin-Opener-Policy": "same-origin"}
"""Django's default: the browser swaps its context, and hides the old page before it is gone."""


UPDATE_UNDER_WAY = """() => {
  const quick = window.fetch;
  let press;
  const pressed = new Promise((done) => (press = done));
  window.fetch = async (...all) => {
    if (all[1].method === "POST") {
      press();
      await new Promise((done) => setTimeout(done, 2000));
      return quick(...all);
    }
    const answer = await quick(...all);
    window.letIn = (await answer.clone().json()).cfWaitingRoom?.inWaitingRoom === false;
    if (window.letIn) await pressed;
    return answer;
  };
}"""
"""The page hears that it is let in when leaving was pressed, and before that was answered."""


class OneTimeOrigin(ThreadingHTTPServer):
    """Counts loads; a `code` works once; `/moved` leads on; `slow` makes an answer take 2 seconds."""

    daemon_threads = True

    def __init__(self) -> None:
        self.loads: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: OneTimeOrigin

    def do_GET(self) -> None:
        self._answer(b"<!doctype html><link rel=icon href=data:,><title>Loaded</title>")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def _answer(self, body: bytes) -> None:
        target = f"{self.command} {self.path}"
        used = "code=" in self.path and target in self.server.loads
        if "inside" not in self.path:
            self.server.loads.append(target)
        if "slow" in self.path:
            threading.Event().wait(2)  # slower than the page's own timers
        moved = self.path.startswith("/moved")
        self.send_response(302 if moved else 410 if used else 200)
        if moved:
            self.send_header("Location", "/welcome?code=moved")
        if "isolated" in self.path or "welcome" in self.path:
            for name, value in ISOLATED.items():
                self.send_header(name, value)
        self.send_header("X-Origin", "yes")
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def once() -> Iterator[OneTimeOrigin]:
    with OneTimeOrigin() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


class Full:
    """A room for one, behind localhost (which browsers trust as they trust TLS), and the visitor
    who is in it.
    """

    def __init__(self, greenroom: Any, origin: OneTimeOrigin) -> None:
        running = greenroom.room(f"http://127.0.0.1:{origin.server_port}", 1, 60)
        self.url = f"http://localhost:{running.address[1]}"
        self.inside = running.visitor()
        self.inside.wait_until_in("/inside")

    def admit_next(self) -> None:
        self.inside.get("/inside?greenroom=leave", method="POST")


@pytest.fixture
def full(greenroom: Any, once: OneTimeOrigin) -> Full:
    return Full(greenroom, once)


@pytest.mark.parametrize(
    ("path", "loads"),
    [
        ("/shop", ["GET /shop"]),
        ("/isolated?code=1", ["GET /isolated?code=1"]),
        ("/isolated/slow?code=2", ["GET /isolated/slow?code=2"]),
        ("/slow?code=3", ["GET /slow?code=3"]),
        ("/moved", ["GET /moved", "GET /welcome?code=moved"]),
    ],
)
def test_the_document_is_loaded_once(
    browser: Browser, full: Full, once: OneTimeOrigin, path: str, loads: list[str]
) -> None:
    page = browser.new_context().new_page()
    page.goto(f"{full.url}{path}")
    expect(page.locator("h1")).to_have_text("You are in line", timeout=PATIENCE_MS)
    full.admit_next()
    expect(page).to_have_title("Loaded", timeout=PATIENCE_MS)
    page.wait_for_timeout(1_500)  # longer than the page's own timers
    assert once.loads == loads
    page.context.close()


def test_a_visitor_who_looks_elsewhere_and_back_while_the_page_loads(
    browser: Browser, full: Full, once: OneTimeOrigin
) -> None:
    page = browser.new_context().new_page()
    page.goto(f"{full.url}/isolated/slow?code=4")
    expect(page.locator("h1")).to_have_text("You are in line", timeout=PATIENCE_MS)
    page.evaluate("setInterval(() => dispatchEvent(new Event('visibilitychange')), 100)")
    full.admit_next()
    expect(page).to_have_title("Loaded", timeout=PATIENCE_MS)
    page.wait_for_timeout(1_500)  # longer than the page's own timers
    assert once.loads == ["GET /isolated/slow?code=4"]
    page.context.close()


def test_a_form_is_sent_once(browser: Browser, full: Full, once: OneTimeOrigin) -> None:
    page = browser.new_context().new_page()
    page.route(
        "**/form",
        lambda route: route.fulfill(
            content_type="text/html",
            body="<form method=post action='/isolated/slow?code=5'><button name=how value=now>Order</button></form>",
        ),
    )
    page.goto(f"{full.url}/form")
    page.click("button")
    expect(page.locator("h1")).to_have_text("You are in line", timeout=PATIENCE_MS)
    full.admit_next()
    expect(page).to_have_title("Loaded", timeout=PATIENCE_MS)
    page.wait_for_timeout(1_500)  # longer than the page's own timers
    assert once.loads == ["POST /isolated/slow?code=5"]
    page.context.close()


def test_a_visitor_who_comes_back_by_the_back_button_waits_and_loads_once(
    browser: Browser, full: Full, once: OneTimeOrigin
) -> None:
    page = browser.new_context().new_page()
    page.goto(f"{full.url}/isolated?code=6")
    expect(page.locator("h1")).to_have_text("You are in line", timeout=PATIENCE_MS)
    page.goto("about:blank")
    page.go_back()
    expect(page.locator("h1")).to_have_text("You are in line", timeout=PATIENCE_MS)
    full.admit_next()
    expect(page).to_have_title("Loaded", timeout=PATIENCE_MS)
    page.wait_for_timeout(1_500)  # longer than the page's own timers
    assert once.loads == ["GET /isolated?code=6"]
    page.context.close()


def test_an_update_under_way_does_not_admit_a_visitor_who_leaves(
    browser: Browser, full: Full, once: OneTimeOrigin
) -> None:
    page = browser.new_context().new_page()
    page.goto(f"{full.url}/isolated?code=7")
    expect(page.locator("h1")).to_have_text("You are in line", timeout=PATIENCE_MS)
    page.locator("summary").click()
    page.evaluate(UPDATE_UNDER_WAY)
    full.admit_next()
    eventually(lambda: page.evaluate("window.letIn"), "the visitor is let in")
    page.get_by_role("button", name="Yes, leave the line").click()
    expect(page.locator("h1")).to_have_text("You have left the line", timeout=PATIENCE_MS)
    page.wait_for_timeout(1_500)  # longer than the page's own timers
    assert once.loads == []
    page.context.close()
