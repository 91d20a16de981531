"""TLS handshakes under way. Connections are accepted here so that connection limits apply to them:
an event loop reports a TLS connection only after its handshake. When descriptors run short, the
oldest half is closed.
"""

import asyncio
import contextlib
import socket
import ssl
from collections import Counter
from collections.abc import Callable

from greenroom.gateway.counts import Counts

RETRY_S = 0.25
"""After a failed accept, mostly for lack of descriptors."""


class Handshakes:
    def __init__(self, loop: asyncio.AbstractEventLoop, counts: Counts) -> None:
        self._loop = loop
        self._counts = counts
        self._under_way: dict[
            asyncio.Task[None], tuple[str, asyncio.BaseProtocol]
        ] = {}  # the oldest first, with the client's address
        self._of: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._under_way)

    def of(self, address: str) -> int:
        return self._of[address]

    def begin(
        self,
        sock: socket.socket,
        address: str,
        protocol: asyncio.BaseProtocol,
        tls: ssl.SSLContext,
        seconds: float,
    ) -> None:
        """Starts one; afterwards `protocol` takes the connection. It has no `transport` before."""

        async def shake() -> None:
            with contextlib.suppress(
                OSError
            ):  # what the client sent, that it sent nothing, or that it has gone; the socket is closed
                await self._loop.connect_accepted_socket(
                    lambda: protocol, sock, ssl=tls, ssl_handshake_timeout=seconds
                )

        task = self._loop.create_task(shake())
        self._under_way[task] = address, protocol
        self._of[address] += 1
        task.add_done_callback(self._over)

    def make_room(self) -> bool:
        """Closes the oldest half, unless some are closing already. False when there are none."""
        if any(task.cancelling() for task in self._under_way):
            return True
        left = [
            task
            for task, (_, protocol) in self._under_way.items()
            if not hasattr(protocol, "transport")
        ]
        oldest = left[: -(-len(left) // 2)]
        for task in oldest:
            task.cancel()
        self._counts.connections_shed += len(oldest)
        return bool(oldest)

    def close(self) -> None:
        for task in self._under_way:
            task.cancel()

    def _over(self, task: asyncio.Task[None]) -> None:
        address, _ = self._under_way.pop(task)
        self._of[address] -= 1
        if self._of[address] <= 0:
            del self._of[address]


class TlsListener:
    """One listening socket. `taken` receives each new connection and its address, and must close or
    begin it.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        at_once: int,
        taken: Callable[[socket.socket, str], None],
    ) -> None:
        self._loop, self._sock, self._at_once, self._taken = loop, sock, at_once, taken
        self._again: asyncio.TimerHandle | None = None
        sock.setblocking(False)
        loop.add_reader(sock, self._accept)

    def close(self) -> None:
        if self._again is not None:
            self._again.cancel()
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock)
            self._sock.close()

    def _accept(self) -> None:
        for _ in range(self._at_once):
            try:
                sock, name = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self._loop.remove_reader(self._sock)
                self._again = self._loop.call_later(
                    RETRY_S, self._loop.add_reader, self._sock, self._accept
                )
                return
            sock.setblocking(False)
            self._taken(sock, str(name[0]) if isinstance(name, tuple) else "")
