"""What people who watch the live page of a room cost: CPU time of the process, in per cent of one core.

    python bench/live_watchers.py [--watchers 200] [--seconds 20]

Starts a greenroom with one room, opens so many streams with one session, reads them all, and compares the CPU time of the greenroom
process with that of the same time without watchers.
"""

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

GREENROOM = Path(sys.executable).with_name("greenroom")
TICKS = os.sysconf("SC_CLK_TCK")


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


async def watch(port: int, path: str, cookie: str, heard: list[int]) -> None:
    """Reads one stream until it is cancelled."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\nAccept: text/event-stream\r\n\r\n".encode())
    try:
        while line := await reader.readline():
            heard[0] += line.startswith(b"data: {")
    finally:
        writer.close()


async def measure(pid: int, port: int, path: str, cookie: str, watchers: int, seconds: float) -> tuple[float, float]:
    """(per cent of a core, messages a second)."""
    heard = [0]
    tasks = [asyncio.create_task(watch(port, path, cookie, heard)) for _ in range(watchers)]
    await asyncio.sleep(5)
    before, heard[0], begun = cpu_s(pid), 0, time.monotonic()
    await asyncio.sleep(seconds)
    passed = time.monotonic() - begun
    used = (cpu_s(pid) - before) / passed * 100
    for task in tasks:
        task.cancel()
    return used, heard[0] / passed


def main() -> None:
    """Prints one line without watchers and one with them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--watchers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        options = ["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--data", data, "--origin", "http://127.0.0.1:9"]
        limits = ["--total-active-users", "500", "--new-users-per-minute", "500"]
        process = subprocess.Popen([GREENROOM, "serve", *options, *limits], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            port = 0
            for line in process.stdout or ():
                found = re.match(r"control\s+http://\S+:(\d+)", line)
                port = int(found[1]) if found else port
                if line.startswith("ready"):
                    break
            command = [GREENROOM, "token", "create", "bench", "--data", data, "--scope", "edit"]
            token = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
            base = f"http://127.0.0.1:{port}"
            cookie = cookie_of(base, token)
            page = build_opener().open(Request(f"{base}/rooms", headers={"Cookie": cookie})).read().decode()
            room = re.search(r"/zones/[^/\"]+/rooms/(?!new)[^/\"]+", page)
            assert room, "the room is in the table"
            for watchers in (0, asked.watchers):
                used, rate = asyncio.run(measure(process.pid, port, f"{room[0]}/live/stream", cookie, watchers, asked.seconds))
                print(f"{watchers} watchers: {used:.1f} % of a core, {rate:.0f} messages a second")
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
