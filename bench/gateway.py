"""The data path beside nginx, in one run: pass-through with a valid ticket, the waiting page, added
latency, CPU.

    python bench/gateway.py [--heads chrome] [--rounds 5] [--seconds 5]
    python bench/gateway.py --against COMMIT-OR-COMMAND [--rounds 20] [--seconds 1]

nginx as a plain proxy with keep-alive on both sides is the physical limit. It proxies two pages:
one of 1 KB, and one as long as the waiting page, because what a proxy costs grows with what it
carries. Each server under test runs alone on CPU 0 (one worker); the client with 64 connections and
the origin have CPU 1 and never sleep (`awake.py`): no server pays for waking them. Rounds alternate
between the contestants, so that a slow minute of the machine hits all of them; medians and ratios
are printed. The requests a second are those of a whole core, from the CPU time of one: the rate
itself would be the client's where the server is the faster of the two.

With `--against` the greenroom of an earlier commit, or another one by the path of its command, is
measured beside this one, in short rounds that alternate: the figure is the median of the ratios of
neighbouring rounds, which a busy machine disturbs least.
"""

import argparse
import contextlib
import http.client
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from awake import HEADS, Client
from earlier import Figures, greenroom_at, in_pairs

ORIGIN, NGINX, OPEN, CLOSED, EARLIER = 9100, 9101, 9102, 9103, 10
SMALL, LONG = "nginx, plain proxy, 1 KB", "nginx, plain proxy, long page"
PART_LOAD_MS = 5, 15
"""Pause of a connection after each answer, from and to."""

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


def require_free(port: int) -> None:
    """Ends the bench when another process listens there: its answers would be taken for those of
    the server that is measured.
    """
    with socket.socket() as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(("127.0.0.1", port))
        except OSError:
            sys.exit(f"another process has port {port}: end it first")


@contextlib.contextmanager
def running(command: list[str], port: int, cpu: int) -> Iterator[subprocess.Popen[bytes]]:
    require_free(port)
    process = subprocess.Popen(["taskset", "-c", str(cpu), *command], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                time.sleep(0.05)  # one that finds the port taken needs a moment to say so
                if process.poll() is None:
                    break
            if time.monotonic() > deadline or process.poll() is not None:
                sys.exit(f"{command[0]} did not open port {port}")
            time.sleep(0.05)  # the server is a real process: there is nothing else to wait on
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far, all its threads together."""
    return (
        sum(
            int((task / "schedstat").read_text().split()[0])
            for task in Path(f"/proc/{pid}/task").iterdir()
        )
        / 1e9
    )


def worker_of(process: subprocess.Popen[bytes]) -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(children[-1]) if children else process.pid


def visit(port: int) -> tuple[str, int]:
    """One visit; the Cookie header to come back with, and how long the page is."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/")
    answer = connection.getresponse()
    return "Cookie: " + (answer.getheader("Set-Cookie") or "").partition(";")[0], len(answer.read())


class Contestant(NamedTuple):
    """A server and what it is asked. `joins`: with the ticket of a visitor who has just come; an
    old one would be let in late.
    """

    port: int
    page: str
    header: str
    pid: int
    joins: bool = False
    delay_ms: tuple[int, int] | None = None

    def measure(self, client: Client, seconds: int, heads: str) -> Figures:
        """One round."""
        head = HEADS[heads](self.page, visit(self.port)[0] if self.joins else self.header)
        before = cpu_seconds(self.pid)
        load = client.load(self.port, seconds, head, self.delay_ms)
        return Figures(
            (cpu_seconds(self.pid) - before) / load.answered * 1e6,
            load.answered / load.seconds,
            load.p99_ms,
        )


def greenrooms(
    stack: contextlib.ExitStack, path: Path, command: list[str], beside: int = 0
) -> tuple[dict[str, Contestant], int]:
    """Two processes, one with room for everybody and one that is full, and what they are asked; the
    length of the waiting page.
    """
    servers = {}
    for port, limit in ((OPEN + beside, 100_000), (CLOSED + beside, 1)):
        text = GREENROOM_CONF.format(
            origin=ORIGIN, port=port, control=port + 100, data=path / str(port), limit=limit
        )
        (path / f"{port}.toml").write_text(text)
        servers[port] = stack.enter_context(
            running([*command, "serve", "--config", str(path / f"{port}.toml")], port, 0)
        ).pid
    inside, full = servers
    (ticket, _), _ = visit(inside), visit(full)
    _, length = visit(full)
    return {
        "greenroom, valid ticket, 1 KB": Contestant(inside, "/", ticket, servers[inside]),
        "greenroom, valid ticket, long page": Contestant(inside, "/page", ticket, servers[inside]),
        "waiting page, newcomer": Contestant(full, "/", "", servers[full]),
        "waiting page, newcomer who takes gzip": Contestant(
            full, "/", "Accept-Encoding: gzip", servers[full]
        ),
        "waiting page, a visitor in line": Contestant(full, "/", "", servers[full], joins=True),
        "greenroom, 1 KB, part load": Contestant(
            inside, "/", ticket, servers[inside], delay_ms=PART_LOAD_MS
        ),
    }, length


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=int)
    parser.add_argument(
        "--heads",
        choices=HEADS,
        default="bare",
        help="lines of the requests: what a GET needs, or what Chrome sends",
    )
    parser.add_argument(
        "--against",
        metavar="COMMIT-OR-COMMAND",
        help="measure that greenroom beside the present one, and nothing else",
    )
    asked = parser.parse_args()
    greenroom = shutil.which("greenroom") or str(Path(sys.executable).with_name("greenroom"))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        path = Path(folder)
        path.chmod(0o755)  # nginx serves the long page as another user
        (path / "proxy.conf").write_text(PROXY_CONF.format(dir=folder, port=NGINX, origin=ORIGIN))
        client = stack.enter_context(Client(ORIGIN))
        now, length = greenrooms(stack, path, [greenroom])
        client.long_page(length)
        if asked.against:
            other = (
                [asked.against]
                if Path(asked.against).is_file()
                else stack.enter_context(greenroom_at(asked.against))
            )
            earlier, _ = greenrooms(stack, path, other, EARLIER)
            compare(client, earlier, now, asked.rounds or 20, asked.seconds or 1, asked.heads)
            print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        else:
            nginx = worker_of(
                stack.enter_context(running(["nginx", "-c", str(path / "proxy.conf")], NGINX, 0))
            )
            plain = {
                SMALL: Contestant(NGINX, "/", "", nginx),
                LONG: Contestant(NGINX, "/page", "", nginx),
                "nginx, 1 KB, part load": Contestant(NGINX, "/", "", nginx, delay_ms=PART_LOAD_MS),
            }
            print(f"the long page and the waiting page have {length} bytes")
            beside_nginx(client, plain | now, asked.rounds or 5, asked.seconds or 5, asked.heads)


def compare(
    client: Client,
    earlier: dict[str, Contestant],
    now: dict[str, Contestant],
    rounds: int,
    seconds: int,
    heads: str,
) -> None:
    """Earlier and now, row by row."""

    def both(row: str) -> tuple[Callable[[], Figures], Callable[[], Figures]]:
        return lambda: earlier[row].measure(client, seconds, heads), lambda: now[row].measure(
            client, seconds, heads
        )

    in_pairs({row: both(row) for row in now}, rounds)


def beside_nginx(
    client: Client, contestants: dict[str, Contestant], rounds: int, seconds: int, heads: str
) -> None:
    """All contestants in turn."""
    found: dict[str, list[Figures]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            found[name].append(contestant.measure(client, seconds, heads))
    small, long = (
        statistics.median([figures.cpu_us for figures in found[name]]) for name in (SMALL, LONG)
    )
    print(
        f"{'':38} {'CPU us/req':>10} {'x nginx 1 KB':>13} {'x nginx long':>13}"
        f" {'req/s of a core':>15} {'p99 ms':>7}"
    )
    for name, measured in found.items():
        cpu_us, _, p99 = (statistics.median(figures) for figures in zip(*measured, strict=True))
        ratios = (
            " " * 27 if "part load" in name else f"{cpu_us / small:13.2f} {cpu_us / long:13.2f}"
        )
        print(f"{name:38} {cpu_us:10.1f} {ratios} {1e6 / cpu_us:15.0f} {p99:7.2f}")
    slow = (found["greenroom, 1 KB, part load"], found["nginx, 1 KB, part load"])
    added = [ours.p99_ms - theirs.p99_ms for ours, theirs in zip(*slow, strict=True)]
    print(f"p99 added over nginx at part load: median {statistics.median(added):.2f} ms")


if __name__ == "__main__":
    main()
