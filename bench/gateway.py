"""The data path beside nginx, in one run: pass-through with a valid ticket, the waiting page, added latency, CPU.

    python bench/gateway.py [--rounds 5] [--seconds 5]

nginx serves the origin, and a second nginx proxies it plainly with keep-alive on both sides: the physical limit. It proxies two
pages: one of 1 KB, and one as long as the waiting page, because what a proxy costs grows with what it carries. Each server
under test runs alone on CPU 0 (one worker), wrk and the origin share CPU 1, 64 connections. Rounds alternate between the
contestants, so that a slow minute of the machine hits all of them; medians and ratios are printed.
"""

import argparse
import contextlib
import http.client
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ORIGIN, NGINX, OPEN, CLOSED = 9100, 9101, 9102, 9103
BODY = "x" * 1024
SMALL, LONG = "nginx, plain proxy, 1 KB", "nginx, plain proxy, long page"
DELAY_LUA = "function delay() return math.random(5, 15) end\n"

ORIGIN_CONF = """
worker_processes 1; daemon off; error_log /dev/null; pid {dir}/origin.pid;
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 1000000000;
  server {{ listen 127.0.0.1:{port} backlog=1024; location / {{ default_type text/html; return 200 "{body}"; }}
    location = /page {{ default_type text/html; alias {dir}/page.html; open_file_cache max=8; }} }} }}
"""
PROXY_CONF = """
worker_processes 1; daemon off; error_log /dev/null; pid {dir}/proxy.pid;
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 1000000000;
  upstream origin {{ server 127.0.0.1:{origin}; keepalive 128; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port} backlog=1024;
    location / {{ proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr; }} }} }}
"""
GREENROOM_CONF = """
origin = "http://127.0.0.1:{origin}"
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
total_active_users = {limit}
new_users_per_minute = {limit}
session_duration = 30
"""


@contextlib.contextmanager
def running(command: list[str], port: int, cpu: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["taskset", "-c", str(cpu), *command], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 15
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if time.monotonic() > deadline or process.poll() is not None:
                sys.exit(f"{command[0]} did not open port {port}")
            time.sleep(0.05)  # the server is a real process: there is nothing else to wait on
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def cpu_seconds(pid: int) -> float:
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")


def worker_of(process: subprocess.Popen[bytes]) -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(children[-1]) if children else process.pid


def wrk(port: int, seconds: int, path: str = "/", header: str = "", script: str = "") -> tuple[float, float]:
    """Requests per second and p99 in milliseconds."""
    command = ["taskset", "-c", "1", "wrk", "-t1", "-c64", f"-d{seconds}s", "--latency", f"http://127.0.0.1:{port}{path}"]
    command += ["-H", header] if header else []
    command += ["-s", script] if script else []
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    amount, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", printed).groups()  # type: ignore[union-attr]
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", printed).group(1))  # type: ignore[union-attr]
    if "Non-2xx" in printed or "Socket errors" in printed:
        print(f"  port {port}: {printed.splitlines()[-3:]}")
    return rate, float(amount) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[unit]


def visit(port: int) -> tuple[str, int]:
    """One visit; the Cookie header to come back with, and how long the page is."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/")
    answer = connection.getresponse()
    return "Cookie: " + (answer.getheader("Set-Cookie") or "").partition(";")[0], len(answer.read())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    options = parser.parse_args()
    greenroom = shutil.which("greenroom") or str(Path(sys.executable).with_name("greenroom"))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        path = Path(folder)
        path.chmod(0o755)  # nginx serves the long page as another user
        (path / "origin.conf").write_text(ORIGIN_CONF.format(dir=folder, port=ORIGIN, body=BODY))
        (path / "proxy.conf").write_text(PROXY_CONF.format(dir=folder, port=NGINX, origin=ORIGIN))
        for port, limit in ((OPEN, 100_000), (CLOSED, 1)):
            text = GREENROOM_CONF.format(origin=ORIGIN, port=port, control=port + 100, data=path / str(port), limit=limit)
            (path / f"{port}.toml").write_text(text)
        (path / "delay.lua").write_text(DELAY_LUA)
        stack.enter_context(running(["nginx", "-c", str(path / "origin.conf")], ORIGIN, 1))
        nginx = stack.enter_context(running(["nginx", "-c", str(path / "proxy.conf")], NGINX, 0))
        servers = {
            port: stack.enter_context(running([greenroom, "serve", "--config", str(path / f"{port}.toml")], port, 0))
            for port in (OPEN, CLOSED)
        }
        (ticket, _), _ = visit(OPEN), visit(CLOSED)
        waiting, length = visit(CLOSED)
        (path / "page.html").write_text("x" * length)
        slow = str(path / "delay.lua")
        contestants = {
            SMALL: (NGINX, "/", "", "", worker_of(nginx)),
            LONG: (NGINX, "/page", "", "", worker_of(nginx)),
            "greenroom, valid ticket, 1 KB": (OPEN, "/", ticket, "", servers[OPEN].pid),
            "greenroom, valid ticket, long page": (OPEN, "/page", ticket, "", servers[OPEN].pid),
            "waiting page, newcomer": (CLOSED, "/", "", "", servers[CLOSED].pid),
            "waiting page, newcomer who takes gzip": (CLOSED, "/", "Accept-Encoding: gzip", "", servers[CLOSED].pid),
            "waiting page, somebody in line": (CLOSED, "/", waiting, "", servers[CLOSED].pid),
            "nginx, 1 KB, part load": (NGINX, "/", "", slow, worker_of(nginx)),
            "greenroom, 1 KB, part load": (OPEN, "/", ticket, slow, servers[OPEN].pid),
        }
        rates: dict[str, list[float]] = {name: [] for name in contestants}
        slowest: dict[str, list[float]] = {name: [] for name in contestants}
        cpu: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(options.rounds):
            for name, (port, page, header, script, pid) in contestants.items():
                before = cpu_seconds(pid)
                rate, p99 = wrk(port, options.seconds, page, header, script)
                rates[name].append(rate)
                slowest[name].append(p99)
                cpu[name].append((cpu_seconds(pid) - before) / (rate * options.seconds) * 1e6)
        small, long = statistics.median(rates[SMALL]), statistics.median(rates[LONG])
        print(f"the long page and the waiting page have {length} bytes")
        print(f"{'':38} {'req/s':>8} {'/ nginx 1 KB':>13} {'/ nginx long':>13} {'p99 ms':>7} {'CPU us/req':>10}")
        for name in contestants:
            rate = statistics.median(rates[name])
            ratios = " " * 27 if "part load" in name else f"{rate / small:13.2f} {rate / long:13.2f}"
            print(f"{name:38} {rate:8.0f} {ratios} {statistics.median(slowest[name]):7.2f} {statistics.median(cpu[name]):10.1f}")
        added = [
            ours - theirs for ours, theirs in zip(slowest["greenroom, 1 KB, part load"], slowest["nginx, 1 KB, part load"], strict=True)
        ]
        print(f"p99 added over nginx at part load: median {statistics.median(added):.2f} ms")


if __name__ == "__main__":
    main()
