"""Real servers on 127.0.0.1 that fail in one particular way each, for probes to find out."""

import asyncio
import contextlib
import datetime
import socket
import ssl
import struct
import threading
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import trustme

from greenroom.health.network import probe_policy, threaded_resolver
from greenroom.health.probes import Equipment
from greenroom.health.tls import TlsContexts
from greenroom.model.health_check import HealthCheck, HttpCheck, TcpCheck, effective
from greenroom.outbound import Guard

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
AUTHORITY = trustme.CA()
STRANGER = trustme.CA()
NAME = "origin.example.com"


def check(
    kind: str,
    port: int,
    *,
    address: str = "127.0.0.1",
    timeout: int = 2,
    retries: int = 1,
    **config: Any,
) -> HealthCheck:
    """A check on a server of this machine; `config` are fields of its http_config."""
    parts = (
        {"tcp_config": TcpCheck(port=port)}
        if kind == "TCP"
        else {"http_config": HttpCheck(port=port, **config)}
    )
    fields = {
        "id": "0123456789abcdef" * 2,
        "name": "origin",
        "address": address,
        "type": kind,
        "timeout": timeout,
        "retries": retries,
    }
    return HealthCheck(**effective({**fields, **parts}))


def equipment(
    resolves: dict[str, str] | None = None,
    own: tuple[tuple[str, int], ...] = (),
    *,
    private: bool = True,
) -> Equipment:
    """What an agent uses, trusting AUTHORITY alone. `resolves`: these names have these addresses,
    all others are asked of the system.
    """
    system = threaded_resolver()

    async def resolve(host: str, port: int) -> Any:
        return [resolves[host]] if resolves and host in resolves else await system(host, port)

    with AUTHORITY.cert_pem.tempfile() as path:
        tls = TlsContexts(path)
        assert tls.named
        assert tls.unnamed
    return Equipment(Guard(probe_policy(private=private), resolve, lambda: own), tls)


@contextlib.asynccontextmanager
async def served(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a server that runs meanwhile."""

    async def quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await handler(reader, writer)
        writer.close()

    server = await asyncio.start_server(quiet, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@contextlib.asynccontextmanager
async def shaken(tls: ssl.SSLContext) -> AsyncIterator[int]:
    """The port of a server that tries one handshake in a thread: unlike asyncio's it sends the
    alert with which a handshake fails.
    """
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            sock, _ = listener.accept()
            with tls.wrap_socket(sock, server_side=True) as secured:
                secured.recv(1)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


def answers(
    text: bytes, *, then_s: float = 0.0, then: bytes = b"", seen: list[bytes] | None = None
) -> Handler:
    """Reads a request and sends this; after a while perhaps more."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if seen is not None:
            seen.append(head)
        writer.write(text)
        await writer.drain()
        if then_s:
            await asyncio.sleep(then_s)  # being slow is what this server is for
            writer.write(then)
            await writer.drain()

    return handler


def page(status: str = "200 OK", body: bytes = b"all is well", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def resets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Takes the request and answers with a TCP reset."""
    await reader.readuntil(b"\r\n\r\n")
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@contextlib.contextmanager
def blackhole() -> Any:
    """The port of a listener whose queue is full: the kernel drops every further attempt to
    connect.
    """
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        for _ in range(4):
            sock = socket.socket()
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                sock.connect(listener.getsockname())
            waiting.append(sock)
        yield listener.getsockname()[1]
        for sock in waiting:
            sock.close()


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """A port that refuses connections: taken, and no one listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield int(sock.getsockname()[1])


def server_tls(
    ca: trustme.CA = AUTHORITY,
    *names: str,
    expired: bool = False,
    names_sent: list[Any] | None = None,
) -> ssl.SSLContext:
    """The TLS of a server with a certificate for these names (or 127.0.0.1)."""
    ended = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    begun = ended - datetime.timedelta(days=30)
    dates = {"not_before": begun, "not_after": ended} if expired else {}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*(names or ("127.0.0.1", NAME)), **dates).configure_cert(context)
    if names_sent is not None:
        context.sni_callback = lambda _sock, name, _context: names_sent.append(name)
    return context


def old_tls() -> ssl.SSLContext:
    """A server that speaks TLS 1.1 at best."""
    context = server_tls()
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings(
        action="ignore"
    ):  # these versions are deprecated, which is the point
        context.minimum_version, context.maximum_version = (
            ssl.TLSVersion.TLSv1,
            ssl.TLSVersion.TLSv1_1,
        )
    return context


def choosy_tls() -> ssl.SSLContext:
    """A server that knows no name that it is asked for."""
    context = server_tls()
    context.sni_callback = lambda _sock, _name, _context: ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
    return context
