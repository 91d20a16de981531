"""The visitor's side of the gateway: one connection, its requests read one after the other, each
gated on its own.

Theory. A connection is always in one of these states, told apart by two attributes:

    exchange  body   what arrives is
    None      None   (the beginning of) the next head
    set       None   kept, unread, until the exchange is over (a pipelined request)
    set       set    the request's body: kept until the exchange has an origin, then passed on
    (`flowing`)
    None      set    the rest of an unwanted body: discarded

and two that end it: a WebSocket tunnel, and `_ending`: the last answer is out, input is ignored
until the visitor has read it. What is kept is bounded by not reading from the socket; what is
written is bounded by pausing the origin and by not starting the next request. Each step has a
deadline, looked at by the gateway's sweep: there is no timer per request.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import cast

from greenroom.decision.render import OUTAGE
from greenroom.gateway.visitor.body_reading import BodyReading
from greenroom.gateway.visitor.contracts import ConnectionServices
from greenroom.gateway.visitor.exchange import Exchange
from greenroom.gateway.visitor.flow import AHEAD, ORIGIN, TURN, Flow, peer_of
from greenroom.gateway.visitor.late_tries import HeldExchange, Trying
from greenroom.gateway.visitor.lingering import Lingering
from greenroom.gateway.visitor.request_body import RequestBody
from greenroom.gateway.wire.body import BadBody
from greenroom.gateway.wire.head_limits import END_OF_HEAD, hopeless
from greenroom.gateway.wire.head_records import RequestHead
from greenroom.gateway.wire.own_answers import LIVE, answer_bytes, refusal
from greenroom.gateway.wire.request_head import Peer
from greenroom.model.answer import Answer

HEAD = b"HEAD "
CR = 13


class VisitorConnection(BodyReading, asyncio.Protocol):
    """One connection of a visitor."""

    __slots__ = (
        "_ending", "_head_parts", "_head_since", "_lingering",
        "counts", "deadline", "exchange", "flow", "gateway", "half_closed", "limits", "peer", "requests", "transport",
        "write_paused",
    )  # fmt: skip

    transport: asyncio.Transport
    peer: Peer
    flow: Flow

    def __init__(self, gateway: ConnectionServices) -> None:
        self.gateway = gateway
        self.limits = gateway.limits
        self.counts = gateway.counts
        self.exchange: Exchange | None = None
        self.body: RequestBody | None = None  # the present request's, until it is read
        self.requests = 0
        self.deadline = 0.0
        self.half_closed = self.write_paused = self._ending = False
        self._buffer = b""
        self._lingering: Lingering | None = (
            None  # once ending, while the visitor may still be sending
        )
        self._head_since = 0.0  # when the first byte of an unfinished head came
        self._head_parts = 0  # pieces in which it came

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self.transport = cast(asyncio.Transport, transport)
        self.flow = Flow(self.transport)
        self.transport.set_write_buffer_limits(high=self.limits.write_bytes)
        self.deadline = self.gateway.now() + self.limits.head_s
        self.peer = peer_of(
            transport, self.gateway.forwarded_policy, self.limits, self.gateway.varying
        )
        if not self.gateway.admit(self):
            self.write(
                self._answer_bytes(refusal(503, "there are too many connections"), None, False)
            )
            self.close()

    def data_received(self, data: bytes) -> None:
        """Bytes from the visitor."""
        try:
            if (
                self.exchange is not None
                or self.body is not None
                or self._buffer
                or self.write_paused
                or self._ending
            ):
                self._receive_more(data)
            elif 0 < data.find(END_OF_HEAD) == len(data) - 4 and data[0] != CR:
                self._take_request(data)  # one head came and nothing else, as nearly always
            else:
                self._receive_more(data)
        except BadBody as bad:
            self.refuse(bad.status, str(bad))
        except Exception as error:
            self.broken(error)

    def _receive_more(self, data: bytes) -> None:
        exchange, body = self.exchange, self.body
        if body is not None and body.flowing:
            if self._buffer:  # it waits for its turn
                self._buffer += data
            else:
                self._read_body(body, data)
        elif exchange is not None and exchange.tunnelling:
            exchange.into_tunnel(data)
        elif not self._ending:
            self._buffer = self._buffer + data if self._buffer else data
            if exchange is None:
                self._read_next()
            if self._buffer and len(self._buffer) > self.limits.pipelined_bytes and self._waits():
                self.flow.pause(AHEAD)
        elif self._lingering is not None and not self.write_paused:
            self.deadline = self._lingering.deadline(len(data), self.gateway.now())

    def eof_received(self) -> bool:
        """The visitor sends no more. Nearly always it has gone; one that only closed its sending
        side gets a little time.
        """
        if self.exchange is not None:
            # or one that came with the end would not be answered over TLS
            self.gateway.batch.decide()
        exchange, body = self.exchange, self.body
        if (
            self._ending
            or (body is not None and body.flowing)
            or (exchange is not None and exchange.tunnelling)
        ):
            return False
        if not self._waits() or (exchange is None and not self._buffer):
            return False
        if self.peer.scheme == "https":  # TLS cannot be closed by half
            return False
        self.half_closed = self.flow.ended = True
        if not self.write_paused:
            self.expect(self.limits.half_closed_s)
        return True

    def pause_writing(self) -> None:
        """The visitor does not keep up."""
        self.write_paused = True
        self.expect_taken()
        if self.exchange is not None and self.exchange.origin is not None:
            self.exchange.origin.pause()

    def resume_writing(self) -> None:
        """The visitor caught up."""
        self.write_paused = False
        if self._ending:
            self.expect(self.limits.linger_s)
        elif self.exchange is not None:
            self.exchange.progressed()
            if self.exchange.origin is not None:
                self.exchange.origin.resume()
        else:
            self.expect(self.limits.keep_alive_s)
            self._read_on()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """The connection is gone, and with it the interest in an answer."""
        self.gateway.forget(self)
        self._ending = True
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.visitor_gone()
            self.gateway.ended(exchange)

    # Heads

    def _waits(self) -> bool:
        """Whether what is kept waits for us: for an answer, or for the visitor to take one."""
        return self.exchange is not None or self.write_paused

    def _read_on(self) -> None:
        """Reads the next request from the buffer, called from outside `data_received`."""
        try:
            self._read_next()
        except Exception as error:
            self.broken(error)

    def _read_next(self) -> None:
        """Takes the next request from the buffer when it is its turn and complete. The one behind
        it waits for its answer.
        """
        if not self._buffer or self.body is not None or self._ending or self._waits():
            return
        complete = self._read_request()
        if self.flow.reasons & AHEAD and not (
            complete and len(self._buffer) > self.limits.pipelined_bytes
        ):
            self.flow.resume(AHEAD)
        if not complete and self.half_closed and self.exchange is None:
            self.close()

    def _read_request(self) -> bool:
        """Takes one request from the buffer to be decided; False when it is not complete or was
        refused.
        """
        data = self._buffer
        if (
            data[0] == CR and data[:2] == b"\r\n"
        ):  # one empty line before a request is tolerated: old clients end bodies with it
            data = self._buffer = data[2:]
            if not data:
                return False
        end = data.find(END_OF_HEAD)
        if end < 0:
            return self._wait_for_head(data)
        end += len(END_OF_HEAD)
        self._buffer, self._head_since = data[end:], 0.0
        return self._take_request(data[:end])

    def _take_request(self, block: bytes) -> bool:
        """Takes a request with this head, to be decided with the others of this turn; False when it
        was refused.
        """
        gateway = self.gateway
        read_head = gateway.read_head
        head = read_head(block, self.peer)
        if not isinstance(head, RequestHead):
            return self.refuse(head.status, head.reason, bodiless=block.startswith(HEAD))
        self.requests += 1
        self.counts.requests += 1
        exchange = self.exchange = Exchange()
        exchange.visitor, exchange.head = self, head
        if gateway.on_request is not None:
            exchange.began = gateway.now()
        if head.framing.embodied:
            if 0 < self.limits.body_bytes < (head.content_length or 0):
                return self.refuse(413, "the body of the request is too large")
            self.body = RequestBody(head, self.limits)
        if head.target == gateway.live_target:
            gateway.later(partial(exchange.decided, LIVE))  # pipelined ones would recurse here
        else:
            gateway.batch.add(exchange)
        return True

    def expect_decision(self) -> None:
        """There is an answer for the present request a little later."""
        self.expect(self.limits.decision_s)

    def hold_answer(self, exchange: HeldExchange, trying: Trying) -> bool:
        """Holds the answer to a visitor who tries rarely; False when it should be answered at once."""
        return self.gateway.late_tries.hold(exchange, self, trying)

    def _wait_for_head(self, data: bytes) -> bool:
        if not self._head_since:  # a head has its time as a whole, however slowly it trickles in
            self._head_since, self._head_parts = self.gateway.now(), 0
            self.deadline = self._head_since + self.limits.head_s
        self._head_parts += 1
        wrong = hopeless(data, self.limits, self._head_parts)
        return (
            self.refuse(wrong.status, wrong.reason, bodiless=data.startswith(HEAD))
            if wrong
            else False
        )

    # Back-pressure and time

    @property
    def idle(self) -> bool:
        """Whether it is between requests."""
        return self.exchange is None and self.body is None and not self._buffer

    @property
    def spare(self) -> bool:
        """Whether no request is under way, and none has come whole."""
        return (
            self.exchange is None and self.body is None and not (self._ending or self.write_paused)
        )

    def expect(self, seconds: float) -> None:
        """Something must happen within these seconds, or `overdue` is called."""
        if self.half_closed and not self.write_paused and not self._ending:
            seconds = min(seconds, self.limits.half_closed_s)
        self.deadline = self.gateway.sweep_at + seconds

    def expect_taken(self) -> None:
        """The visitor must take what is written."""
        self.flow.mark()
        self.expect(self.limits.send_idle_s)

    def overdue(self) -> None:
        """The deadline has passed. A client that reads slowly, but reads, gets more time."""
        if (self.write_paused or self._ending) and self.flow.taken >= max(
            1, self.limits.send_rate * self.limits.send_idle_s
        ):
            self.expect_taken()
        elif self._ending or (self.write_paused and self.exchange is None):
            self.transport.abort()
        elif self.exchange is not None:
            self.exchange.overdue()
        elif self._buffer:
            self.refuse(408, "the head of the request took too long")
        else:
            self.close()

    # Answers

    def write(self, data: bytes) -> None:
        """To the visitor."""
        self.counts.bytes_out += len(data)
        self.transport.write(data)

    def answer(self, answer: Answer, *, last: bool = False) -> None:
        """Answers the present request from here; `last` closes the connection afterwards in any
        case.
        """
        exchange, gateway = self.exchange, self.gateway
        if exchange is not None:
            head = exchange.head
            keep = not last and self.lasts(head) and (self.body is None or self.can_go_on(head))
            exchange.answered = True
            if gateway.on_request is not None:
                gateway.answers(self.peer.client, exchange, answer)
            self.finished(keep, answer_bytes(answer, head, keep, gateway.date_line))

    def _answer_bytes(
        self, answer: Answer, head: RequestHead | None, keep: bool, bodiless: bool = False
    ) -> bytes:
        if self.gateway.on_request is not None:
            self.gateway.answers(self.peer.client, self.exchange, answer)
        return answer_bytes(answer, head, keep, self.gateway.date_line, bodiless)

    def lasts(self, head: RequestHead) -> bool:
        """Whether the connection may serve another request after this one."""
        return (
            head.framing.keep_alive
            and self.gateway.keeps
            and self.requests < self.limits.requests_per_connection
        )

    def refuse(self, status: int, reason: str, *, bodiless: bool = False) -> bool:
        """Answers a request that goes no further (`bodiless`: a HEAD), and closes: where the next
        one begins is unknown. Always False.
        """
        exchange = self.exchange
        self.counts.refused += 1
        if exchange is None and self.body is not None:  # of a request that has its answer
            self._end(True)
            return False
        if exchange is None:
            self.counts.requests += 1
        else:
            exchange.detach()
            if exchange.answered:
                self.cut(reset=False)
                return False
        self.finished(
            False,
            self._answer_bytes(
                refusal(status, reason), exchange.head if exchange else None, False, bodiless
            ),
            unread=True,
        )
        return False

    def broken(self, error: BaseException) -> None:
        """An exception in here: it is told, and the visitor is held, never passed on and never left
        with half an answer.
        """
        self.counts.errors += 1
        try:
            self.gateway.on_error(error)
            exchange = self.exchange
            if self._ending or (exchange is not None and exchange.answered):
                self.cut(reset=True)
            elif exchange is not None:
                exchange.detach()
                self.answer(exchange.sorry(503) if exchange.forward else OUTAGE, last=True)
            else:
                self.finished(False, self._answer_bytes(OUTAGE, None, False), unread=True)
        except Exception:
            self.transport.abort()

    # The end of an exchange, and of the connection

    def finished(self, keep: bool, last: bytes = b"", *, unread: bool = False) -> None:
        """The answer is written, but for its `last` bytes. `unread`: the visitor may still be
        sending, and must be given time to read.
        """
        if last:
            self.counts.bytes_out += len(last)
            self.transport.write(last)
        exchange, gateway = self.exchange, self.gateway
        if exchange is not None:
            self.exchange = exchange.visitor = None
            if gateway.on_request is not None:
                gateway.ended(exchange)
        if not keep:
            self._end(unread or self.body is not None or bool(self._buffer))
            return
        if self.body is not None:
            self.body.wait(gateway.now())
        if not self.write_paused:
            self.deadline = gateway.sweep_at + self.limits.keep_alive_s
        if self._buffer:
            self._read_on()
        elif self.half_closed:
            self.close()

    def _end(self, unread: bool) -> None:
        if not unread or self.half_closed:
            self.close()
            return
        self._ending, self._lingering = True, Lingering(self.limits, self.gateway.now())
        self._buffer, self.body = b"", None
        self.flow.resume(AHEAD | ORIGIN | TURN)
        if self.write_paused:
            self.expect_taken()
        else:
            self.expect(self.limits.linger_s)
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def close(self) -> None:
        """Closes when everything is written."""
        self._ending = True
        self._buffer, self.body = b"", None
        self.expect_taken()
        self.transport.close()

    def cut(self, *, reset: bool) -> None:
        """Ends the connection in the middle of an answer. `reset` shows it even to readers that
        take the end for the end.
        """
        self.counts.cut += 1
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.visitor = None
            exchange.detach()
            self.gateway.ended(exchange)
        self.close()
        if reset:
            self.flow.reset()
