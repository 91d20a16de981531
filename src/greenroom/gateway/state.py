"""What all connections of a gateway share: decisions, origins, settings, clock and counts."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from greenroom.decision.kept_turn import FailedDocument
from greenroom.decision.late_try import LateTry
from greenroom.decision.open_session import OpenSession
from greenroom.decision.verdict import Forward, Verdict
from greenroom.gateway.counts import Counts
from greenroom.gateway.origin.address import Origin, OriginGuard
from greenroom.gateway.origin.pool import Pool
from greenroom.gateway.request_record import RequestObserver, RequestRecord
from greenroom.gateway.request_span import RequestSpan
from greenroom.gateway.wire.header_lines import Varying
from greenroom.gateway.wire.question_heads import ReadHead
from greenroom.gateway.wire.request_head import Peer, read_head
from greenroom.model.visit import Arrival
from greenroom.request.forwarded import ForwardedPolicy
from greenroom.settings.limits import Limits


class Receiver(Protocol):
    @property
    def own_cookies(self) -> frozenset[bytes]:
        """Cookies that no origin sees or sets."""

    def verdict(
        self,
        arrival: Arrival,
        later: Callable[[Verdict], None],
        late: Callable[[LateTry], bool] | None = None,
    ) -> Verdict | None:
        """The verdict, or None: then `later` is called exactly once. Never raises. `late` may be
        offered a long poll; if it returns True, it ends the request and `later` is not called.
        """

    def obey(self, forward: Forward, command: bytes) -> bytes:
        """The Set-Cookie value that replaces the ticket, or empty."""

    def receive_offers(self, forward: Forward, said: bytes) -> None:
        """The application's `Greenroom-Offers` header."""

    def open_session(self, forward: Forward, place: int) -> OpenSession: ...

    def failed_document(self, forward: Forward) -> FailedDocument: ...

    def goes_first(self, forward: Forward | None, arrival: Arrival) -> bool:
        """Priority while connections to the origin are scarce."""


class GatewayState:
    """Make it inside a running event loop. Reloads replace attributes."""

    def __init__(
        self,
        receiver: Receiver,
        origins: Callable[[str], Origin | None],
        limits: Limits,
        forwarded_policy: ForwardedPolicy,
        guard: OriginGuard,
        on_error: Callable[[BaseException], None],
        on_request: RequestObserver | None,
    ) -> None:
        self.receiver = receiver
        self.origins = origins
        self.limits = limits
        self.forwarded_policy = forwarded_policy
        self.guard = guard
        self.on_error = on_error
        self.on_request = on_request
        """None: requests are not measured."""
        self.trace: Callable[[Arrival, Peer], RequestSpan | None] | None = None
        self.traced_share = 0.0
        """Share of untrusted peers' requests for which `trace` is called."""
        self.on_span: RequestObserver | None = None
        self.varying: tuple[Varying, ...] = ()
        self.read_head: ReadHead = read_head
        self.live_target = b""
        self.counts = Counts()
        self.keeps = True  # connections go on after an answer; off while draining
        self.long_polls = 0
        self.date_line = b""
        self.sweep_at = 0.0
        """Loop time of the next sweep; deadlines count from it, so none is early."""
        self.loop = asyncio.get_running_loop()
        self.now = self.loop.time
        self.later = self.loop.call_soon
        self.pools: dict[Origin, Pool] = {}
        self._last: Pool | None = None

    def pool_for(self, host: str) -> Pool | None:
        """None when the host has no origin."""
        origin, pool = self.origins(host), self._last
        if pool is not None and pool.origin is origin:
            return pool
        if origin is None:
            return None
        pool = self.pools.get(origin)
        if pool is None:
            pool = self.pools[origin] = Pool(
                origin,
                self.limits,
                self.counts,
                self.loop,
                self.guard,
                lambda forward, arrival: self.receiver.goes_first(forward, arrival),
            )
        # equal to the one before, but another object after a reload
        pool.origin, self._last = origin, pool
        return pool

    def relimit(self, limits: Limits) -> None:
        """Applies to origins at once, to visitors with their next connection."""
        self.limits = limits
        for pool in self.pools.values():
            pool.relimit(limits)

    def record(self, record: RequestRecord) -> None:
        try:
            if self.on_request is not None:
                self.on_request(record)
            span, arrival, verdict = record.span, record.arrival, record.verdict
            if span is None or arrival is None:
                return
            if type(verdict) is Forward:
                self.counts.documents.trace(verdict, arrival, record.status, span)
            if self.on_span is not None:
                self.on_span(record)
        except Exception as error:  # a log that fails must not keep the answer
            self.failed(error)

    def failed(self, error: BaseException) -> None:
        self.counts.errors += 1
        self.on_error(error)
