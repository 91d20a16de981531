"""Connections of a probe: only to addresses that the outbound guard has just allowed, with the
check's server name and the time of the first byte.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any, TypeVar

import httpcore

from greenroom.health.tls import TlsContexts, is_address, require_name
from greenroom.outbound import OutboundPolicy, OutboundRefused, Resolve
from greenroom.outbound.policy import NEVER, PRIVATE

T = TypeVar("T")

RESOLVERS = 32
"""A hanging resolver blocks only these threads."""

ADDRESSES_TRIED = 3
"""Within the time of one try."""


def probe_policy(*, private: bool = True) -> OutboundPolicy:
    return OutboundPolicy(ports=(), allowed=PRIVATE if private else (), denied=NEVER)


def threaded_resolver() -> Resolve:
    pool = ThreadPoolExecutor(RESOLVERS, "probe-names")

    async def resolve(host: str, port: int) -> Sequence[str]:
        found = await asyncio.get_running_loop().run_in_executor(pool, _look_up, host, port)
        return list(dict.fromkeys(str(sockaddr[0]) for _, _, _, _, sockaddr in found))

    return resolve


def _look_up(host: str, port: int) -> list[Any]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


@dataclass(slots=True)
class Course:
    now: Callable[[], float]
    phase: str = "dns"
    address: str = ""
    dns_ms: float = 0.0
    tcp_ms: float = 0.0
    tls_ms: float = 0.0
    ready: float = 0.0  # when the connection could take a request
    sent: float = 0.0  # when the request was sent
    until: float = 0.0  # when the try ends, on the event loop's clock
    first: float = 0.0  # when the first byte came
    marks: dict[str, float] = field(default_factory=dict)

    async def trace(self, event: str, _facts: Any) -> None:
        at = self.now()
        self.marks[event] = at
        if event == "connection.connect_tcp.started":
            self.phase = "tcp"
        elif event == "connection.connect_tcp.complete":
            self.tcp_ms, self.phase, self.ready = (
                self._since("connection.connect_tcp.started", at),
                "http",
                at,
            )
        elif event == "connection.start_tls.complete":
            self.tls_ms, self.ready = self._since("connection.start_tls.started", at), at
        elif event == "http11.send_request_body.complete":
            self.sent = at

    async def resolved(self, addresses: Awaitable[T]) -> T:
        """Times the lookup, even when it fails."""
        self.phase, began = "dns", self.now()
        try:
            return await addresses
        finally:
            self.dns_ms = (self.now() - began) * 1000

    def _since(self, event: str, at: float) -> float:
        return (at - self.marks[event]) * 1000


class ProbeNetwork(httpcore.AsyncNetworkBackend):
    """`name`: of the certificate; `sent`: the SNI, or empty."""

    def __init__(
        self,
        addresses: Sequence[str],
        course: Course,
        *,
        name: str = "",
        sent: str = "",
        tls: TlsContexts | None = None,
    ) -> None:
        self._addresses = addresses[:ADDRESSES_TRIED]
        self._course = course
        self._name, self._sent, self._tls = name, sent, tls
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        # `host` is only a name here: the addresses are known.
        del host, local_address, socket_options
        share = timeout / len(self._addresses) if timeout else None
        for address in self._addresses[:-1]:
            try:
                return await self._connected(address, port, share)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._connected(self._addresses[-1], port, share)

    async def _connected(
        self, address: str, port: int, timeout: float | None
    ) -> httpcore.AsyncNetworkStream:
        self._course.address = address
        stream = await self._network.connect_tcp(address, port, timeout)
        return ProbeStream(stream, self)

    async def secured(self, stream: httpcore.AsyncNetworkStream) -> httpcore.AsyncNetworkStream:
        if self._tls is None:
            raise OutboundRefused("this connection is not meant for TLS")
        if self._name and not self._sent and not is_address(self._name):
            secured = await stream.start_tls(self._tls.unnamed, None)
            require_name(secured.get_extra_info("ssl_object").getpeercert(), self._name)
        elif self._name:
            secured = await stream.start_tls(self._tls.named, self._sent or self._name)
        else:
            secured = await stream.start_tls(self._tls.unchecked, self._sent or None)
        return ProbeStream(secured, self)

    def read_one(self) -> None:
        self._course.first = self._course.first or self._course.now()


class ProbeStream(httpcore.AsyncNetworkStream):
    def __init__(self, stream: httpcore.AsyncNetworkStream, network: ProbeNetwork) -> None:
        self._stream = stream
        self._network = network

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await self._stream.read(max_bytes, timeout)
        self._network.read_one()
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        # As the check requires, instead of httpcore's defaults.
        del ssl_context, server_hostname, timeout
        return await self._network.secured(self._stream)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
