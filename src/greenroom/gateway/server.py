"""The gateway: listeners, connections, pools, and the sweep that enforces all deadlines."""

import asyncio
import email.utils
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from heapq import nsmallest

from greenroom.capacity.histogram import Histogram
from greenroom.decision.verdict import Forward
from greenroom.gateway.documents import Documents, ages_of, is_document
from greenroom.gateway.handshakes import Handshakes, TlsListener
from greenroom.gateway.origin.address import Origin, OriginGuard
from greenroom.gateway.origin.flights import Flights
from greenroom.gateway.origin.origin_request import OriginRequest
from greenroom.gateway.origin.pool import Pool
from greenroom.gateway.request_record import RequestObserver
from greenroom.gateway.state import GatewayState, Receiver
from greenroom.gateway.visitor.connection import Connections, VisitorConnection
from greenroom.gateway.visitor.decision_batch import DecisionBatch
from greenroom.gateway.visitor.descriptors import Descriptors
from greenroom.gateway.visitor.open_streams import OpenStreams
from greenroom.gateway.wire.header_lines import Varying
from greenroom.gateway.wire.question_heads import ReadHead
from greenroom.gateway.wire.request_head import read_head
from greenroom.request.forwarded import ForwardedPolicy, network_of
from greenroom.settings.limits import Limits

SWEEP_S = 0.5
"""Interval of deadline checks, and so the precision of every timeout. 50,000 connections cost 3 ms
a sweep.
"""

BACKLOG = 4_096
"""Kernel backlog: one burst of a crowd that starts in the same second."""

PROGRESS_S = 0.25

FRESH_S = 1.0
"""How long a draining gateway waits for the first request of a new connection."""


class Gateway:
    """An HTTP/1.1 reverse proxy that decides before it forwards. Construct it inside a running
    event loop. `origins` returns the origin of a host or None, for every request, so it must be
    quick. `on_error` receives exceptions, none of which reaches a visitor. `varying`: header lines
    that differ between visitors (empty: the usual ones). `live_target` is answered without a
    decision.
    """

    def __init__(
        self,
        receiver: Receiver,
        origins: Callable[[str], Origin | None],
        *,
        limits: Limits | None = None,
        forwarded_policy: ForwardedPolicy | None = None,
        on_error: Callable[[BaseException], None] = lambda _: None,
        on_request: RequestObserver | None = None,
        sweep_s: float = SWEEP_S,
        guard: OriginGuard | None = None,
        varying: tuple[Varying, ...] = (),
        read: ReadHead = read_head,
        live_target: bytes = b"",
    ) -> None:
        self.state = state = GatewayState(
            receiver,
            origins,
            limits or Limits(),
            forwarded_policy or ForwardedPolicy(),
            guard or OriginGuard(),
            on_error,
            on_request,
        )
        state.varying = varying
        state.read_head = read
        state.live_target = live_target
        self.counts = state.counts
        self._descriptors = Descriptors(self.counts)
        self.batch = DecisionBatch(receiver.verdict, state.later)
        self._sweep_s = sweep_s
        self._servers: list[asyncio.Server | TlsListener] = []
        self._handshakes = Handshakes(state.loop, self.counts)
        self._connections = Connections(state, self._handshakes, self._descriptors)
        self._streams = OpenStreams(
            lambda forward, place: state.receiver.open_session(forward, place), state.failed
        )
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False
        self._sweep()

    async def start(
        self,
        *,
        host: str | None = None,
        port: int = 0,
        sockets: Iterable[socket.socket] = (),
        tls: ssl.SSLContext | None = None,
        protocol: Callable[[], asyncio.BaseProtocol] | None = None,
    ) -> list[tuple[str, int]]:
        """Listens on `host` and `port` (0: any free one), or on bound `sockets`; returns the
        addresses (for a Unix socket: path and 0). `protocol` replaces `connection` as protocol
        factory. May be called again for another listener. Raises OSError.
        """
        speaks = self.connection if protocol is None else protocol
        listening = list(sockets) or await self._bound(host, port)
        at_once = (
            self._descriptors.accepted_at_once
        )  # or asyncio would accept all that the kernel keeps
        if tls is None:
            self._servers += [
                await self.state.loop.create_server(speaks, sock=sock, backlog=at_once)
                for sock in listening
            ]
        for sock in listening:
            sock.listen(BACKLOG)
        if tls is not None:
            shake = partial(self._shake, tls, speaks)
            self._servers += [
                TlsListener(self.state.loop, sock, at_once, shake) for sock in listening
            ]
        return [
            sock.getsockname()[:2] if sock.family != socket.AF_UNIX else (sock.getsockname(), 0)
            for sock in listening
        ]

    def _shake(
        self,
        tls: ssl.SSLContext,
        speaks: Callable[[], asyncio.BaseProtocol],
        sock: socket.socket,
        address: str,
    ) -> None:
        """Begins a TLS handshake. When handshakes reach the connection limit, the oldest half is
        closed; beyond the limit of one address the new connection is. After the handshake it counts
        as a connection (`admit`).
        """
        most, shakes = self.state.limits.connections_per_address, self._handshakes
        fits = len(shakes) < self.state.limits.connections or shakes.make_room()
        if most and address and not self.state.forwarded_policy.covers(address):
            fits = fits and shakes.of(network_of(address)) < most
        if fits and self._connections.has_descriptors(sock.fileno()):
            shakes.begin(sock, network_of(address), speaks(), tls, self.state.limits.head_s)
        else:
            self.counts.connections_refused += 1
            sock.close()

    def connection(self) -> VisitorConnection:
        return VisitorConnection(self.state, self.batch, self._connections)

    async def _bound(self, host: str | None, port: int) -> list[socket.socket]:
        """One socket per address of `host`, all on the same port even if `port` is 0."""
        found = await self.state.loop.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        bound: list[socket.socket] = []
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                sock = socket.socket(family, socket.SOCK_STREAM)
                bound.append(sock)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                sock.bind(
                    (
                        address[0],
                        bound[0].getsockname()[1] if len(bound) > 1 and not port else port,
                        *address[2:],
                    )
                )
        except OSError:
            for sock in bound:
                sock.close()
            raise
        return bound

    async def drain(self, seconds: float, progress: Callable[[int], None] = lambda _: None) -> int:
        """Stops accepting, lets requests finish for at most `seconds`, then closes; returns how
        many were cut off, tunnels included. Meanwhile answers say `Connection: close`, `progress`
        receives the number left, and a new connection still gets its first request served.
        """
        self.state.keeps = False
        self._stop_listening()
        for connection in list(self._connections.open):
            if connection.idle and connection.requests:
                connection.close()
        until, fresh_until = self.state.now() + seconds, self.state.now() + FRESH_S
        while True:
            if self.state.now() >= fresh_until:
                for connection in list(self._connections.open):
                    if connection.idle:
                        connection.close()
            left = sum(connection.exchange is not None for connection in self._connections.open)
            progress(left)
            if not self._connections.open or self.state.now() >= until:
                break
            await asyncio.sleep(min(PROGRESS_S, max(0.01, until - self.state.now())))
        self.close()
        return left

    @property
    def documents(self) -> Documents:
        return self.counts.documents

    def pending_documents(self) -> dict[str, Histogram]:
        return ages_of(
            (forward, seconds + exchange.queued_s)
            for pool in self.state.pools.values()
            for seconds, exchange, forward in _awaited(pool)
        )

    def bound_in_flight(self, objectives: Mapping[str, int]) -> None:
        for pool in self.state.pools.values():
            bound = None
            if not objectives:
                pool.flights = None
            else:
                flights = pool.flights = pool.flights or Flights()
                ages = [1000 * seconds for seconds, _, _ in _awaited(pool)]
                limit = pool.limits.origin_connections
                bound = flights.step(objectives, Histogram.of(ages), pool.awaited, limit)
            if bound != pool.bound:
                pool.bind(bound)
        bounds = [pool.bound for pool in self.state.pools.values() if pool.bound is not None]
        self.counts.origin_in_flight_bound = min(bounds, default=0)

    def close(self) -> None:
        self._closed = True
        self.state.keeps = False
        self._stop_listening()
        if self._sweeper:
            self._sweeper.cancel()
        self._handshakes.close()
        for connection in list(self._connections.open):
            connection.transport.abort()
        for pool in self.state.pools.values():
            pool.close()

    def _stop_listening(self) -> None:
        for server in self._servers:
            server.close()
        self._servers.clear()

    def _sweep(self) -> None:
        """An exception about one connection must not stop the deadlines of others."""
        state = self.state
        state.date_line = (
            b"Date: %b\r\n" % email.utils.formatdate(time.time(), usegmt=True).encode()
        )
        self.batch.decide()  # a request that has come is not late
        now = state.now()
        state.sweep_at = now + self._sweep_s
        connections = list(self._connections.open)
        for connection in connections:
            if connection.deadline <= now:
                try:
                    connection.overdue()
                except Exception as error:
                    state.failed(error)
                    connection.transport.abort()
        self._descriptors.sweep(now)
        self._streams.sweep(
            [
                exchange
                for connection in connections
                if (exchange := connection.exchange) is not None
            ]
        )
        for pool in state.pools.values():
            pool.sweep(state.sweep_at)
            if pool.waiting:
                _free(pool, connections)
        if not self._closed:
            self._sweeper = state.loop.call_later(self._sweep_s, self._sweep)


def _free(pool: Pool, connections: Iterable[VisitorConnection]) -> None:
    """Stalled visitors release as many connections as requests wait for, longest silence first."""
    stalled = [
        one
        for one in connections
        if one.has_stalled()
        and one.exchange is not None
        and one.exchange.origin is not None
        and one.exchange.origin.pool is pool
    ]
    for one in nsmallest(pool.waiting, stalled, key=lambda one: one.deadline):
        one.give_way()


def _awaited(pool: Pool) -> Iterator[tuple[float, OriginRequest, Forward]]:
    """Unanswered document requests of admitted visitors, with seconds since the whole request was
    sent (an upload's duration is the visitor's).
    """
    now_s = time.monotonic()
    for connection in pool.requests:
        exchange = connection.exchange
        if exchange is None or connection.body is not None or exchange.forward is None:
            continue  # idle, or the answer has begun
        if connection.began_s <= now_s and is_document(exchange.forward, exchange.head.arrival):
            yield now_s - connection.began_s, exchange, exchange.forward
