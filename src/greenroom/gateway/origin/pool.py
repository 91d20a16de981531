"""Connections to one origin: lent to one request at a time, kept for a short while, never more than the origin may get."""

import asyncio
import ssl
from collections import deque
from typing import Protocol

from greenroom.gateway.counts import Counts
from greenroom.gateway.origin.address import Origin
from greenroom.gateway.origin.connection import OriginConnection
from greenroom.gateway.wire.limits import Limits


class Borrower(Protocol):
    """A request that wants a connection. Exactly one of the two is called, once, unless it withdraws before."""

    def connected(self, connection: OriginConnection) -> None:
        """The connection is the borrower's until it releases or aborts it."""

    def not_connected(self, status: int) -> None:
        """There is none to be had: the status to answer with."""


class Pool:
    """Lends the most recently used connection first, so that the surplus grows old and is closed."""

    def __init__(self, origin: Origin, limits: Limits, counts: Counts, loop: asyncio.AbstractEventLoop) -> None:
        self.origin = origin
        self.limits = limits
        self.counts = counts
        self.authority = origin.host_header.encode()
        self._loop = loop
        self._idle: list[OriginConnection] = []
        self._queue: deque[Borrower] = deque()
        self._open = 0  # connections, and attempts to open one
        self._attempts = 0  # attempts made for the first request in the queue
        self._tasks: set[asyncio.Task[None]] = set()
        self._context: ssl.SSLContext | None = None
        self._closed = False

    def take_idle(self) -> OriginConnection | None:
        """A connection that is ready now, or None."""
        idle, now = self._idle, self._loop.time()
        while idle:
            connection = idle.pop()
            if connection.idle_until > now and not connection.transport.is_closing():
                return connection
            connection.close()
        return None

    def queue(self, borrower: Borrower) -> None:
        """Answers when a connection is free or opened, at once when too many wait already."""
        if len(self._queue) - self._attempts >= self.limits.origin_queue and self._open >= self.limits.origin_connections:
            borrower.not_connected(503)
            return
        self._queue.append(borrower)
        self._backfill()

    def open_for(self, borrower: Borrower) -> None:
        """A connection that has not been used before; for the one retry."""
        self._open_one(borrower)

    def withdraw(self, borrower: Borrower) -> None:
        """The borrower does not want it any more; harmless when it is not waiting."""
        if borrower in self._queue:
            self._queue.remove(borrower)

    def give_back(self, connection: OriginConnection, idle_s: int) -> None:
        """A connection that is ready for its next request; `idle_s` is how long the origin keeps it (0: not said)."""
        if self._closed:
            connection.close()
        elif self._queue:
            self._queue.popleft().connected(connection)
        else:
            # An origin that closes after n seconds may do so while our request is under way: stop using it a second before.
            keep_s = min(self.limits.origin_idle_s, idle_s - 1) if idle_s else self.limits.origin_idle_s
            connection.idle_until = self._loop.time() + keep_s
            self._idle.append(connection)

    def lost(self, connection: OriginConnection) -> None:
        """The connection is closed. Call `refill` after its borrower was told, so that a retry comes first."""
        self._open -= 1
        self.counts.origin_connections_open -= 1
        if connection in self._idle:
            self._idle.remove(connection)

    def refill(self) -> None:
        """Opens connections for those that wait, as far as the limit allows."""
        self._backfill()

    def sweep(self, now: float) -> None:
        """Closes what was idle for too long; `now` is the loop's time."""
        idle = self._idle
        while idle and idle[0].idle_until <= now:
            idle.pop(0).close()

    def close(self) -> None:
        """Closes idle connections now and lent ones when they come back; attempts under way are given up."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        while self._idle:
            self._idle.pop().close()

    def _backfill(self) -> None:
        while self._attempts < len(self._queue) and self._open < self.limits.origin_connections and not self._closed:
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
                name = (origin.server_name or origin.host) if self._context else None
                _, connection = await self._loop.create_connection(
                    lambda: OriginConnection(self), origin.host, origin.port, ssl=self._context, server_hostname=name
                )
        except TimeoutError:
            status = 504
        except (OSError, ValueError):  # refused, unreachable, TLS that cannot be trusted; a name that is unknown or none
            status = 502
        finally:
            self._attempts -= borrower is None
            if connection is None:
                self._open -= 1
        self._arrived(borrower, connection, status)

    def _arrived(self, borrower: Borrower | None, connection: OriginConnection | None, status: int) -> None:
        if connection is not None:
            self.counts.origin_connects += 1
            self.counts.origin_connections_open += 1
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
