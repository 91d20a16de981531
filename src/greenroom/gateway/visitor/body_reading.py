"""How a visitor's connection reads the body of a request: piece by piece, passed on, kept or
discarded.

A chunked body costs work for each chunk, however small. So only so much of one is read before other
connections get their turn, and what came with it waits in the connection's buffer.
"""

from __future__ import annotations

from abc import abstractmethod

from greenroom.gateway.visitor.contracts import ConnectionServices, FramedRequest
from greenroom.gateway.visitor.exchange import Exchange
from greenroom.gateway.visitor.flow import AHEAD, TURN, Flow
from greenroom.gateway.visitor.request_body import RequestBody
from greenroom.gateway.wire.head_records import RequestHead
from greenroom.gateway.wire.request_head import Peer
from greenroom.settings.limits import Limits

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class BodyReading:
    """The part of `VisitorConnection` that reads bodies."""

    __slots__ = ("_buffer", "body")

    gateway: ConnectionServices
    limits: Limits
    flow: Flow
    peer: Peer
    exchange: Exchange | None
    body: RequestBody | None
    _buffer: bytes

    @abstractmethod
    def data_received(self, data: bytes) -> None:
        """Bytes from the visitor."""

    @abstractmethod
    def expect(self, seconds: float) -> None:
        """Something must happen within these seconds."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """To the visitor."""

    @abstractmethod
    def _read_next(self) -> None:
        """Takes the next request from the buffer."""

    def start_body(self, exchange: FramedRequest, body: RequestBody) -> bytes:
        """The exchange has its origin: what is there of the body, framed for the origin. Raises
        BadBody.
        """
        body.wait(self.gateway.now())
        data = self._piece(body, self.take_buffer())
        if not data:
            if exchange.head.expect_continue:
                self.write(CONTINUE)
            return b""
        payload = body.take(data)
        done = body.done
        if done:
            self._body_over(body)
        return exchange.framed(payload, done)

    def _read_body(self, body: RequestBody, data: bytes) -> None:
        payload = body.take_in_time(self._piece(body, data), self.gateway.now())
        done, exchange = body.done, self.exchange
        if done:
            self._body_over(body)
        if exchange is not None:
            self.expect(self.limits.origin_read_s if done else self.limits.body_idle_s)
            exchange.request_continues(payload, done)
        elif done:
            self.expect(self.limits.keep_alive_s)
            self._read_next()

    def _piece(self, body: RequestBody, data: bytes) -> bytes:
        """What is read of the body now; the rest when other connections had their turn."""
        data, self._buffer = body.cut(data)
        if self._buffer:
            self.flow.pause(TURN)
            self.gateway.later(self._next_piece)
        return data

    def _next_piece(self) -> None:
        self.flow.resume(TURN)
        if self.body is not None and self.body.flowing:
            self.data_received(self.take_buffer())

    def _body_over(self, body: RequestBody) -> None:
        self.body = None
        self._buffer = body.rest + self._buffer

    def can_go_on(self, head: RequestHead) -> bool:
        """Whether the next request can be found: the body is read, or so little is left that it may
        be thrown away. To be asked once.

        A trusted proxy's connection carries many visitors, and some proxies (HAProxy 2.6, from
        HTTP/2) never send the rest of a body after the answer but use the connection again: the
        next visitor's request would be taken for the rest. So that one ends here.
        """
        body = self.body
        if body is None:
            return True
        if not body.flowing and not body.take_unwanted(self.take_buffer(), head.expect_continue):
            return False
        if body.done:
            self._body_over(body)
            return True
        return not self.peer.trusted and body.small_rest()

    def take_buffer(self) -> bytes:
        """Hands over the kept bytes."""
        data, self._buffer = self._buffer, b""
        if self.flow.reasons & AHEAD:
            self.flow.resume(AHEAD)
        return data
