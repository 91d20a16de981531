"""One request on its way: the decision, the origin, the answer. Everything that can go wrong between the two sides ends here.

An exchange begins when a head is read and ends exactly once: with a whole answer, with a cut connection, or with the visitor
gone. The visitor's connection owns the reading of the request, the origin's connection the reading of the answer; this
object carries bytes between them and keeps them from outrunning each other.
"""

from __future__ import annotations

from greenroom.decision.render import origin_error, render
from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.gateway.origin.connection import NO_BODY, OriginConnection
from greenroom.gateway.origin.pool import Pool
from greenroom.gateway.visitor.contracts import VisitorSide
from greenroom.gateway.visitor.flow import ORIGIN
from greenroom.gateway.wire.answer_head import AnswerHead, visitor_lines
from greenroom.gateway.wire.body import LAST_CHUNK, BadBody, chunk
from greenroom.gateway.wire.forwarded_head import outgoing_head
from greenroom.gateway.wire.request_head import RequestHead
from greenroom.gateway.wire.websocket import valid_key
from greenroom.model.answer import Answer

REPEATABLE = frozenset((b"GET", b"HEAD", b"OPTIONS"))
"""Methods that may be sent a second time when the first may have reached the origin."""


class Exchange:
    """One request and its answer. `visitor` is None once the visitor needs nothing more from it."""

    __slots__ = (
        "_chunked", "_keep", "_pool", "_retried", "_until_close", "answered", "began", "forward", "head", "key", "origin", "sent", "status",
        "tunnelling", "verdict", "visitor",
    )  # fmt: skip

    def __init__(self, visitor: VisitorSide, head: RequestHead) -> None:
        self.visitor: VisitorSide | None = visitor
        self.head = head
        self.verdict: Verdict | None = None
        self.forward: Forward | None = None  # the verdict, when it is one
        self.began = visitor.gateway.now() if visitor.gateway.on_request else 0.0
        self.status = self.sent = 0  # of the answer, and bytes of its body
        self.origin: OriginConnection | None = None
        self.answered = False  # the head of the answer went out
        self.tunnelling = False
        self.key = b""  # Sec-WebSocket-Key of a WebSocket request
        self._pool: Pool | None = None
        self._retried = False
        self._chunked = False  # how the answer's body is written
        self._until_close = False
        self._keep = False  # whether the visitor's connection goes on afterwards

    # The decision

    def decided(self, verdict: Verdict) -> None:
        """The verdict, now or later."""
        visitor = self.visitor
        if visitor is None or self.verdict is not None:
            return
        self.verdict = verdict
        try:
            if type(verdict) is Forward:
                visitor.counts.forwarded += 1
                self.forward = verdict
                self._send(visitor)
            elif type(verdict) is Hold:
                visitor.counts.answered += 1
                visitor.answer(render(verdict, self.head.arrival))
            elif type(verdict) is Answer:
                visitor.counts.answered += 1
                visitor.answer(verdict)
            else:
                raise TypeError(f"a verdict is Forward, Hold or Answer, not {type(verdict).__name__}")
        except Exception as error:
            self.broken(error)

    def _send(self, visitor: VisitorSide) -> None:
        head = self.head
        if head.upgrade:
            keys = [value for name, value in head.arrival.headers if name == b"sec-websocket-key"]
            if len(keys) != 1 or not valid_key(keys[0]):
                visitor.refuse(400, "Sec-WebSocket-Key is missing or malformed")
                return
            self.key = keys[0]
        self._pool = pool = visitor.gateway.pool_for(head.arrival.host)
        if pool is None:
            visitor.refuse(421, "this host is not configured")
            return
        connection = pool.take_idle()
        if connection is not None:
            self.connected(connection)
        else:
            visitor.expect(visitor.limits.origin_queue_s)
            pool.queue(self)

    # The origin, request side

    def connected(self, connection: OriginConnection) -> None:
        """A connection to the origin is open: sends the head and the body received so far in one write."""
        visitor, pool = self.visitor, self._pool
        if visitor is None or pool is None:
            connection.pool.give_back(connection, 0)
            return
        self.origin = connection
        try:
            data = outgoing_head(self.head, visitor.peer, pool.authority, visitor.gateway.receiver.own_cookies)
            limits, body = visitor.limits, visitor.body
            if body is None:
                visitor.expect(limits.origin_read_s)
            else:
                data += visitor.start_body(self, body)
                visitor.expect(limits.origin_read_s if body.done else limits.body_idle_s)
            connection.begin(self, data)
        except BadBody as bad:
            visitor.refuse(bad.status, str(bad))
        except Exception as error:
            self.broken(error)

    def not_connected(self, status: int) -> None:
        """No connection to be had."""
        self.origin_failed(status)

    def framed(self, payload: bytes, done: bool) -> bytes:
        """A part of the request's body as the origin gets it."""
        if not self.head.chunked:
            return payload
        framed = chunk(payload) if payload else b""
        return framed + LAST_CHUNK if done else framed

    def request_continues(self, payload: bytes, done: bool) -> None:
        """More of the request's body."""
        if self.origin is not None and (data := self.framed(payload, done)):
            self.origin.write(data)

    def origin_is_full(self) -> None:
        """The origin does not keep up with the request: read no more of it until it has taken what there is."""
        visitor = self.visitor
        if visitor is not None:
            visitor.flow.pause(ORIGIN)
            visitor.expect(visitor.limits.origin_read_s)

    def origin_has_room(self) -> None:
        """The origin caught up, or will not need it."""
        visitor = self.visitor
        if visitor is not None and visitor.flow.reasons & ORIGIN:
            visitor.flow.resume(ORIGIN)
            if visitor.body is not None:
                visitor.body.wait(visitor.gateway.now())
            visitor.expect(visitor.limits.body_idle_s if visitor.body is not None else self._silence_s(visitor))

    def progressed(self) -> None:
        """The origin sent something, or what it sent was taken."""
        visitor = self.visitor
        if visitor is not None and not visitor.write_paused:
            visitor.expect(self._silence_s(visitor))

    def _silence_s(self, visitor: VisitorSide) -> int:
        """How long nothing may come from the origin."""
        return visitor.limits.tunnel_idle_s if self.tunnelling else visitor.limits.origin_read_s

    # The origin, answer side

    def interim(self, head: AnswerHead) -> None:
        """An answer before the answer: hints go on, 100 does not (it was given from here), nor anything to HTTP/1.0."""
        visitor = self.visitor
        if visitor is None:
            return
        visitor.counts.origin_answers[1] += 1
        self.progressed()
        if head.status != 100 and self.head.minor:
            visitor.write(visitor_lines(head, b"", visitor.gateway.receiver.own_cookies) + b"\r\n")

    def answer_begins(self, head: AnswerHead, payload: bytes, done: bool) -> None:
        """The head of the answer, and what is there of its body; `done` when that is all."""
        visitor, forward = self.visitor, self.forward
        if visitor is None or forward is None:
            return
        visitor.counts.origin_answers[head.status // 100] += 1
        gateway = visitor.gateway
        cookie = forward.set_cookie
        if head.command and forward.obeys_origin:
            cookie = gateway.receiver.obey(forward, head.command) or cookie
        request = self.head
        keep = visitor.lasts(request) and (not done or visitor.can_go_on(request))
        length = head.content_length
        framing = b""
        if head.status in NO_BODY or request.method == b"HEAD":
            if length is not None and head.status != 204:
                framing = b"Content-Length: %d\r\n" % length
        elif length is not None or done:
            framing = b"Content-Length: %d\r\n" % (len(payload) if length is None else length)
        elif request.minor:
            framing = b"Transfer-Encoding: chunked\r\n"
            self._chunked = True
            payload = chunk(payload) if payload else b""
        else:
            keep, self._until_close = False, True
        if not keep:
            framing += b"Connection: close\r\n"
        elif not request.minor:
            framing += b"Connection: keep-alive\r\n"
        self._keep = keep
        self.answered, self.status = True, head.status
        lines = visitor_lines(head, cookie, gateway.receiver.own_cookies)
        self.sent += len(payload)
        visitor.write(b"%b%b\r\n%b" % (lines, framing, payload))
        if done:
            visitor.finished(keep)
        else:
            self.progressed()

    def answer_continues(self, payload: bytes, done: bool) -> None:
        """More of the answer's body."""
        visitor = self.visitor
        if visitor is None:
            return
        if self._chunked:
            payload = chunk(payload) if payload else b""
            if done:
                payload += LAST_CHUNK
        if payload:
            self.sent += len(payload)
            visitor.write(payload)
        if done:
            visitor.finished(self._keep and visitor.can_go_on(self.head))
        else:
            self.progressed()

    def released(self) -> bool:
        """Releases the connection to the origin; it may serve another request only if this one was sent completely."""
        self.origin = None
        visitor = self.visitor
        if visitor is None:
            return False
        if visitor.flow.reasons:
            self.origin_has_room()
        return visitor.body is None

    def origin_lost(self, *, stale: bool) -> None:
        """The origin closed the connection. `stale`: it had been used before and not one byte of this answer came."""
        self.origin = None
        if self.visitor is None:
            return
        head = self.head
        repeatable = head.method in REPEATABLE and not head.upgrade and not head.chunked and not head.content_length
        if stale and repeatable and not self._retried and self._pool is not None:
            self._retried = True
            self.visitor.counts.origin_retries += 1
            self._pool.open_for(self)
            return
        self.origin_failed(502)

    def origin_failed(self, status: int) -> None:
        """No (more) answer will come from the origin: a page that keeps the place, or a cut if the answer had begun."""
        self.origin = None
        visitor = self.visitor
        if visitor is None:
            return
        if self.tunnelling:
            visitor.close()
        elif self.answered:
            visitor.cut(reset=self._until_close)  # or HTTP/1.0 would take it for a whole answer
        else:
            visitor.counts.failed += 1
            self.origin_has_room()
            visitor.answer(self.sorry(status))

    # WebSocket

    def open_tunnel(self, head: AnswerHead, rest: bytes) -> None:
        """The origin agreed: from here on bytes are carried both ways until one side ends."""
        visitor, forward = self.visitor, self.forward
        if visitor is None or forward is None:
            return
        visitor.counts.tunnels += 1
        visitor.counts.tunnels_open += 1
        self.tunnelling = self.answered = True
        self.status = 101
        lines = visitor_lines(head, forward.set_cookie, visitor.gateway.receiver.own_cookies)
        agreed = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + head.accept + b"\r\n\r\n"
        visitor.write(lines + agreed + rest)
        visitor.expect(visitor.limits.tunnel_idle_s)
        if early := visitor.take_buffer():
            self.into_tunnel(early)

    def into_tunnel(self, data: bytes) -> None:
        """From the visitor to the origin."""
        if self.origin is not None and self.visitor is not None:
            self.origin.write(data)
            self.visitor.expect(self.visitor.limits.tunnel_idle_s)

    def from_tunnel(self, data: bytes) -> None:
        """From the origin to the visitor."""
        if self.visitor is not None:
            self.visitor.write(data)
            self.visitor.expect(self.visitor.limits.tunnel_idle_s)

    # The end

    def overdue(self) -> None:
        """The time that the present step may take is over."""
        visitor = self.visitor
        if visitor is None:
            return
        if self.tunnelling:
            visitor.close()
        elif visitor.half_closed or visitor.write_paused:
            visitor.cut(reset=True)
        elif visitor.body is not None and self.origin is not None and not visitor.flow.reasons & ORIGIN:
            self.detach()
            visitor.refuse(408, "the body of the request took too long")
        else:
            waiting = self.origin is None
            self.detach()
            self.origin_failed(503 if waiting else 504)

    def detach(self) -> None:
        """Lets go of the origin: a request in the queue is withdrawn, one under way is broken off."""
        if self._pool is not None and self.origin is None:
            self._pool.withdraw(self)
        origin, self.origin = self.origin, None
        if origin is not None:
            origin.abort()

    def visitor_gone(self) -> None:
        """The visitor's connection is closed before the end."""
        visitor, self.visitor = self.visitor, None
        if visitor is not None and self.tunnelling:
            visitor.counts.tunnels_open -= 1
            if self.origin is not None:
                self.origin.exchange = None
                self.origin.close()
                self.origin = None
        elif visitor is not None:
            visitor.counts.abandoned += 1
        self.detach()

    def sorry(self, status: int) -> Answer:
        """A page about an origin that fails, which keeps the visitor's place."""
        return origin_error(status, self.head.arrival, self.forward.set_cookie if self.forward else b"")

    def broken(self, error: BaseException) -> None:
        """An exception on the origin's side of this exchange."""
        if self.visitor is not None:
            self.visitor.broken(error)
        self.detach()
