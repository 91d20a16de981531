"""A million visitors in one line, each polling again and again: memory, times, and whether the
limits hold to the last visitor.

    python bench/million.py [--waiters 1000000] [--seconds 180] [--clients 1] [--ledger
    memory|redis] [--joining] [--stop]

The line is on the books from the start, as after a restart (`restored_line.py`). Client processes
that never sleep (`polling.py`) poll for all waiters in turn with the header lines of browsers and
the ticket of the answer before, as browsers do; those in front come back when they are told to, and
those who are let in poll no more. Waiters are expected once a minute (`refresh_max_seconds` 60),
and one who has come too late 20 seconds later: so a line of a million stays on the books from
17,000 polls a second on, and what two cores reach is printed. The gateway has CPU 0; clients,
origin and Redis share CPU 1. Every second the metrics are read, and clients note each admission
they are told of: neither may be above the limits.

With `--joining` every waiter joins over HTTP, and then polls once, before the measurement begins:
that takes a minute or two more. Who has joined is expected within 20 seconds, so that asks for
50,000 polls a second.

The phases are join, one round of polls, and polls a minute at a time. What a phase has brought is
kept in the folder, and the servers go on when this program is interrupted: the same command goes on
from there while the tickets are good (five minutes). `--stop` ends them.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from browser_heads import LINE, browsers
from gateway import cpu_seconds
from restored_line import fill

PORT, CONTROL, REDIS, ORIGIN = 9160, 9260, 9161, 9162
ACTIVE, MINUTE = 500, 500
AT_ONCE, KEPT_EVERY = 50, 10_000
KINDS = 48
"""Different browsers."""
CONNECTIONS = 1_400
"""Of each client: more than late tries that are held at once, each of which keeps its connection
for up to 18 seconds.
"""
ROUND_S, CHUNK_S, GOOD_S = 5, 60, 240
WINDOW_S = 60

BODY = "x" * 1024
ORIGIN_CONF = """
worker_processes 1; daemon off; error_log /dev/null; pid {dir}/origin.pid;
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 1000000000;
  server {{ listen 127.0.0.1:{port} backlog=1024; location / {{ default_type text/html; return 200 "{body}"; }} }} }}
"""
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
refresh_max_seconds = 60
json_response_enabled = true
"""

JOIN = (
    b"GET /sale HTTP/1.1\r\nHost: shop.example.com\r\nAccept: application/json\r\nUser-Agent:"
    b" Mozilla/5.0\r\n\r\n"
)


def join(visitors: int, path: Path) -> float:
    """So many tickets in the file, those that are there already among them; one newcomer each, over
    one connection. When the first came.
    """
    os.sched_setaffinity(0, {1})
    there = path.read_bytes().count(b"\n") if path.exists() else 0
    first = path.stat().st_mtime if there else time.time()
    with socket.create_connection(("127.0.0.1", PORT)) as connection, path.open("ab") as file:
        while there < visitors:
            found: list[bytes] = []
            chunk = min(KEPT_EVERY, visitors - there)
            while len(found) < chunk:
                wanted = min(AT_ONCE, chunk - len(found))
                connection.sendall(JOIN * wanted)
                got, seen = list[bytes](), b""
                while len(got) < wanted:
                    more = connection.recv(1 << 20)
                    if not more:
                        raise ConnectionError("the gateway closed the connection of those who join")
                    seen += more
                    got = re.findall(rb"\r\nSet-Cookie: __cfwaitingroom=([^;]+);", seen)
                found += got
            file.write(b"\n".join(found) + b"\n")
            file.flush()
            there += chunk
    return first


def gauges() -> dict[str, float]:
    """Of the one room."""
    connection = http.client.HTTPConnection("127.0.0.1", CONTROL, timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    return {
        name: float(value)
        for name, value in re.findall(r"^greenroom_room_(\w+)\{[^}]*\} (\S+)$", text, re.M)
    }


def redis_bytes() -> int:
    """What Redis has allocated for its data."""
    with socket.create_connection(("127.0.0.1", REDIS)) as connection:
        connection.sendall(b"INFO memory\r\n")
        seen = b""
        while b"used_memory_dataset_perc" not in seen:
            seen += connection.recv(65536)
    return int(re.search(rb"used_memory:(\d+)", seen)[1])  # type: ignore[index]


def memory(pids: dict[str, int]) -> dict[str, int]:
    """Bytes that each process keeps in memory, and of Redis what it has allocated."""
    kept = {
        name: int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) * 1024
        for name, pid in pids.items()
    }  # type: ignore[index]
    return kept | ({"data in redis": redis_bytes()} if "redis" in pids else {})


class Watch(threading.Thread):
    """Reads the gauges every second, and keeps the highest of those that have a limit."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.active, self.minute, self.waiting, self.looks, self.late = 0.0, 0.0, 0.0, 0, 0
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(1.0):
            try:
                found = gauges()
            except OSError:
                self.late += 1
                continue
            self.active, self.minute = (
                max(self.active, found["active_users"]),
                max(self.minute, found["admitted_last_minute"]),
            )
            self.waiting, self.looks = found["waiting_users"], self.looks + 1

    def stop(self) -> None:
        self.ended.set()
        self.join()


class Folder:
    """What the phases have brought so far, and the servers that run."""

    def __init__(self, path: Path, asked: argparse.Namespace) -> None:
        self.path, self.asked, self.file = path, asked, path / "state.json"
        self.state: dict[str, Any] = json.loads(self.file.read_text()) if self.file.exists() else {}

    def save(self, **changes: Any) -> None:
        self.state |= changes | {"saved": time.time()}
        self.file.write_text(json.dumps(self.state))

    @property
    def of_run(self) -> list[Any]:
        """What a run that goes on must have been asked for."""
        return [self.asked.waiters, self.asked.clients, self.asked.ledger, self.asked.joining]

    @property
    def tickets(self) -> list[Path]:
        return [self.path / f"tickets{number}" for number in range(self.asked.clients)]

    def goes_on(self) -> bool:
        """Whether what is there is of this very run, and still good."""
        same = self.state.get("run") == self.of_run
        alive = all(Path(f"/proc/{pid}").exists() for pid in self.state.get("pids", {}).values())
        return same and alive and time.time() - self.state["saved"] < GOOD_S

    def stop(self) -> None:
        """Ends the servers that this program started, and forgets everything."""
        for name in reversed(self.state.get("pids", {})):
            self.end(name)
        shutil.rmtree(self.path, ignore_errors=True)
        self.state = {}

    def end(self, name: str) -> None:
        """Ends one server, if it is there."""
        pid = self.state["pids"][name]
        with contextlib.suppress(OSError):
            if name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGTERM)
                for _ in range(100):
                    os.kill(pid, 0)
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)
                    time.sleep(0.1)

    def start(self) -> None:
        """Servers, each in a session of its own so that they outlive an interruption."""
        self.path.mkdir(parents=True)
        self.path.chmod(0o755)
        (self.path / "origin.conf").write_text(
            ORIGIN_CONF.format(dir=self.path, port=ORIGIN, body=BODY)
        )
        redis = self.asked.ledger == "redis"
        line = f'redis = "redis://127.0.0.1:{REDIS}"\n' if redis else ""
        settings = {
            "port": PORT,
            "control": CONTROL,
            "data": self.path / "data",
            "active": ACTIVE,
            "minute": MINUTE,
        }
        (self.path / "room.toml").write_text(CONF.format(redis=line, origin=ORIGIN, **settings))
        (self.path / "kinds").write_bytes(
            b"\1".join(LINE + kind for kind in itertools.islice(browsers(), KINDS))
        )
        greenroom = shutil.which("greenroom") or str(Path(sys.executable).with_name("greenroom"))
        commands = {"nginx": (1, ORIGIN, ["nginx", "-c", str(self.path / "origin.conf")])}
        if redis:
            options = [
                "--port",
                str(REDIS),
                "--save",
                "",
                "--appendonly",
                "no",
                "--dir",
                str(self.path),
                "--loglevel",
                "warning",
            ]
            commands["redis"] = (1, REDIS, ["redis-server", *options])
        commands["greenroom"] = (
            0,
            PORT,
            [greenroom, "serve", "--config", str(self.path / "room.toml")],
        )
        for name, (cpu, port, command) in commands.items():
            self.launch(name, cpu, port, command)
        pids = {name: pid for name, pid in self.state["pids"].items() if name != "nginx"}
        self.save(run=self.of_run, before=memory(pids), phase="join", chunks=[], entered=[])
        if not self.asked.joining:
            self.end("greenroom")
            began = time.monotonic()
            tickets = fill(
                self.path / "data", "bench", self.asked.waiters, REDIS if redis else None
            )
            for number, path in enumerate(self.tickets):
                path.write_bytes(
                    b"".join(ticket + b"\n" for ticket in tickets[number :: self.asked.clients])
                )
            print(
                f"{self.asked.waiters:,} put on the books in {time.monotonic() - began:.0f} s",
                flush=True,
            )
            self.launch("greenroom", *commands["greenroom"])
            self.save(phase="poll")
            self.say_memory(self.asked.waiters)

    def say_memory(self, waiting: float) -> None:
        """What each process has, and what so many in line have added."""
        for name, kept in memory(
            {name: pid for name, pid in self.state["pids"].items() if name != "nginx"}
        ).items():
            each = (kept - self.state["before"][name]) / max(1.0, waiting)
            print(
                f"  {name}: {kept / 1024 / 1024:,.0f} MiB, {each:,.0f} bytes for each of"
                f" {waiting:,.0f} in line",
                flush=True,
            )

    def launch(self, name: str, cpu: int, port: int, command: list[str]) -> None:
        """Starts one server, and returns when its port is open."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            sys.exit(f"port {port} is taken; an earlier run ends with --stop")
        with (self.path / f"{name}.log").open("ab") as log:
            started = subprocess.Popen(
                ["taskset", "-c", str(cpu), *command],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.save(pids=self.state.get("pids", {}) | {name: started.pid})
        opened(name, started, port, self.path / f"{name}.log")


def opened(name: str, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)  # a real process: there is nothing else to wait on
    sys.exit(f"{name} did not open port {port}: {log.read_text()[-500:]}")


def poll(folder: Folder, seconds: int) -> list[dict[str, Any]]:
    """All clients at once; what each one found. The files have the newest tickets of those who
    still wait afterwards.
    """
    clients = []
    for path in folder.tickets:
        command = [
            "taskset",
            "-c",
            "1",
            sys.executable,
            str(Path(__file__).with_name("polling.py")),
        ]
        options = [str(PORT), str(seconds), str(CONNECTIONS), str(folder.path / "kinds"), str(path)]
        clients.append(subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True))
    printed = [client.communicate()[0] for client in clients]
    if not all(printed):
        sys.exit("a client failed")
    found = [json.loads(text) for text in printed]
    for one in found:
        folder.state["entered"] += one.pop("entered")
    return found


def most_within(times: list[float], seconds: float) -> int:
    """The most of these moments in any window of so many seconds."""
    ordered, start, most = sorted(times), 0, 0
    for end, moment in enumerate(ordered):
        while ordered[start] <= moment - seconds:
            start += 1
        most = max(most, end - start + 1)
    return most


def one_round(folder: Folder) -> None:
    """Everybody polls once, and takes the place."""
    polled, began = 0, time.monotonic()
    while polled < folder.asked.waiters:
        polled += sum(one["requests"] for one in poll(folder, ROUND_S))
        folder.save()
    waiting = gauges()["waiting_users"]
    print(
        f"one round: {polled:,} polls in {time.monotonic() - began:.0f} s; in line: {waiting:,.0f}",
        flush=True,
    )


def run(folder: Folder) -> None:
    asked, began = folder.asked, time.monotonic()
    if folder.state["phase"] == "join":
        with ProcessPoolExecutor(asked.clients) as pool:
            first = min(pool.map(partial(join, -(-asked.waiters // asked.clients)), folder.tickets))
        took_s = time.time() - first
        print(f"{asked.waiters:,} joined in {took_s:.0f} s", flush=True)
        if took_s > GOOD_S:
            print(
                "that took so long that the first tickets are about to expire: expect fewer in"
                " line",
                flush=True,
            )
        folder.save(phase="round")
    watch = Watch()
    watch.start()
    if folder.state["phase"] == "round":
        one_round(folder)
        folder.save(phase="poll")
    done = sum(chunk[0]["seconds"] for chunk in folder.state["chunks"])
    while asked.seconds - done >= 1:
        before_s = cpu_seconds(folder.state["pids"]["greenroom"])
        found = poll(folder, round(min(CHUNK_S, asked.seconds - done)))
        spent_us = (
            (cpu_seconds(folder.state["pids"]["greenroom"]) - before_s)
            / sum(one["requests"] for one in found)
            * 1e6
        )
        done += found[0]["seconds"]
        folder.save(chunks=[*folder.state["chunks"], found])
        told = f"{rate_of(found):,.0f} polls a second for {found[0]['seconds']:.0f} s"
        slow = ", ".join(
            f"{one['p50']:.1f}, {one['p99']:.1f} and {one['max']:.0f} ms" for one in found
        )
        told += f"; {spent_us:.0f} µs of greenroom's CPU for each"
        print(
            f"{told}; median, 99th percentile and longest of each client: {slow}; in line:"
            f" {watch.waiting:,.0f}",
            flush=True,
        )
    watch.stop()
    conclude(folder, watch, time.monotonic() - began)


def rate_of(found: list[dict[str, Any]]) -> float:
    return sum(float(one["requests"]) / float(one["seconds"]) for one in found)


def conclude(folder: Folder, watch: Watch, took_s: float) -> None:
    """The result."""
    now, chunks, entered = gauges(), folder.state["chunks"], folder.state["entered"]
    seconds = sum(chunk[0]["seconds"] for chunk in chunks)
    rate = sum(rate_of(chunk) * chunk[0]["seconds"] for chunk in chunks) / seconds
    every_s = folder.asked.waiters / rate
    wrong = sum(one["lost"] + one["strange"] for chunk in chunks for one in chunk)
    slowest = max(one["p99"] for chunk in chunks for one in chunk)
    print(
        f"\nresult: {folder.asked.waiters:,} waiters, ledger in {folder.asked.ledger},"
        f" {took_s:.0f} s"
    )
    print(
        f"  {rate:,.0f} polls a second for {seconds:.0f} s, each waiter every {every_s:.0f} s; 99th"
        f" percentile {slowest:.1f} ms at most"
    )
    print(
        f"  in line at the end: {now['waiting_users']:,.0f}; answers that were lost or not"
        f" understood: {wrong}"
    )
    folder.say_memory(now["waiting_users"])
    for what, highest, limit in (
        ("active users", watch.active, ACTIVE),
        ("let in during 60 s", watch.minute, MINUTE),
    ):
        beyond = "" if highest <= limit else "   BEYOND THE LIMIT"
        print(
            f"  {what}: at most {highest:.0f} of {limit} in {watch.looks} looks ({watch.late}"
            f" unanswered){beyond}"
        )
    window_s = WINDOW_S - max(one["max"] for chunk in chunks for one in chunk) / 1000
    most = most_within(entered, window_s)
    beyond = "" if most <= MINUTE else "   BEYOND THE LIMIT"
    print(
        f"  as clients were told: {len(entered):,} let in while polling, at most {most} of {MINUTE}"
        f" in any {window_s:.1f} s{beyond}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--waiters", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--ledger", choices=("memory", "redis"), default="memory")
    parser.add_argument("--joining", action="store_true", help="every waiter joins over HTTP first")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "greenroom-million"
    )
    parser.add_argument(
        "--stop", action="store_true", help="only end the servers of an interrupted run"
    )
    asked = parser.parse_args()
    folder = Folder(asked.folder, asked)
    if asked.stop:
        folder.stop()
        return
    print(
        f"{asked.waiters:,} waiters, ledger in {asked.ledger}, {os.cpu_count()} cores, load"
        f" {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    if folder.goes_on():
        print(f"going on with phase {folder.state['phase']}", flush=True)
    else:
        folder.stop()
        folder.start()
    run(folder)
    folder.stop()


if __name__ == "__main__":
    main()
