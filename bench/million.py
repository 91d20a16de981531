"""A million visitors in one line, each polling again and again: memory, times, and whether the limits still hold to the last visitor.

    python bench/million.py [--waiters 1000000] [--seconds 180] [--clients 2] [--ledger memory|redis]

Every waiter joins over HTTP and has a ticket of its own; then client processes (wrk) ask for all of them in turn, with the header lines of
browsers. A million who poll every 20 s are 50,000 requests a second, more than two cores can send and answer: what was reached is printed,
and what each waiter's time between polls was. The gateway has CPU 0; the clients, the origin and Redis share CPU 1. While they poll, the
metrics are read every second: active users and those let in during the last 60 s must never be above the limits.
"""

import argparse
import contextlib
import http.client
import itertools
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from browser_heads import LINE, browsers
from gateway import BODY, ORIGIN, ORIGIN_CONF, running

PORT, REDIS = 9160, 9161
ACTIVE, MINUTE = 500, 500
AT_ONCE = 50
KINDS = 48
"""Different browsers."""

CONF = """
{redis}origin = "http://127.0.0.1:{origin}"
listen = "127.0.0.1:{port}"
control = "127.0.0.1:{control}"
data = "{data}"
[limits]
connections_per_address = 100000
requests_per_connection = 1000000000
[log]
level = "warning"
[[rooms]]
name = "bench"
host = "*"
total_active_users = {active}
new_users_per_minute = {minute}
session_duration = 1
json_response_enabled = true
"""

LUA = """
local kinds, tickets, at = {}, {}, 0
function init(args)
  for kind in io.open(args[1], "rb"):read("*a"):gmatch("[^\\1]+") do kinds[#kinds + 1] = kind end
  for ticket in io.lines(args[2]) do tickets[#tickets + 1] = ticket end
end
function request()
  at = at % #tickets + 1
  return kinds[at % #kinds + 1] .. "Cookie: theme=dark; __cfwaitingroom=" .. tickets[at] .. "\\r\\n\\r\\n"
end
"""

JOIN = b"GET /sale HTTP/1.1\r\nHost: shop.example.com\r\nAccept: application/json\r\nUser-Agent: Mozilla/5.0\r\n\r\n"


def join(visitors: int) -> list[bytes]:
    """So many newcomers over one connection; the ticket of each one."""
    found: list[bytes] = []
    with socket.create_connection(("127.0.0.1", PORT)) as connection:
        while len(found) < visitors:
            wanted = min(AT_ONCE, visitors - len(found))
            connection.sendall(JOIN * wanted)
            got, seen = list[bytes](), b""
            while len(got) < wanted:
                seen += connection.recv(1 << 20)
                got = re.findall(rb"\r\nSet-Cookie: __cfwaitingroom=([^;]+);", seen)
            found += got
    return found


def gauges(control: int) -> dict[str, float]:
    """Of the one room."""
    connection = http.client.HTTPConnection("127.0.0.1", control, timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    return {name: float(value) for name, value in re.findall(r"^greenroom_room_(\w+)\{[^}]*\} (\S+)$", text, re.M)}


def memory_mib(pid: int) -> float:
    """What the process keeps in memory, in MiB."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024  # type: ignore[index]


class Watch(threading.Thread):
    """Reads the gauges every second, and keeps the highest of those that have a limit."""

    def __init__(self, control: int) -> None:
        super().__init__(daemon=True)
        self._control = control
        self.active, self.minute, self.waiting, self.looks, self.late = 0.0, 0.0, 0.0, 0, 0
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(1.0):
            try:
                found = gauges(self._control)
            except TimeoutError:
                self.late += 1
                continue
            self.active, self.minute = max(self.active, found["active_users"]), max(self.minute, found["admitted_last_minute"])
            self.waiting, self.looks = found["waiting_users"], self.looks + 1


@contextlib.contextmanager
def redis_server(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    options = ["--port", str(REDIS), "--save", "", "--appendonly", "no", "--dir", str(folder), "--loglevel", "warning"]
    with running(["redis-server", *options], REDIS, 1) as process:
        yield process


def poll(script: Path, kinds: Path, tickets: list[Path], seconds: int) -> tuple[float, list[str]]:
    """All clients at once: answered requests a second, and what each client says of the slowest per cent."""
    url = f"http://127.0.0.1:{PORT}/"
    heads = ["taskset", "-c", "1", "wrk", "-t1", "-c32", "--latency", "--timeout", "30s", f"-d{seconds}s", "-s", str(script), url, "--"]
    clients = [subprocess.Popen([*heads, str(kinds), str(path)], stdout=subprocess.PIPE, text=True) for path in tickets]
    printed = [client.communicate()[0] for client in clients]
    for text in printed:
        if "Non-2xx" in text or "Socket errors" in text:
            print(text)
    answered = sum(int(re.search(r"(\d+) requests in", text)[1]) for text in printed)  # type: ignore[index]
    return answered / seconds, [re.search(r"99%\s+(\S+)", text)[1] for text in printed]  # type: ignore[index]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--waiters", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--ledger", choices=("memory", "redis"), default="memory")
    asked = parser.parse_args()
    command = shutil.which("greenroom") or str(Path(sys.executable).with_name("greenroom"))
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "origin.conf").write_text(ORIGIN_CONF.format(dir=folder, port=ORIGIN, body=BODY))
        stack.enter_context(running(["nginx", "-c", str(folder / "origin.conf")], ORIGIN, 1))
        line = f'redis = "redis://127.0.0.1:{REDIS}"\n' if asked.ledger == "redis" else ""
        server = stack.enter_context(redis_server(folder)) if line else None
        settings = {"port": PORT, "control": PORT + 100, "data": folder / "data", "active": ACTIVE, "minute": MINUTE}
        (folder / "room.toml").write_text(CONF.format(redis=line, origin=ORIGIN, **settings))
        process = stack.enter_context(running([command, "serve", "--config", str(folder / "room.toml")], PORT, 0))
        processes = {"gateway": process.pid} | ({"redis": server.pid} if server else {})
        before = {name: memory_mib(pid) for name, pid in processes.items()}
        print(f"{asked.waiters:,} waiters, ledger in {asked.ledger}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)

        watch = Watch(PORT + 100)
        watch.start()
        began = time.monotonic()
        share = -(-asked.waiters // asked.clients)
        with ProcessPoolExecutor(asked.clients) as pool:
            joined = list(pool.map(join, [share] * asked.clients))
        print(f"joined in {time.monotonic() - began:.0f} s", flush=True)
        files = [folder / f"tickets{number}" for number in range(asked.clients)]
        for path, carried in zip(files, joined, strict=True):
            path.write_bytes(b"\n".join(carried) + b"\n")
        (folder / "kinds").write_bytes(b"\1".join(LINE + kind for kind in itertools.islice(browsers(), KINDS)))
        (folder / "poll.lua").write_text(LUA)

        rate, _ = poll(folder / "poll.lua", folder / "kinds", files, 10)
        once_s = int(asked.waiters / rate * 1.3)
        poll(folder / "poll.lua", folder / "kinds", files, once_s)
        for name, pid in processes.items():
            each = (memory_mib(pid) - before[name]) * 1024 * 1024 / asked.waiters
            print(f"{name}: {memory_mib(pid):,.0f} MiB, {each:,.0f} bytes for each waiter")
        print(f"in line after {once_s + 10} s of polls: {watch.waiting:,.0f}", flush=True)
        rate, slowest = poll(folder / "poll.lua", folder / "kinds", files, asked.seconds)
        watch.ended.set()
        watch.join()
        found = gauges(PORT + 100)
        print(f"{rate:,.0f} polls a second for {asked.seconds} s, each waiter every {asked.waiters / rate:.0f} s; p99 {', '.join(slowest)}")
        print(f"in line at the end: {found['waiting_users']:,.0f}; let in: {found['admitted_total']:,.0f}")
        for what, highest, limit in (("active users", watch.active, ACTIVE), ("let in during 60 s", watch.minute, MINUTE)):
            beyond = "" if highest <= limit else "   BEYOND THE LIMIT"
            print(f"{what}: at most {highest:.0f} of {limit} in {watch.looks} looks ({watch.late} unanswered){beyond}")
        for name, pid in processes.items():
            print(f"{name}: {memory_mib(pid):,.0f} MiB at the end")


if __name__ == "__main__":
    main()
