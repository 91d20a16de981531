"""What ten thousand health checks a minute cost in one process, and how soon an alert follows a failure.

    .venv/bin/python bench/health_checks.py [--checks 10000] [--seconds 90]

A real server on 127.0.0.1 (in a process of its own) answers every probe. The health checks run as in greenroom: probes, verdicts, event
log in SQLite. For the second figure 50 checks with an interval of 10 s are on a server that begins to refuse at a random moment.
"""

import argparse
import asyncio
import multiprocessing
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from greenroom.health.alerts import Placed
from greenroom.health.network import ProbeGuard, probe_policy, threaded_resolver
from greenroom.health.probes import Equipment, probe
from greenroom.health.service import HealthService
from greenroom.health.tls import TlsContexts
from greenroom.model.alert import Alert
from greenroom.model.health_check import HealthCheck, HttpCheck
from greenroom.runtime.clock import MonotonicClock
from greenroom.stores.health import SqlHealthStore, default_url

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
CLOCK = MonotonicClock()


def serve(port_back: Any, good: Any) -> None:
    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(ANSWER if good.value else ANSWER.replace(b"200 OK", b"503 No"))
                await writer.drain()
            except (OSError, asyncio.IncompleteReadError):
                pass
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=4096)
        port_back.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


class Alerts:
    """Where alerts arrive, with the moment."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def put(self, alerts: Sequence[Alert]) -> None:
        self.at += [time.monotonic()] * len(alerts)


def service(folder: Path, sink: Alerts) -> tuple[SqlHealthStore, HealthService]:
    store = SqlHealthStore(default_url(folder))
    equipment = Equipment(ProbeGuard(probe_policy(), threaded_resolver()), TlsContexts())
    return store, HealthService(store, sink, CLOCK.now_ms, partial(probe, equipment=equipment), holder="bench")


def checks(count: int, port: int, interval: int) -> dict[str, Placed]:
    config = HttpCheck(port=port)
    found = (
        HealthCheck(id=f"check{number}", name="c", address="127.0.0.1", interval=interval, http_config=config) for number in range(count)
    )
    return {check.id: Placed(check, "z", "example.com") for check in found}


async def cost(port: int, count: int, seconds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, running = service(Path(folder), Alerts())
        running.configure(checks(count, port, 60))
        task = asyncio.create_task(running.run())
        await asyncio.sleep(5)
        used, began, probes = resource.getrusage(resource.RUSAGE_SELF), time.monotonic(), running.figures.probes
        late = 0
        while time.monotonic() - began < seconds:
            await asyncio.sleep(1)
            late = max(late, running.figures.late_ms)
        now = resource.getrusage(resource.RUSAGE_SELF)
        cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        made = running.figures.probes - probes
        print(f"{count} checks every 60 s for {seconds} s: {made} probes, {made / seconds:.0f} a second")
        print(f"  greatest delay of a probe: {late} ms; left out: {running.figures.skipped}; not possible: {running.figures.failed}")
        print(f"  CPU: {100 * cpu / seconds:.0f} % of a core, {1000 * cpu / made:.2f} ms a probe; memory: {now.ru_maxrss // 1024} MB")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        store.close()
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        print(f"  event log: {size / max(1, running.figures.probes):.0f} bytes a probe")


async def delay(port: int, good: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sink = Alerts()
        store, running = service(Path(folder), sink)
        running.configure(checks(50, port, 10))
        task = asyncio.create_task(running.run())
        await asyncio.sleep(12 + 5 * random.random())
        good.value, failed = 0, time.monotonic()
        while len(sink.at) < 50 and time.monotonic() - failed < 30:
            await asyncio.sleep(0.1)
        took = sorted(at - failed for at in sink.at)
        print(f"interval 10 s, 50 checks: {len(took)} alerts handed on; from failure to alert: ", end="")
        print(f"median {statistics.median(took):.1f} s, slowest {took[-1]:.1f} s")
        events = store.events(
            __import__("greenroom.core.health.memory", fromlist=["x"]).EventQuestion(0, CLOCK.now_ms() + 1, only_changes=True)
        )
        print(f"  of these, status changes in the event log: {sum(not event.healthy for event in events)}")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=90)
    wanted = parser.parse_args()
    here, there = multiprocessing.Pipe(False)
    good = multiprocessing.Value("i", 1)
    server = multiprocessing.Process(target=serve, args=(there, good), daemon=True)
    server.start()
    port = here.recv()
    asyncio.run(cost(port, wanted.checks, wanted.seconds))
    asyncio.run(delay(port, good))
    server.terminate()


if __name__ == "__main__":
    main()
