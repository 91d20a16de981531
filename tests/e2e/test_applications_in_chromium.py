"""Journeys of applications in a real Chromium, with a real greenroom between: nothing that the
application does is noticed to differ.

A single-page application outside the room whose API is inside; events that the server sends; an
upload with a token against forgery; and a visitor who comes back from a payment page on another
site with a form.
"""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, Page, expect

SPA = """<!doctype html><link rel=icon href=data:,><title>App</title><ul id=items></ul><p id=problem></p><p id=news></p><script type=module>
  const answer = await fetch("/api/items", { headers: { Accept: "application/json" } });
  if (answer.ok) items.innerHTML = (await answer.json()).map(item => `<li>${item}`).join("");
  else problem.textContent = answer.status + " " + answer.headers.get("Retry-After");
  if (answer.ok) new EventSource("/api/events").onmessage = event => news.textContent += event.data;
</script>"""
FORM = """<!doctype html><link rel=icon href=data:,><title>Upload</title><form method=post enctype=multipart/form-data action=/api/upload>
  <input type=hidden name=csrf value=secret><input type=file name=file><button>Send</button></form>"""
PAY = """<!doctype html><link rel=icon href=data:,><title>Pay</title><form method=post action="%s/api/paid"><input name=paid value=yes><button>Pay</button></form>"""


class App(BaseHTTPRequestHandler):
    """The application, and the page of the payment service under another name."""

    protocol_version = "HTTP/1.1"

    def send(
        self, body: str | bytes, kind: str = "text/html; charset=utf-8", *more: tuple[str, str]
    ) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.send_response(200)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(data))), *more):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        if self.path == "/":
            self.send(SPA)
        elif self.path == "/api/items":
            self.send(json.dumps(["tea", "cake"]), "application/json")
        elif self.path == "/api/form":
            self.send(FORM, "text/html", ("Set-Cookie", "csrf=secret; SameSite=Lax; HttpOnly"))
        elif self.path == "/pay":
            self.send(PAY % self.server.shop)  # type: ignore[attr-defined]
        elif self.path == "/api/events":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for number in range(3):
                self.wfile.write(b"data: %d\n\n" % number)
                self.wfile.flush()
                time.sleep(0.05)  # events come one after the other
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        cookies = self.headers["Cookie"] or ""
        if self.path == "/api/upload":
            genuine = "csrf=secret" in cookies and b'name="csrf"\r\n\r\nsecret\r\n' in body
            self.send(f"<title>{'Taken' if genuine else 'Forged'}</title>{len(body)}")
        else:
            self.send(f"<title>{'Paid' if b'paid=yes' in body else 'Lost'}</title>")

    def log_message(self, *_: object) -> None:
        pass


ROOM = """
[[rooms]]
name = "{name}"
host = "{name}.localhost"
path = "/api"
total_active_users = {places}
new_users_per_minute = {places}
pace_admissions = false
json_response_enabled = true
"""


@pytest.fixture(scope="module")
def app() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), App)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def shop(app, shared_greenroom) -> str:
    """A room with space on /api; under the name `full` one with a single place."""
    rooms = ROOM.format(name="shop", places=40) + ROOM.format(name="full", places=1)
    running = shared_greenroom.config(
        f'origin = "http://127.0.0.1:{app.server_address[1]}"\n{rooms}'
    )
    app.shop = f"http://shop.localhost:{running.address[1]}"
    return app.shop


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.new_context()
    yield opened.new_page()
    opened.close()


def test_a_page_outside_the_room_uses_its_api_inside_and_hears_events(
    page: Page, shop: str
) -> None:
    page.goto(shop)
    expect(page.locator("#items li")).to_have_text(["tea", "cake"])
    expect(page.locator("#news")).to_have_text("012")


def test_when_the_room_is_full_its_script_is_told_and_nothing_is_taken_for_data(
    page: Page, browser: Browser, shop: str
) -> None:
    full = shop.replace("shop", "full")
    page.goto(f"{full}/api/form")
    expect(page).to_have_title("Upload")
    late = browser.new_context().new_page()
    with late.expect_response("**/api/items") as response:
        late.goto(full)
    assert response.value.headers["content-type"] == "application/json"
    assert response.value.json()["cfWaitingRoom"]["inWaitingRoom"] is True
    assert (
        response.value.headers["retry-after"]
        if response.value.status == 503
        else response.value.headers["refresh"]
    )
    late.context.close()


def test_an_upload_keeps_its_token_and_its_bytes(page: Page, shop: str) -> None:
    page.goto(f"{shop}/api/form")
    page.set_input_files(
        "input[type=file]",
        files=[{"name": "a.bin", "mimeType": "application/octet-stream", "buffer": bytes(300_000)}],
    )
    page.click("button")
    expect(page).to_have_title("Taken")
    assert int(page.locator("body").inner_text()) > 300_000


def test_a_form_from_a_payment_page_arrives_and_the_visitor_keeps_the_session(
    page: Page, shop: str, app
) -> None:
    page.goto(f"{shop}/api/form")
    (ticket,) = [
        cookie for cookie in page.context.cookies() if cookie["name"].startswith("__cfwaitingroom")
    ]
    page.goto(f"http://pay.localhost:{app.server_address[1]}/pay")
    page.click("button")
    expect(page).to_have_title("Paid")
    page.goto(f"{shop}/api/form")
    (after,) = [
        cookie for cookie in page.context.cookies() if cookie["name"].startswith("__cfwaitingroom")
    ]
    assert page.title() == "Upload"
    assert after["path"] == ticket["path"] == "/api"
