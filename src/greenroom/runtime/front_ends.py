"""Every way in to the one decision service of a process."""

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Protocol, cast

from greenroom.config_file.process_config import ProcessConfig
from greenroom.decision.service import DecisionService
from greenroom.gateway.documents import SeesAnswers
from greenroom.gateway.origin.address import OriginGuard
from greenroom.gateway.request_record import RequestObserver
from greenroom.gateway.server import Gateway
from greenroom.gateway.tls import server_context
from greenroom.gateway.wire.header_lines import IN_QUESTIONS
from greenroom.gateway.wire.question_heads import QuestionHeads
from greenroom.outbound.guard import Listening
from greenroom.proxies.service import ProxyQuestions, VerdictStore
from greenroom.proxies.spoe.connection import SpoeAgent
from greenroom.proxies.spoe.questions import SpoeQuestions
from greenroom.request.arrival import ArrivalLimits
from greenroom.runtime import assemble
from greenroom.runtime.access_log import AccessLog
from greenroom.runtime.entropy import Entropy
from greenroom.runtime.loops import OnError, Say
from greenroom.runtime.parts import Listeners
from greenroom.settings.limits import Limits
from greenroom.settings.process import Tracing

if TYPE_CHECKING:
    from greenroom.runtime.tracing import Tracer

Progress = Callable[[int], None]


class FrontEnd(Protocol):
    @property
    def answers(self) -> SeesAnswers | None:
        """None: it sees no answers of origins."""

    async def start(self) -> None:
        """Raises OSError."""

    def configure(self, config: ProcessConfig) -> None:
        """Raises OSError or ssl.SSLError, having changed nothing."""

    async def drain(self, seconds: float, progress: Progress) -> int:
        """Returns the requests cut off after `seconds`."""

    def close(self) -> None: ...


MakeFrontEnd = Callable[[ProcessConfig, DecisionService], FrontEnd]


class GatewayFrontEnd:
    def __init__(
        self,
        config: ProcessConfig,
        decision: DecisionService,
        listener: socket.socket,
        on_error: OnError,
        listening: Listening,
        everywhere: Listening | None,
    ) -> None:
        """Raises OSError when a certificate or the access log's file cannot be read or opened."""
        self._listener = listener
        self.tls: ssl.SSLContext | None = (
            server_context(config.tls.cert, config.tls.key) if config.tls else None
        )
        self._access_log = _access_log(config)
        self._tracer: Tracer | None = None
        self.gateway: Gateway = assemble.gateway(
            config,
            decision,
            on_error,
            self._observe(),
            OriginGuard(listening, everywhere=everywhere),
        )
        self._trace(config)

    @property
    def answers(self) -> SeesAnswers:
        return self.gateway

    async def start(self) -> None:
        await self.gateway.start(sockets=[self._listener], tls=self.tls)

    def configure(self, config: ProcessConfig) -> None:
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
        self._trace(config)

    async def drain(self, seconds: float, progress: Progress) -> int:
        return await self.gateway.drain(seconds, progress)

    def close(self) -> None:
        self.gateway.close()
        if self._access_log:
            self._access_log.close()
            self._access_log, self.gateway.state.on_request = None, None
        if self._tracer:
            self._tracer.close()
            self._tracer = self.gateway.state.trace = self.gateway.state.on_span = None

    def _observe(self) -> RequestObserver | None:
        return self._access_log.observe if self._access_log else None

    def _trace(self, config: ProcessConfig) -> None:
        before, state = self._tracer, self.gateway.state
        if (before.settings if before else Tracing()) == config.tracing:
            return
        if before:
            before.close(wait_s=0)
        self._tracer = _tracer(config, state.now)
        state.trace = self._tracer.begin if self._tracer else None
        state.traced_share = self._tracer.share if self._tracer else 0.0
        state.on_span = self._tracer.end if self._tracer else None


class DecideFrontEnd:
    answers: SeesAnswers | None = None

    def __init__(
        self,
        config: ProcessConfig,
        decision: DecisionService,
        listener: socket.socket,
        on_error: OnError,
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

    def configure(self, config: ProcessConfig) -> None:
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
    config: ProcessConfig,
    decision: DecisionService,
    listeners: Listeners,
    on_error: OnError,
    listening: Listening,
    everywhere: Listening,
) -> Iterator[BuiltInFrontEnd]:
    """The gateway first."""
    if listeners.visitors:
        yield GatewayFrontEnd(config, decision, listeners.visitors, on_error, listening, everywhere)
    if listeners.decide:
        yield DecideFrontEnd(config, decision, listeners.decide, on_error)


def arrival_limits(config: ProcessConfig) -> ArrivalLimits:
    return ArrivalLimits(
        config.limits.head_bytes, config.limits.header_lines, config.limits.url_bytes
    )


def _asking_limits(config: ProcessConfig) -> Limits:
    """A proxy opens as many connections as it needs."""
    return replace(config.limits, connections_per_address=0)


def _access_log(config: ProcessConfig) -> AccessLog | None:
    return AccessLog(config.log) if config.log.access != "off" else None


def _tracer(config: ProcessConfig, now_s: Callable[[], float]) -> "Tracer | None":
    if not config.tracing.endpoint:
        return None
    from greenroom.runtime.tracing import Tracer

    return Tracer(config.tracing, version("greenroom"), now_s)


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


MakeProtocol = Callable[[], asyncio.Protocol]


class ProtocolsByFirstByte:
    """`limits` bounds silent clients in number and time."""

    def __init__(
        self, usual: MakeProtocol, others: Mapping[int, MakeProtocol], limits: Limits
    ) -> None:
        self.usual = usual
        self.others = others
        self.limits = limits
        self.silent = 0

    def connection(self) -> asyncio.Protocol:
        return _Undecided(self)


class _Undecided(asyncio.Protocol):
    def __init__(self, protocols: ProtocolsByFirstByte) -> None:
        self._protocols = protocols

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._protocols.silent += 1
        self._timer = asyncio.get_running_loop().call_later(
            self._protocols.limits.head_s, self._transport.abort
        )
        if self._protocols.silent > self._protocols.limits.connections:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._decided()
        chosen = self._protocols.others.get(data[0], self._protocols.usual)()
        self._transport.set_protocol(chosen)
        chosen.connection_made(self._transport)
        chosen.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._decided()

    def _decided(self) -> None:
        self._timer.cancel()
        self._protocols.silent -= 1


async def drain(
    front_ends: Sequence[FrontEnd], seconds: float, hurry: asyncio.Event, say: Say
) -> None:
    """Waits at most `seconds` for requests under way, or until `hurry`; then cuts them off."""
    told = -1

    def progress(left: int) -> None:
        nonlocal told
        if left != told and left:
            say(
                f"draining: {left} request{'s' if left > 1 else ''} in progress; press Ctrl-C or"
                " send SIGTERM again to end them"
            )
        told = left

    draining = asyncio.create_task(drain_all(front_ends, seconds, progress))
    hurrying = asyncio.create_task(hurry.wait())
    await asyncio.wait([draining, hurrying], return_when=asyncio.FIRST_COMPLETED)
    hurrying.cancel()
    if draining.done():
        cut = draining.result()
    else:
        cut = told
        for front_end in front_ends:
            front_end.close()
        await draining
    say(f"stopped; {cut} request{'s were' if cut > 1 else ' was'} cut off" if cut else "stopped")
