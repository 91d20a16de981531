"""The visitor's side of the gateway: one connection, its requests read one after the other, each
gated on its own.

Theory. A connection is always in one of these states, told apart by two attributes:

    exchange  body   what arrives is
    None      None   (the beginning of) the next head
    set       None   kept, unread, until the exchange is over (a pipelined request)
    set       set    the request's body: kept until the exchange has an origin, then passed on
    (`flowing`)
    None      set    the rest of an unwanted body: discarded

and two that end it: a WebSocket tunnel, and `ending`: the last answer is out, input is ignored
until the visitor has read it. What is kept is bounded by not reading from the socket; what is
written is bounded by pausing the origin and by not starting the next request. Each step has a
deadline, looked at by the gateway's sweep: there is no timer per request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import partial
from random import random
from typing import cast

from greenroom.decision.render import OUTAGE
from greenroom.gateway.handshakes import Handshakes
from greenroom.gateway.request_record import RequestRecord
from greenroom.gateway.state import GatewayState
from greenroom.gateway.visitor.decision_batch import DecisionBatch
from greenroom.gateway.visitor.descriptors import Descriptors
from greenroom.gateway.visitor.exchange import Exchange
from greenroom.gateway.visitor.request_body import RequestBody
from greenroom.gateway.visitor.stream import AHEAD, ORIGIN, Flow, VisitorStream, peer_of
from greenroom.gateway.wire.body import BadBody
from greenroom.gateway.wire.head_limits import END_OF_HEAD, hopeless
from greenroom.gateway.wire.head_records import RequestHead
from greenroom.gateway.wire.own_answers import LIVE, answer_bytes, refusal
from greenroom.model.answer import Answer
from greenroom.request.forwarded import network_of

HEAD = b"HEAD "
CR = 13

STALLED_S = 5.0
"""Silence within a body after which others take precedence."""

SHED_PART = 64
"""A full gateway closes one in SHED_PART connections at once and scans again only after the next
sweep: scanning 60,000 takes 35 ms.
"""


class VisitorConnection(VisitorStream):
    __slots__ = ("_all", "_batch", "_head_parts", "_head_since", "exchange")

    def __init__(
        self, gateway: GatewayState, batch: DecisionBatch, connections: Connections
    ) -> None:
        super().__init__(gateway)
        self._batch, self._all = batch, connections
        self.exchange: Exchange | None = None
        self._head_since = 0.0  # when the first byte of an unfinished head came
        self._head_parts = 0  # pieces in which it came

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.flow = Flow(self.transport)
        self.transport.set_write_buffer_limits(high=self.limits.write_bytes)
        self.deadline = self.gateway.now() + self.limits.head_s
        self.peer = peer_of(transport, self.gateway)
        if not self._all.admit(self):
            self._answer(refusal(503, "there are too many connections"))
            self.close()

    def data_received(self, data: bytes) -> None:
        try:
            if (
                self.exchange is not None
                or self.body is not None
                or self._buffer
                or self.write_paused
                or self.ending
            ):
                self._receive_more(data)
            elif 0 < data.find(END_OF_HEAD) == len(data) - 4 and data[0] != CR:
                self._take_request(data)  # one head came and nothing else, as nearly always
            else:
                self._receive_more(data)
        except BadBody as bad:
            if self.exchange is not None:
                self.exchange.refuse(bad.status, str(bad))
            else:
                self._refuse(bad.status, str(bad))
        except Exception as error:
            self._broken(error)

    def _receive_more(self, data: bytes) -> None:
        exchange, body = self.exchange, self.body
        if body is not None and body.flowing:
            if self._buffer:  # it waits for its turn
                self._buffer += data
            else:
                self._read_body(body, data)
        elif exchange is not None and exchange.tunnelling:
            exchange.into_tunnel(data)
        elif not self.ending:
            self._buffer = self._buffer + data if self._buffer else data
            if exchange is None:
                self._read_next()
            if self._buffer and len(self._buffer) > self.limits.pipelined_bytes and self._waits():
                self.flow.pause(AHEAD)
        else:
            self.discard(len(data))

    def eof_received(self) -> bool:
        """Usually the visitor has left; one that only closed its sending side gets a little time."""
        if self.exchange is not None:
            # or one that came with the end would not be answered over TLS
            self._batch.decide()
        exchange, body = self.exchange, self.body
        if (
            self.ending
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
        self.write_paused = True
        self.expect_taken()
        if self.exchange is not None and self.exchange.origin is not None:
            self.exchange.origin.pause()

    def resume_writing(self) -> None:
        self.write_paused = False
        if self.ending:
            self.expect(self.limits.linger_s)
        elif self.exchange is not None:
            self.exchange.progressed()
            if self.exchange.origin is not None:
                self.exchange.origin.resume()
        else:
            self.expect(self.limits.keep_alive_s)
            self._read_on()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._all.forget(self)
        self.ending = True
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.visitor_gone()

    # Requests

    def _waits(self) -> bool:
        return self.exchange is not None or self.write_paused

    def _read_on(self) -> None:
        try:
            self._read_next()
        except Exception as error:
            self._broken(error)

    def _read_next(self) -> None:
        """Reads the next complete request once the one before is answered."""
        if not self._buffer or self.body is not None or self.ending or self._waits():
            return
        complete = self._read_request()
        if self.flow.reasons & AHEAD and not (
            complete and len(self._buffer) > self.limits.pipelined_bytes
        ):
            self.flow.resume(AHEAD)
        if not complete and self.half_closed and self.exchange is None:
            self.close()

    def _read_request(self) -> bool:
        """False when the buffered request is incomplete or refused."""
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
        """Queues the request for this turn's batch of decisions; False when refused."""
        gateway = self.gateway
        read_head = gateway.read_head
        head = read_head(block, self.peer)
        if not isinstance(head, RequestHead):
            return self._refuse(head.status, head.reason, block.startswith(HEAD))
        self.requests += 1
        self.counts.requests += 1
        exchange = self.exchange = Exchange()
        exchange.visitor, exchange.head = self, head
        if gateway.on_request is not None:
            exchange.began = gateway.now()
        # As a call for each request this would cost more than all spans of one in a hundred.
        if gateway.trace is not None and (
            random() < gateway.traced_share or self.peer.trusted  # noqa: S311  a sample, no secret
        ):
            exchange.span = gateway.trace(head.arrival, self.peer)
            if exchange.span is not None:
                exchange.began = gateway.now()
        if head.framing.embodied:
            if 0 < self.limits.body_bytes < (head.content_length or 0):
                return exchange.refuse(413, "the body of the request is too large")
            self.body = RequestBody(head, self.limits)
        if head.target == gateway.live_target:
            gateway.later(partial(exchange.decided, LIVE))  # pipelined ones would recurse here
        else:
            self._batch.add(exchange)
        return True

    def _wait_for_head(self, data: bytes) -> bool:
        if not self._head_since:  # a head has its time as a whole, however slowly it trickles in
            self._head_since, self._head_parts = self.gateway.now(), 0
            self.deadline = self._head_since + self.limits.head_s
        self._head_parts += 1
        wrong = hopeless(data, self.limits, self._head_parts)
        return self._refuse(wrong.status, wrong.reason, data.startswith(HEAD)) if wrong else False

    def _read_body(self, body: RequestBody, data: bytes) -> None:
        payload, done = self.continue_body(body, data)
        exchange = self.exchange
        if exchange is not None:
            self.expect(self.limits.origin_read_s if done else self.limits.body_idle_s)
            exchange.request_continues(payload, done)
        elif done:
            self.expect(self.limits.keep_alive_s)
            self._read_next()

    def request_over(self, keep: bool, last: bytes = b"", *, unread: bool = False) -> None:
        if last:
            self.counts.bytes_out += len(last)
            self.transport.write(last)
        self.exchange = None
        if not keep:
            if unread or self.body is not None or self._buffer:
                self.linger()
            else:
                self.close()
            return
        gateway = self.gateway
        if self.body is not None:
            self.body.wait(gateway.now())
        if not self.write_paused:
            self.deadline = gateway.sweep_at + self.limits.keep_alive_s
        if self._buffer:
            self._read_on()
        elif self.half_closed:
            self.close()

    def request_cut(self, *, reset: bool) -> None:
        self.counts.cut += 1
        self.exchange = None
        self.close()
        if reset:
            self.flow.reset()

    # Without an exchange

    def _refuse(self, status: int, reason: str, bodiless: bool = False) -> bool:
        """Answers an invalid request (`bodiless`: HEAD) and closes, because the start of the next
        one is unknown. Always False.
        """
        self.counts.refused += 1
        if self.body is not None:  # of a request that has its answer
            self.linger()
        else:
            self.counts.requests += 1
            self._answer(refusal(status, reason), bodiless)
            self.linger()
        return False

    def _answer(self, answer: Answer, bodiless: bool = False) -> None:
        gateway = self.gateway
        if gateway.on_request is not None:
            gateway.on_request(
                RequestRecord(self.peer.client, answer.status, len(answer.body), 0.0)
            )
        self.write(answer_bytes(answer, None, False, gateway.date_line, bodiless))

    def _broken(self, error: BaseException) -> None:
        if self.exchange is not None:
            self.exchange.broken(error)
            return
        try:
            self.gateway.failed(error)
            if self.ending:
                self.request_cut(reset=True)
            else:
                self._answer(OUTAGE)
                self.linger()
        except Exception:
            self.transport.abort()

    # Time

    @property
    def idle(self) -> bool:
        return self.exchange is None and self.body is None and not self._buffer

    def is_spare(self) -> bool:
        """Whether a new connection may take its place: no request is under way, or a stalled one."""
        return self.has_stalled() if self.exchange is not None or self.write_paused else True

    def has_stalled(self) -> bool:
        """The body of the request has stopped coming, or the visitor has stopped reading."""
        if self.write_paused:
            since_s = self.gateway.now() - self._taken_since
            if since_s < STALLED_S or (self.exchange is not None and self.exchange.tunnelling):
                return False
            if not self.takes_enough(since_s):
                return True
            self.expect_taken()  # or what it took once would count for long
            return False
        body = self.body
        return (
            self.exchange is not None
            and not self.exchange.answered
            and body is not None
            and body.flowing
            and not self.flow.reasons & ORIGIN
            and self.deadline <= self.gateway.now() + self.limits.body_idle_s - STALLED_S
        )

    def give_way(self) -> None:
        """Releases a stalled request's origin connection."""
        if self.exchange is not None and self.write_paused:
            self.exchange.cut(reset=True)
        elif self.exchange is not None:
            self.exchange.refuse(408, "the body of the request took too long")

    def overdue(self) -> None:
        """A client that reads slowly, but reads, gets more time."""
        if (self.write_paused or self.ending) and self.takes_enough(self.limits.send_idle_s):
            self.expect_taken()
        elif self.ending or (self.write_paused and self.exchange is None):
            self.transport.abort()
        elif self.exchange is not None:
            self.exchange.overdue()
        elif self._buffer:
            self._refuse(408, "the head of the request took too long")
        else:
            self.close()


class Connections:
    """Open connections of a gateway, within its limits and the system's descriptors."""

    def __init__(
        self, gateway: GatewayState, handshakes: Handshakes, descriptors: Descriptors
    ) -> None:
        self._gateway, self._handshakes, self._descriptors = gateway, handshakes, descriptors
        self.open: set[VisitorConnection] = set()
        self._of: dict[str, set[VisitorConnection]] = {}
        """By network, without trusted proxies."""
        self._exhausted: set[str] = set()
        """Networks (empty: all) with nothing left to close until the sweep at `_until`."""
        self._until = 0.0

    def admit(self, connection: VisitorConnection) -> bool:
        """False at a limit with nothing left to close."""
        gateway = self._gateway
        limits, counts, peer = gateway.limits, gateway.counts, connection.peer
        most, fits = limits.connections_per_address, True
        if most and not peer.is_trusted_at(""):  # the host is not known yet, so no zone's
            network = network_of(peer.address)
            there = self._of.get(network, ())
            fits = len(there) < most or self._make_room(most, there, network)
            self._of.setdefault(network, set()).add(connection)
        fits = (
            fits
            and (
                len(self.open) < limits.connections
                or self._make_room(limits.connections, self.open)
            )
            and self.has_descriptors(connection.flow.descriptor)
        )
        self.open.add(connection)
        counts.connections_opened += 1
        counts.connections_open += 1
        counts.connections_refused += not fits
        return fits

    def _make_room(
        self, most: int, there: Collection[VisitorConnection], network: str = ""
    ) -> bool:
        """Closes spare connections among `there`, one in SHED_PART."""
        if self._until != self._gateway.sweep_at:
            self._until = self._gateway.sweep_at
            self._exhausted.clear()
        if network in self._exhausted:
            return False
        wanted = 1 + most // SHED_PART
        shed = self._descriptors.shed((one for one in there if one.is_spare()), wanted)
        if len(shed) < wanted:
            self._exhausted.add(network)
        return self._leave(*shed)

    def forget(self, connection: VisitorStream) -> None:
        self._descriptors.closed(connection)
        self._leave(connection)

    def _leave(self, *connections: VisitorStream) -> bool:
        """Stops counting them; False for none."""
        for connection in connections:
            if connection in self.open:
                self.open.discard(connection)
                self._gateway.counts.connections_open -= 1
                network = network_of(connection.peer.address)
                there = self._of.get(network, set())
                there.discard(connection)
                if not there:
                    self._of.pop(network, None)
        return bool(connections)

    def has_descriptors(self, number: int) -> bool:
        """Whether enough descriptors are left, if need be after closing others."""
        descriptors, shakes = self._descriptors, self._handshakes
        return (
            not descriptors.short(number, len(shakes))
            or shakes.make_room()
            or descriptors.closing
            or self._leave(
                *descriptors.make_room(
                    [one for one in self.open if one.is_spare()],
                    len(self.open),
                    self._gateway.now(),
                )
            )
        )
