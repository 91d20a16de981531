"""What a visitor's connection, its exchanges and the gateway ask of each other, so that none of
them has to import the one above it.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from greenroom.decision.forwarded import ForwardedPolicy
from greenroom.decision.verdict import Forward, Verdict
from greenroom.gateway.counts import Counts
from greenroom.gateway.origin.pool import Pool
from greenroom.gateway.request_record import RequestObserver
from greenroom.gateway.visitor.decision_batch import DecisionBatch
from greenroom.gateway.visitor.flow import Flow
from greenroom.gateway.visitor.late_tries import HeldExchange, LateTries, Trying
from greenroom.gateway.visitor.open_streams import WatchedExchange, WatchedSession
from greenroom.gateway.visitor.request_body import RequestBody
from greenroom.gateway.wire.head_records import RequestHead
from greenroom.gateway.wire.header_lines import Varying
from greenroom.gateway.wire.request_head import Peer
from greenroom.model.answer import Answer
from greenroom.model.visit import Arrival
from greenroom.request.canonical import Refusal
from greenroom.settings.limits import Limits


class Receiver(Protocol):
    """What decides about arrivals (`decision.service.DecisionService`)."""

    @property
    def own_cookies(self) -> frozenset[bytes]:
        """Names of cookies that no origin sees or sets."""

    def verdict(
        self,
        arrival: Arrival,
        later: Callable[[Verdict], None],
        late: Callable[[Trying], bool] | None = None,
    ) -> Verdict | None:
        """The verdict, or None, and then `later` is called exactly once; never raises.

        `late` may be offered a try whose answer may be held. When it takes it (True), the gateway
        ends it, and `later` is not called.
        """

    def obey(self, forward: Forward, command: bytes) -> bytes:
        """The Set-Cookie value to send instead of the ticket, or empty."""

    def open_session(self, forward: Forward, place: int) -> WatchedSession:
        """The session of a request that is under way for long."""


class RecordedExchange(Protocol):
    """An exchange as the access log sees it."""

    head: RequestHead
    verdict: Verdict | None
    began: float
    status: int
    sent: int


class FramedRequest(Protocol):
    """An exchange whose body is read."""

    @property
    def head(self) -> RequestHead:
        """Of the request."""

    def framed(self, payload: bytes, done: bool) -> bytes:
        """A part of the body as the origin gets it."""


class OpenConnection(Protocol):
    """A visitor's connection as the gateway keeps it."""

    transport: asyncio.Transport
    peer: Peer
    flow: Flow
    deadline: float
    requests: int
    """Read so far."""

    @property
    def exchange(self) -> WatchedExchange | None:
        """The request under way."""

    @property
    def idle(self) -> bool:
        """Whether it is between requests."""

    @property
    def spare(self) -> bool:
        """Whether no request is under way, and none has come whole."""

    def overdue(self) -> None:
        """The deadline has passed."""

    def close(self) -> None:
        """Closes when everything is written."""


class ExchangeServices(Protocol):
    """What an exchange needs of the gateway."""

    @property
    def receiver(self) -> Receiver:
        """What decides about arrivals."""

    @property
    def on_request(self) -> RequestObserver | None:
        """Told what became of each request; None: nothing is measured for it."""

    def now(self) -> float:
        """The loop's time."""

    def pool_for(self, host: str) -> Pool | None:
        """The connections to the origin of this host; None when it has none."""


class ConnectionServices(ExchangeServices, Protocol):
    """What a visitor's connection needs of the gateway."""

    @property
    def limits(self) -> Limits:
        """For new connections."""

    @property
    def counts(self) -> Counts:
        """Of the gateway."""

    @property
    def forwarded_policy(self) -> ForwardedPolicy:
        """Which proxies are trusted to say who the client is."""

    @property
    def live_target(self) -> bytes:
        """The target answered with `LIVE` without a decision; empty: there is none."""

    @property
    def varying(self) -> tuple[Varying, ...]:
        """Header lines whose values are other ones for each visitor; empty: the usual ones (see
        `Peer`).
        """

    @property
    def keeps(self) -> bool:
        """Whether connections go on after an answer; not while draining."""

    @property
    def date_line(self) -> bytes:
        """The Date header."""

    @property
    def sweep_at(self) -> float:
        """When deadlines are looked at next, in the loop's time: what they are counted from, so
        that none passes too early.
        """

    @property
    def on_error(self) -> Callable[[BaseException], None]:
        """Told of exceptions, none of which reaches a visitor."""

    def read_head(self, block: bytes, peer: Peer, /) -> RequestHead | Refusal:
        """The facts of one request head (`request_head.read_head`)."""

    @property
    def batch(self) -> DecisionBatch:
        """Requests that are decided together."""

    @property
    def late_tries(self) -> LateTries:
        """Answers that are held."""

    def later(self, callback: Callable[[], None], /) -> object:
        """Calls it when other connections had their time."""

    def admit(self, connection: OpenConnection) -> bool:
        """Registers a new connection; False when a limit of connections is reached."""

    def forget(self, connection: OpenConnection) -> None:
        """The connection is closed."""

    def answers(self, client: str, exchange: RecordedExchange | None, answer: Answer) -> None:
        """For the access log: what is sent."""

    def ended(self, exchange: RecordedExchange) -> None:
        """A request has its answer, or its visitor is gone."""


class VisitorSide(Protocol):
    """What an exchange needs of the visitor's connection."""

    @property
    def gateway(self) -> ExchangeServices:
        """Whose connection it is."""

    @property
    def limits(self) -> Limits:
        """Of this connection."""

    @property
    def counts(self) -> Counts:
        """Of the gateway."""

    @property
    def peer(self) -> Peer:
        """Who is at the other end."""

    @property
    def flow(self) -> Flow:
        """Whether the visitor is read from."""

    @property
    def body(self) -> RequestBody | None:
        """The present request's, until it is read."""

    @property
    def write_paused(self) -> bool:
        """Whether the visitor does not keep up."""

    @property
    def half_closed(self) -> bool:
        """Whether the visitor sends no more."""

    def start_body(self, exchange: FramedRequest, body: RequestBody) -> bytes:
        """The exchange has its origin: what is there of the body, framed for the origin. Raises
        BadBody.
        """

    def take_buffer(self) -> bytes:
        """What was read and not used."""

    def lasts(self, head: RequestHead) -> bool:
        """Whether the connection may serve another request after this one."""

    def can_go_on(self, head: RequestHead) -> bool:
        """Whether the next request can be found. To be asked once."""

    def expect(self, seconds: float) -> None:
        """Something must happen within these seconds."""

    def expect_decision(self) -> None:
        """There is an answer for the present request a little later."""

    def hold_answer(self, exchange: HeldExchange, trying: Trying) -> bool:
        """Holds the answer to a visitor who tries rarely; False when it should be answered at once."""

    def write(self, data: bytes) -> None:
        """To the visitor."""

    def answer(self, answer: Answer, *, last: bool = False) -> None:
        """Answers the present request from here; `last` closes the connection afterwards in any
        case.
        """

    def refuse(self, status: int, reason: str) -> bool:
        """Answers a request that goes no further, and closes. Always False."""

    def broken(self, error: BaseException) -> None:
        """An exception: it is told, and the visitor is held."""

    def finished(self, keep: bool, last: bytes = b"", *, unread: bool = False) -> None:
        """The answer is written, but for its `last` bytes. `unread`: the visitor may still be
        sending, and must be given time to read.
        """

    def cut(self, *, reset: bool) -> None:
        """Ends the connection in the middle of an answer."""

    def close(self) -> None:
        """Closes when everything is written."""
