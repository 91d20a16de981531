"""A crowd of cookie-keeping visitors against a running greenroom, over real sockets; checks the
limits from outside.

    greenroom serve --origin http://127.0.0.1:9000 --total-active-users 500 --new-users-per-minute
    600 --session-duration 1 python bench/crowd.py --origin-port 9000 --visitors 20000 --total 500
    --rate 600 --session-s 60

It runs its own tiny origin, the only witness of who gets through. When greenroom decided is not
seen from outside, only that it was after a request was sent and before it arrived at the origin. So
a visitor is active for certain from the first arrival there until the session duration after the
last request was SENT, and at most from the first sending until that time after the last ARRIVAL;
the report has both figures. It exits 1 if a limit was certainly passed or somebody who stayed was
not let in.
"""

import argparse
import asyncio
import bisect
import heapq
import json
import random
import sys
import time
from dataclasses import dataclass, field
from itertools import accumulate

CONNECTIONS = 256


@dataclass(slots=True)
class Visitor:
    number: int
    patience_s: float
    pages: int
    cookie: bytes = b""
    arrived: float = 0.0
    in_line: float = 0.0
    entered: float = 0.0
    first_sent: float = 0.0
    last_sent: float = 0.0
    gave_up: bool = False
    waited: bool = False
    tries: int = 0


@dataclass(slots=True)
class Origin:
    """Counts who gets through; the only witness the report trusts."""

    seen: dict[bytes, list[float]] = field(default_factory=dict)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                number = (
                    head.partition(b"\r\nX-Visitor: ")[2].partition(b"\r\n")[0]
                    or head.partition(b"\r\nx-visitor: ")[2].partition(b"\r\n")[0]
                )
                self.seen.setdefault(number, []).append(time.monotonic())
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-From-Origin: 1\r\n\r\nok")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


class Connection(asyncio.Protocol):
    """One keep-alive connection that carries one request at a time."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.waiter: asyncio.Future[tuple[bytes, bytes]] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self.buffer[: end + 2])
        lower = head.lower()
        length = int(lower.partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0] or 0)
        if len(self.buffer) < end + 4 + length:
            return
        body = bytes(self.buffer[end + 4 : end + 4 + length])
        del self.buffer[: end + 4 + length]
        if self.waiter and not self.waiter.done():
            self.waiter.set_result((head, body))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.transport = None
        if self.waiter and not self.waiter.done():
            self.waiter.set_exception(ConnectionError("closed"))


class Crowd:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.chance = random.Random(options.seed)
        self.due: list[tuple[float, int, Visitor]] = []
        self.sleeping: asyncio.Event = asyncio.Event()
        self.held = self.errors = self.requests = 0
        self.visitors: list[Visitor] = []

    def invite(self) -> None:
        start, options = time.monotonic(), self.options
        for number in range(options.visitors):
            quits = self.chance.random() < options.quitters
            patience = self.chance.uniform(10, 300) if quits else float("inf")
            visitor = Visitor(number, patience, pages=self.chance.randint(1, 4))
            self.visitors.append(visitor)
            heapq.heappush(
                self.due, (start + self.chance.random() * options.arrive_over_s, number, visitor)
            )

    async def worker(self) -> None:
        connection = Connection()
        loop = asyncio.get_running_loop()
        until = time.monotonic() + self.options.for_s
        while self.due and time.monotonic() < until:
            now = time.monotonic()
            if self.due[0][0] > now:
                await asyncio.sleep(min(0.05, self.due[0][0] - now))
                continue
            _, _, visitor = heapq.heappop(self.due)
            try:
                if connection.transport is None:
                    connection = Connection()
                    await loop.create_connection(
                        lambda made=connection: made, self.options.host, self.options.port
                    )
                again = await self.visit(connection, visitor)
            except (ConnectionError, OSError, TimeoutError):
                self.errors += 1
                connection.transport = None
                again = 1.0
            if again is not None:
                heapq.heappush(self.due, (time.monotonic() + again, visitor.number, visitor))

    async def visit(self, connection: Connection, visitor: Visitor) -> float | None:
        """One request; seconds until this visitor's next one, or None when it is done."""
        sent = time.monotonic()
        visitor.arrived = visitor.arrived or sent
        cookie = b"Cookie: " + visitor.cookie + b"\r\n" if visitor.cookie else b""
        connection.waiter = asyncio.get_running_loop().create_future()
        assert connection.transport
        connection.transport.write(
            b"GET / HTTP/1.1\r\nHost: shop.example\r\nX-Visitor: %d\r\nAccept: text/html\r\n%s\r\n"
            % (visitor.number, cookie)
        )
        head, _ = await asyncio.wait_for(connection.waiter, 30)
        self.requests += 1
        visitor.tries += 1
        lower = head.lower()
        at = lower.find(b"\r\nset-cookie: __cfwaitingroom")
        if at >= 0:
            visitor.cookie = head[at + 14 :].partition(b";")[0]
        now = time.monotonic()
        if b"\r\nx-from-origin:" in lower:
            visitor.waited = visitor.waited or (not visitor.entered and visitor.tries > 1)
            visitor.entered = visitor.entered or now
            visitor.first_sent, visitor.last_sent = visitor.first_sent or sent, sent
            visitor.pages -= 1
            return self.chance.uniform(1, 10) if visitor.pages > 0 else None
        if visitor.entered:
            return None
        self.held += 1
        if now - visitor.arrived > visitor.patience_s:
            visitor.gave_up = True
            return None
        refresh = lower.partition(b"\r\nrefresh: ")[2].partition(b"\r\n")[0]
        if b" 200 " not in head[:13] and not refresh:
            self.errors += 1
        return float(refresh or 20) + self.chance.random() * 0.5

    async def run(self) -> dict[str, object]:
        origin = Origin()
        server = await asyncio.start_server(
            origin.serve, "127.0.0.1", self.options.origin_port, backlog=1024
        )
        self.invite()
        started = time.monotonic()
        workers = [asyncio.create_task(self.worker()) for _ in range(CONNECTIONS)]
        watcher = asyncio.create_task(self.watch())
        await asyncio.gather(*workers)
        watcher.cancel()
        server.close()
        return self.report(origin, time.monotonic() - started)

    async def watch(self) -> None:
        started = time.monotonic()
        while True:
            await asyncio.sleep(10)
            entered = sum(1 for visitor in self.visitors if visitor.entered)
            waiting = sum(
                1
                for visitor in self.visitors
                if visitor.arrived and not visitor.entered and not visitor.gave_up
            )
            line = {
                "s": round(time.monotonic() - started),
                "entered": entered,
                "waiting": waiting,
                "errors": self.errors,
            }
            if self.options.pid:
                line["rss_mib"] = resident_mib(self.options.pid)
            print(json.dumps(line), flush=True)

    def report(self, origin: Origin, seconds: float) -> dict[str, object]:
        session_s = self.options.session_s
        passed = [
            (visitor, origin.seen[b"%d" % visitor.number])
            for visitor in self.visitors
            if visitor.entered
        ]
        certain = most_at_once(
            [(times[0], visitor.last_sent + session_s) for visitor, times in passed]
        )
        possible = most_at_once(
            [(visitor.first_sent, times[-1] + session_s) for visitor, times in passed]
        )
        firsts = sorted(times[0] for times in origin.seen.values())
        most_rate = max(
            (index + 1 - bisect.bisect_left(firsts, at - 60.0) for index, at in enumerate(firsts)),
            default=0,
        )
        let_in = sorted(
            (visitor for visitor in self.visitors if visitor.entered),
            key=lambda visitor: visitor.entered,
        )
        overtaken, latest = [], 0.0
        for visitor in let_in:
            overtaken.append(max(0.0, latest - visitor.arrived))
            latest = max(latest, visitor.arrived)
        overtaken.sort()
        whole = self.options.for_s == float("inf")
        stayed = [visitor for visitor in self.visitors if not visitor.gave_up]
        return {
            "visitors": len(self.visitors),
            "seconds": round(seconds, 1),
            "requests": self.requests,
            "held": self.held,
            "errors": self.errors,
            "most_active": certain,
            "most_active_at_most": possible,
            "most_in_60_s": most_rate,
            "let_in": len(let_in),
            "gave_up": len(self.visitors) - len(stayed),
            "stayed_but_not_let_in": sum(1 for visitor in stayed if not visitor.entered)
            if whole
            else 0,
            "overtaking_p50_s": round(overtaken[len(overtaken) // 2], 2) if overtaken else 0,
            "overtaking_p99_s": round(overtaken[len(overtaken) * 99 // 100], 2) if overtaken else 0,
        }


def most_at_once(spans: list[tuple[float, float]]) -> int:
    steps = sorted(
        [(start, 1) for start, end in spans if end > start]
        + [(end, -1) for start, end in spans if end > start]
    )
    return max(accumulate(step for _, step in steps), default=0)


def resident_mib(pid: int) -> float:
    with open(f"/proc/{pid}/status") as status:
        kib = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    return round(kib / 1024, 1)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--origin-port", type=int, default=9000)
    parser.add_argument("--visitors", type=int, default=20_000)
    parser.add_argument("--arrive-over-s", type=float, default=60)
    parser.add_argument(
        "--quitters", type=float, default=0.1, help="share of visitors who lose patience"
    )
    parser.add_argument("--total", type=int, default=500)
    parser.add_argument("--rate", type=int, default=600)
    parser.add_argument("--session-s", type=float, default=60)
    parser.add_argument(
        "--for-s",
        type=float,
        default=float("inf"),
        help="stop early, for a soak; who still waits is not counted as lost",
    )
    parser.add_argument(
        "--pid", type=int, default=0, help="print this process's resident memory every 10 s"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    report = asyncio.run(Crowd(options).run())
    print(json.dumps(report, indent=1))
    most_active, most_rate, lost = (
        report["most_active"],
        report["most_in_60_s"],
        report["stayed_but_not_let_in"],
    )
    return int(most_active > options.total or most_rate > options.rate or lost > 0)


if __name__ == "__main__":
    sys.exit(main())
