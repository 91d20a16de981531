"""What ten thousand health checks a minute cost in one process. How soon an alert follows a
failure: bench/alert_delay.py.

    .venv/bin/python bench/health_checks.py [--checks 10000] [--seconds 90]

A real server on 127.0.0.1 (in a process of its own) answers every probe. The health checks run as
in greenroom: probes, verdicts, event log in SQLite.
"""

import argparse
import asyncio
import multiprocessing
import resource
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from greenroom.health.alerts import Placed
from greenroom.health.network import probe_policy, threaded_resolver
from greenroom.health.probes import Equipment, probe
from greenroom.health.service import HealthService
from greenroom.health.store import HealthStore, default_url
from greenroom.health.tls import TlsContexts
from greenroom.model.health_check import HealthCheck, HttpCheck
from greenroom.outbound import Guard
from greenroom.runtime.clock import MonotonicClock

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
CLOCK = MonotonicClock()


def serve(port_back: Any) -> None:
    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(ANSWER)
                await writer.drain()
            except (OSError, asyncio.IncompleteReadError):
                pass
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=4096)
        port_back.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


class Pauses:
    """The longest time that the event loop did nothing else; `longest_ms` is set to 0 to begin
    again.
    """

    def __init__(self) -> None:
        self.longest_ms = 0.0

    async def run(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.005)
            self.longest_ms = max(self.longest_ms, (time.perf_counter() - began) * 1000 - 5)


def service(folder: Path) -> tuple[HealthStore, HealthService]:
    store = HealthStore(default_url(folder))
    equipment = Equipment(Guard(probe_policy(), threaded_resolver()), TlsContexts())
    return store, HealthService(
        store, None, CLOCK.now_ms, partial(probe, equipment=equipment), holder="bench"
    )


def checks(count: int, port: int, interval: int) -> dict[str, Placed]:
    config = HttpCheck(port=port)
    found = (
        HealthCheck(
            id=f"check{number}",
            name="c",
            address="127.0.0.1",
            interval=interval,
            http_config=config,
        )
        for number in range(count)
    )
    return {check.id: Placed(check, "z", "example.com") for check in found}


async def cost(port: int, count: int, seconds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pauses = Pauses()
        store, running = service(Path(folder))
        running.configure(checks(1, port, 60))
        tasks = [asyncio.create_task(running.run()), asyncio.create_task(pauses.run())]
        while not running.leads:
            await asyncio.sleep(0.01)
        wanted = checks(count, port, 60)
        await asyncio.sleep(1)
        pauses.longest_ms = 0.0
        began = time.process_time()
        running.configure(wanted)
        spent = time.process_time() - began
        await asyncio.sleep(5)
        print(
            f"configuring {count} checks: CPU {1000 * spent:.0f} ms; the event loop paused for"
            f" {pauses.longest_ms:.0f} ms at most"
        )
        pauses.longest_ms = 0.0
        used, start, probes = (
            resource.getrusage(resource.RUSAGE_SELF),
            time.monotonic(),
            running.figures.probes,
        )
        late = 0
        while time.monotonic() - start < seconds:
            await asyncio.sleep(1)
            late = max(late, running.figures.late_ms)
        now = resource.getrusage(resource.RUSAGE_SELF)
        cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        made = running.figures.probes - probes
        print(
            f"{count} checks every 60 s for {seconds} s: {made} probes, {made / seconds:.0f} a"
            " second"
        )
        print(
            f"  greatest delay of a probe: {late} ms; left out: {running.figures.skipped}; not"
            f" possible: {running.figures.failed}"
        )
        print(f"  longest pause of the event loop: {pauses.longest_ms:.0f} ms")
        print(
            f"  CPU: {100 * cpu / seconds:.0f} % of a core, {1000 * cpu / made:.2f} ms a probe;"
            f" memory: {now.ru_maxrss // 1024} MB"
        )
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        store.close()
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        print(f"  event log: {size / max(1, running.figures.probes):.0f} bytes a probe")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=90)
    wanted = parser.parse_args()
    here, there = multiprocessing.Pipe(False)
    server = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    server.start()
    port = here.recv()
    asyncio.run(cost(port, wanted.checks, wanted.seconds))
    server.terminate()


if __name__ == "__main__":
    main()
