"""What people who watch the live page of a room cost: CPU time of the process in per cent of one
core, and for requests of visitors.

    python bench/live_watchers.py [--watchers 200] [--seconds 8] [--rounds 11]

Starts a greenroom with one room in front of an origin of its own, opens so many streams with one
session, reads them all, and compares the CPU time of the greenroom process with that of the same
time without watchers. Then a client that never sleeps (`awake.py`) asks through the gateway,
without and with watchers in turn, each for a quarter of the seconds; the figure is the median of
the ratios of neighbouring rounds. greenroom runs alone on CPU 0; the client with the origin, and
the readers of the streams, share CPU 1.
"""

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

import uvloop
from awake import Client, request
from gateway import ORIGIN, cpu_seconds

GREENROOM = Path(sys.executable).with_name("greenroom")
SETTLE_S = 3.0


class NoRedirect(HTTPRedirectHandler):
    """Leaves redirects to the caller."""

    def redirect_request(self, *_: object) -> None:
        """Does not follow."""
        return


def cookie_of(base: str, token: str) -> str:
    """A signed-in session."""
    opener = build_opener(NoRedirect)
    request = Request(f"{base}/sign-in", urlencode({"token": token}).encode(), {"Origin": base})
    try:
        answer = opener.open(request)
    except OSError as error:
        answer = error  # type: ignore[assignment]  # a redirect
    return re.match(r"[^;]+", answer.headers["Set-Cookie"])[0]  # type: ignore[index]


class Watching(asyncio.Protocol):
    """Reads one stream and counts its messages, as cheaply as a program can: the client and the
    origin need the processor.
    """

    def __init__(self, request: bytes, heard: list[int]) -> None:
        self.request, self.heard = request, heard

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asks."""
        transport.write(self.request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        """Some of the answer."""
        self.heard[0] += data.count(b"data: {")


async def watch(port: int, path: str, cookie: str, heard: list[int]) -> None:
    """Reads one stream until it is cancelled."""
    request = (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\nAccept:"
        " text/event-stream\r\n\r\n".encode()
    )
    transport, _ = await asyncio.get_running_loop().create_connection(
        lambda: Watching(request, heard), "127.0.0.1", port
    )
    try:
        await asyncio.Event().wait()
    finally:
        transport.close()


async def measure(
    pid: int, port: int, path: str, cookie: str, watchers: int, seconds: float
) -> tuple[float, float]:
    """(per cent of a core, messages a second)."""
    heard = [0]
    tasks = [asyncio.create_task(watch(port, path, cookie, heard)) for _ in range(watchers)]
    await asyncio.sleep(SETTLE_S)
    before, heard[0], begun = cpu_seconds(pid), 0, time.monotonic()
    await asyncio.sleep(seconds)
    passed = time.monotonic() - begun
    used = (cpu_seconds(pid) - before) / passed * 100
    for task in tasks:
        task.cancel()
    return used, heard[0] / passed


def request_us(client: Client, pid: int, port: int, seconds: float, cookie: str) -> float:
    """CPU time of greenroom for a request of an admitted visitor, its watchers' included."""
    before = cpu_seconds(pid)
    answered = client.load(port, seconds, request("/", f"Cookie: {cookie}")).answered
    return (cpu_seconds(pid) - before) / answered * 1e6


async def watched_us(
    client: Client,
    pid: int,
    port: int,
    seconds: float,
    ticket: str,
    stream: tuple[int, str, str],
    watchers: int,
) -> float:
    """The same while so many watch."""
    heard = [0]
    tasks = [asyncio.create_task(watch(*stream, heard)) for _ in range(watchers)]
    while heard[0] < 2 * watchers:  # opening so many pages at once is not what is measured
        await asyncio.sleep(0.1)
    found = await asyncio.to_thread(request_us, client, pid, port, seconds, ticket)
    for task in tasks:
        task.cancel()
    return found


@contextmanager
def running(data: str) -> Iterator[tuple[int, int, int]]:
    """A greenroom with one room: its process, its port for visitors, its control port."""
    options = [
        "--listen",
        "127.0.0.1:0",
        "--control",
        "127.0.0.1:0",
        "--data",
        data,
        "--origin",
        f"http://127.0.0.1:{ORIGIN}",
    ]
    limits = ["--total-active-users", "500", "--new-users-per-minute", "500"]
    command = ["taskset", "-c", "0", GREENROOM, "serve", *options, *limits]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    ports = {}
    try:
        for line in process.stdout or ():
            if found := re.match(r"(visitors|listen|control)\s+http://\S+:(\d+)", line):
                ports[found[1]] = int(found[2])
            if line.startswith("ready"):
                break
        control = ports.pop("control")
        yield process.pid, next(iter(ports.values())), control
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    """Prints the cost of watching, and what remains for visitors."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--watchers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=11)
    asked = parser.parse_args()
    os.sched_setaffinity(0, {1})
    with (
        tempfile.TemporaryDirectory() as data,
        Client(ORIGIN) as client,
        running(data) as (pid, visitors, port),
    ):
        command = [GREENROOM, "token", "create", "bench", "--data", data, "--scope", "edit"]
        token = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        base = f"http://127.0.0.1:{port}"
        cookie = cookie_of(base, token)
        page = (
            build_opener()
            .open(Request(f"{base}/rooms", headers={"Cookie": cookie}))
            .read()
            .decode()
        )
        room = re.search(r"/zones/[^/\"]+/rooms/(?!new)[^/\"]+", page)
        assert room, "the room is in the table"
        stream = f"{room[0]}/live/stream"
        for watchers in (0, asked.watchers):
            used, rate = uvloop.run(measure(pid, port, stream, cookie, watchers, asked.seconds))
            print(f"{watchers} watchers: {used:.1f} % of a core, {rate:.0f} messages a second")
        admitted = (
            build_opener()
            .open(f"http://127.0.0.1:{visitors}/")
            .headers["Set-Cookie"]
            .partition(";")[0]
        )
        pairs = []
        for _ in range(asked.rounds):
            alone = request_us(client, pid, visitors, asked.seconds / 4, admitted)
            watching = watched_us(
                client,
                pid,
                visitors,
                asked.seconds / 4,
                admitted,
                (port, stream, cookie),
                asked.watchers,
            )
            pairs.append((alone, uvloop.run(watching)))
            print(
                f"gateway: {alone:.1f} us of the processor for a request, {pairs[-1][1]:.1f} us"
                f" with {asked.watchers} watchers"
            )
        dearer = statistics.median(watched / alone for alone, watched in pairs)
        print(
            f"with watchers a request takes {dearer:.3f} of the processor time (median of"
            f" {asked.rounds} rounds)"
        )


if __name__ == "__main__":
    main()
