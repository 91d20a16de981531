"""Several data centers for real, on one machine: a Redis and two edges each, a global Redis, links
that can be cut, and the origin behind all.

The origin is the only ground truth: it notes every request that got through, with the moment at
which it was sent and the one at which it came.
"""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

import redis
from ports import free_port
from redis_world import RedisServer
from warm_start import WarmProcess

START_S = 180.0
"""Six processes at once on a machine that does other things too."""


STOP_S = 30.0
"""A stop in order, on the same machine."""

RESUMED_S = 5.0
"""A visitor who was held because Redis did not answer asks again after so long."""


class Link:
    """A TCP proxy. Cut, it says nothing: what is under way waits, and arrives late when it is
    repaired.
    """

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self._target = target
        self._open = asyncio.Event()
        self._open.set()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)

    def cut(self) -> None:
        self._open.clear()

    def mend(self) -> None:
        self._open.set()

    async def close(self) -> None:
        if self._server:
            self._server.close()
        for task in self._tasks:
            task.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65_536):
                await self._open.wait()
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        finally:
            sink.close()


@dataclass
class Edge:
    """One greenroom process."""

    data_center: str
    arguments: list[str]
    port: int
    control: int
    log: Path
    process: WarmProcess | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = WarmProcess(["edge", *self.arguments], dict(os.environ), log)

    def kill(self) -> None:
        """kill -9."""
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def stop(self) -> None:
        """SIGTERM, and the end."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(STOP_S) == 0, (
            f"an edge did not stop: {self.log.read_text()[-2000:]}"
        )

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"an edge has ended: {self.log.read_text()[-2000:]}"
        try:
            with urlopen(f"http://127.0.0.1:{self.control}/readyz", timeout=1) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@dataclass
class Request:
    """A request that got through. Seconds of this process's clock."""

    sent: float
    seen: float


@dataclass
class Origin:
    """What is protected. `sent` gives the moment at which a visitor's request under way was sent."""

    seen: dict[int, list[Request]] = field(default_factory=dict)
    sent: dict[int, float] = field(default_factory=dict)
    port: int = 0

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 16)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                number = int(head.partition(b"\r\nx-visitor: ")[2].partition(b"\r\n")[0])
                self.seen.setdefault(number, []).append(
                    Request(self.sent[number], time.monotonic())
                )
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-From-Origin: 1\r\n\r\nok")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


class World:
    """Data centers dc0, dc1, ... Every data center reaches the global Redis over a link of its own."""

    def __init__(self, folder: Path, *, data_centers: int, edges: int, room: str) -> None:
        """`room` is the body of one [[rooms]] table."""
        self.folder, self._room = folder, room
        self.names = [f"dc{number}" for number in range(data_centers)]
        self._edges_each = edges
        self.origin = Origin()
        self.redis: dict[str, RedisServer] = {}
        self.links: dict[str, Link] = {}
        self.edges: list[Edge] = []
        self.outages: list[tuple[str, float, float]] = []  # (whose Redis was dead, from, to)
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await self.origin.start()
        durable = ("--appendonly", "yes", "--appendfsync", "everysec")
        self.redis = {
            name: RedisServer(self.folder / f"redis-{name}", *durable)
            for name in ("global", *self.names)
        }
        for name in self.names:
            self.links[name] = Link(self.redis["global"].port)
            await self.links[name].start()
            for number in range(self._edges_each):
                self.edges.append(self._edge(name, number))
        for edge in self.edges:
            edge.start()
        for edge in self.edges:
            await self.until(edge.ready, f"an edge of {edge.data_center}", START_S)

    def _edge(self, name: str, number: int) -> Edge:
        listed = ", ".join(f'"{one}"' for one in self.names)
        config = self.folder / f"{name}.toml"
        config.write_text(
            f'origin = "http://127.0.0.1:{self.origin.port}"\ndatacenters = [{listed}]\n[[rooms]]\n{self._room}'
        )
        port, control = free_port(), free_port()
        options = {
            "config": str(config),
            "redis": self.redis[name].url,
            "global-redis": f"redis://127.0.0.1:{self.links[name].port}/0",
            "datacenter": name,
            "listen": f"127.0.0.1:{port}",
            "control": f"127.0.0.1:{control}",
            "data": str(self.folder / f"data-{name}-{number}"),
        }
        arguments = [part for key, value in options.items() for part in (f"--{key}", value)]
        return Edge(name, arguments, port, control, self.folder / f"edge-{name}-{number}.log")

    def of(self, name: str) -> list[Edge]:
        """The edges of one data center."""
        return [edge for edge in self.edges if edge.data_center == name]

    async def until_tickets_open_everywhere(self) -> None:
        """Until every process has read the keys of all."""

        def keys(edge: Edge) -> set[str]:
            folder = Path(edge.arguments[edge.arguments.index("--data") + 1])
            return {key["id"] for key in json.loads((folder / "keys.json").read_text())["keys"]}

        def are_the_same() -> bool:
            first, *others = map(keys, self.edges)
            return all(first == other for other in others)

        await self.until(are_the_same, "the keys of tickets", START_S)
        await asyncio.sleep(4)  # and has taken them up from its file

    async def until_silent(self, edge: Edge, name: str, silent: bool = True) -> None:
        """Until a data center counts as cut off in a process, or as heard."""

        def is_so() -> bool:
            with urlopen(f"http://127.0.0.1:{edge.control}/status", timeout=60) as answer:
                rows = json.load(answer)["rooms"][0]["data_centers"]
            return any(row["name"] == name and row["silent"] is silent for row in rows)

        await self.until(is_so, f"{name} is {'silent' if silent else 'heard'}", START_S)

    async def kill_redis(self, name: str, down_s: float) -> None:
        """kill -9, and back from its disk after a while."""
        died = time.monotonic()
        self.redis[name].kill()
        await asyncio.sleep(down_s)  # dead for real
        await asyncio.to_thread(self.redis[name].start)
        self.outages.append((name, died, time.monotonic()))

    def without_ledgers(self, name: str, moment: float) -> bool:
        """Whether the Redis of a data center was dead, or had just come back."""
        return any(
            name == whose and begin <= moment <= end + RESUMED_S
            for whose, begin, end in self.outages
        )

    def holder(self) -> Edge | None:
        """The process that leads."""
        try:
            holder = redis.Redis(port=self.redis["global"].port, socket_timeout=2).hget(
                "greenroom:{leader}:lease", "holder"
            )
        except (redis.ConnectionError, redis.TimeoutError):
            return None
        parts = bytes(holder or b"").split(b":")
        return next(
            (
                edge
                for edge in self.edges
                if edge.alive() and str(edge.process.pid).encode() in parts
            ),
            None,
        )

    @staticmethod
    async def until(happened: Callable[[], object], what: str, seconds: float) -> None:
        """`happened` may block: the links go on meanwhile."""
        end = time.monotonic() + seconds
        while not await asyncio.to_thread(happened):
            assert time.monotonic() < end, f"waited in vain for {what}"
            await asyncio.sleep(0.1)  # other processes need a moment

    async def close(self) -> None:
        for edge in self.edges:
            edge.kill()
        for server in self.redis.values():
            server.kill()
        await asyncio.sleep(0.1)  # connections of those that died end
        for link in self.links.values():
            await link.close()
        if self._server:
            self._server.close()
