"""What the ledger in Redis costs: CPU for one question here and there, time of a call, memory for
one visitor, the gateway beside memory.

    python bench/redis_ledger.py [--waiting 200000] [--rounds 3] [--seconds 4] [--only
    ledger|gateway]

Starts a redis-server and everything else by itself, on loopback. CPU is that of the processes, so a
busy machine matters little; times of calls are wall-clock as Redis measures them (INFO
latencystats), so there it does. Memory is used_memory. Rounds of the gateway alternate between the
two ledgers; medians and ratios are printed.
"""

import argparse
import asyncio
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

import gateway as beside
import redis
import uvloop
from awake import BETWEEN_HEADS, END, Client, page, request

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.ledgers.redis.answers import settings_of
from greenroom.ledgers.redis.clock import ServerClock
from greenroom.ledgers.redis.ledger_store import RedisLedgerStore
from greenroom.ledgers.redis.library import LEDGER_LIBRARY
from greenroom.ledgers.redis.link import Link
from greenroom.model.room import Room
from greenroom.model.visit import make_key
from greenroom.runtime.clock import MonotonicClock

PORT, MEMORY, SHARED = 9120, 9121, 9122
FILL = 5_000
FIRST = ("chrt", "-f", "10") if os.geteuid() == 0 else ()
"""Other programs on the machine shall not get into the times of calls."""


@contextlib.contextmanager
def redis_server(folder: Path) -> Iterator[redis.Redis]:
    options = [
        "--port",
        str(PORT),
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
        str(folder),
        "--loglevel",
        "warning",
    ]
    process = subprocess.Popen([*FIRST, "redis-server", *options], stdout=subprocess.DEVNULL)
    client = redis.Redis(port=PORT)
    try:
        while True:
            with contextlib.suppress(redis.ConnectionError):
                client.ping()
                break
            time.sleep(0.05)
        yield client
    finally:
        process.terminate()
        process.wait()


class Bench:
    """One room with many people in it."""

    def __init__(self, server: redis.Redis, room: Room) -> None:
        self.server = server
        self.room = room
        self.draw = Random(1)
        clock = ServerClock(MonotonicClock())
        self.ledgers = RedisLedgerStore(
            Link(f"redis://127.0.0.1:{PORT}").client(10.0),
            "here",
            clock,
            self.draw.getrandbits,
            timeout_s=10.0,
        )
        self.ledger = self.ledgers.ledger(room)
        self.coordinator = Coordinator(["here"], room, clock.now_ms())
        self.clock = clock
        self.alone = asyncio.Lock()

    async def sync(self) -> None:
        ups = await self.ledgers.sync_up({self.room.id: 0})
        down = self.coordinator.sync(
            ups[self.room.id], self.clock.now_ms(), self.draw.getrandbits(64)
        )
        await self.ledgers.sync_down({self.room.id: down})

    async def keep_in_step(self) -> None:
        """As a process does; not while it is measured, because the coordinator is not what is
        measured.
        """
        while True:
            async with self.alone:
                await self.sync()
            await asyncio.sleep(1)

    async def asked(self, questions: list[Callable[[Callable[[object], None]], None]]) -> None:
        """All in one turn of the event loop; returns when all are answered."""
        left = len(questions)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def answered(_: object) -> None:
            nonlocal left
            left -= 1
            if not left:
                done.set_result(None)

        for question in questions:
            question(answered)
        await done

    def memory(self) -> int:
        return int(self.server.info("memory")["used_memory"])

    def redis_cpu(self) -> float:
        """Seconds."""
        used = self.server.info("cpu")
        return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])

    def script_times(self) -> dict[str, float]:
        """Microseconds of FCALL: p50, p99, p99.9."""
        return {
            str(key): float(value)
            for key, value in self.server.info("latencystats")[
                "latency_percentiles_usec_fcall"
            ].items()
        }


async def fill(
    bench: Bench, waiting: int, inside: int
) -> tuple[list[tuple[bytes, int]], list[bytes]]:
    """People inside and in line; prints bytes for each."""
    before, ids = bench.memory(), [os.urandom(12) for _ in range(inside)]
    while next(iter((await bench.ledgers.states()).values()))["permits"] < inside:
        await asyncio.sleep(0.1)
    for start in range(0, inside, FILL):
        part = ids[start : start + FILL]
        await bench.asked([partial(bench.ledger.arrive, one, 0) for one in part])
    between = bench.memory()
    print(f"{'bytes for each active user':44} {(between - before) / inside:8.0f}   bar 150")
    now_ms = bench.clock.now_ms()
    began = time.monotonic()
    places = [
        (
            os.urandom(12),
            make_key(now_ms - bench.draw.randrange(600_000), bench.draw.getrandbits(12)),
        )
        for _ in range(waiting)
    ]
    for start in range(0, waiting, FILL):
        part = places[start : start + FILL]
        await bench.asked([partial(bench.ledger.poll, one, key) for one, key in part])
    took_s, in_line = (
        time.monotonic() - began,
        next(iter((await bench.ledgers.states()).values()))["waiting"],
    )
    print(
        f"{'bytes for each waiter':44} {(bench.memory() - between) / max(1, in_line):8.0f}  "
        " bar 300"
    )
    print(
        f"{in_line:,} of {waiting:,} in line after {took_s:.0f} s; all data of Redis:"
        f" {bench.memory() / (1 << 20):,.0f} MiB"
    )
    return places, ids


async def measure(
    bench: Bench,
    name: str,
    batch: int,
    make: Callable[[], list[Callable[..., None]]],
    work: int = 9_000,
) -> None:
    rounds = min(1_000, work // batch)
    async with bench.alone:
        await measured(bench, name, batch, make, rounds)


async def measured(
    bench: Bench, name: str, batch: int, make: Callable[[], list[Callable[..., None]]], rounds: int
) -> None:
    for _ in range(20):
        await bench.asked(make())
    bench.server.config_resetstat()
    batches = [make() for _ in range(rounds)]
    cpu, wall, redis_cpu = time.process_time(), time.monotonic(), bench.redis_cpu()
    for one in batches:
        await bench.asked(one)
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    each, times = cpu / rounds / batch * 1e6, bench.script_times()
    server = (bench.redis_cpu() - redis_cpu) / rounds / batch * 1e6
    trip = wall / rounds * 1e3
    print(
        f"{name:34} {batch:5} {each:9.2f} {trip:9.2f} {server:9.2f} {times['p50']:8.0f}"
        f" {times['p99']:8.0f} {times['p99.9']:8.0f}"
    )


async def ledger(server: redis.Redis, waiting: int) -> None:
    room = Room(
        id="bench",
        name="bench",
        host="*",
        total_active_users=50_000,
        new_users_per_minute=10_000_000,
        session_duration=30,
        refresh_max_seconds=60,
    )
    bench = Bench(server, room)
    syncing = asyncio.create_task(bench.keep_in_step())
    places, ids = await fill(bench, waiting, 50_000)
    draw = bench.draw
    print(f"\nwith {waiting} waiting and {len(ids)} inside; times of calls are microseconds")
    print(
        f"{'':34} {'batch':>5} {'client us':>9} {'trip ms':>9} {'redis us':>9} {'call p50':>8}"
        f" {'call p99':>8} {'p99.9':>8}"
    )

    def views(batch: int) -> Callable[[], list[Callable[..., None]]]:
        return lambda: [partial(bench.ledger.view, draw.choice(ids)) for _ in range(batch)]

    def polls(batch: int) -> Callable[[], list[Callable[..., None]]]:
        return lambda: [partial(bench.ledger.poll, *draw.choice(places)) for _ in range(batch)]

    def arrivals(batch: int) -> Callable[[], list[Callable[..., None]]]:
        return lambda: [partial(bench.ledger.arrive, os.urandom(12), 0) for _ in range(batch)]

    for batch in (1, 30, 100):  # first of all, before any of them would have had to come back
        await measure(bench, "waiting visitor (poll)", batch, polls(batch))
    for batch in (1, 30, 100):
        await measure(bench, "accepted visitor (view)", batch, views(batch))
        await measure(bench, "newcomer, held (arrive)", batch, arrivals(batch))
    syncing.cancel()
    await bench.ledgers.close()
    print(f"(library {LEDGER_LIBRARY.name}, settings of {len(settings_of(room))} bytes)")


GATEWAY_CONF = beside.GREENROOM_CONF.replace("origin =", "{redis}origin =", 1)


def gateways(folder: Path, rounds: int, seconds: int) -> None:
    greenroom = shutil.which("greenroom") or str(Path(sys.executable).with_name("greenroom"))
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(Client(beside.ORIGIN))
        servers, tickets = {}, {}
        for port, line in ((MEMORY, ""), (SHARED, f'redis = "redis://127.0.0.1:{PORT}"\n')):
            path = folder / f"{port}.toml"
            data = folder / str(port)
            path.write_text(
                GATEWAY_CONF.format(
                    redis=line,
                    origin=beside.ORIGIN,
                    port=port,
                    control=port + 100,
                    data=data,
                    limit=100_000,
                )
            )
            servers[port] = stack.enter_context(
                beside.running([greenroom, "serve", "--config", str(path)], port, 0)
            )
            tickets[port] = [accepted(port) for _ in range(64)]
        rates: dict[int, list[float]] = {MEMORY: [], SHARED: []}
        costs: dict[int, list[float]] = {MEMORY: [], SHARED: []}
        for _ in range(rounds):
            for port, found in rates.items():
                heads = folder / "heads"
                heads.write_bytes(
                    BETWEEN_HEADS.join(request("/", ticket).encode() for ticket in tickets[port])
                )
                before = beside.cpu_seconds(servers[port].pid)
                load = client.load(port, seconds, heads)
                found.append(load.answered / load.seconds)
                costs[port].append(
                    (beside.cpu_seconds(servers[port].pid) - before) / load.answered * 1e6
                )
                name = "redis " if port == SHARED else "memory"
                print(
                    f"  {name} {found[-1]:8.0f} requests/s, p99 {load.p99_ms:.1f} ms,"
                    f" {costs[port][-1]:.0f} us CPU each"
                )
        memory, shared = (statistics.median(rates[port]) for port in (MEMORY, SHARED))
        ours, theirs = (statistics.median(costs[port]) for port in (MEMORY, SHARED))
        print(f"{'gateway, accepted visitors: redis / memory':44} {shared / memory:8.2f}   bar 0.8")
        print(f"{'the same by CPU of the gateway':44} {ours / theirs:8.2f}   bar 0.8")


def accepted(port: int) -> str:
    """The cookie of somebody who is inside."""
    for _ in range(50):
        cookie, _ = beside.visit(port)
        if is_inside(port, cookie):
            return cookie
        time.sleep(0.3)  # the lease comes with the first sync
    sys.exit(f"nobody gets in at port {port}")


def is_inside(port: int, cookie: str) -> bool:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(
        "GET", "/", headers={"Cookie": cookie.removeprefix("Cookie: "), "Accept": "text/html"}
    )
    body = connection.getresponse().read()
    return body == page(1024).partition(END)[2]


def run(work: Awaitable[None]) -> None:
    async def awaited() -> None:
        await work

    uvloop.run(awaited())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--waiting", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--only", choices=("ledger", "gateway"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, redis_server(Path(folder)) as server:
        print(
            f"redis {server.info('server')['redis_version']}, {os.cpu_count()} cores, load"
            f" {os.getloadavg()[0]:.1f}"
        )
        if options.only != "gateway":
            run(ledger(server, options.waiting))
            server.flushall()
        if options.only != "ledger":
            gateways(Path(folder), options.rounds, options.seconds)


if __name__ == "__main__":
    main()
