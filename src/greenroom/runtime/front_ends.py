"""Front ends of one process: every way in to its one decision service. The built-in gateway is the first of them."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Protocol

from greenroom.config.settings import Config
from greenroom.decision.service import DecisionService
from greenroom.gateway.request_record import RequestObserver
from greenroom.gateway.server import Gateway
from greenroom.gateway.tls import server_context
from greenroom.runtime import assemble
from greenroom.runtime.access_log import AccessLog
from greenroom.runtime.callbacks import OnError

Progress = Callable[[int], None]


class FrontEnd(Protocol):
    """Takes requests in, and has them decided."""

    async def start(self) -> None:
        """Begins to take requests. Raises OSError when it cannot."""

    def configure(self, config: Config) -> None:
        """A changed configuration counts from now on. Raises OSError or ssl.SSLError when it cannot be used, having changed nothing."""

    async def drain(self, seconds: float, progress: Progress) -> int:
        """Takes nothing more, lets requests under way finish for at most `seconds`, then closes; gives how many were cut off."""

    def close(self) -> None:
        """Ends everything at once. Idempotent."""


MakeFrontEnd = Callable[[Config, DecisionService], FrontEnd]


class GatewayFrontEnd:
    """The built-in gateway on the public listener, with its TLS and its access log."""

    def __init__(self, config: Config, decision: DecisionService, listener: socket.socket, on_error: OnError) -> None:
        """Make it inside the event loop. Raises OSError when a certificate or the access log's file cannot be read or opened."""
        self._listener = listener
        self.tls: ssl.SSLContext | None = server_context(config.tls.cert, config.tls.key) if config.tls else None
        self._access_log = _access_log(config)
        self.gateway: Gateway = assemble.gateway(config, decision, on_error, self._observe())

    async def start(self) -> None:
        """See `FrontEnd`."""
        await self.gateway.start(sockets=[self._listener], tls=self.tls)

    def configure(self, config: Config) -> None:
        """See `FrontEnd`."""
        before = self._access_log
        after = before if before and before.settings == config.log else _access_log(config)
        try:
            if self.tls and config.tls:
                self.tls.load_cert_chain(config.tls.cert, config.tls.key)
        except BaseException:
            if after and after is not before:
                after.close()
            raise
        self._access_log = after
        if before and before is not after:
            before.close()
        assemble.rewire(config, self.gateway, self._observe())

    async def drain(self, seconds: float, progress: Progress) -> int:
        """See `FrontEnd`."""
        return await self.gateway.drain(seconds, progress)

    def close(self) -> None:
        """See `FrontEnd`."""
        self.gateway.close()
        if self._access_log:
            self._access_log.close()
            self._access_log, self.gateway.on_request = None, None

    def _observe(self) -> RequestObserver | None:
        return self._access_log.observe if self._access_log else None


def _access_log(config: Config) -> AccessLog | None:
    return AccessLog(config.log) if config.log.access != "off" else None


async def drain_all(front_ends: Sequence[FrontEnd], seconds: float, progress: Progress) -> int:
    """Drains all at once; `progress` is told the number of requests under way in all of them together."""
    left = [0] * len(front_ends)

    def told(index: int) -> Progress:
        def tell(count: int) -> None:
            left[index] = count
            progress(sum(left))

        return tell

    return sum(await asyncio.gather(*[one.drain(seconds, told(index)) for index, one in enumerate(front_ends)]))
