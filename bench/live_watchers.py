"""What people who watch the live page of a room cost: CPU time of the process in per cent of one core, and requests of visitors.

    python bench/live_watchers.py [--watchers 200] [--seconds 8] [--rounds 11]

Starts a greenroom with one room in front of an origin of its own, opens so many streams with one session, reads them all, and compares
the CPU time of the greenroom process with that of the same time without watchers. Then `wrk` asks through the gateway, without and with
watchers in turn, each for a quarter of the seconds; the figures are medians of the ratios of neighbouring rounds. greenroom runs alone
on CPU 0; the origin, `wrk` and the readers of the streams share CPU 1.
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
from typing import NamedTuple
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

import uvloop
from quick_origin import quick_origin

GREENROOM = Path(sys.executable).with_name("greenroom")
TICKS = os.sysconf("SC_CLK_TCK")
SETTLE_S = 3.0


class NoRedirect(HTTPRedirectHandler):
    """Leaves redirects to the caller."""

    def redirect_request(self, *_: object) -> None:
        """Does not follow."""
        return


def cpu_s(pid: int) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


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
    """Reads one stream and counts its messages, as cheaply as a program can: `wrk` and the origin need the processor."""

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
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\nAccept: text/event-stream\r\n\r\n".encode()
    transport, _ = await asyncio.get_running_loop().create_connection(lambda: Watching(request, heard), "127.0.0.1", port)
    try:
        await asyncio.Event().wait()
    finally:
        transport.close()


async def measure(pid: int, port: int, path: str, cookie: str, watchers: int, seconds: float) -> tuple[float, float]:
    """(per cent of a core, messages a second)."""
    heard = [0]
    tasks = [asyncio.create_task(watch(port, path, cookie, heard)) for _ in range(watchers)]
    await asyncio.sleep(SETTLE_S)
    before, heard[0], begun = cpu_s(pid), 0, time.monotonic()
    await asyncio.sleep(seconds)
    passed = time.monotonic() - begun
    used = (cpu_s(pid) - before) / passed * 100
    for task in tasks:
        task.cancel()
    return used, heard[0] / passed


class Served(NamedTuple):
    rate: float
    cpu_us: float
    """Processor time of greenroom for a request, its watchers' included."""


def throughput(pid: int, port: int, seconds: float, cookie: str) -> Served:
    """Requests of an admitted visitor through the gateway."""
    before = cpu_s(pid)
    command = ["wrk", "-t1", "-c32", f"-d{seconds:.0f}s", "-H", f"Cookie: {cookie}", f"http://127.0.0.1:{port}/"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate, count = re.search(r"Requests/sec:\s+([\d.]+)", said), re.search(r"(\d+) requests in", said)
    assert rate, said
    assert count, said
    return Served(float(rate[1]), (cpu_s(pid) - before) / int(count[1]) * 1e6)


async def watched_throughput(pid: int, port: int, seconds: float, ticket: str, stream: tuple[int, str, str], watchers: int) -> Served:
    """The same while so many watch."""
    heard = [0]
    tasks = [asyncio.create_task(watch(*stream, heard)) for _ in range(watchers)]
    while heard[0] < 2 * watchers:  # opening so many pages at once is not what is measured
        await asyncio.sleep(0.1)
    found = await asyncio.to_thread(throughput, pid, port, seconds, ticket)
    for task in tasks:
        task.cancel()
    return found


@contextmanager
def running(data: str) -> Iterator[tuple[int, int, int]]:
    """A greenroom with one room: its process, its port for visitors, its control port."""
    with quick_origin() as origin:
        yield from _greenroom(data, origin)


def _greenroom(data: str, origin: str) -> Iterator[tuple[int, int, int]]:
    options = ["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--data", data, "--origin", origin]
    limits = ["--total-active-users", "500", "--new-users-per-minute", "500"]
    command = ["taskset", "-c", "0", GREENROOM, "serve", *options, *limits]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
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
    with tempfile.TemporaryDirectory() as data, running(data) as (pid, visitors, port):
        command = [GREENROOM, "token", "create", "bench", "--data", data, "--scope", "edit"]
        token = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        base = f"http://127.0.0.1:{port}"
        cookie = cookie_of(base, token)
        page = build_opener().open(Request(f"{base}/rooms", headers={"Cookie": cookie})).read().decode()
        room = re.search(r"/zones/[^/\"]+/rooms/(?!new)[^/\"]+", page)
        assert room, "the room is in the table"
        stream = f"{room[0]}/live/stream"
        for watchers in (0, asked.watchers):
            used, rate = uvloop.run(measure(pid, port, stream, cookie, watchers, asked.seconds))
            print(f"{watchers} watchers: {used:.1f} % of a core, {rate:.0f} messages a second")
        admitted = build_opener().open(f"http://127.0.0.1:{visitors}/").headers["Set-Cookie"].partition(";")[0]
        pairs = []
        for _ in range(asked.rounds):
            alone = throughput(pid, visitors, asked.seconds / 4, admitted)
            watched = uvloop.run(watched_throughput(pid, visitors, asked.seconds / 4, admitted, (port, stream, cookie), asked.watchers))
            pairs.append((alone, watched))
            print(
                f"gateway: {alone.rate:,.0f} requests a second and {alone.cpu_us:.1f} us of the processor for each, "
                f"{watched.rate:,.0f} and {watched.cpu_us:.1f} us with {asked.watchers} watchers"
            )
        served = statistics.median(watched.rate / alone.rate for alone, watched in pairs)
        dearer = statistics.median(watched.cpu_us / alone.cpu_us for alone, watched in pairs)
        print(f"with watchers the gateway serves {served:.3f} of the requests, at {dearer:.3f} of the processor time for each")
        print(f"(medians of {asked.rounds} rounds; programs that watch take processor time from wrk and the origin, not from greenroom)")


if __name__ == "__main__":
    main()
