"""A gateway between a scripted visitor and a scripted origin, all on real sockets in one event
loop, on uvloop and on asyncio.

The origin is a function that gets each request whole and writes any bytes. The decision is a
function from an arrival to a verdict, which may also come later. So a test can say exactly which
bytes each side sends, and when.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
import uvloop
from dashboard_rig import DashboardRig, dashboard_in
from postgres import Postgres
from proxy_chain import Chain, chain_of
from real_proxies import FILES
from receivers import WebReceiver
from redis_world import RedisServer

from greenroom.configuration.store import default_url
from greenroom.decision.kept_turn import FailedDocument
from greenroom.decision.room_table import RoomTable
from greenroom.decision.verdict import Forward, Verdict
from greenroom.gateway.counts import Counts
from greenroom.gateway.origin.address import Origin
from greenroom.gateway.server import Gateway
from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.model.visit import Arrival
from greenroom.request.forwarded import ForwardedPolicy
from greenroom.settings.limits import Limits

PATIENCE_S = 40
TICKET = b"__cfwaitingroom=sealed; Path=/; HttpOnly"
PAGE = Answer(
    200,
    AnswerHeaders(
        (b"Content-Type", b"text/html"),
        (b"Cache-Control", b"no-store"),
        (b"Set-Cookie", b"__cfwaitingroom=waiting"),
    ),
    b"<h1>please wait</h1>",
)


@dataclass
class Request:
    """What the origin was sent."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes = b""

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


@dataclass
class Response:
    """What the visitor got. `whole` is whether its body was complete by its own framing."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""
    whole: bool = True

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def header(self, name: str) -> str | None:
        return next(iter(self.all(name)), None)


async def read_head(reader: asyncio.StreamReader) -> tuple[str, list[tuple[str, str]]]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
    headers = [
        (name, value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])
    ]
    return lines[0], headers


async def read_body(
    reader: asyncio.StreamReader, headers: list[tuple[str, str]], until_close: bool
) -> tuple[bytes, bool]:
    """The body and whether it is whole. Chunks are read by their own sizes, trailers are not
    expected.
    """
    facts = {name.lower(): value for name, value in headers}
    try:
        if facts.get("transfer-encoding") == "chunked":
            body = b""
            while True:
                try:
                    size = int(await reader.readuntil(b"\r\n"), 16)
                    piece = await reader.readexactly(size + 2)
                except asyncio.IncompleteReadError:
                    return body, False
                assert piece.endswith(b"\r\n")
                if not size:
                    return body, True
                body += piece[:-2]
        if "content-length" in facts:
            return await reader.readexactly(int(facts["content-length"])), True
        return (await reader.read(), True) if until_close else (b"", True)
    except asyncio.IncompleteReadError as short:
        return short.partial, False
    except ConnectionResetError:
        return b"", False


@dataclass
class Talk:
    """One connection of a visitor."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def response(self, method: str = "GET") -> Response:
        """The next response, interim ones included."""
        line, headers = await asyncio.wait_for(read_head(self.reader), PATIENCE_S)
        status = int(line.split(" ")[1])
        if method == "HEAD" or status < 200 or status in (204, 304):
            return Response(status, headers)
        body, whole = await asyncio.wait_for(read_body(self.reader, headers, True), PATIENCE_S)
        return Response(status, headers, body, whole)

    async def get(
        self,
        target: str = "/",
        *,
        method: str = "GET",
        head: str = "",
        body: bytes = b"",
        minor: int = 1,
    ) -> Response:
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        self.send(
            f"{method} {target} HTTP/1.{minor}\r\nHost: shop.example\r\n{length}{head}\r\n".encode()
            + body
        )
        return await self.response(method)

    async def rest(self) -> bytes:
        """Everything until the end; what came before a reset is lost, as it is for a real visitor."""
        try:
            return await asyncio.wait_for(self.reader.read(), PATIENCE_S)
        except ConnectionResetError:
            return b""


Decide = Callable[[Arrival], Verdict]


class ScriptedDecisions:
    """Decides by a function; answers after `delay_s` when that is set; notes what it was asked."""

    def __init__(self, decide: Decide) -> None:
        self.decide = decide
        self.delay_s: float | None = None
        self.own_cookies = frozenset((b"__cfwaitingroom",))
        self.arrivals: list[Arrival] = []
        self.commands: list[bytes] = []
        self.obeyed = b"__cfwaitingroom=; Max-Age=0"
        self.over = False
        self.finished = self.failed = 0
        self.table, self.data_centers = RoomTable([]), None

    def now_ms(self) -> int:
        return 0

    def verdict(
        self, arrival: Arrival, later: Callable[[Verdict], None], late: object = None
    ) -> Verdict | None:
        self.arrivals.append(arrival)
        verdict = self.decide(arrival)
        if self.delay_s is None:
            return verdict
        asyncio.get_running_loop().call_later(self.delay_s, later, verdict)
        return None

    def obey(self, forward: Forward, command: bytes) -> bytes:
        self.commands.append(command)
        return self.obeyed

    def receive_offers(self, _forward: Forward, said: bytes) -> None:
        self.commands.append(said)

    def failed_document(self, forward: Forward) -> FailedDocument:
        self.failed += 1
        return FailedDocument(forward, self)

    def goes_first(self, _forward: Forward | None, arrival: Arrival) -> bool:
        return arrival.path.startswith("/first")

    def open_session(self, _forward: Forward, _place: int) -> "ScriptedDecisions":
        return self

    def is_over(self) -> bool:
        """Of every session, as the test says."""
        return self.over

    def finish(self) -> None:
        self.finished += 1


def forward_all(_: Arrival) -> Verdict:
    return Forward(room_id="room")


def hold_all(_: Arrival) -> Verdict:
    return PAGE


def hold_held(arrival: Arrival) -> Verdict:
    """Paths below /held wait, everything else goes on."""
    return PAGE if arrival.path.startswith("/held") else Forward()


App = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


async def hello(request: Request, writer: asyncio.StreamWriter) -> None:
    body = b"" if request.method == "HEAD" else b"hello from " + request.target.encode()
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-Origin: yes\r\n\r\n"
        % (11 + len(request.target))
        + body
    )


def says(*pieces: bytes, close: bool = False) -> App:
    """An origin that sends these bytes, one write each."""

    async def app(_: Request, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if close:
            writer.close()

    return app


KERNEL_BYTES = 1 << 18
"""Of a socket's buffers; those that the kernel sizes itself grow to 32 MB on some machines."""


def small_socket() -> socket.socket:
    sock = socket.socket()
    for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        sock.setsockopt(socket.SOL_SOCKET, buffer, KERNEL_BYTES)
    return sock


def listener() -> socket.socket:
    sock = small_socket()
    sock.bind(("127.0.0.1", 0))
    return sock


def without_stalls(now: Callable[[], float]) -> Callable[[], float]:
    """The clock of a machine that never stands still: it goes on by a fifth of a second at most
    between two looks.

    The gateway looks many times a second, so limits of seconds end when they should. A gateway and
    its visitors that all stood still for seconds have not been silent.
    """
    seen = at = now()

    def looked() -> float:
        nonlocal seen, at
        before, seen = seen, now()
        at += min(seen - before, 0.2)
        return at

    return looked


async def turns() -> None:
    """As many of the event loop as bytes need from one end to the other and back."""
    for _ in range(20):
        await asyncio.sleep(0)


@dataclass
class Rig:
    """Everything of one test. `app` and `decisions` may be changed while it runs."""

    PAGE: ClassVar[Answer] = PAGE
    TICKET: ClassVar[bytes] = TICKET
    says = staticmethod(says)
    hold_all = staticmethod(hold_all)
    hold_held = staticmethod(hold_held)

    app: App = hello
    decisions: ScriptedDecisions = field(default_factory=lambda: ScriptedDecisions(forward_all))
    requests: list[Request] = field(default_factory=list)  # whose head arrived
    served: list[Request] = field(default_factory=list)  # that arrived whole
    errors: list[BaseException] = field(default_factory=list)
    origin_connections: int = 0
    origin_lost: int = 0
    gateway: Gateway = field(init=False)
    address: tuple[str, int] = field(init=False)
    origin: Origin = field(init=False)
    _readers: dict[asyncio.StreamWriter, asyncio.StreamReader] = field(default_factory=dict)

    @property
    def counts(self) -> Counts:
        return self.gateway.counts

    def reader_of(self, writer: asyncio.StreamWriter) -> asyncio.StreamReader:
        """The other direction of an origin's connection."""
        return self._readers[writer]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.origin_connections += 1
        self._readers[writer] = reader
        try:
            while True:
                line, headers = await read_head(reader)
                method, target, _ = line.split(" ")
                request = Request(method, target, headers)
                self.requests.append(request)
                if method == "STREAM":  # the app reads the body itself
                    request.body = reader  # type: ignore[assignment]
                else:
                    request.body, whole = await read_body(reader, headers, False)
                    if not whole:
                        raise asyncio.IncompleteReadError(request.body, None)
                self.served.append(request)
                await self.app(request, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.origin_lost += 1
        finally:
            del self._readers[writer]
            writer.close()

    @contextlib.asynccontextmanager
    async def running(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        origin: Origin | None = None,
        file: Path | None = None,
        policy: ForwardedPolicy | None = None,
        **limits: int,
    ) -> AsyncIterator["Rig"]:
        """The gateway and its origin, until the block ends; an exception inside the gateway fails
        the test unless it is taken. With `file` the origin listens on that Unix socket.
        """
        if file is None:
            server = await asyncio.start_server(self._serve, sock=listener(), limit=1 << 20)
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        else:
            server = await asyncio.start_unix_server(self._serve, file, limit=1 << 20)
            url = f"unix:{file}"
        self.origin = origin or Origin.of(url)
        self.gateway = Gateway(
            self.decisions,
            lambda _: self.origin,
            limits=Limits(**limits),
            forwarded_policy=policy,
            on_error=self.errors.append,
            sweep_s=0.02,
        )
        self.gateway.state.now = without_stalls(self.gateway.state.now)
        try:
            (self.address,) = await self.gateway.start(sockets=[listener()], tls=tls)
            yield self
        finally:
            self.gateway.close()
            for writer in list(self._readers):
                writer.transport.abort()
            server.close()
            await asyncio.sleep(0)
        assert self.errors == []

    @contextlib.asynccontextmanager
    async def visitor(
        self, *, tls: ssl.SSLContext | None = None, buffer: int = 1 << 20
    ) -> AsyncIterator[Talk]:
        sock = small_socket()
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, self.address)
        reader, writer = await asyncio.open_connection(
            sock=sock, ssl=tls, server_hostname="localhost" if tls else None, limit=buffer
        )
        try:
            yield Talk(reader, writer)
        finally:
            writer.transport.abort()

    async def talk(self, data: bytes) -> bytes:
        """Sends all of it on a new connection and gives everything that comes until the end."""
        async with self.visitor() as talk:
            talk.send(data)
            return await talk.rest()

    async def get(self, target: str = "/", **how: Any) -> Response:
        async with self.visitor() as talk:
            return await talk.get(target, **how)

    @staticmethod
    async def until(happened: Callable[[], Any], what: str) -> None:
        """Lets others run until it happened."""
        end = asyncio.get_running_loop().time() + PATIENCE_S
        while not happened():
            assert asyncio.get_running_loop().time() < end, f"waited in vain: {what}"
            await asyncio.sleep(0.005)  # sockets take real time

    @staticmethod
    async def at_rest(figure: Callable[[], int], below: int) -> int:
        """What it is when it goes on no more: neither 0 nor, at any time, `below` or more."""
        found = looks = 0
        while looks < 4:
            before, found = found, figure()
            assert found < below
            looks = looks + 1 if found and found == before else 0
            await asyncio.sleep(0.05)  # bytes move through the kernel
            await turns()  # a slow machine needs as long for one
        return found


Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["uvloop", "asyncio"])
def loop_factory(request: pytest.FixtureRequest) -> Any:
    """Each kind of event loop that runs a gateway."""
    return uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop


@pytest.fixture
def run(loop_factory: Any) -> Run:
    """Runs a story to its end, for a test that has several or is none itself."""

    def runner(story: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=loop_factory) as started:
            started.run(asyncio.wait_for(story, 90))

    return runner


@pytest.fixture
def rig(loop_factory: Any) -> Rig:
    return Rig()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis of the test's own, empty, without persistence."""
    started = RedisServer(tmp_path / "redis")
    yield started
    started.kill()


@pytest.fixture
def web() -> Iterator[WebReceiver]:
    """Takes webhooks."""
    found = WebReceiver()
    yield found
    found.close()


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[DashboardRig]:
    """The dashboard in this process, with one of everything; tests that need another one have their
    own.
    """
    with dashboard_in(tmp_path) as found:
        found.fill()
        yield found


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A real server."""
    server = Postgres()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty database, of both kinds."""
    return (
        default_url(tmp_path)
        if request.param == "sqlite"
        else request.getfixturevalue("postgres").new_database()
    )


@pytest.fixture(params=FILES)
def chain(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    greenroom: Any,
    origin: Any,
    visitor_class: Any,
    free_port: Callable[[], int],
) -> Iterator[Chain]:
    """The real proxy of an example before greenroom and an application."""
    with chain_of(request.param, tmp_path, greenroom, origin, visitor_class, free_port) as found:
        yield found
