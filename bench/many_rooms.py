"""What a thousand rooms with two thousand rules cost: the start of an edge, a change, a lookup, and
requests through the gateway.

    python bench/many_rooms.py [ROOMS] [--seconds N]

Starts real greenroom processes on free ports with a store in a temporary directory, in front of an
origin of its own. Times are wall clock; the start and the change are the median of five. Requests
go through one room, alone and among all the others, in alternating rounds so that a busy machine
counts for both: CPU time of greenroom, which has CPU 0, asked by a client that never sleeps
(`awake.py`). What the process takes without requests, which grows with the rooms, is measured
before each round and left out.
"""

import argparse
import http.client
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from awake import Client
from gateway import ORIGIN, cpu_seconds

from greenroom.configuration.store import SqlStore, default_url
from greenroom.model.change import Change, Put
from greenroom.model.room import Room
from greenroom.model.route import Route
from greenroom.model.rule import Rule, RuleSet
from greenroom.model.zone import Zone
from greenroom.request.routing import RouteTable

GREENROOM = Path(sys.executable).with_name("greenroom")
LIMITS: dict[str, Any] = {"total_active_users": 1_000_000, "new_users_per_minute": 1_000_000}


def room(number: int, **more: Any) -> Room:
    return Room(
        id=f"r{number}", name=f"room{number}", host=f"h{number}.example.com", **{**LIMITS, **more}
    )


def rules(number: int) -> RuleSet:
    first = (
        f'http.host eq "h{number}.example.com" and (ip.src in {{10.0.0.0/8 192.0.2.1}} or'
        f' http.request.uri.path contains "/admin{number}")'
    )
    second = f'http.user_agent contains "probe{number}" and not ssl and ip.src eq 192.0.2.7'
    return RuleSet(
        id=f"r{number}", rules=(Rule(id="a", expression=first), Rule(id="b", expression=second))
    )


def filled(data: Path, rooms: int, origin: str) -> SqlStore:
    data.mkdir(mode=0o700)
    store = SqlStore(default_url(data))
    changes: list[Change] = [Put(Zone(id="z", name="example.com", origin=origin))]
    for number in range(rooms):
        changes += [Put(room(number), "z"), Put(rules(number), f"r{number}")]
    store.write(changes, expected=0, author="bench", now_ms=1)
    return store


class Edge:
    """A running greenroom; `start_s` is how long it took until visitors were served, `start_cpu_s`
    its CPU time until then.
    """

    def __init__(self, data: Path) -> None:
        begun = time.perf_counter()
        command = [
            "taskset",
            "-c",
            "0",
            GREENROOM,
            "serve",
            "--data",
            data,
            "--listen",
            "127.0.0.1:0",
            "--control",
            "127.0.0.1:0",
        ]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout
        self.port = 0
        for line in self.process.stdout:
            if found := re.search(r"visitors\s+http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
            if line.startswith("ready"):
                break
        self.start_s = time.perf_counter() - begun
        self.start_cpu_s = cpu_seconds(self.process.pid)
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()

    def held(self, number: int) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", "/", headers={"Host": f"h{number}.example.com"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.getheader("Server") != "origin"

    def cpu_us(self, client: Client, seconds: int) -> float:
        """Microseconds of CPU time for a request of an admitted visitor."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", "/", headers={"Host": "h0.example.com"})
        answer = connection.getresponse()
        answer.read()
        cookie = (answer.getheader("Set-Cookie") or "").partition(";")[0]
        idle = self.idle(seconds)
        before = cpu_seconds(self.process.pid)
        load = client.load(
            self.port,
            seconds,
            f"GET / HTTP/1.1\r\nHost: h0.example.com\r\nCookie: {cookie}\r\n\r\n",
        )
        return (cpu_seconds(self.process.pid) - before - idle * load.seconds) / load.answered * 1e6

    def idle(self, seconds: int) -> float:
        """Share of a core that the process takes without requests."""
        before = cpu_seconds(self.process.pid)
        time.sleep(seconds)
        return (cpu_seconds(self.process.pid) - before) / seconds


def change_s(edge: Edge, store: SqlStore, held: bool) -> float:
    """From the write until a visitor sees it, in the last room."""
    known = store.read()
    last = len(known.rooms) - 1
    store.write(
        [Put(room(last, queue_all=held), "z")], expected=known.revision, author="bench", now_ms=1
    )
    begun = time.perf_counter()
    while edge.held(last) is not held:
        time.sleep(0.005)
    return time.perf_counter() - begun


def lookup_us(rooms: int) -> float:
    table = RouteTable(
        (Route(f"h{number}.example.com", path), False, number)
        for number in range(rooms)
        for path in ("/", "/shop")
    )
    hosts = [f"h{number * 7919 % rooms}.example.com" for number in range(1_000)]
    rounds = []
    for _ in range(15):
        begun = time.process_time()
        for host in hosts:
            table.find(host, "/shop/item/42")
        rounds.append((time.process_time() - begun) / len(hosts) * 1e6)
    return statistics.median(rounds)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("rooms", type=int, nargs="?", default=1_000)
    options.add_argument("--seconds", type=int, default=4)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, Client(ORIGIN) as client:
        many, one = Path(folder) / "many", Path(folder) / "one"
        store = filled(many, asked.rooms, f"http://127.0.0.1:{ORIGIN}")
        filled(one, 1, f"http://127.0.0.1:{ORIGIN}")
        starts = []
        for _ in range(5):
            starts.append(Edge(many))
            starts[-1].stop()
        alone, among = Edge(one), Edge(many)
        changes = [change_s(among, store, held=number % 2 == 0) for number in range(5)]
        costs = [
            (alone.cpu_us(client, asked.seconds), among.cpu_us(client, asked.seconds))
            for _ in range(5)
        ]
        idle = [edge.idle(asked.seconds) for edge in (alone, among)]
        for edge in (alone, among):
            edge.stop()
    print(f"rooms                   {asked.rooms}, with {2 * asked.rooms} rules")
    start_s, cpu_s = (
        statistics.median(getattr(edge, name) for edge in starts)
        for name in ("start_s", "start_cpu_s")
    )
    print(
        f"start until served      {start_s:.2f} s, {cpu_s:.2f} s of CPU (one room:"
        f" {alone.start_s:.2f} s, {alone.start_cpu_s:.2f} s of CPU)"
    )
    print(
        f"change until visible    {statistics.median(changes):.2f} s, at most {max(changes):.2f} s"
    )
    print(f"route lookup            {lookup_us(asked.rooms):.2f} us")
    one_us, many_us = (statistics.median(cost) for cost in zip(*costs, strict=True))
    ratio = statistics.median(many / one for one, many in costs)
    print(
        f"CPU without requests    {100 * idle[1]:.1f} % of a core (one room: {100 * idle[0]:.1f} %)"
    )
    print(
        f"CPU per request         {many_us:.1f} us among {asked.rooms} rooms, {one_us:.1f} alone;"
        f" the ratios: {100 * ratio - 100:+.1f} %"
    )


if __name__ == "__main__":
    main()
