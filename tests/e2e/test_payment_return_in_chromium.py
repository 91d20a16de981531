"""A payment in a real Chromium: the shop sends the visitor to another site, which comes back with a
form (POST).
"""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
from playwright.sync_api import Browser, Page

ROOM = """
origin = "{origin}"
{tls}
[[rooms]]
name = "main"
host = "shop.example"
total_active_users = {active}
new_users_per_minute = 100
"""
FORM = b'<!doctype html><title>Pay</title><form method=post action="%b"><button name=paid value=yes>Pay</button></form>'


class PaymentSite(BaseHTTPRequestHandler):
    """Shows a form that leads back to the shop named in the query."""

    def do_GET(self) -> None:
        body = FORM % self.path.partition("?")[2].encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def payment() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), PaymentSite)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server.server_port
    server.shutdown()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(ignore_https_errors=True)
    yield context.new_page()
    context.close()


def pay(page: Page, shop: str, payment: int) -> dict[str, Any]:
    """Visits the shop, pays elsewhere, and gives what the shop was sent at the return."""
    page.goto(f"{shop}/basket")
    assert json.loads(page.inner_text("body"))["path"] == "/basket"
    page.goto(f"http://pay.example:{payment}/?{shop}/return")
    page.click("button")
    page.wait_for_url(f"{shop}/return")
    told: dict[str, Any] = json.loads(page.inner_text("body"))
    return told


def test_over_https_the_visitor_comes_back_into_the_session_even_when_the_room_is_full(
    greenroom: Any, origin: Any, page: Page, payment: int, tmp_path: Path
) -> None:
    issued = trustme.CA().issue_cert("shop.example")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    for place, blob in enumerate(issued.cert_chain_pems):
        blob.write_to_path(tmp_path / "cert.pem", append=place > 0)
    tls = f'[tls]\ncert = "{tmp_path}/cert.pem"\nkey = "{tmp_path}/key.pem"\n'
    running = greenroom.config(ROOM.format(origin=origin.url, tls=tls, active=1))
    told = pay(page, f"https://shop.example:{running.address[1]}", payment)
    assert (told["method"], told["path"], told["body"]) == ("POST", "/return", "paid=yes")
    (ticket,) = [cookie for cookie in page.context.cookies() if cookie["name"] == "__cfwaitingroom"]
    assert (ticket["sameSite"], ticket["secure"]) == ("None", True)
    assert running.room()["active_users"] == 1, "one visitor, one session"


def test_over_http_the_return_goes_on_and_the_ticket_of_the_shop_stays(
    greenroom: Any, origin: Any, page: Page, payment: int
) -> None:
    running = greenroom.config(ROOM.format(origin=origin.url, tls="", active=8))
    shop = f"http://shop.example:{running.address[1]}"
    page.goto(f"{shop}/basket")
    before = page.context.cookies()
    told = pay(page, shop, payment)
    assert (told["method"], told["body"]) == ("POST", "paid=yes")
    (ticket,), (was,) = page.context.cookies(), before
    assert ticket["sameSite"] == "Lax"
    assert ticket["value"] == was["value"], "the session of the shop's tab"
    page.goto(f"{shop}/order")
    assert json.loads(page.inner_text("body"))["path"] == "/order"
    assert running.metric('greenroom_room_requests_total{result="provisional",room="main"}') == 1
