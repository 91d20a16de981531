"""A small application with a pool of connections and a fixed cost for each page, so that its knee is
known; a crowd of visitors before it; and a room that follows it.

`python bench/origin_knee.py --minutes 10` prints what the law found beside the knee that was
measured, and the response times of visitors inside; `--chart FILE.svg` draws them.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import urllib.request
from collections import deque
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean

from greenroom.simulator.plots import BLUE, GREY, HIGH, ORANGE, WIDE, Panel, page

CONFIG = """
listen = "unix:{folder}/visitors.sock"
control = "127.0.0.1:{control}"
data = "{folder}/data"
origin = "http://127.0.0.1:{origin}"

[[rooms]]
name = "shop"
host = "*"
total_active_users = {ceiling}
new_users_per_minute = {ceiling}0
session_duration = 1
enabled_origin_commands = ["revoke"]
capacity = "{mode}"
objective_ms = {objective}
refresh_max_seconds = 5
provisional_sessions = false

[limits]
connections_per_address = 0
"""
DOCUMENT = "Accept: text/html\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\n"
LINE_MOST = 150
RECENT_S = 20.0
CHANGED_S = 60.0
LAST_ROWS = 12
"""A minute."""


class Application:
    """`pool` pages at once, each for `cost_s`; the others wait in line."""

    def __init__(self, pool: int, cost_s: float) -> None:
        self.pool, self.cost_s = pool, cost_s
        self.busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def resize(self, pool: int) -> None:
        self.pool = pool
        self._next()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self._page()
                last = b"Cf-Waiting-Room-Command: revoke\r\n" if b"/last" in head else b""
                writer.write(
                    b"HTTP/1.1 200 OK\r\nX-Page: 1\r\nContent-Length: 2\r\n" + last + b"\r\nok"
                )
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _page(self) -> None:
        if self.busy >= self.pool:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        else:
            self.busy += 1
        try:
            await asyncio.sleep(self.cost_s)
        finally:
            self.busy -= 1
            self._next()

    def _next(self) -> None:
        while self._waiting and self.busy < self.pool:
            turn = self._waiting.popleft()
            if not turn.done():
                self.busy += 1
                turn.set_result(None)


class Crowd:
    def __init__(self, socket: str, reading_s: float, pages: float, seed: int) -> None:
        self._socket = socket
        self.reading_s, self._pages = reading_s, pages
        self._random = Random(seed)
        self.waiting = self.inside = self.completed = 0
        self.answers: deque[tuple[float, float]] = deque()
        """When, and after how many seconds."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def come(self, a_second: float) -> None:
        while True:
            await asyncio.sleep(self._random.expovariate(a_second))
            if self.waiting < LINE_MOST:
                task = asyncio.create_task(self._visit())
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _visit(self) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await self._visits()

    async def _visits(self) -> None:
        cookie = ""
        self.waiting += 1
        try:
            while True:
                answer, cookie = await self._get("/", cookie)
                if "x-page" in answer:
                    break
                await asyncio.sleep(float(answer.get("refresh", "5").partition(";")[0]))
        finally:
            self.waiting -= 1
        self.inside += 1
        try:
            for left in range(max(1, round(self._random.expovariate(1 / self._pages))), 0, -1):
                await asyncio.sleep(self._random.expovariate(1 / self.reading_s))
                began_s = time.monotonic()
                answer, cookie = await self._get("/last" if left == 1 else "/page", cookie)
                if "x-page" not in answer:
                    return
                self.answers.append((time.monotonic(), time.monotonic() - began_s))
            self.completed += 1
        finally:
            self.inside -= 1

    async def _get(self, path: str, cookie: str) -> tuple[dict[str, str], str]:
        reader, writer = await asyncio.open_unix_connection(self._socket)
        try:
            sent = f"Cookie: {cookie}\r\n" if cookie else ""
            writer.write(
                f"GET {path} HTTP/1.1\r\nHost: shop.example\r\n{DOCUMENT}{sent}"
                "Connection: close\r\n\r\n".encode()
            )
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            await reader.read()
        finally:
            writer.close()
        lines = [line.partition(":") for line in head.split("\r\n")[1:] if line]
        found = {name.lower(): value.strip() for name, _, value in lines}
        return found, found.get("set-cookie", cookie).partition(";")[0]

    def recent(self) -> tuple[float, float]:
        """Pages a second and their p95 in seconds, of RECENT_S."""
        now_s = time.monotonic()
        while self.answers and self.answers[0][0] < now_s - RECENT_S:
            self.answers.popleft()
        took = sorted(seconds for _, seconds in self.answers)
        return len(took) / RECENT_S, took[int(0.95 * len(took))] if took else 0.0


def room_of(control: int) -> dict[str, object]:
    with urllib.request.urlopen(f"http://127.0.0.1:{control}/status", timeout=5) as answer:
        return json.load(answer)["rooms"][0]  # type: ignore[no-any-return]


async def run(given: argparse.Namespace) -> int:
    application = Application(given.pool, given.cost)
    server = await asyncio.start_server(application.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    knee = given.pool / given.cost * (given.reading + given.cost)
    print(f"knee: {knee:.0f} visitors, {given.pool / given.cost:.0f} pages a second")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "knee.toml")
        ceiling = round(given.ceiling * knee)
        file.write_text(
            CONFIG.format(folder=folder, control=given.control, origin=port, ceiling=ceiling,
                          mode=given.mode, objective=given.objective)
        )  # fmt: skip
        greenroom = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "greenroom",
            "serve",
            "--config",
            str(file),
            stdout=asyncio.subprocess.DEVNULL,
        )
        crowd = Crowd(f"{folder}/visitors.sock", given.reading, given.pages, given.seed)
        try:
            while not os.path.exists(f"{folder}/visitors.sock"):
                await asyncio.sleep(0.1)
            await asyncio.sleep(2)
            a_second = given.demand * knee / (given.pages * (given.reading + given.cost))
            coming = asyncio.create_task(crowd.come(a_second))
            rows = await watch(given, application, crowd)
            coming.cancel()
        finally:
            greenroom.send_signal(signal.SIGKILL)
            await greenroom.wait()
    if given.chart:
        Path(given.chart).write_text(chart(rows, given.objective / 1000))
    return told(given, rows)


Row = tuple[float, float, int, int, float, float]
"""Second, knee, target, inside, pages a second, p95 in seconds."""


async def watch(given: argparse.Namespace, application: Application, crowd: Crowd) -> list[Row]:
    rows: list[Row] = []
    began_s = time.monotonic()
    print(
        "| second | knee | target | inside | pages/s | p95 | reason |\n|---|---|---|---|---|---|---|"
    )
    while (second := time.monotonic() - began_s) < 60 * given.minutes:
        pool = given.pool
        if given.halve and 60 * given.halve <= second < 60 * given.restore:
            pool //= 2
        application.resize(pool)
        await asyncio.sleep(5)
        try:
            room = await asyncio.to_thread(room_of, given.control)
        except OSError:  # a busy machine
            continue
        capacity = room["capacity"]
        assert isinstance(capacity, dict)
        pages, p95_s = crowd.recent()
        knee = pool / given.cost * (given.reading + given.cost)
        rows.append((second, knee, capacity["sessions"], crowd.inside, pages, p95_s))
        print(
            f"| {second:.0f} | {knee:.0f} | {capacity['sessions']} | {crowd.inside} | {pages:.0f}"
            f" | {p95_s:.2f} | {capacity['reason']} |",
            flush=True,
        )
    return rows


def chart(rows: list[Row], objective_s: float) -> str:
    ends = rows[-1][0] / 60
    top = 1.08 * max(max(row[1:4]) for row in rows)
    note = "the target, those inside, and how many the application can take"
    visitors = Panel("Visitors", note, (WIDE, HIGH), (0, ends), (0, top))
    visitors.axes("minutes", "visitors")
    for column, colour, name in ((1, GREY, "knee"), (2, ORANGE, "target"), (3, BLUE, "inside")):
        visitors.line([(row[0] / 60, row[column]) for row in rows], colour, name)
    top = 1.08 * max(objective_s, *(row[5] for row in rows))
    note = f"p95 of pages in the last {RECENT_S:.0f} seconds; dashed: the objective"
    answers = Panel("Answers", note, (WIDE, HIGH), (0, ends), (0, top))
    answers.axes("minutes", "seconds")
    answers.line([(0, objective_s), (ends, objective_s)], GREY, dashed=True)
    answers.line([(row[0] / 60, row[5]) for row in rows], BLUE, "p95")
    return page([visitors, answers], "A real application whose pool of connections changes")


def told(given: argparse.Namespace, rows: list[Row]) -> int:
    """0 when the target is within 15 % of the knee at the end of each phase, and the p95 within 1.5
    times the objective except in the first minute of it.
    """
    edges = [0.0, given.minutes]
    if given.halve:
        edges[1:1] = [given.halve, min(given.restore, given.minutes)]
    good = True
    for begins, ends in pairwise(edges):
        rest = [row for row in rows if 60 * begins + CHANGED_S <= row[0] < 60 * ends]
        if not rest:
            continue
        knee, last = rest[0][1], rest[-LAST_ROWS:]
        found, inside = fmean(row[2] for row in last), fmean(row[3] for row in last)
        late = sum(row[5] > 1.5 * given.objective / 1000 for row in rest) / len(rest)
        print(
            f"minutes {begins:g} to {ends:g}, knee {knee:.0f}: at the end target {found:.0f}"
            f" ({found / knee - 1:+.0%}), inside {inside:.0f} ({inside / knee - 1:+.0%}); after the"
            f" first minute p95 {fmean(row[5] for row in rest):.2f} s on average, over 1.5 times the"
            f" objective in {late:.0%} of the time"
        )
        good = good and abs(found / knee - 1) <= 0.15 and not late
    return 0 if good else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--pool", type=int, default=6, help="pages that are made at once")
    parser.add_argument("--cost", type=float, default=0.1, help="seconds that a page takes")
    parser.add_argument("--reading", type=float, default=2.0, help="seconds between two pages")
    parser.add_argument("--pages", type=float, default=12, help="of a visit, on average")
    parser.add_argument("--demand", type=float, default=1.5, help="visitors, relative to the knee")
    parser.add_argument(
        "--ceiling", type=float, default=3.0, help="the operator's limit, relative to the knee"
    )
    parser.add_argument("--objective", type=int, default=500, help="milliseconds")
    parser.add_argument("--halve", type=float, default=0, help="minute in which the pool is halved")
    parser.add_argument(
        "--restore", type=float, default=0, help="minute in which it is whole again"
    )
    parser.add_argument("--mode", default="follow")
    parser.add_argument("--chart", metavar="FILE.svg", help="what was measured, drawn")
    parser.add_argument("--control", type=int, default=18_099)
    parser.add_argument("--seed", type=int, default=1)
    return asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
