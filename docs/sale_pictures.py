"""Photographs a sale for the documents. Run: .venv/bin/python docs/sale_pictures.py (a good five
minutes; needs Debian's chromium).

A real event in real time: a pre-queue that is shuffled, and a sale. A crowd without browsers stands
in line too. Writes docs/pictures/sale-*.png;
nothing is drawn, no state is faked. The draw is checked in the browser at the end.
"""

import http.client
import http.cookies
import json
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from screenshots import DESKTOP, GREENROOM, PHONE, ask, free_port, photograph, until, visitor

CROWD = 14
TO_THE_START_S, SALE_S = 90, 150
SHOP = b"""<!doctype html><html lang=en><title>Spring sale</title><style>
body{font:1.1rem/1.6 system-ui;margin:0;color:#1b2420;background:#fff}
header{padding:1.2rem 3rem;background:#1f7a5c;color:#fff;font-weight:600}
main{padding:3rem;max-width:44rem}
h1{font-size:2.4rem;margin:0 0 .6rem}
</style><header>Fern &amp; Field</header><main><h1>Spring sale</h1><p>40 % off everything that grows. Free shipping, today only.</main>"""


class Shop(BaseHTTPRequestHandler):
    """The application behind the waiting room."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(SHOP)))
        if self.headers["X-Crowd"]:
            self.send_header(
                "Cf-Waiting-Room-Command", "revoke"
            )  # has seen enough: the next one may come in
        self.end_headers()
        self.wfile.write(SHOP)

    def log_message(self, *_: object) -> None:
        """Silent."""


def moment(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds")


def configuration(origin: str, listen: str, control: str, start_s: float) -> str:
    return f"""
origin = "{origin}"
listen = "{listen}"
control = "{control}"
data = "data"

[[rooms]]
name = "shop"
host = "*"
total_active_users = 3
new_users_per_minute = 12
session_duration = 1
enabled_origin_commands = ["revoke"]

[[rooms.events]]
name = "spring_sale"
prequeue_start_time = {moment(start_s - 300)}
event_start_time = {moment(start_s)}
event_end_time = {moment(start_s + SALE_S)}
shuffle_at_event_start = true
"""


def stand_in_line(address: str, ended: threading.Event) -> None:
    """One of the crowd: comes back when told, and leaves the shop once in."""
    jar = http.cookies.SimpleCookie()
    while not ended.is_set():
        connection = http.client.HTTPConnection(address, timeout=10)
        connection.request(
            "GET",
            "/",
            headers={
                "Accept": "text/html",
                "X-Crowd": "1",
                "Cookie": "; ".join(f"{m.key}={m.value}" for m in jar.values()),
            },
        )
        answer = connection.getresponse()
        answer.read()
        for line in answer.headers.get_all("Set-Cookie", []):
            jar.load(line)
        refresh = answer.headers.get("Refresh")
        connection.close()
        if refresh is None:
            return
        ended.wait(int(refresh))


@contextmanager
def sale(folder: Path) -> Iterator[tuple[str, str, float]]:
    """(address for visitors, address for operators, when the sale starts)."""
    shop = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=shop.serve_forever, daemon=True).start()
    listen, control, start_s = (
        f"127.0.0.1:{free_port()}",
        f"127.0.0.1:{free_port()}",
        time.time() + TO_THE_START_S,
    )
    (folder / "sale.toml").write_text(
        configuration(f"http://127.0.0.1:{shop.server_address[1]}", listen, control, start_s)
    )
    process = subprocess.Popen(
        [GREENROOM, "serve", "--config", folder / "sale.toml"], stdout=subprocess.DEVNULL
    )

    def ready() -> bool:
        try:
            return ask(f"http://{control}/readyz") == b"serving\n"
        except OSError:
            return False

    ended = threading.Event()
    try:
        until("greenroom is ready", ready, 30)
        for _ in range(CROWD):
            threading.Thread(target=stand_in_line, args=(listen, ended), daemon=True).start()
        yield listen, control, start_s
    finally:
        ended.set()
        process.terminate()
        process.wait(30)
        shop.shutdown()


def open_details(page: Page) -> None:
    page.locator("#draw").evaluate("element => { element.open = true; }")


def first_drawn(pages: list[Page], start_s: float) -> Page:
    """Whoever sees a drawn place first: those in front are let in before they do."""
    found: list[Page] = []

    def seen() -> bool:
        found.extend(page for page in pages if page.locator("#drawn").is_visible())
        return bool(found)

    until("the draw is held", seen, start_s - time.time() + 60)
    return found[0]


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="greenroom-sale-"))
    with sale(folder) as (listen, control, start_s), sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page, other = visitor(browser), visitor(browser)
        phone = visitor(browser, viewport=PHONE, is_mobile=True, has_touch=True)
        for one in (page, other, phone):
            one.goto(f"http://{listen}/")
            until("the place is real", lambda one=one: "soon" in one.inner_text("#heading"), 60)
            until("people are counted", lambda one=one: one.locator("#waiting").is_visible(), 60)
        photograph(page, "sale-pre-queue", whole=True)
        open_details(phone)
        photograph(phone, "sale-receipt", whole=True)
        for one in (page, other):
            open_details(one)
        with page.expect_download() as saved:
            page.click("#draw a")
        saved.value.save_as(folder / "receipt.json")
        drawn = first_drawn([page, other], start_s)
        photograph(drawn, "sale-drawn", whole=True)
        draw = json.loads(ask(f"http://{control}/draws"))["held"][0]
        (folder / "draw.json").write_bytes(ask(f"http://{control}{draw}"))
        check = visitor(browser, viewport={**DESKTOP, "height": 1000})
        check.goto(f"http://{control}/draws/verify")
        check.set_input_files("#draw", folder / "draw.json")
        check.set_input_files("#saved", folder / "receipt.json")
        check.click("button")
        until(
            "the draw is checked", lambda: "The draw is valid" in check.inner_text("#verdict"), 30
        )
        photograph(check, "sale-checked", whole=True)
        browser.close()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
