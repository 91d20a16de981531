"""Connections to one origin, lent to one request at a time. A request whose client, ticket or kind
has its share already (`origin.shares`) is set aside. Tunnels are counted apart, because they last.
"""

import asyncio
import ssl
from collections import deque
from itertools import islice
from typing import Protocol

import structlog

from greenroom.gateway.counts import Counts
from greenroom.gateway.origin.address import Origin
from greenroom.gateway.origin.connection import OriginConnection
from greenroom.gateway.origin.guard import OriginGuard
from greenroom.gateway.origin.shares import Shares, Taker, is_same_client
from greenroom.outbound import OutboundRefused
from greenroom.settings.limits import Limits

log = structlog.get_logger(__name__)

PROMOTED_AT_ONCE = 8
"""Requests set aside that are looked at again when a connection comes back."""


class Borrower(Taker, Protocol):
    """A request that wants a connection. `connected` or `not_connected` is called once, unless it
    withdraws before.
    """

    def waits(self) -> None:
        """No connection is ready."""

    def connected(self, connection: OriginConnection) -> None:
        """The connection is the borrower's until it releases or aborts it."""

    def not_connected(self, status: int) -> None:
        """No connection can be had; `status` is the answer's."""


class Pool:
    """Lends the most recently used connection first, so that the surplus ages and is closed."""

    def __init__(
        self,
        origin: Origin,
        limits: Limits,
        counts: Counts,
        loop: asyncio.AbstractEventLoop,
        guard: OriginGuard,
    ) -> None:
        self.origin = origin
        self._guard = guard
        self.counts = counts
        self.authority = origin.host_header.encode()
        self._loop = loop
        self._idle: list[OriginConnection] = []
        self._requests: set[OriginConnection] = set()  # open, and no tunnels
        self._tunnels: dict[OriginConnection, Taker] = {}
        self._limits_logged: set[str] = (
            set()
        )  # since a tunnel closed: a client that retries fills no log
        self._queue: deque[Borrower] = deque()
        self._aside: deque[Borrower] = deque()  # have their share already
        self._open = 0  # connections, and attempts to open one; tunnels are not among them
        self._attempts = 0  # attempts made for the first request in the queue
        self._tasks: set[asyncio.Task[None]] = set()
        self._context: ssl.SSLContext | None = None
        self._closed = False
        self._sweep_at = (
            loop.time()
        )  # the next sweep, about: idle connections count from it, without asking for the time
        self.relimit(limits)

    def relimit(self, limits: Limits) -> None:
        self.limits = limits
        self._shares, self._tunnel_shares = Shares.of_requests(limits), Shares.of_tunnels(limits)
        self._easy, self._idle_s = self._shares.easy, limits.origin_idle_s

    def lend(self, borrower: Borrower) -> None:
        """Lends a connection at once, or when one is free or opened; none where too many wait
        already.
        """
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
        elif (
            len(self._queue) - self._attempts >= self.limits.origin_queue
            and self._open >= self.limits.origin_connections
        ):
            borrower.not_connected(503)
        else:
            self._queue.append(borrower)
            self._backfill()

    def open_for(self, borrower: Borrower) -> None:
        """Lends an unused connection, for the one retry."""
        self._open_one(borrower)

    def withdraw(self, borrower: Borrower) -> None:
        """Cancels a borrower; harmless when it is not waiting."""
        for waiting in (self._queue, self._aside):
            if borrower in waiting:
                waiting.remove(borrower)

    def give_back(self, connection: OriginConnection, idle_s: int) -> None:
        """Takes a connection that is ready for its next request; `idle_s` is how long the origin
        keeps it (0: not said).
        """
        if self._closed:
            connection.close()
        elif (self._queue or self._aside) and (borrower := self._next()) is not None:
            borrower.connected(connection)
        else:
            # An origin that closes after n seconds may do so while our request is under way: stop
            # using it a second before.
            keep_s = min(self._idle_s, idle_s - 1) if idle_s else self._idle_s
            connection.idle_until = self._sweep_at + keep_s
            self._idle.append(connection)

    def tunnel_limit(self, taker: Taker) -> str:
        """The limit that one more WebSocket would pass; empty when it fits."""
        if len(self._tunnels) >= self.limits.origin_tunnels:
            passed = "origin_tunnels"
        else:
            passed = self._tunnel_shares.exceeded(taker, self._tunnels.values())
        if passed:
            self.counts.tunnels_refused += 1
            if passed not in self._limits_logged:
                log.warning("websocket_refused", limit=passed, open=len(self._tunnels))
                self._limits_logged.add(passed)
        return passed

    def becomes_tunnel(self, connection: OriginConnection, taker: Taker) -> str:
        """Counts it with the tunnels until it is lost, or returns the limit that is full by now."""
        if passed := self.tunnel_limit(taker):
            return passed
        self._requests.discard(connection)
        self._tunnels[connection] = taker
        self._open -= 1
        self.refill()
        return ""

    def lost(self, connection: OriginConnection) -> None:
        """The connection is closed. Call `refill` after its borrower was notified, so that a retry
        comes first.
        """
        self.counts.origin_connections_open -= 1
        if self._tunnels.pop(connection, None) is None:
            self._open -= 1
        else:
            self._limits_logged.clear()
            self._requests.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def refill(self) -> None:
        """Opens connections for waiting requests, as far as the limit allows."""
        if self._aside and (borrower := self._promoted()) is not None:
            self._queue.append(borrower)
        self._backfill()

    def sweep(self, again: float) -> None:
        """Closes connections that would be idle for too long before the next sweep, at `again` in
        the loop's time.
        """
        self._sweep_at = again
        over = [connection for connection in self._idle if connection.idle_until <= again]
        for connection in over:
            self._idle.remove(connection)
            connection.close()
        while self._aside and self._idle and (borrower := self._promoted()) is not None:
            borrower.connected(self._idle.pop())

    def close(self) -> None:
        """Closes idle connections now and lent ones when they come back; cancels attempts under
        way.
        """
        self._closed = True
        for task in self._tasks:
            task.cancel()
        while self._idle:
            self._idle.pop().close()

    def _fits(self, taker: Taker) -> bool:
        if self._open - len(self._idle) < self._easy:
            return True
        return not self._shares.exceeded(
            taker, [one.exchange for one in self._requests if one.exchange is not None]
        )

    def _set_aside(self, borrower: Borrower) -> None:
        """Waits for a connection of its share; an error at once when too many of its client
        wait.
        """
        self.counts.origin_shares_used_up += 1
        client = borrower.head.arrival.client
        alike = sum(is_same_client(other.head.arrival.client, client) for other in self._aside)
        if alike >= self._shares.address or len(self._aside) >= self.limits.origin_queue:
            borrower.not_connected(503)
        else:
            self._aside.append(borrower)

    def _next(self) -> Borrower | None:
        """The first waiting request within its share; others on the way are set aside."""
        while self._queue:
            borrower = self._queue.popleft()
            if self._fits(borrower):
                return borrower
            self._set_aside(borrower)
        return self._promoted()

    def _promoted(self) -> Borrower | None:
        """A request set aside that is within its share again."""
        for borrower in list(islice(self._aside, PROMOTED_AT_ONCE)):
            self._aside.remove(borrower)
            if self._fits(borrower):
                return borrower
            self._aside.append(borrower)
        return None

    def _backfill(self) -> None:
        while (
            self._attempts < len(self._queue)
            and self._open < self.limits.origin_connections
            and not self._closed
        ):
            self._open_one(None)

    def _open_one(self, borrower: Borrower | None) -> None:
        self._open += 1
        self._attempts += borrower is None
        task = self._loop.create_task(self._connect(borrower))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, borrower: Borrower | None) -> None:
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
        except (
            OSError,
            ValueError,
        ):  # refused, unreachable, TLS that cannot be trusted; a name that is unknown or none
            status = 502
        finally:
            self._attempts -= borrower is None
            if connection is None:
                self._open -= 1
        self._arrived(borrower, connection, status)

    async def _connected(self, origin: Origin) -> OriginConnection:
        """Connects to the first address that answers. Raises OSError, ssl.SSLError or
        OutboundRefused.
        """
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
        self, borrower: Borrower | None, connection: OriginConnection | None, status: int
    ) -> None:
        if connection is not None:
            self.counts.origin_connects += 1
            self.counts.origin_connections_open += 1
            self._requests.add(connection)
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
