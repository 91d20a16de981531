"""One connection of a small application (control listener, status pages). uvicorn waits without end
for a request, the rest of its body, and a client that does not read; each such connection takes a
file descriptor from the visitors of the same process.
"""

import asyncio
import resource
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS_MOST = 3_000
"""Every live page, and as many other connections."""

PART = 8


def connections_most() -> int:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return (
        CONNECTIONS_MOST
        if limit == resource.RLIM_INFINITY
        else max(1, min(CONNECTIONS_MOST, limit // PART))
    )


@dataclass(frozen=True)
class AppConnectionLimits:
    connections: int

    @property
    def stalled_per_address(self) -> int:
        return max(1, self.connections // 4)

    head_s: float = 10
    body_s: float = 300
    """The largest body (32 MB) at 1 Mbit/s."""
    body_idle_s: float = 10
    send_s: float = 60


class AppConnection(H11Protocol):
    """When there are too many, a new connection closes the one that has been idle longest, else the
    oldest stalled one of the address that has most of them. Beyond its share of stalled connections
    an address closes its own.
    """

    def __init__(self, *, limits: AppConnectionLimits, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._limits = limits
        self._since_s = self.loop.time()
        self._reading: asyncio.TimerHandle | None = None  # of a head or a body
        self._reads_body = False
        self._body_idle: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    @property
    def under_way(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def stalled(self) -> bool:
        return self.under_way and (self.cycle.more_body or self._writing is not None)

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            self._make_room()
        self._expect_input()

    def _open(self) -> "list[AppConnection]":
        every = cast(Iterable[AppConnection], self.connections)
        return [one for one in every if not one.transport.is_closing()]

    def _make_room(self) -> None:
        idle = [one for one in self._open() if not one.under_way and one is not self]
        stalled = [one for one in self._open() if one.stalled]
        if idle:
            victims = idle
        elif stalled:
            most = Counter(one.address for one in stalled).most_common(1)[0][0]
            victims = [one for one in stalled if one.address == most]
        else:
            victims = [self]
        min(victims, key=lambda one: one._since_s).transport.abort()

    def _keep_to_share(self) -> None:
        mine = [one for one in self._open() if one.stalled and one.address == self.address]
        if len(mine) > self._limits.stalled_per_address:
            min(mine, key=lambda one: one._since_s).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._reading, self._body_idle, self._writing):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect_input()

    def on_response_complete(self) -> None:
        self._since_s = self.loop.time()
        self._stop_reading()
        super().on_response_complete()
        if self.under_way:  # one that had come before
            self._expect_input()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._writing = self.loop.call_later(self._limits.send_s, self.transport.abort)
        self._keep_to_share()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _expect_input(self) -> None:
        # A head or a body has its time as a whole, however slowly it trickles in.
        body = self.under_way
        if body and not self.cycle.more_body:
            self._stop_reading()
        elif self._reading is None or body is not self._reads_body:
            self._stop_reading()
            self._reads_body = body
            if body:
                self._since_s = self.loop.time()
                self._keep_to_share()
            self._reading = self.loop.call_later(
                self._limits.body_s if body else self._limits.head_s, self.transport.abort
            )
        self._expect_more_of_body()

    def _expect_more_of_body(self) -> None:
        if self._body_idle is not None:
            self._body_idle.cancel()
            self._body_idle = None
        if self._reading is not None and self._reads_body:
            self._body_idle = self.loop.call_later(self._limits.body_idle_s, self._cut_if_silent)

    def _cut_if_silent(self) -> None:
        if self.flow.read_paused:  # the application is slow, not the client
            self._expect_more_of_body()
        else:
            self.transport.abort()

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        if self._body_idle is not None:
            self._body_idle.cancel()
            self._body_idle = None
