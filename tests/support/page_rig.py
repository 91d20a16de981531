"""The gateway's side of the bargain with the built-in page, as a small server, and how a page in
Chromium is waited for.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from greenroom.model.answer import AnswerHeaders
from greenroom.model.room import Room
from greenroom.model.visit import Estimate, Held
from greenroom.pages import BUILT_IN_HEADERS, compile_page, left_page
from greenroom.pages import Page as WaitingPage

LIMITS: dict[str, Any] = {
    "name": "shop",
    "host": "*",
    "total_active_users": 500,
    "new_users_per_minute": 600,
}
PAGE = compile_page(Room(**LIMITS))
HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "howto" / "own-page.md"
NOW_MS = 1_790_000_000_000
LET_IN = b'{"cfWaitingRoom":{"inWaitingRoom":false}}'
SHOP = b"<!doctype html><title>Shop</title><link rel=icon href=data:,><h1>Welcome to the shop</h1>"
LEFT = b'{"greenroom":{"left":true}}'
PATIENCE_MS = 60_000


def held(**changes: Any) -> Held:
    said: dict[str, Any] = {
        "now_ms": NOW_MS,
        "method": "fifo",
        "last_updated_ms": NOW_MS,
        "refresh_s": 1,
        "next_try_s": 1,
        "estimate": Estimate(600, 600, 600),
        "position": 1234,
        "ahead": 1233,
        "waiting": 5000,
        "joined_ms": NOW_MS - 400_000,
        "in_line": True,
    }
    return Held(**{**said, **changes})


def waited(seconds: int, **changes: Any) -> Held:
    """A tenth of the visitors' 1,000 seconds waited for each 100 seconds, so that the bar shows
    seconds / 10 per cent.
    """
    return held(
        now_ms=NOW_MS + seconds * 1000,
        joined_ms=NOW_MS,
        estimate=Estimate(1000 - seconds, 1000 - seconds, 1000 - seconds),
        **changes,
    )


STATES = {
    "fifo": held(),
    "fifo without an estimate": held(estimate=None),
    "random": held(method="random", estimate=Estimate(250, 600, 900)),
    "random without an estimate": held(method="random", estimate=None),
    "placing": held(position=0, ahead=0, in_line=False),
    "queue_all": held(queue_all=True, position=1_234_567, ahead=1_234_566),
    "prequeue": held(event_active=True, event_prequeueing=True, event_start_ms=NOW_MS + 720_000),
    "shuffle": held(
        event_active=True,
        event_prequeueing=True,
        event_start_ms=NOW_MS + 8_000_000,
        shuffle_at_event_start=True,
    ),
    "storage trouble": held(storage_failed=True),
    "full": held(queue_full=True, position=0, ahead=0, in_line=False, waiting=3_000_000),
    "closed": Held(now_ms=NOW_MS, method="reject", last_updated_ms=NOW_MS, refresh_s=0),
}


def sent(headers: AnswerHeaders) -> bytes:
    return b"".join(b"%b: %b\r\n" % pair for pair in headers.pairs)


@dataclass
class Gateway:
    """The gateway's contract: a page or JSON while `held` is set, the origin's page when it is
    None.
    """

    held: Held | None = field(default_factory=held)
    shown: WaitingPage = PAGE
    updates: int = 0
    page_loads: list[str] = field(default_factory=list)
    origin_loads: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    refresh_least_s: int = 30
    """Of the Refresh header: on a slow machine it would come before the page's script."""
    table: dict[str, Any] | None = None
    tables: list[str] = field(default_factory=list)
    broken: bool = False
    address: str = ""

    def answer(self, method: str, path: str, update: str | None) -> tuple[bytes, bytes]:
        if method == "POST" and (update == "leave" or path.endswith("?greenroom=leave")):
            self.left.append(path)
            return (
                (sent(self.shown.json_headers), LEFT)
                if update
                else (sent(BUILT_IN_HEADERS), left_page())
            )
        if path.endswith("?greenroom=line"):
            self.tables.append(path)
            return b"Content-Type: application/json\r\n", json.dumps(
                {"greenroomLine": self.table}
            ).encode()
        if update:
            self.updates += 1
            return sent(self.shown.json_headers), self.shown.update(
                self.held, update.encode()
            ) if self.held else LET_IN
        if self.held is None:
            self.origin_loads.append(path)
            return (
                b"Content-Type: text/html\r\n",
                SHOP,
            )
        self.page_loads.append(path)
        refresh_s = max(self.refresh_least_s, self.held.next_try_s)
        refresh = b"Refresh: %d\r\n" % refresh_s if self.held.next_try_s else b""
        return sent(self.shown.html_headers) + refresh, self.shown.html(self.held)


@contextmanager
def page_gateway() -> Iterator[Gateway]:
    """One on a port of its own."""
    here = Gateway()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if here.broken:
                self.close_connection = True
                return
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            head, body = here.answer(self.command, self.path, self.headers["Greenroom-Update"])
            self.wfile.write(
                b"HTTP/1.1 200 OK\r\n" + head + b"Content-Length: %d\r\n\r\n" % len(body) + body
            )

        do_POST = do_GET  # noqa: N815

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    here.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield here
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def until(happened: Callable[[], bool], page: Page) -> None:
    end = time.monotonic() + PATIENCE_MS / 1000
    while not happened():
        assert time.monotonic() < end, "waited in vain"
        page.wait_for_timeout(20)  # the browser works in real time, and this lets its events in


def stop_clock(page: Page) -> None:
    """Before the page is loaded: its clock then moves by `run_for` alone, and a busy machine makes no
    more tries.
    """
    page.clock.install(time=0)
    page.clock.pause_at(1)


def tick_until(happened: Callable[[], bool], page: Page, seconds: int) -> None:
    """Second by second of the page's clock: time limits of requests run on that clock, and answers
    come in real time.
    """
    for _ in range(seconds):
        if not happened():
            page.clock.run_for(1_000)
            page.wait_for_timeout(20)  # see until
    assert happened()
    page.wait_for_timeout(300)  # the answer to what happened is on its way


def hide(page: Page, hidden: bool) -> None:
    """Headless tabs are always visible, so the page is told otherwise, as a browser would tell it."""
    page.evaluate(
        "hidden => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
        "document.dispatchEvent(new Event('visibilitychange', { bubbles: true })); }",
        hidden,
    )
