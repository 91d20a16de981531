"""A load client and an origin in one process that never sleeps, so that no server pays for waking
it.

    python bench/awake.py ORIGIN_PORT      # then one order a line on standard input, one answer a
    line on standard output

A client that waits for answers sleeps while a slow server works, and the kernel lets the server pay
for waking it: with each answer, as long as the client is the faster of the two. On a virtual
machine that is 10 us for a write that otherwise takes 3. A fast server (nginx, a floor) never meets
a sleeping client, so a comparison through a sleeping client flatters the fast. This client asks the
kernel for news again and again, however slow the server is; and so does the origin, since it is the
same process.

The origin answers each read with 1 KB, or with the long page where the path is /page. Everything is
a GET.
"""

import heapq
import json
import random
import select
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from browser_heads import as_chrome

CONNECTIONS = 64
BETWEEN_HEADS = b"\1"
LENGTH, END = b"content-length: ", b"\r\n\r\n"
CHUNKED, LAST_CHUNK = b"transfer-encoding: chunked", b"\r\n0\r\n\r\n"
HELD_BY_ENVOY = b"429"
"""The status of a waiting page there: Envoy takes every 2xx for a yes."""

READ_BYTES = 1 << 18
LOOKS = 256
"""Polls between two looks at the clock."""

IDLE_S = 0.02
"""How long it sleeps for news while nothing is measured."""

LATENCIES = 100_000


def page(size: int) -> bytes:
    """An answer of the origin."""
    head = (
        "HTTP/1.1 200 OK\r\nServer: origin\r\nContent-Type: text/html\r\nContent-Length:"
        f" {size}\r\nConnection: keep-alive\r\n\r\n"
    )
    return head.encode() + b"x" * size


class Load(NamedTuple):
    """What was measured: `answered` requests in `seconds`; `failed` of them without 2xx (or 429) or
    cut off; 99th percentile in ms.
    """

    answered: int
    failed: int
    seconds: float
    p99_ms: float


class Asking:
    """The connections of one measurement."""

    def __init__(
        self,
        port: int,
        heads: list[bytes],
        poll: "select.epoll",
        delay_ms: tuple[int, int] | None,
        connections: int = CONNECTIONS,
    ) -> None:
        self.heads, self.poll, self.delay_ms = heads, poll, delay_ms
        self.at = random.randrange(len(heads))
        self.answered = self.failed = 0
        self.took: list[float] = []
        self.due: list[tuple[float, int]] = []
        self.sockets: dict[int, socket.socket] = {}
        self.asked: dict[int, float] = {}
        self.partly: dict[int, tuple[int, bytes]] = {}
        """How much has to come of an answer; its beginning while that is unknown."""
        self.port = port
        self.fresh: set[int] = set()
        """Connections without an answer so far."""
        for number in [self.connect() for _ in range(connections)]:
            self.ask(number)

    def connect(self) -> int:
        """One more connection."""
        one = socket.create_connection(("127.0.0.1", self.port))
        one.setblocking(False)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sockets[one.fileno()] = one
        self.fresh.add(one.fileno())
        self.poll.register(one.fileno(), select.EPOLLIN)
        return one.fileno()

    def ended(self, number: int) -> None:
        """Servers end a connection after many requests; one that had no answer has failed."""
        self.failed += number in self.fresh
        self.fresh.discard(number)
        self.poll.unregister(number)
        self.sockets.pop(number).close()
        self.ask(self.connect())

    def ask(self, number: int) -> None:
        """The next request, over this connection."""
        self.at = (self.at + 1) % len(self.heads)
        self.asked[number] = time.perf_counter()
        self.sockets[number].send(self.heads[self.at])

    def readable(self, number: int) -> None:
        """An answer, or a part of it."""
        try:
            data = self.sockets[number].recv(READ_BYTES)
        except ConnectionResetError:
            data = b""
        if not data:
            self.partly.pop(number, None)
            self.ended(number)
            return
        missing, before = self.partly.pop(number, (0, b""))
        if missing:
            missing -= len(data)
        else:
            data = before + data
            end = data.find(END)
            head = data[:end].lower()
            length = head.find(LENGTH)
            chunked = length < 0 and CHUNKED in head
            if end < 0 or (chunked and not data.endswith(LAST_CHUNK)):
                self.partly[number] = 0, data
                return
            if (data[9:10] != b"2" and data[9:12] != HELD_BY_ENVOY) or not (chunked or length > 0):
                self.failed += 1
            elif not chunked:
                missing = (
                    end
                    + len(END)
                    + int(head[length + len(LENGTH) :].split(b"\r", 1)[0])
                    - len(data)
                )
        if missing:
            self.partly[number] = missing, b""
            return
        self.answered += 1
        self.fresh.discard(number)
        now = time.perf_counter()
        if len(self.took) < LATENCIES:
            self.took.append(now - self.asked[number])
        if self.delay_ms is None:
            self.ask(number)
        else:
            heapq.heappush(self.due, (now + random.randint(*self.delay_ms) / 1_000, number))

    def ask_due(self) -> None:
        """Those whose pause is over."""
        now = time.perf_counter()
        while self.due and self.due[0][0] <= now:
            number = heapq.heappop(self.due)[1]
            if number in self.sockets:
                self.ask(number)

    def close(self) -> None:
        """Ends the connections."""
        for number, one in self.sockets.items():
            with suppress(OSError):
                self.poll.unregister(number)
            one.close()


class World:
    """Everything outside the server under test."""

    def __init__(self, port: int) -> None:
        self.poll = select.epoll()
        self.origin = socket.create_server(("127.0.0.1", port), backlog=1024)
        self.origin.setblocking(False)
        self.poll.register(self.origin.fileno(), select.EPOLLIN)
        self.poll.register(0, select.EPOLLIN)
        self.servers: dict[int, socket.socket] = {}
        self.answers = page(1024), page(1024)

    def turn(self, timeout: float, asking: Asking | None) -> bool:
        """Handles what has come; whether an order waits."""
        ordered = False
        for number, _ in self.poll.poll(timeout):
            served = self.servers.get(number)
            if served is not None:
                self.serve(served)
            elif asking is not None and number in asking.sockets:
                asking.readable(number)
            elif number == 0:
                ordered = True
            else:
                one, _address = self.origin.accept()
                one.setblocking(False)
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.servers[one.fileno()] = one
                self.poll.register(one.fileno(), select.EPOLLIN)
        return ordered

    def serve(self, one: socket.socket) -> None:
        """One read of the origin: a request that ends with it, or the end of the connection."""
        try:
            data = one.recv(READ_BYTES)
        except OSError:
            data = b""
        if not data:
            del self.servers[one.fileno()]
            self.poll.unregister(one.fileno())
            one.close()
        elif data.endswith(END):
            one.send(self.answers[data.startswith(b"GET /page ")])

    def measure(
        self, port: int, heads: list[bytes], seconds: float, delay_ms: tuple[int, int] | None
    ) -> Load:
        """Asks for so long, over all connections at once."""
        asking = Asking(port, heads, self.poll, delay_ms)
        began = time.perf_counter()
        while time.perf_counter() < began + seconds:
            for _ in range(LOOKS):
                self.turn(0, asking)
                if delay_ms is not None:
                    asking.ask_due()
        lasted = time.perf_counter() - began
        asking.close()
        took = sorted(asking.took)
        return Load(
            asking.answered,
            asking.failed,
            lasted,
            took[len(took) * 99 // 100] * 1_000 if took else 0.0,
        )

    def obey(self) -> None:
        """Orders, until there are no more."""
        while True:
            if not self.turn(IDLE_S, None):
                continue
            line = sys.stdin.readline()
            if not line:
                return
            order = json.loads(line)
            if "page" in order:
                self.answers = self.answers[0], page(order["page"])
                print("{}", flush=True)
                continue
            asked: str = order["heads"]
            heads = (
                [asked.encode()]
                if asked.startswith("GET ")
                else Path(asked).read_bytes().split(BETWEEN_HEADS)
            )
            delay_ms = tuple(order["delay_ms"]) if order.get("delay_ms") else None
            print(
                json.dumps(
                    self.measure(order["port"], heads, order["seconds"], delay_ms)._asdict()
                ),
                flush=True,
            )


class Client:
    """The process, on a processor of its own; for a `with` block."""

    def __init__(self, origin: int, cpu: int = 1) -> None:
        self.command = ["taskset", "-c", str(cpu), sys.executable, __file__, str(origin)]

    def __enter__(self) -> "Client":
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def _order(self, **order: Any) -> dict[str, Any]:
        to, back = self.process.stdin, self.process.stdout
        if to is None or back is None:
            raise RuntimeError("the load client was not started")
        to.write(json.dumps(order) + "\n")
        to.flush()
        answer = back.readline()
        return json.loads(answer) if answer else sys.exit("the load client ended")

    def long_page(self, size: int) -> None:
        """From now on the origin's /page has so many bytes."""
        self._order(page=size)

    def load(
        self, port: int, seconds: float, heads: Path | str, delay_ms: tuple[int, int] | None = None
    ) -> Load:
        """Asks with this request, or those of a file, one after the other; `delay_ms`: each
        connection's pause after an answer.
        """
        load = Load(**self._order(port=port, seconds=seconds, heads=str(heads), delay_ms=delay_ms))
        if load.failed or not load.answered:
            sys.exit(f"port {port}: {load}")
        return load


def request(path: str = "/", header: str = "") -> str:
    """A GET."""
    return (
        "\r\n".join(filter(None, (f"GET {path} HTTP/1.1", "Host: 127.0.0.1", header))) + "\r\n\r\n"
    )


HEADS = {"bare": request, "chrome": lambda path="/", header="": as_chrome(request(path, header))}
"""Ways to write a GET: only what it needs, or all the lines that a browser sends."""


if __name__ == "__main__":
    random.seed(1)
    World(int(sys.argv[1])).obey()
