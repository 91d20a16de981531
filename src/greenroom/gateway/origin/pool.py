"""Connections to one origin, each lent to one request at a time. A request whose client, ticket or
kind has used up its share (`origin.shares`) waits aside. Long-lived tunnels are counted separately.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from itertools import islice
from math import inf
from time import monotonic
from typing import cast

import structlog

from greenroom.decision.verdict import Forward
from greenroom.gateway.counts import Counts
from greenroom.gateway.origin.address import Origin, OriginGuard
from greenroom.gateway.origin.flights import Flights
from greenroom.gateway.origin.origin_request import OriginRequest
from greenroom.gateway.origin.shares import Shares, Taker, is_same_client, ticket_of
from greenroom.gateway.origin.unread import is_broken, unread
from greenroom.gateway.origin.waiting import WaitingRequests
from greenroom.gateway.wire.answer_head import NO_BODY, AnswerHead, end_of_lf_head, read_answer_head
from greenroom.gateway.wire.body import BadBody, Body, ChunkedBody, LengthBody, UntilClose
from greenroom.gateway.wire.websocket import verified
from greenroom.model.visit import Arrival
from greenroom.outbound import OutboundRefused
from greenroom.settings.limits import Limits

log = structlog.get_logger(__name__)

PROMOTED_AT_ONCE = 8  # requests set aside that are looked at again when a connection comes back


class OriginConnection(asyncio.Protocol):
    __slots__ = (
        "_buffer", "_idle_s", "_keep", "_paused", "_sealed", "began_s", "body", "counts",
        "exchange", "idle_until", "pool", "served", "transport",
    )  # fmt: skip

    transport: asyncio.Transport

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.counts = pool.counts
        self.exchange: OriginRequest | None = None
        self.idle_until = 0.0
        self.served = False  # a request before this one
        self._buffer = b""
        self.body: Body | None = None
        self._keep = False
        self._idle_s = 0
        self.began_s = 0.0
        """When the whole request was sent; `inf` before."""
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        # TLS: what is unread cannot be understood from here
        self._sealed = transport.get_extra_info("sslcontext") is not None
        self.transport.set_write_buffer_limits(high=self.pool.limits.write_bytes)

    def begin(self, exchange: OriginRequest, data: bytes, *, whole: bool) -> None:
        """If not `whole`, the rest of the body is written later, followed by `sent`."""
        self.exchange = exchange
        self.began_s = monotonic() if whole else inf
        self.counts.bytes_in += len(data)
        self.transport.write(data)

    def sent(self) -> None:
        self.began_s = monotonic()

    def write(self, data: bytes) -> None:
        if self._sealed and is_broken(self.transport):
            return
        self.counts.bytes_in += len(data)
        self.transport.write(data)

    def pause(self) -> None:
        if not self._paused and not self.transport.is_closing():
            self._paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()

    def close(self) -> None:
        self.transport.close()

    def abort(self) -> None:
        """Breaks the connection, so that the origin can stop working."""
        self.exchange = None
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        exchange = self.exchange
        if exchange is None:
            self.transport.abort()
            return
        try:
            body = self.body
            if body is None:
                self._read_head(exchange, data)
            elif exchange.tunnelling:
                exchange.from_tunnel(data)
            else:
                self._read_body(exchange, body, data)
        except BadBody:
            self._invalid(exchange)
        except Exception as error:
            exchange.broken(error)

    def _read_head(self, exchange: OriginRequest, data: bytes) -> None:
        if self._buffer:
            data, self._buffer = self._buffer + data, b""
        limit = self.pool.limits.origin_head_bytes
        while True:
            end = data.find(b"\r\n\r\n") + 4
            if end < 4 and not (end := end_of_lf_head(data)):
                self._buffer = data
                if len(data) > limit or not data.startswith(b"HTTP/1."[: len(data)]):
                    self._invalid(exchange)
                return
            head = read_answer_head(data[:end]) if end <= limit else None
            if head is None:
                end = end_of_lf_head(data)
                head = read_answer_head(data[:end]) if 0 < end <= limit else None
                if head is None:
                    self._invalid(exchange)
                    return
            data = data[end:]
            if head.status >= 200 or head.status == 101:
                break
            exchange.hints += 1
            if exchange.hints > self.pool.limits.origin_hints:
                self._invalid(exchange)
                return
            exchange.interim(head)
            if not data:
                return
        seconds = monotonic() - self.began_s
        if seconds < 0.0:  # an answer to half a request
            seconds = 0.0
        self.counts.origin_wait_seconds += seconds
        forward, arrival = exchange.forward, exchange.head.arrival
        if (flights := self.pool.flights) is not None:
            flights.answered(forward, arrival, head.status, seconds, self.pool.awaited)
        waited_s, answered = seconds + exchange.queued_s, self.counts.documents.answered
        answered(forward, arrival, head.status, waited_s)
        if (
            head.plain and head.content_length == len(data) and exchange.head.framing.plain
        ):  # as nearly always
            self._release(exchange, head.keep_alive, head.idle_s)
            exchange.answer_begins(head, data, True)
        else:
            self._keep, self._idle_s = head.keep_alive, head.idle_s
            self._begin_answer(exchange, head, data)

    def _begin_answer(self, exchange: OriginRequest, head: AnswerHead, rest: bytes) -> None:
        if head.status == 101:
            if exchange.key and verified(head, exchange.key):
                self.body = UntilClose()
                exchange.open_tunnel(head, rest)
            else:
                self._invalid(exchange)
            return
        length = head.content_length
        if exchange.head.method == b"HEAD" or head.status in NO_BODY:
            length = 0
            if head.status in NO_BODY and (
                head.chunked or (head.status == 204 and head.content_length)
            ):
                self._keep = (
                    False  # a body that is not allowed: the start of the next response is unknown
                )
        elif head.chunked:
            body = self.body = ChunkedBody(lenient=True)
            payload = body.feed(rest)
            if body.done:
                self._body_over(exchange, body)
            else:
                self.pool.answer_begun(self)
            exchange.answer_begins(head, payload, body.done)
            return
        if length is None:
            self.body = UntilClose()
            self.pool.answer_begun(self)
            exchange.answer_begins(head, rest, False)
        elif len(rest) >= length:
            self._release(exchange, self._keep and len(rest) == length, self._idle_s)
            exchange.answer_begins(head, rest[:length], True)
        else:
            self.body = LengthBody(length - len(rest))
            self.pool.answer_begun(self)
            exchange.answer_begins(head, rest, False)

    def _read_body(self, exchange: OriginRequest, body: Body, data: bytes) -> None:
        payload = body.feed(data)
        done = body.done
        if done:
            self._body_over(exchange, body)
        exchange.answer_continues(payload, done)

    def _body_over(self, exchange: OriginRequest, body: Body) -> None:
        self.body = None
        self.pool.answer_over(self)
        self._release(exchange, self._keep and not body.rest, self._idle_s)

    def _release(self, exchange: OriginRequest, keep: bool, idle_s: int) -> None:
        """Returns the connection before the visitor is notified, so the next request can reuse it."""
        self.exchange = None
        self.served = True
        if self._paused:
            self.resume()
        if exchange.released() and keep and idle_s != 1 and not self.transport.is_closing():
            self.pool.give_back(self, idle_s)
        else:
            self.transport.abort()

    def _invalid(self, exchange: OriginRequest) -> None:
        self.counts.origin_invalid += 1
        self.abort()
        exchange.origin_failed(502)

    def pause_writing(self) -> None:
        if self.exchange is not None:
            self.exchange.origin_is_full()

    def resume_writing(self) -> None:
        if self.exchange is not None:
            self.exchange.origin_has_room()

    def eof_received(self) -> None: ...

    def connection_lost(self, exc: Exception | None) -> None:
        """A body delimited by the end of the connection is complete unless that was reset."""
        if (
            exc is not None
            and not self._sealed
            and self.exchange is not None
            and (data := unread(self.transport))
        ):
            self.data_received(data)
        exchange, self.exchange = self.exchange, None
        self.pool.lost(self)
        if exchange is not None:
            try:
                if exc is None and isinstance(self.body, UntilClose) and not exchange.tunnelling:
                    exchange.released()
                    exchange.answer_continues(b"", True)
                else:
                    untouched = self.body is None and not self._buffer and not exchange.hints
                    exchange.origin_lost(stale=untouched and self.served)
            except Exception as error:
                exchange.broken(error)
        self.pool.refill()


class Pool:
    """Lends the most recently used connection first, so that surplus ones age out."""

    def __init__(
        self,
        origin: Origin,
        limits: Limits,
        counts: Counts,
        loop: asyncio.AbstractEventLoop,
        guard: OriginGuard,
        goes_first: Callable[[Forward | None, Arrival], bool],
    ) -> None:
        self._goes_first = goes_first
        self.origin = origin
        self._guard = guard
        self.counts = counts
        self.authority = origin.host_header.encode()
        self._loop = loop
        self._idle: list[OriginConnection] = []
        self.requests: set[OriginConnection] = set()  # open, and no tunnels
        self._begun: set[OriginConnection] = set()  # of these: the answer's body is on its way
        self._tunnels: dict[OriginConnection, OriginRequest] = {}
        # since a tunnel closed: a client that retries fills no log
        self._limits_logged: set[str] = set()
        self._queue: WaitingRequests[OriginRequest] = WaitingRequests()
        self._aside: deque[OriginRequest] = deque()  # have their share already
        self._open = 0  # connections, and attempts to open one; tunnels are not among them
        self._attempts = 0  # attempts made for the first request in the queue
        self._tasks: set[asyncio.Task[None]] = set()
        self._context: ssl.SSLContext | None = None
        self._closed = False
        self.flights: Flights | None = None  # while no room follows its origin
        self.bound: int | None = None
        """Limit of `awaited` while the followed origin is slow; None: no such limit."""
        # the next sweep, about: idle connections count from it, without asking for the time
        self._sweep_at = loop.time()
        self.relimit(limits)

    def relimit(self, limits: Limits) -> None:
        self.limits, self._idle_s = limits, limits.origin_idle_s
        self._tunnel_shares = Shares.of_tunnels(limits)
        self._shares = Shares.of_requests(limits, limits.origin_connections)
        self._aside_most = self._shares.address
        self.bind(self.bound)

    @property
    def waiting(self) -> int:
        return len(self._queue) + len(self._aside)

    @property
    def awaited(self) -> int:
        """Requests whose answer has not begun."""
        return self._open - len(self._idle) - len(self._begun)

    def bind(self, bound: int | None) -> None:
        """Sets the limit of `awaited`; None leaves the operator's limit. Answers that stream or
        download do not count, because they may last minutes.
        """
        limit = self.limits.origin_connections
        self.bound = bound
        self._bound_shares = Shares.of_requests(self.limits, min(bound or limit, limit))
        self._easy = self._bound_shares.easy
        self._count()
        for _ in range(min(len(self._idle), self._open - self._most)):
            self._idle.pop(0).close()
        self.refill()

    def answer_begun(self, connection: OriginConnection) -> None:
        self._begun.add(connection)
        if self.bound is not None:
            self._count()
            self.refill()

    def answer_over(self, connection: OriginConnection) -> None:
        self._begun.discard(connection)
        if self.bound is not None:
            self._count()

    def _count(self) -> None:
        limit = self.limits.origin_connections
        self._most = limit if self.bound is None else min(limit, self.bound + len(self._begun))

    def lend(self, borrower: OriginRequest) -> None:
        """Now, or when a connection is free or opened; refuses when too many wait."""
        idle = self._idle
        if self._open - len(idle) < self._easy or self._fits(borrower):
            while idle:
                connection = idle.pop()
                if not connection.transport.is_closing():
                    borrower.connected(connection)
                    return
        borrower.waits()
        if not self._fits(borrower):
            self._set_aside(borrower)
        else:
            self._queue.append(borrower, self._goes_first(borrower.forward, borrower.head.arrival))
            if (
                len(self._queue) - self._attempts > self.limits.origin_queue
                and self._open >= self._most
            ):
                self._queue.pop().not_connected(503)
            self._backfill()

    def open_for(self, borrower: OriginRequest) -> None:
        self._open_one(borrower)

    def withdraw(self, borrower: OriginRequest) -> None:
        if not self._queue.discard(borrower) and borrower in self._aside:
            self._aside.remove(borrower)

    def give_back(self, connection: OriginConnection, idle_s: int) -> None:
        """`idle_s`: the origin's keep-alive timeout; 0: not stated."""
        if self._closed or self._open > self._most:
            connection.close()
        elif (self._queue or self._aside) and (borrower := self._next()) is not None:
            borrower.connected(connection)
        else:
            # An origin that closes after n seconds may do so while our request is under way: stop
            # using it a second before.
            keep_s = min(self._idle_s, idle_s - 1) if idle_s else self._idle_s
            connection.idle_until = self._sweep_at + keep_s
            self._idle.append(connection)

    def tunnel_limit(self, taker: OriginRequest) -> str:
        """The limit that another WebSocket would exceed; empty when it fits."""
        if len(self._tunnels) >= self.limits.origin_tunnels:
            passed = "origin_tunnels"
        else:
            passed = self._tunnel_shares.exceeded(
                _taker(taker), map(_taker, self._tunnels.values())
            )
        if passed:
            self.counts.tunnels_refused += 1
            if passed not in self._limits_logged:
                log.warning("websocket_refused", limit=passed, open=len(self._tunnels))
                self._limits_logged.add(passed)
        return passed

    def becomes_tunnel(self, connection: OriginConnection, taker: OriginRequest) -> str:
        """Counts the connection as a tunnel until it is lost, or returns the limit reached
        meanwhile.
        """
        if passed := self.tunnel_limit(taker):
            return passed
        self.requests.discard(connection)
        self._tunnels[connection] = taker
        self._open -= 1
        self.refill()
        return ""

    def lost(self, connection: OriginConnection) -> None:
        """Call `refill` after notifying the borrower, so that its retry comes first."""
        self.counts.origin_connections_open -= 1
        if self._tunnels.pop(connection, None) is None:
            self._open -= 1
        else:
            self._limits_logged.clear()
        self.requests.discard(connection)
        self.answer_over(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def refill(self) -> None:
        if self._aside and (borrower := self._promoted()) is not None:
            self._queue.append(borrower, False)
        self._backfill()

    def sweep(self, again: float) -> None:
        """Closes connections that would be idle too long before the next sweep, at loop time
        `again`.
        """
        self._sweep_at = again
        over = [connection for connection in self._idle if connection.idle_until <= again]
        for connection in over:
            self._idle.remove(connection)
            connection.close()
        while self._aside and self._idle and (borrower := self._promoted()) is not None:
            borrower.connected(self._idle.pop())

    def close(self) -> None:
        """Closes idle connections now and lent ones on return; cancels attempts."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        while self._idle:
            self._idle.pop().close()

    def _fits(self, taker: OriginRequest) -> bool:
        lent, begun = self._open - len(self._idle), self._begun
        if lent < self._shares.easy and lent - len(begun) < self._easy:
            return True
        wanted = _taker(taker)
        others = [(_taker(one.exchange), one in begun) for one in self.requests if one.exchange]
        if self._shares.exceeded(wanted, [each for each, _ in others]):
            return False
        return self.bound is None or not self._bound_shares.exceeded(
            wanted, [each for each, answering in others if not answering]
        )

    def _set_aside(self, borrower: OriginRequest) -> None:
        """Waits for a free share; fails at once when too many requests of this client wait."""
        self.counts.origin_shares_used_up += 1
        client = borrower.head.arrival.client
        alike = sum(is_same_client(other.head.arrival.client, client) for other in self._aside)
        if alike >= self._aside_most or len(self._aside) >= self.limits.origin_queue:
            borrower.not_connected(503)
        else:
            self._aside.append(borrower)

    def _next(self) -> OriginRequest | None:
        while self._queue:
            borrower = self._queue.popleft()
            if self._fits(borrower):
                return borrower
            self._set_aside(borrower)
        return self._promoted()

    def _promoted(self) -> OriginRequest | None:
        for borrower in list(islice(self._aside, PROMOTED_AT_ONCE)):
            self._aside.remove(borrower)
            if self._fits(borrower):
                return borrower
            self._aside.append(borrower)
        return None

    def _backfill(self) -> None:
        while self._attempts < len(self._queue) and self._open < self._most and not self._closed:
            self._open_one(None)

    def _open_one(self, borrower: OriginRequest | None) -> None:
        self._open += 1
        self._attempts += borrower is None
        task = self._loop.create_task(self._connect(borrower))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, borrower: OriginRequest | None) -> None:
        origin = self.origin
        connection, status = None, 502
        try:
            if self._context is None:
                self._context = origin.tls()
            async with asyncio.timeout(self.limits.origin_connect_s):
                connection = await self._connected(origin)
        except TimeoutError:
            status = 504
        except OutboundRefused:
            self.counts.origin_connects_refused += 1
        except (OSError, ValueError):  # refused, unreachable, TLS without trust; no such name
            status = 502
        finally:
            self._attempts -= borrower is None
            if connection is None:
                self._open -= 1
        self._arrived(borrower, connection, status)

    async def _connected(self, origin: Origin) -> OriginConnection:
        """Tries each address. Raises OSError, ssl.SSLError or OutboundRefused."""
        if origin.path:
            self._guard.check_socket(origin)
            _, connection = await self._loop.create_unix_connection(
                lambda: OriginConnection(self), origin.path
            )
            return connection
        name = (origin.server_name or origin.host) if self._context else None
        addresses = await self._guard.addresses(origin)
        for left, address in zip(range(len(addresses) - 1, -1, -1), addresses, strict=True):
            try:
                _, connection = await self._loop.create_connection(
                    lambda: OriginConnection(self),
                    address,
                    origin.port,
                    ssl=self._context,
                    server_hostname=name,
                )
            except OSError:
                if not left:
                    raise
            else:
                return connection
        raise OSError("the name has no address")

    def _arrived(
        self, borrower: OriginRequest | None, connection: OriginConnection | None, status: int
    ) -> None:
        if connection is not None:
            self.counts.origin_connects += 1
            self.counts.origin_connections_open += 1
            self.requests.add(connection)
            if borrower:
                borrower.connected(connection)
            else:
                self.give_back(connection, 0)
            return
        self.counts.origin_connect_failures += 1
        if borrower:
            borrower.not_connected(status)
        elif self._queue:
            self._queue.popleft().not_connected(status)
        self._backfill()


def _taker(request: OriginRequest) -> Taker:
    return request.head.arrival.client, ticket_of(request.forward)
