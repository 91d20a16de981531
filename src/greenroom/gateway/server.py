"""The gateway as a whole: its listeners, its connections, its pools, and the sweep that keeps
everybody's time.
"""

import asyncio
import email.utils
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from greenroom.decision.forwarded import ForwardedPolicy
from greenroom.gateway.counts import Counts
from greenroom.gateway.descriptors import Descriptors
from greenroom.gateway.handshakes import Handshakes, TlsListener
from greenroom.gateway.origin.address import Origin
from greenroom.gateway.origin.guard import OriginGuard
from greenroom.gateway.origin.pool import Pool
from greenroom.gateway.request_record import RequestObserver, RequestRecord
from greenroom.gateway.visitor.connection import VisitorConnection
from greenroom.gateway.visitor.contracts import OpenConnection, Receiver, RecordedExchange
from greenroom.gateway.visitor.decision_batch import DecisionBatch
from greenroom.gateway.visitor.late_tries import LateTries
from greenroom.gateway.visitor.open_streams import OpenStreams
from greenroom.gateway.wire.header_lines import Varying
from greenroom.gateway.wire.question_heads import ReadHead
from greenroom.gateway.wire.request_head import read_head
from greenroom.model.answer import Answer
from greenroom.settings.limits import Limits

SWEEP_S = 0.5
"""How often deadlines are looked at, so every time limit is met within half a second. 50,000
connections cost 3 ms a sweep.
"""

BACKLOG = 4_096
"""Connections the kernel keeps for us while we are busy: one burst of a crowd that all start at the
same second.
"""

PROGRESS_S = 0.25

FRESH_S = 1.0
"""How long a gateway that ends waits for the first request of a connection that has just been
opened.
"""


class Gateway:
    """An HTTP/1.1 reverse proxy that asks before it forwards. Make it inside a running event loop.

    `receiver` decides about every request; `origins` names the origin for an Arrival's host, or
    None when there is none (it is asked per request, so it must be quick, and may be replaced
    through the attribute at any time); `on_error` is told of exceptions, none of which reaches a
    visitor; `varying` are header lines whose values are other ones for each visitor (empty: the
    usual ones); `read` reads heads in another way; `descriptors` is how many file descriptors the
    process may have (None: what the system allows); `live_target` is answered without a decision.
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
        descriptors: int | None = None,
        live_target: bytes = b"",
    ) -> None:
        self.receiver = receiver
        self.origins = origins
        self.limits = limits or Limits()
        self.forwarded_policy = forwarded_policy or ForwardedPolicy()
        self.varying = varying
        self.read_head = read
        self.live_target = live_target
        self.on_error = on_error
        self.on_request = on_request
        """Told what became of each request, for an access log; None: there is none, and nothing is
        measured for it.
        """
        self.counts = Counts()
        self._descriptors = Descriptors(self.counts, descriptors)
        self.keeps = True  # connections go on after an answer; off while draining
        self.date_line = b""
        self._loop = asyncio.get_running_loop()
        self.now = self._loop.time
        self.later = self._loop.call_soon
        self.batch = DecisionBatch(receiver.verdict, self.later)
        self._sweep_s = sweep_s
        self.sweep_at = 0.0
        self._servers: list[asyncio.Server | TlsListener] = []
        self._handshakes = Handshakes(self._loop, self.counts)
        self._connections: set[OpenConnection] = set()
        self._per_address: Counter[str] = Counter()
        self._pools: dict[Origin, Pool] = {}
        self._last: Pool | None = None
        self.late_tries = LateTries(self._loop)
        self._streams = OpenStreams(
            lambda forward, place: self.receiver.open_session(forward, place), self._failed
        )
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False
        self._guard = guard or OriginGuard()
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
        """Listens on `host` and `port` (0: any free one), or on `sockets` that are already bound;
        gives the addresses (of a Unix socket its path and 0).

        `protocol` makes what speaks on a new connection, when that is not always `connection`. May
        be called again for another listener. OSError when the address cannot be had.
        """
        speaks = self.connection if protocol is None else protocol
        listening = list(sockets) or await self._bound(host, port)
        at_once = (
            self._descriptors.accepted_at_once
        )  # or asyncio would accept all that the kernel keeps
        if tls is None:
            self._servers += [
                await self._loop.create_server(speaks, sock=sock, backlog=at_once)
                for sock in listening
            ]
        for sock in listening:
            sock.listen(BACKLOG)
        if tls is not None:
            shake = partial(self._shake, tls, speaks)
            self._servers += [TlsListener(self._loop, sock, at_once, shake) for sock in listening]
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
        """A connection that begins with a TLS handshake; where as many are under way as there may
        be connections it is closed at once.

        When the handshake is over it counts as a connection (`admit`), and can be told that there
        are too many.
        """
        most, shakes = self.limits.connections_per_address, self._handshakes
        fits = len(shakes) < self.limits.connections
        if most and address and not self.forwarded_policy.covers(address):
            fits = fits and shakes.of(address) < most
        if fits and self._has_descriptors(sock.fileno()):
            shakes.begin(sock, address, speaks(), tls, self.limits.head_s)
        else:
            self.counts.connections_refused += 1
            sock.close()

    def connection(self) -> VisitorConnection:
        """The protocol of a new connection."""
        return VisitorConnection(self)

    async def _bound(self, host: str | None, port: int) -> list[socket.socket]:
        """One socket per address of `host`; all on the same port also when any free one will do."""
        found = await self._loop.getaddrinfo(
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
        """Accepts nothing more, lets requests under way finish for at most `seconds`, then closes;
        gives how many were cut off.

        Answers say `Connection: close` meanwhile. `progress` is told the number of requests still
        under way, first and last included. Tunnels count as under way. A connection that has just
        been opened, for a request that is on its way, is served too.
        """
        self.keeps = False
        self.late_tries.draining = True
        self._stop_listening()
        for connection in list(self._connections):
            if connection.idle and connection.requests:
                connection.close()
        until, fresh_until = self.now() + seconds, self.now() + FRESH_S
        while True:
            if self.now() >= fresh_until:
                for connection in list(self._connections):
                    if connection.idle:
                        connection.close()
            left = sum(connection.exchange is not None for connection in self._connections)
            progress(left)
            if not self._connections or self.now() >= until:
                break
            await asyncio.sleep(min(PROGRESS_S, max(0.01, until - self.now())))
        self.close()
        return left

    def relimit(self, limits: Limits) -> None:
        """Other limits from now on: towards origins at once, for visitors with their next
        connection.
        """
        self.limits = limits
        for pool in self._pools.values():
            pool.relimit(limits)

    def close(self) -> None:
        """Ends everything at once. Idempotent."""
        self._closed = True
        self.keeps = False
        self.late_tries.draining = True
        self._stop_listening()
        if self._sweeper:
            self._sweeper.cancel()
        self._handshakes.close()
        for connection in list(self._connections):
            connection.transport.abort()
        for pool in self._pools.values():
            pool.close()

    def pool_for(self, host: str) -> Pool | None:
        """The connections to the origin of this host; None when it has none."""
        origin, pool = self.origins(host), self._last
        if pool is not None and pool.origin is origin:
            return pool
        if origin is None:
            return None
        pool = self._pools.get(origin)
        if pool is None:
            pool = self._pools[origin] = Pool(
                origin, self.limits, self.counts, self._loop, self._guard
            )
        pool.origin, self._last = (
            origin,
            pool,
        )  # equal to the one before, but another object after a reload
        return pool

    def admit(self, connection: OpenConnection) -> bool:
        """Registers a new connection; False when a limit of connections is reached."""
        fits = len(self._connections) < self.limits.connections and self._has_descriptors(
            connection.flow.descriptor
        )
        self._connections.add(connection)
        self.counts.connections_opened += 1
        self.counts.connections_open += 1
        most = self.limits.connections_per_address
        if most and not connection.peer.is_trusted_at(
            ""
        ):  # the host is not known yet, so no zone's
            self._per_address[connection.peer.address] += 1
            fits = fits and self._per_address[connection.peer.address] <= most
        self.counts.connections_refused += not fits
        return fits

    def _has_descriptors(self, number: int) -> bool:
        """Whether a new connection with this one leaves enough of them, if need be after others
        were closed.
        """
        descriptors, shakes = self._descriptors, self._handshakes
        return (
            not descriptors.short(number, len(shakes))
            or shakes.make_room()
            or descriptors.make_room(self._connections, self.now())
        )

    def forget(self, connection: OpenConnection) -> None:
        """The connection is closed."""
        self._connections.discard(connection)
        self._descriptors.closed(connection)
        self.counts.connections_open -= 1
        address = connection.peer.address
        if address in self._per_address:
            self._per_address[address] -= 1
            if self._per_address[address] <= 0:
                del self._per_address[address]

    def answers(self, client: str, exchange: RecordedExchange | None, answer: Answer) -> None:
        """For the access log: what is sent; told at once when there is no exchange whose end would
        tell it.
        """
        if exchange is not None:
            exchange.status, exchange.sent = (
                answer.status,
                0 if exchange.head.method == b"HEAD" else len(answer.body),
            )
        elif self.on_request is not None:
            self.on_request(RequestRecord(client, answer.status, len(answer.body), 0.0))

    def ended(self, exchange: RecordedExchange) -> None:
        """A request has its answer, or its visitor is gone."""
        if self.on_request is not None:
            arrival, took_s = exchange.head.arrival, self.now() - exchange.began
            self.on_request(
                RequestRecord(
                    arrival.client,
                    exchange.status,
                    exchange.sent,
                    took_s,
                    arrival,
                    exchange.verdict,
                )
            )

    def _stop_listening(self) -> None:
        for server in self._servers:
            server.close()
        self._servers.clear()

    def _failed(self, error: BaseException) -> None:
        self.counts.errors += 1
        self.on_error(error)

    def _sweep(self) -> None:
        """Everybody whose time is over is told; one exception must not stop the clock for the
        others.
        """
        self.date_line = b"Date: %b\r\n" % email.utils.formatdate(time.time(), usegmt=True).encode()
        self.batch.decide()  # a request that has come is not late
        now = self.now()
        self.sweep_at = now + self._sweep_s
        connections = list(self._connections)
        for connection in connections:
            if connection.deadline <= now:
                try:
                    connection.overdue()
                except Exception as error:
                    self._failed(error)
                    connection.transport.abort()
        self._descriptors.sweep(now)
        self._streams.sweep(
            [
                exchange
                for connection in connections
                if (exchange := connection.exchange) is not None
            ]
        )
        for pool in self._pools.values():
            pool.sweep(self.sweep_at)
        if not self._closed:
            self._sweeper = self._loop.call_later(self._sweep_s, self._sweep)
