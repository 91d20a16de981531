"""One connection to the origin: one request at a time, its answer read strictly. Bytes after the
answer, unasked bytes and unreadable ones end the connection: the next visitor must never get them.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Protocol, cast

from greenroom.decision.verdict import Forward
from greenroom.gateway.counts import Counts
from greenroom.gateway.origin.unread import is_broken, unread
from greenroom.gateway.wire.answer_head import NO_BODY, AnswerHead, end_of_lf_head, read_answer_head
from greenroom.gateway.wire.body import BadBody, Body, ChunkedBody, LengthBody, UntilClose
from greenroom.gateway.wire.head_records import RequestHead
from greenroom.gateway.wire.websocket import verified
from greenroom.settings.limits import Limits


class OriginExchange(Protocol):
    """The request that a connection serves (`visitor.exchange.Exchange`)."""

    @property
    def head(self) -> RequestHead: ...

    @property
    def forward(self) -> Forward | None: ...

    @property
    def key(self) -> bytes:
        """Sec-WebSocket-Key of a WebSocket request, or empty."""

    @property
    def tunnelling(self) -> bool:
        """Whether bytes are carried both ways as they come."""

    hints: int
    """Interim answers so far."""

    queued_s: float
    """How long it waited for a connection."""

    def interim(self, head: AnswerHead) -> None: ...

    def answer_begins(self, head: AnswerHead, payload: bytes, done: bool) -> None:
        """The head of the answer and the first of its body; `done` when that is all."""

    def answer_continues(self, payload: bytes, done: bool) -> None: ...

    def open_tunnel(self, head: AnswerHead, rest: bytes) -> None: ...

    def from_tunnel(self, data: bytes) -> None: ...

    def released(self) -> bool:
        """The connection is free of this request; returns whether it may serve another one."""

    def origin_is_full(self) -> None: ...

    def origin_has_room(self) -> None: ...

    def origin_lost(self, *, stale: bool) -> None:
        """The origin closed the connection. `stale`: it was used before and no byte of this answer
        came.
        """

    def origin_failed(self, status: int) -> None:
        """No (more) answer will come."""

    def broken(self, error: BaseException) -> None: ...


class ConnectionOwner(Protocol):
    """The pool of a connection (`origin.pool.Pool`)."""

    @property
    def limits(self) -> Limits: ...

    @property
    def counts(self) -> Counts: ...

    def give_back(self, connection: OriginConnection, idle_s: int) -> None:
        """The connection is ready for its next request; `idle_s` is how long the origin keeps it
        (0: not said).
        """

    def lost(self, connection: OriginConnection) -> None: ...

    def refill(self) -> None:
        """Called after `lost`, when its request was notified."""


class OriginConnection(asyncio.Protocol):
    """Belongs to a pool; while `exchange` is set it serves that one request."""

    __slots__ = (
        "_began_s", "_body", "_buffer", "_idle_s", "_keep", "_paused", "_sealed", "counts",
        "exchange", "idle_until", "pool", "served", "transport",
    )  # fmt: skip

    transport: asyncio.Transport

    def __init__(self, pool: ConnectionOwner) -> None:
        self.pool = pool
        self.counts = pool.counts
        self.exchange: OriginExchange | None = None
        self.idle_until = 0.0
        self.served = False  # a request before this one
        self._buffer = b""
        self._body: Body | None = None
        self._keep = False
        self._idle_s = 0
        self._began_s = 0.0
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._sealed = (
            transport.get_extra_info("sslcontext") is not None
        )  # TLS: what is unread cannot be understood from here
        self.transport.set_write_buffer_limits(high=self.pool.limits.write_bytes)

    def begin(self, exchange: OriginExchange, data: bytes) -> None:
        """Sends the first bytes of a request; its answer goes to `exchange`."""
        self.exchange = exchange
        self._began_s = monotonic()
        self.counts.bytes_in += len(data)
        self.transport.write(data)

    def write(self, data: bytes) -> None:
        if self._sealed and is_broken(self.transport):
            return
        self.counts.bytes_in += len(data)
        self.transport.write(data)

    def pause(self) -> None:
        """Stops reading: the visitor does not keep up."""
        if not self._paused and not self.transport.is_closing():
            self._paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()

    def close(self) -> None:
        self.transport.close()

    def abort(self) -> None:
        """Ends the exchange from our side: the origin sees the connection break and can stop
        working.
        """
        self.exchange = None
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        exchange = self.exchange
        if exchange is None:
            self.transport.abort()
            return
        try:
            body = self._body
            if body is None:
                self._read_head(exchange, data)
            elif exchange.tunnelling:
                exchange.from_tunnel(data)
            else:
                self._read_body(exchange, body, data)
        except BadBody:
            self._invalid(exchange)
        except Exception as error:
            exchange.broken(error)

    def _read_head(self, exchange: OriginExchange, data: bytes) -> None:
        if self._buffer:
            data, self._buffer = self._buffer + data, b""
        limit = self.pool.limits.origin_head_bytes
        while True:
            end = data.find(b"\r\n\r\n") + 4
            if end < 4 and not (end := end_of_lf_head(data)):
                self._buffer = data
                if len(data) > limit or not data.startswith(b"HTTP/1."[: len(data)]):
                    self._invalid(exchange)
                return
            head = read_answer_head(data[:end]) if end <= limit else None
            if head is None:
                end = end_of_lf_head(data)
                head = read_answer_head(data[:end]) if 0 < end <= limit else None
                if head is None:
                    self._invalid(exchange)
                    return
            data = data[end:]
            if head.status >= 200 or head.status == 101:
                break
            exchange.hints += 1
            if exchange.hints > self.pool.limits.origin_hints:
                self._invalid(exchange)
                return
            exchange.interim(head)
            if not data:
                return
        seconds = monotonic() - self._began_s
        self.counts.origin_wait_seconds += seconds
        self.counts.documents.answered(
            exchange.forward, exchange.head, head.status, seconds + exchange.queued_s
        )
        if (
            head.plain and head.content_length == len(data) and exchange.head.framing.plain
        ):  # as nearly always
            self._release(exchange, head.keep_alive, head.idle_s)
            exchange.answer_begins(head, data, True)
        else:
            self._keep, self._idle_s = head.keep_alive, head.idle_s
            self._begin_answer(exchange, head, data)

    def _begin_answer(self, exchange: OriginExchange, head: AnswerHead, rest: bytes) -> None:
        if head.status == 101:
            if exchange.key and verified(head, exchange.key):
                self._body = UntilClose()
                exchange.open_tunnel(head, rest)
            else:
                self._invalid(exchange)
            return
        length = head.content_length
        if exchange.head.method == b"HEAD" or head.status in NO_BODY:
            length = 0
            if head.status in NO_BODY and (
                head.chunked or (head.status == 204 and head.content_length)
            ):
                self._keep = (
                    False  # a body that is not allowed: the start of the next response is unknown
                )
        elif head.chunked:
            body = self._body = ChunkedBody(lenient=True)
            payload = body.feed(rest)
            if body.done:
                self._body_over(exchange, body)
            exchange.answer_begins(head, payload, body.done)
            return
        if length is None:
            self._body = UntilClose()
            exchange.answer_begins(head, rest, False)
        elif len(rest) >= length:
            self._release(exchange, self._keep and len(rest) == length, self._idle_s)
            exchange.answer_begins(head, rest[:length], True)
        else:
            self._body = LengthBody(length - len(rest))
            exchange.answer_begins(head, rest, False)

    def _read_body(self, exchange: OriginExchange, body: Body, data: bytes) -> None:
        payload = body.feed(data)
        done = body.done
        if done:
            self._body_over(exchange, body)
        exchange.answer_continues(payload, done)

    def _body_over(self, exchange: OriginExchange, body: Body) -> None:
        self._body = None
        self._release(exchange, self._keep and not body.rest, self._idle_s)

    def _release(self, exchange: OriginExchange, keep: bool, idle_s: int) -> None:
        """Returns the connection to the pool before the visitor is notified, so that the next
        request can have it.
        """
        self.exchange = None
        self.served = True
        if self._paused:
            self.resume()
        if exchange.released() and keep and idle_s != 1 and not self.transport.is_closing():
            self.pool.give_back(self, idle_s)
        else:
            self.transport.abort()

    def _invalid(self, exchange: OriginExchange) -> None:
        self.counts.origin_invalid += 1
        self.abort()
        exchange.origin_failed(502)

    def pause_writing(self) -> None:
        if self.exchange is not None:
            self.exchange.origin_is_full()

    def resume_writing(self) -> None:
        if self.exchange is not None:
            self.exchange.origin_has_room()

    def eof_received(self) -> None:
        """The transport closes, and `connection_lost` sorts it out."""

    def connection_lost(self, exc: Exception | None) -> None:
        """A body that ends with the connection is complete only when it was not reset."""
        if (
            exc is not None
            and not self._sealed
            and self.exchange is not None
            and (data := unread(self.transport))
        ):
            self.data_received(data)
        exchange, self.exchange = self.exchange, None
        self.pool.lost(self)
        if exchange is not None:
            try:
                if exc is None and isinstance(self._body, UntilClose) and not exchange.tunnelling:
                    exchange.released()
                    exchange.answer_continues(b"", True)
                else:
                    untouched = self._body is None and not self._buffer and not exchange.hints
                    exchange.origin_lost(stale=untouched and self.served)
            except Exception as error:
                exchange.broken(error)
        self.pool.refill()
