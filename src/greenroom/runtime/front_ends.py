"""Every way in to the one decision service of a process."""

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from greenroom.config.config import Config
from greenroom.decision.arrival import ArrivalLimits
from greenroom.decision.service import DecisionService
from greenroom.gateway.origin.guard import OriginGuard
from greenroom.gateway.request_record import RequestObserver
from greenroom.gateway.server import Gateway
from greenroom.gateway.tls import server_context
from greenroom.gateway.wire.header_lines import IN_QUESTIONS
from greenroom.gateway.wire.question_heads import QuestionHeads
from greenroom.outbound.own_listeners import Listening
from greenroom.proxies.service import ProxyQuestions
from greenroom.proxies.spoe.connection import SpoeAgent
from greenroom.proxies.spoe.questions import SpoeQuestions
from greenroom.proxies.verdict_store import VerdictStore
from greenroom.runtime import assemble
from greenroom.runtime.access_log import AccessLog
from greenroom.runtime.entropy import Entropy
from greenroom.runtime.first_byte import ProtocolsByFirstByte
from greenroom.runtime.loops import OnError
from greenroom.runtime.parts import Listeners
from greenroom.settings.limits import Limits

Progress = Callable[[int], None]


class FrontEnd(Protocol):
    async def start(self) -> None:
        """Raises OSError."""

    def configure(self, config: Config) -> None:
        """Raises OSError or ssl.SSLError, having changed nothing."""

    async def drain(self, seconds: float, progress: Progress) -> int:
        """Returns the requests cut off after `seconds`."""

    def close(self) -> None: ...


class Configurable(Protocol):
    def configure(self, config: Config) -> None: ...


def configure_all(config: Config, *parts: Configurable) -> None:
    for part in parts:
        part.configure(config)


MakeFrontEnd = Callable[[Config, DecisionService], FrontEnd]


class GatewayFrontEnd:
    def __init__(
        self,
        config: Config,
        decision: DecisionService,
        listener: socket.socket,
        on_error: OnError,
        listening: Listening = tuple,
        everywhere: Listening | None = None,
    ) -> None:
        """Raises OSError when a certificate or the access log's file cannot be read or opened."""
        self._listener = listener
        self.tls: ssl.SSLContext | None = (
            server_context(config.tls.cert, config.tls.key) if config.tls else None
        )
        self._access_log = _access_log(config)
        self.gateway: Gateway = assemble.gateway(
            config,
            decision,
            on_error,
            self._observe(),
            OriginGuard(listening, everywhere=everywhere),
        )

    async def start(self) -> None:
        await self.gateway.start(sockets=[self._listener], tls=self.tls)

    def configure(self, config: Config) -> None:
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
        return await self.gateway.drain(seconds, progress)

    def close(self) -> None:
        self.gateway.close()
        if self._access_log:
            self._access_log.close()
            self._access_log, self.gateway.state.on_request = None, None

    def _observe(self) -> RequestObserver | None:
        return self._access_log.observe if self._access_log else None


class DecideFrontEnd:
    def __init__(
        self, config: Config, decision: DecisionService, listener: socket.socket, on_error: OnError
    ) -> None:
        self._listener = listener
        store = VerdictStore(Entropy().take, time.monotonic)
        self.questions = ProxyQuestions(
            decision, assemble.asking_policy(config), store, on_error, arrival_limits(config)
        )
        read, limits = QuestionHeads(self.questions).read, _asking_limits(config)
        self.gateway = Gateway(
            self.questions,
            lambda _: None,
            limits=limits,
            on_error=on_error,
            varying=IN_QUESTIONS,
            read=read,
        )
        self.spoe = SpoeAgent(SpoeQuestions(self.questions, on_error))

    async def start(self) -> None:
        protocols = ProtocolsByFirstByte(
            self.gateway.connection, {0: self.spoe.connection}, self.gateway.state.limits
        )
        await self.gateway.start(sockets=[self._listener], protocol=protocols.connection)

    def configure(self, config: Config) -> None:
        self.questions.reconfigure(assemble.asking_policy(config), arrival_limits(config))
        self.gateway.state.relimit(_asking_limits(config))

    async def drain(self, seconds: float, progress: Progress) -> int:
        # The pages of what was asked over SPOE are still given meanwhile.
        left = await self.spoe.drain(seconds)
        return left + await self.gateway.drain(seconds, progress)

    def close(self) -> None:
        self.spoe.close()
        self.gateway.close()


BuiltInFrontEnd = GatewayFrontEnd | DecideFrontEnd


def built_in_front_ends(
    config: Config,
    decision: DecisionService,
    listeners: Listeners,
    on_error: OnError,
    listening: Listening,
    everywhere: Listening,
) -> list[BuiltInFrontEnd]:
    """The gateway first."""
    found: list[BuiltInFrontEnd] = []
    if listeners.visitors:
        found.append(
            GatewayFrontEnd(config, decision, listeners.visitors, on_error, listening, everywhere)
        )
    if listeners.decide:
        found.append(DecideFrontEnd(config, decision, listeners.decide, on_error))
    return found


def arrival_limits(config: Config) -> ArrivalLimits:
    return ArrivalLimits(
        config.limits.head_bytes, config.limits.header_lines, config.limits.url_bytes
    )


def _asking_limits(config: Config) -> Limits:
    """A proxy opens as many connections as it needs."""
    return replace(config.limits, connections_per_address=0)


def _access_log(config: Config) -> AccessLog | None:
    return AccessLog(config.log) if config.log.access != "off" else None


async def drain_all(front_ends: Sequence[FrontEnd], seconds: float, progress: Progress) -> int:
    left = [0] * len(front_ends)

    def told(index: int) -> Progress:
        def tell(count: int) -> None:
            left[index] = count
            progress(sum(left))

        return tell

    return sum(
        await asyncio.gather(
            *[one.drain(seconds, told(index)) for index, one in enumerate(front_ends)]
        )
    )
