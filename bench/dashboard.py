"""What the pages of the dashboard cost in an installation of a thousand rooms: server time of every
GET page of the route table.

    python bench/dashboard.py [--rooms 1000] [--times 15]

Starts a real greenroom with a store and an hour of analytics for all rooms, signs in, and asks for
every page again and again over one connection on the loopback interface. Prints milliseconds from
the request to the last byte of the answer, the first time and the median and worst of the others,
slowest first, and the bytes of a first load without charts as a browser gets them. Ends with an
error when a median is above LIMIT_MS.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

from greenroom.analytics.rollup import SLOTS, GaugeTrack, Part, Rollup, RoomLimits
from greenroom.analytics.store.duck import DuckEngine
from greenroom.analytics.store.keeper import Keeper, RoomPlace
from greenroom.configuration.store import SqlStore, default_url
from greenroom.dashboard.routes import ROUTES
from greenroom.model.change import Change, Put
from greenroom.model.event import Event
from greenroom.model.health_check import HealthCheck, HttpCheck
from greenroom.model.room import Room
from greenroom.model.rule import ListItem, Rule, RuleList, RuleSet
from greenroom.model.zone import Zone

GREENROOM = Path(sys.executable).with_name("greenroom")
LIMIT_MS = 50.0
ZONES, LISTS, ITEMS = 20, 20, 500
PASSWORD = "correct horse battery"
"""Of an installation that lives for a minute."""

LEFT_OUT = ("/stream", "/sign-in/link")
"""A stream does not end, and a link of the first sign-in is not a page to look at."""

DOWNLOADS = ("/transfer/greenroom.json",)
"""The whole configuration as one file: shown, and not held to the limit."""

IDS = {
    "zone_id": "z0",
    "room_id": "r0",
    "event_id": "e0",
    "list_id": "l0",
    "check_id": "h0",
    "rule_id": "r0-0",
    "name": "limits",
}


def fill(data: Path, rooms: int) -> None:
    """Zones, rooms, two rules and an event for each, lists, health checks."""
    now_ms = int(time.time() * 1000)
    changes: list[Change] = [
        Put(Zone(id=f"z{at}", name=f"z{at}.example", limit_floor=1), "") for at in range(ZONES)
    ]
    for at in range(rooms):
        zone = f"z{at % ZONES}"
        limits = {"total_active_users": 500, "new_users_per_minute": 200}
        changes.append(
            Put(Room(id=f"r{at}", name=f"room-{at}", host=f"h{at}.{zone}.example", **limits), zone)
        )
        rules = tuple(
            Rule(id=f"r{at}-{number}", expression=f'http.request.uri.path eq "/free/{number}"')
            for number in range(2)
        )
        changes.append(Put(RuleSet(id=f"s{at}", rules=rules), f"r{at}"))
        start_ms = now_ms + (at % 40 - 3) * 86_400_000
        changes.append(
            Put(
                Event(
                    id=f"e{at}",
                    name=f"sale-{at}",
                    event_start_ms=start_ms,
                    event_end_ms=start_ms + 3_600_000,
                ),
                f"r{at}",
            )
        )
    for at in range(LISTS):
        changes.append(Put(RuleList(id=f"l{at}", name=f"list{at}", kind="ip"), ""))
        values = [f"10.{at}.{number // 250}.{number % 250}" for number in range(ITEMS)]
        changes += [Put(ListItem(id=f"i{at}-{value}", value=value), f"l{at}") for value in values]
    for at in range(ZONES):
        check = HealthCheck(
            id=f"h{at}",
            name=f"check-{at}",
            address="127.0.0.1",
            suspended=True,
            http_config=HttpCheck(port=9),
        )
        changes.append(Put(check, f"z{at}"))
    store = SqlStore(default_url(data))
    store.write(changes, expected=store.read().revision, author="bench", now_ms=now_ms)
    store.close()


def record(data: Path, rooms: int) -> None:
    """An hour of minutes of every room."""
    keeper = Keeper(DuckEngine(data / "analytics.duckdb"), lambda _: RoomPlace("z0", "room"))
    last = int(time.time()) // 60
    for minute in range(last - 60, last):
        track = GaugeTrack(*((value,) * SLOTS for value in (100, 20, 30)))
        rollup = Rollup(
            {"admitted": 100, "held": 60}, {"here": track}, RoomLimits(1, 500, 200, 5), {}, {}
        )
        keeper.write(
            [Part("bench", minute, f"r{at}", rollup) for at in range(rooms)], minute * 60 + 60
        )
    keeper.close()


class Browser:
    """One signed-in connection."""

    def __init__(self, port: int, pid: int) -> None:
        self.pid = pid
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)
        self._origin = f"http://127.0.0.1:{port}"
        self._cookie = ""

    def sign_in(self) -> None:
        """As the admin."""
        body = urlencode({"name": "bench", "password": PASSWORD})
        headers = {"Origin": self._origin, "Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", "/sign-in", body, headers)
        answer = self._connection.getresponse()
        answer.read()
        self._cookie = (answer.headers["Set-Cookie"] or "").partition(";")[0]

    def get(self, path: str) -> tuple[int, bytes, float]:
        """Status, body as it came, milliseconds."""
        begun = time.perf_counter()
        self._connection.request(
            "GET",
            path,
            headers={"Cookie": self._cookie, "Accept-Encoding": "br, gzip", "Accept": "text/html"},
        )
        answer = self._connection.getresponse()
        body = answer.read()
        return answer.status, body, (time.perf_counter() - begun) * 1000


def measure(browser: Browser, times: int) -> bool:
    """Prints every page; whether all are fast enough."""
    found = []
    for row in ROUTES:
        if row.method != "GET" or row.path.endswith(LEFT_OUT):
            continue
        path = re.sub(r"\{(\w+)(?::\w+)?\}", lambda name: IDS.get(name[1], "none"), row.path)
        status, body, first = browser.get(path)
        took = [browser.get(path)[2] for _ in range(times)]
        found.append((statistics.median(took), max(took), first, status, len(body), row.path))
    print(f"{'median':>7} {'worst':>7} {'first':>7}  status  bytes  page (milliseconds)")
    for median, worst, first, status, size, path in sorted(found, reverse=True):
        print(f"{median:7.1f} {worst:7.1f} {first:7.1f}  {status:6} {size:6}  {path}")
    return all(median <= LIMIT_MS for median, *_, path in found if path not in DOWNLOADS)


def first_load(browser: Browser) -> int:
    """Bytes of the first page with its styles and scripts."""
    page = browser.get("/rooms")[1]
    return len(page) + sum(
        len(browser.get(path)[1])
        for path in re.findall(r'(?:href|src)="(/static/[^"]+)"', page.decode())
    )


@contextmanager
def serving(data: Path) -> Iterator[Browser]:
    """A greenroom on this data, with a signed-in admin."""
    add = ["account", "add", "bench", "--role", "admin", "--password-stdin", "--data", data]
    subprocess.run([GREENROOM, *add], input=PASSWORD, text=True, check=True, capture_output=True)
    (data / "greenroom.toml").write_text('origin = "http://127.0.0.1:9"\n')
    ports = ["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"]
    process = subprocess.Popen(
        [GREENROOM, "serve", "--config", data / "greenroom.toml", "--data", data, *ports],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        port = 0
        for line in process.stdout or ():
            found = re.match(r"control\s+http://\S+:(\d+)", line)
            port = int(found[1]) if found else port
            if line.startswith("ready"):
                break
        browser = Browser(port, process.pid)
        browser.sign_in()
        yield browser
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rooms", type=int, default=1000)
    parser.add_argument("--times", type=int, default=15)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        fill(data, asked.rooms)
        record(data, asked.rooms)
        with serving(data) as browser:
            fast = measure(browser, asked.times)
            print(f"first load without charts: {first_load(browser)} bytes")
    sys.exit(0 if fast else f"a page takes longer than {LIMIT_MS:.0f} ms")


if __name__ == "__main__":
    main()
