"""What the requests of a busy room cost, the update of somebody in line first, beside servers that do nothing: CPU of the server.

    python bench/updates.py [--waiters 12000] [--rounds 3] [--seconds 2]

12,000 different waiters stand in line, each with a ticket of its own and the header lines of one of 384 kinds of Chrome; they ask one after
the other over 64 connections, so no request repeats one that could be remembered as a whole. The floors (`bench/floors.py`) are servers in
the same event loop that parse nothing; nginx is a plain proxy. Every server has CPU 0 while it is measured, wrk and the origin have CPU 1,
and rounds alternate between the contestants. CPU time is what the kernel accounted to the server's process, so a busy machine disturbs it
less than it would a rate, and the ratio to a floor of the same run least. It takes less than two minutes.
"""

import argparse
import contextlib
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from browser_heads import LINE, browsers, cookie_line, navigating
from gateway import BODY, GREENROOM_CONF, NGINX, OPEN, ORIGIN, ORIGIN_CONF, PROXY_CONF, running, worker_of

CLOSED, JSON, PAGE, PROXY = 9104, 9105, 9106, 9107
LIMIT = 100
"""Of the room with a line: it moves now and then, so there are estimates to give."""

INSIDE = 2_000
"""Visitors of the open room."""

DUE_S = 3.0
"""After this every ticket is due for a try."""

WARM_S = 1
"""Before each measurement: waiters who were silent while others were measured come back to their places."""

LUA = """
local heads, at = {}, 0
function init(args)
  local file = io.open(args[1], "rb")
  for head in file:read("*a"):gmatch("[^\\1]+") do heads[#heads + 1] = head end
  file:close()
  at = math.random(#heads)
end
function request()
  at = at % #heads + 1
  return heads[at]
end
"""


class Contestant(NamedTuple):
    """A server and what it is asked; `floor` names the contestant that does nothing but this."""

    port: int
    pid: int
    heads: str
    floor: str


def cpu_us(pid: int) -> float:
    """CPU time of a process so far, all its threads together."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1_000


def load(port: int, seconds: int, heads: Path, script: Path) -> int:
    """How many requests were answered."""
    command = [
        "taskset",
        "-c",
        "1",
        "wrk",
        "-t1",
        "-c64",
        f"-d{seconds}s",
        "-s",
        str(script),
        f"http://127.0.0.1:{port}/",
        "--",
        str(heads),
    ]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in printed or "Socket errors" in printed:
        sys.exit(f"port {port}: {printed}")
    found = re.search(r"(\d+) requests in", printed)
    return int(found[1]) if found else sys.exit(printed)


def tickets(port: int, visitors: int) -> list[bytes]:
    """So many newcomers, over one connection; the ticket of each one."""
    kinds, found = navigating(), list[bytes]()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for first in range(0, visitors, 20):
            heads = [LINE + kinds[number % len(kinds)] + b"\r\n" for number in range(first, min(visitors, first + 20))]
            connection.sendall(b"".join(heads))
            got, seen = list[bytes](), b""
            while len(got) < len(heads):
                seen += connection.recv(1 << 20)
                got = re.findall(rb"\r\nSet-Cookie: __cfwaitingroom=([^;]+);", seen)
            found += got
    return found


def write_heads(path: Path, kinds: list[bytes], carried: list[bytes]) -> None:
    chance = random.Random(1)
    lines = (chance.choice(kinds) + (cookie_line(chance, ticket) if ticket else b"") for ticket in carried)
    path.write_bytes(b"\1".join(LINE + line + b"\r\n" for line in lines))


def measure(contestants: dict[str, Contestant], folder: Path, rounds: int, seconds: int) -> dict[str, list[float]]:
    took: dict[str, list[float]] = {name: [] for name in contestants}
    script = folder / "heads.lua"
    script.write_text(LUA)
    for _ in range(rounds):
        for name, (port, pid, heads, _floor) in contestants.items():
            load(port, WARM_S, folder / heads, script)
            before = cpu_us(pid)
            answered = load(port, seconds, folder / heads, script)
            took[name].append((cpu_us(pid) - before) / answered)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--waiters", type=int, default=12_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2)
    options = parser.parse_args()
    greenroom = shutil.which("greenroom") or str(Path(sys.executable).with_name("greenroom"))
    floors = [sys.executable, str(Path(__file__).with_name("floors.py"))]
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        (folder / "origin.conf").write_text(ORIGIN_CONF.format(dir=folder, port=ORIGIN, body=BODY))
        (folder / "proxy.conf").write_text(PROXY_CONF.format(dir=folder, port=NGINX, origin=ORIGIN))
        for port, limit in ((OPEN, 100_000), (CLOSED, LIMIT)):
            text = GREENROOM_CONF.format(origin=ORIGIN, port=port, control=port + 100, data=folder / str(port), limit=limit)
            (folder / f"{port}.toml").write_text(text.replace("session_duration = 30", "session_duration = 1") if port == CLOSED else text)
        stack.enter_context(running(["nginx", "-c", str(folder / "origin.conf")], ORIGIN, 1))
        nginx = worker_of(stack.enter_context(running(["nginx", "-c", str(folder / "proxy.conf")], NGINX, 0)))
        started = {
            port: stack.enter_context(running(command, port, 0)).pid
            for port, command in {
                JSON: [*floors, "json", str(JSON)],
                PAGE: [*floors, "page", str(PAGE)],
                PROXY: [*floors, "proxy", str(PROXY), str(ORIGIN)],
                OPEN: [greenroom, "serve", "--config", str(folder / f"{OPEN}.toml")],
                CLOSED: [greenroom, "serve", "--config", str(folder / f"{CLOSED}.toml")],
            }.items()
        }
        waiting = tickets(CLOSED, options.waiters + LIMIT)[LIMIT:]
        write_heads(folder / "updates", browsers(), waiting)
        write_heads(folder / "published", browsers(b"1"), waiting)
        write_heads(folder / "one update", browsers()[:1], waiting[:1])
        write_heads(folder / "pages", navigating(), waiting)
        write_heads(folder / "newcomers", navigating(), [b""] * options.waiters)
        write_heads(folder / "inside", navigating(), tickets(OPEN, INSIDE))
        time.sleep(DUE_S)
        contestants = {
            "floor: JSON": Contestant(JSON, started[JSON], "updates", ""),
            "floor: page": Contestant(PAGE, started[PAGE], "pages", ""),
            "floor: proxy": Contestant(PROXY, started[PROXY], "inside", ""),
            "nginx, plain proxy": Contestant(NGINX, nginx, "inside", "floor: proxy"),
            "let-in visitors": Contestant(OPEN, started[OPEN], "inside", "floor: proxy"),
            "newcomers' page": Contestant(CLOSED, started[CLOSED], "newcomers", "floor: page"),
            "page of visitors in line": Contestant(CLOSED, started[CLOSED], "pages", "floor: page"),
            "update, different waiters": Contestant(CLOSED, started[CLOSED], "updates", "floor: JSON"),
            "the same, published JSON": Contestant(CLOSED, started[CLOSED], "published", "floor: JSON"),
            "update, one waiter repeated": Contestant(CLOSED, started[CLOSED], "one update", "floor: JSON"),
        }
        took = {name: statistics.median(values) for name, values in measure(contestants, folder, options.rounds, options.seconds).items()}
    print(f"{'':30} {'CPU us/request':>14} {'of its floor':>13} {'of nginx':>9}")
    for name, contestant in contestants.items():
        floor = took[contestant.floor or name]
        print(f"{name:30} {took[name]:14.1f} {took[name] / floor:13.2f} {took[name] / took['nginx, plain proxy']:9.2f}")


if __name__ == "__main__":
    main()
