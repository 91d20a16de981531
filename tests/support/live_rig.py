"""A real greenroom with a zone and a room of its own, visitors who wait in it, and operators who
watch it in Chromium.
"""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import ThreadingHTTPServer
from math import exp
from typing import Any

from api_rig import Api, create_token
from dashboard_browser import is_wrong
from ok_page import OkPage
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

from greenroom.analytics.histogram import bucket_of
from greenroom.analytics.rollup import SLOTS, GaugeTrack, Part, Rollup, RoomLimits
from greenroom.analytics.store.duck import DuckEngine
from greenroom.analytics.store.keeper import Keeper, RoomPlace

HOST = "shop.example"


START_S = 90
"""A process may need as long to start while other tests use the machine."""


@contextmanager
def plain_origin() -> Iterator[str]:
    """Its address, while it runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), OkPage)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def started(greenroom: Any, origin: str, *options: str) -> Any:
    """A process with a room of its own that no test visits."""
    limits = ("--total-active-users", "1000", "--new-users-per-minute", "1000")
    running = greenroom.serve(
        "--origin", origin, *limits, "--host", "elsewhere.example", *options, ready=False
    )
    greenroom.eventually(
        lambda: "\nready" in running.output or not running.alive, "greenroom is ready", START_S
    )
    return running.wait_until_ready()


@dataclass
class LiveRig:
    """Where everything is. `path` is the page of the room, below the control listener."""

    running: Any
    api: Api
    zone_id: str
    room_id: str
    token: str

    @classmethod
    def start(cls, greenroom: Any, origin: str, **room: Any) -> "LiveRig":
        """A process with one room in its store."""
        running = started(greenroom, origin)
        api = Api(running.control, create_token(greenroom.data, "rig", "--scope", "edit"))
        operator = create_token(greenroom.data, "operator", "--scope", "edit")
        zone = api.ask(
            "POST", "/zones", {"name": HOST, "greenroom": {"limit_floor": 1, "origin": origin}}
        ).result
        document = {
            "name": "sale",
            "host": HOST,
            "total_active_users": 10,
            # Visitors of these tests come once each.
            "greenroom": {"confirm_newcomers": False},
            "new_users_per_minute": 10,
            **room,
        }
        made = api.ask("POST", f"/zones/{zone['id']}/waiting_rooms", document).result
        greenroom.eventually(
            lambda: any(one["name"] == "sale" for one in running.status()["rooms"]),
            "the gateway serves the room",
        )
        return cls(running, api, zone["id"], made["id"], operator)

    def restart_with(self, greenroom: Any, parts: list[Part]) -> None:
        """Ends the process and starts another one that has these minutes in its store."""
        self.running.stop()
        keeper = Keeper(
            DuckEngine(greenroom.data / "analytics.duckdb"),
            lambda _: RoomPlace(self.zone_id, "sale"),
        )
        now_s = parts[-1].minute * 60 + 60
        for begin in range(0, len(parts), 60):  # minutes that come too late are not taken
            hour = parts[begin : begin + 60]
            keeper.write(hour, hour[-1].minute * 60 + 60)
        keeper.tend(now_s)
        keeper.close()
        self.running = started(greenroom, "http://127.0.0.1:9")
        self.api = Api(self.running.control, self.api.token)

    @property
    def base(self) -> str:
        return f"http://{self.api.address[0]}:{self.api.address[1]}"

    @property
    def path(self) -> str:
        return f"{self.base}/zones/{self.zone_id}/rooms/{self.room_id}"

    def set(self, **changes: Any) -> None:
        """Changes the room through the API."""
        self.api.ask("PATCH", f"/zones/{self.zone_id}/waiting_rooms/{self.room_id}", changes).result  # noqa: B018  fails if refused

    @property
    def room(self) -> Any:
        return self.api.ask("GET", f"/zones/{self.zone_id}/waiting_rooms/{self.room_id}").result

    def visit(self, cookie: str = "") -> tuple[int, str]:
        """One page view: seconds until the visitor should come back (0: let in), and the new
        cookie.
        """
        connection = HTTPConnection(*self.running.address, timeout=60)
        try:
            headers = {
                "Host": HOST,
                "Accept": "text/html",
                "Sec-Fetch-Dest": "document",
                "Sec-Fetch-Mode": "navigate",
            }
            connection.request("GET", "/", headers=headers | ({"Cookie": cookie} if cookie else {}))
            answer = connection.getresponse()
            answer.read()
            given = re.match(r"[^;]+", answer.headers["Set-Cookie"] or "")
            return int(answer.headers["Refresh"] or 0), given[0] if given else cookie
        finally:
            connection.close()

    def crowd(self, size: int) -> list[str]:
        """So many visitors come, and those who are held come back once, as they are told: they are
        in line. Their cookies.
        """
        came = [self.visit() for _ in range(size)]
        time.sleep(max(refresh_s for refresh_s, _ in came))  # as the page says
        return [self.visit(cookie)[1] if refresh_s else cookie for refresh_s, cookie in came]


@contextmanager
def operator(browser: Browser, rig: LiveRig, **options: Any) -> Iterator[Page]:
    """A signed-in operator's page, which fails the test when its console says anything wrong."""
    context: BrowserContext = browser.new_context(
        locale="en-GB", timezone_id="Europe/Berlin", **options
    )
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console", lambda message: problems.append(message.text) if _is_wrong(message) else None
    )
    page.goto(f"{rig.base}/sign-in")
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    page.fill("#token", rig.token)
    page.locator("form", has=page.locator("#token")).get_by_role("button").click()
    page.wait_for_url("**/rooms")
    try:
        yield page
    finally:
        context.close()
    assert not problems, problems


def _is_wrong(message: ConsoleMessage) -> bool:
    """Pages that are refused, and those that cannot be reached, are what some tests are about."""
    return is_wrong(message) and not message.text.startswith("Failed to load resource")


def sale_parts(room_id: str, end_s: int, minutes: int) -> list[Part]:
    """Minutes of a sale that ends now: a rush one third into them, a line that empties, and waits
    that follow it.
    """
    parts, waiting = [], 0.0
    for index in range(minutes):
        came = round(20 + 900 * exp(-(((index - minutes / 3) / (minutes / 30)) ** 2)))
        let_in = round(min(100, waiting + came))
        waiting = max(0.0, waiting + came - let_in - waiting * 0.004)
        active, queued, wait_s = min(480, 5 * let_in), round(waiting), round(60 * waiting / 100)
        waited = {bucket_of(max(1, wait_s * 1000)): let_in} if waiting else {}
        origin = {bucket_of(150_000): let_in // 2 + 1, bucket_of(420_000): let_in // 4 + 1}
        outcomes = {
            "admitted": let_in,
            "held": queued * 3,
            "passed": active * 2,
            "abandoned": round(waiting * 0.004),
            "gave_up": index % 3,
        }
        track = GaugeTrack(*((value,) * SLOTS for value in (active, queued, wait_s)))
        rollup = Rollup(
            outcomes, {"here": track}, RoomLimits(1, 500, 100, 5), waited, origin, generated=True
        )
        parts.append(Part("rig", end_s // 60 - minutes + index, room_id, rollup))
    return parts
