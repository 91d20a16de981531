"""One request on its way: the decision, the origin, the answer.

Theory. An exchange begins when a head is read and ends exactly once: with a whole answer
(`request_over`), with a cut connection, or with the visitor gone. It owns the request: whatever goes
wrong on either side is told to it, and it alone answers. Below it are the bytes of the visitor's
connection (`VisitorStream`) and the connection to the origin, which know nothing of each other; it
carries bytes between them and keeps them from outrunning each other.
"""

from __future__ import annotations

from greenroom.decision.kept_turn import FAILURES
from greenroom.decision.late_try import LateTry
from greenroom.decision.render import OUTAGE, origin_error, render
from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.gateway.documents import is_document
from greenroom.gateway.origin.origin_request import OriginRequest
from greenroom.gateway.origin.pool import OriginConnection, Pool
from greenroom.gateway.request_record import RequestRecord
from greenroom.gateway.request_span import RequestSpan
from greenroom.gateway.visitor.long_poll import LongPoll, hold
from greenroom.gateway.visitor.request_body import CollectedBody, RequestBody
from greenroom.gateway.visitor.stream import ORIGIN, VisitorStream
from greenroom.gateway.wire.answer_head import (
    TICKET,
    AnswerHead,
    framing_of,
    publicly_cacheable,
    visitor_lines,
)
from greenroom.gateway.wire.body import LAST_CHUNK, BadBody, chunk
from greenroom.gateway.wire.forwarded_head import outgoing_head
from greenroom.gateway.wire.own_answers import answer_bytes, refusal
from greenroom.gateway.wire.websocket import Tunnel, valid_key
from greenroom.model.answer import Answer
from greenroom.request.admissible import is_part
from greenroom.request.form_replay import FORM_BYTES_MAX, may_keep_form

REPEATABLE = frozenset((b"GET", b"HEAD", b"OPTIONS"))
"""Methods that may be retried after the first attempt may have reached the origin."""

TOO_MANY_TUNNELS = "too many open WebSockets (%s)"

# the compiler leaves an attribute out whose default is a plain None, where there are several types
_UNDECIDED: Verdict | None = None


class Exchange(OriginRequest):
    """One request and its answer, compared by identity. `visitor` is None once the visitor needs
    nothing more. Initial values are class attributes, which makes construction cheap.
    """

    visitor: VisitorStream | None = None
    began: float = 0.0  # the loop's time; 0: nobody is told of this request
    span: RequestSpan | None = None
    verdict: Verdict | None = _UNDECIDED
    origin: OriginConnection | None = None
    answered: bool = False  # the head of the answer went out
    status: int = 0  # of the answer
    sent: int = 0  # bytes of the answer's body
    tunnel: Tunnel | None = None
    _pool: Pool | None = None
    _queued_at: float = 0.0
    # the body so far, while it is read before a connection is taken, or for the page
    _collected: CollectedBody | None = None
    _held: Hold | None = None  # the verdict, while its form is read
    _retried: bool = False
    _chunked: bool = False  # how the answer's body is written
    _until_close: bool = False
    _keep: bool = False  # whether the visitor's connection goes on afterwards

    # The decision

    def wait_for_verdict(self) -> None:
        if self.visitor is not None and self.verdict is None:
            self.visitor.expect(self.visitor.limits.decision_s)

    def late(self, trying: LateTry) -> bool:
        """Whether the answer is held as a long poll."""
        visitor = self.visitor
        return visitor is not None and hold(
            LongPoll(visitor, trying, self._waits, self.decided, self.broken)
        )

    def _waits(self) -> bool:
        return self.visitor is not None and self.verdict is None

    def decided(self, verdict: Verdict) -> None:
        visitor = self.visitor
        if visitor is None or self.verdict is not None:
            return
        self.verdict = verdict
        # The first test is cheap: `span` is looked up in the class.
        if visitor.gateway.trace is not None and self.span is not None:
            self.span.decided_at = visitor.gateway.now()
        try:
            if type(verdict) is Forward:
                visitor.counts.forwarded += 1
                self.forward = verdict
                if verdict.target:
                    self.head = self.head.to(verdict.target)
                self._send(visitor)
            elif type(verdict) is Hold:
                visitor.counts.answered += 1
                arrival = self.head.arrival
                if arrival.method == "POST":
                    self._hold_form(visitor, verdict)
                else:
                    self.answer(render(verdict, arrival))
            elif type(verdict) is Answer:
                visitor.counts.answered += 1
                self.answer(verdict)
            else:
                raise TypeError(f"no verdict: {type(verdict).__name__}")
        except BadBody as bad:
            self.refuse(bad.status, str(bad))
        except Exception as error:
            self.broken(error)

    def _hold_form(self, visitor: VisitorStream, hold: Hold) -> None:
        arrival, body = self.head.arrival, visitor.body
        if not may_keep_form(arrival):
            self.answer(render(hold, arrival))
        elif body is None:
            self.answer(render(hold, arrival, b""))
        elif (self.head.content_length or 0) > FORM_BYTES_MAX:
            self.answer(render(hold, arrival))
        else:
            self._held = hold
            self._collect(visitor, body, FORM_BYTES_MAX + 1)

    def _send(self, visitor: VisitorStream) -> None:
        head = self.head
        self._pool = pool = visitor.gateway.pool_for(head.arrival.host)
        if pool is None:
            self.refuse(421, "this host is not configured")
        elif head.framing.upgrade and not self.may_tunnel(pool):
            return
        elif (body := visitor.body) is not None and body.read_first():
            self._collect(visitor, body, visitor.limits.body_first_bytes)
        else:
            pool.lend(self)

    def _collect(self, visitor: VisitorStream, body: RequestBody, most: int) -> None:
        self._collected = CollectedBody(most)
        visitor.expect(visitor.limits.body_idle_s)
        self._collect_more(visitor, self._collected, self._start_body(visitor, body))

    def _collect_more(self, visitor: VisitorStream, collected: CollectedBody, data: bytes) -> None:
        whole = visitor.body is None
        if not collected.add(data, whole):
            return
        if self._held is not None:
            self.answer(render(self._held, self.head.arrival, collected.take() if whole else None))
        elif self._pool is not None:
            if not whole:
                visitor.flow.pause(ORIGIN)  # the rest is read when there is an origin to take it
            self._pool.lend(self)

    # The origin, request side

    def waits(self) -> None:
        if self.visitor is not None:
            self._queued_at = self.visitor.gateway.now()
            self.visitor.expect(self.visitor.limits.origin_queue_s)

    def connected(self, connection: OriginConnection) -> None:
        """Sends the head and the body received so far in one write."""
        visitor, pool = self.visitor, self._pool
        if visitor is None or pool is None:
            connection.pool.give_back(connection, 0)
            return
        self.origin = connection
        if self._queued_at:
            self.queued_s = visitor.gateway.now() - self._queued_at
        try:
            data = outgoing_head(
                self.head, visitor.peer, pool.authority, visitor.gateway.receiver.own_cookies
            )
            if visitor.gateway.trace is not None and self.span is not None:
                data = self.span.traced_head(data, visitor.gateway.now())
            if visitor.body is not None or self._collected is not None:
                data += self._body_so_far(visitor)
            visitor.expect(
                visitor.limits.origin_read_s if visitor.body is None else visitor.limits.body_idle_s
            )
            connection.begin(self, data, whole=visitor.body is None)
        except BadBody as bad:
            self.refuse(bad.status, str(bad))
        except Exception as error:
            self.broken(error)

    def _body_so_far(self, visitor: VisitorStream) -> bytes:
        collected, self._collected = self._collected, None
        if collected is None:
            return self._start_body(visitor, visitor.body) if visitor.body is not None else b""
        self.origin_has_room()
        return collected.take()

    def not_connected(self, status: int) -> None:
        self.origin_failed(status)

    def _start_body(self, visitor: VisitorStream, body: RequestBody) -> bytes:
        return self._framed(*visitor.start_body(body, self.head.expect_continue))

    def _framed(self, payload: bytes, done: bool) -> bytes:
        """Part of the body as framed for the origin; a kept form unchanged."""
        if not self.head.chunked or self._held is not None:
            return payload
        framed = chunk(payload) if payload else b""
        return framed + LAST_CHUNK if done else framed

    def request_continues(self, payload: bytes, done: bool) -> None:
        data = self._framed(payload, done)
        if self._collected is not None and self.visitor is not None:
            self._collect_more(self.visitor, self._collected, data)
        elif self.origin is not None and data:
            self.origin.write(data)
            if done:
                self.origin.sent()

    def origin_is_full(self) -> None:
        visitor = self.visitor
        if visitor is not None:
            visitor.flow.pause(ORIGIN)
            visitor.expect(visitor.limits.origin_read_s)

    def origin_has_room(self) -> None:
        visitor = self.visitor
        if visitor is not None and visitor.flow.reasons & ORIGIN:
            visitor.flow.resume(ORIGIN)
            if visitor.body is not None:
                visitor.body.wait(visitor.gateway.now())
            visitor.expect(
                visitor.limits.body_idle_s if visitor.body is not None else self._silence_s(visitor)
            )

    def progressed(self) -> None:
        visitor = self.visitor
        if visitor is not None and not visitor.write_paused:
            visitor.expect(self._silence_s(visitor))

    def _silence_s(self, visitor: VisitorStream) -> int:
        return visitor.limits.tunnel_idle_s if self.tunnelling else visitor.limits.origin_read_s

    # The origin, answer side

    def interim(self, head: AnswerHead) -> None:
        """Forwards hints; not 100, which greenroom sends itself, and nothing to HTTP/1.0."""
        visitor = self.visitor
        if visitor is None:
            return
        visitor.counts.origin_answers[1] += 1
        self.progressed()
        if head.status != 100 and self.head.minor:
            visitor.write(visitor_lines(head, b"", visitor.gateway.receiver.own_cookies) + b"\r\n")

    def answer_begins(self, head: AnswerHead, payload: bytes, done: bool) -> None:
        visitor, forward = self.visitor, self.forward
        if visitor is None or forward is None:
            return
        visitor.counts.origin_answers[head.digit] += 1
        cookie, own, request = forward.set_cookie, forward.lines, self.head
        if head.directs:
            cookie, own = self._cookies(visitor, forward, head)
        keep = visitor.lasts(request) and (
            visitor.body is None or not done or visitor.can_go_on(request)
        )
        if (
            done and keep and cookie and head.behind_ticket and request.framing.plain and not own
        ):  # as nearly always
            data = b"".join((head.lines, TICKET, cookie, head.behind_ticket, payload))
        else:
            lines = visitor_lines(head, cookie, visitor.gateway.receiver.own_cookies)
            framing = framing_of(head, payload, done, request, keep)
            self._chunked, self._until_close = framing.chunked, framing.until_close
            keep, payload = framing.keep, framing.payload
            data = b"".join((lines, own, framing.lines, b"\r\n", payload))
        self.answered = True
        if self.began:
            self.status, self.sent = head.status, len(payload)
            if self.span is not None:
                self.span.first_byte_at = visitor.gateway.now()
        if done:
            self.visitor = None
            if self.began:
                self._record(visitor)
            visitor.request_over(keep, data)
        else:
            visitor.write(data)
            self._keep = keep
            self.progressed()

    def _cookies(
        self, visitor: VisitorStream, forward: Forward, head: AnswerHead
    ) -> tuple[bytes, bytes]:
        """Ticket and own header lines for this answer: no ticket if shared caches may store it, a
        farewell if the origin asks.
        """
        if head.offers:
            visitor.gateway.receiver.receive_offers(forward, head.offers)
        if (
            head.command
            and forward.obeys_origin
            and (obeyed := visitor.gateway.receiver.obey(forward, head.command))
        ):
            return obeyed, b""
        if head.status in FAILURES and is_document(forward, self.head.arrival):
            return visitor.gateway.receiver.failed_document(forward).report(), forward.lines
        if (
            forward.renews_early
            and head.caching
            and not head.cookies
            and publicly_cacheable(head.caching)
            and is_part(self.head.arrival)
        ):
            return b"", b""
        return forward.set_cookie, forward.lines

    def answer_continues(self, payload: bytes, done: bool) -> None:
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
            self._end(visitor, self._keep and visitor.can_go_on(self.head))
        else:
            self.progressed()

    def released(self) -> bool:
        """Reusable only if the whole request was sent."""
        self.origin = None
        visitor = self.visitor
        if visitor is None:
            return False
        if visitor.flow.reasons:
            self.origin_has_room()
        return visitor.body is None

    def origin_lost(self, *, stale: bool) -> None:
        self.origin = None
        if self.visitor is None:
            return
        head = self.head
        repeatable = (
            head.method in REPEATABLE
            and not head.upgrade
            and not head.chunked
            and not head.content_length
        )
        if stale and repeatable and not self._retried and self._pool is not None:
            self._retried = True
            self.visitor.counts.origin_retries += 1
            self._pool.open_for(self)
            return
        self.origin_failed(502)

    def origin_failed(self, status: int) -> None:
        self.origin = None
        visitor = self.visitor
        if visitor is None:
            return
        if self.tunnelling:
            visitor.close()
        elif self.answered:
            self.cut(reset=self._until_close)  # or HTTP/1.0 would take it for a whole answer
        else:
            visitor.counts.failed += 1
            self.origin_has_room()
            forward, head = self.forward, self.head
            if status != 503 and forward is not None and is_document(forward, head.arrival):
                visitor.counts.documents.failed(forward, head.arrival)
                visitor.expect(visitor.limits.decision_s)
                document = visitor.gateway.receiver.failed_document(forward)
                document.answer(status, head.arrival, self.answer)
            else:
                self.answer(self.sorry(status))

    # A WebSocket

    def may_tunnel(self, pool: Pool) -> bool:
        """False: the request has been answered instead."""
        keys = [value for name, value in self.head.arrival.headers if name == b"sec-websocket-key"]
        if len(keys) != 1 or not valid_key(keys[0]):
            return self.refuse(400, "Sec-WebSocket-Key is missing or malformed")
        self.key = keys[0]
        passed = pool.tunnel_limit(self)
        return not passed or self.refuse(503, TOO_MANY_TUNNELS % passed)

    def open_tunnel(self, head: AnswerHead, rest: bytes) -> None:
        """Relays bytes both ways until one side ends."""
        visitor, forward = self.visitor, self.forward
        if visitor is None or forward is None:
            return
        if self._pool is None or self.origin is None:
            self.detach()
            self.origin_failed(503)
            return
        if passed := self._pool.becomes_tunnel(self.origin, self):
            self.refuse(503, TOO_MANY_TUNNELS % passed)
            return
        visitor.counts.tunnels += 1
        visitor.counts.tunnels_open += 1
        self.tunnelling = self.answered = True
        self.status = 101
        self.tunnel = Tunnel()
        lines = visitor_lines(head, forward.set_cookie, visitor.gateway.receiver.own_cookies)
        agreed = (
            b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
            + head.accept
            + b"\r\n\r\n"
        )
        visitor.write(lines + agreed)
        if rest:
            self.from_tunnel(rest)
        visitor.expect(visitor.limits.tunnel_idle_s)
        if early := visitor.take_buffer():
            self.into_tunnel(early)

    def into_tunnel(self, data: bytes) -> None:
        if self.origin is not None and self.visitor is not None and self.tunnel is not None:
            self.tunnel.of_visitor.feed(data)
            self.origin.write(data)
            self.visitor.expect(self.visitor.limits.tunnel_idle_s)

    def from_tunnel(self, data: bytes) -> None:
        if self.visitor is not None and self.tunnel is not None:
            self.tunnel.of_origin.feed(data)
            self.visitor.write(data)
            self.visitor.expect(self.visitor.limits.tunnel_idle_s)

    def _say_goodbye(self, visitor: VisitorStream, tunnel: Tunnel) -> None:
        """Closes both ends, with a closing frame where one fits."""
        visitor.counts.tunnels_open -= 1
        origin, self.origin = self.origin, None
        if origin is not None:
            origin.exchange = None
            origin.write(tunnel.goodbye_to_origin())
            origin.close()
        visitor.write(tunnel.goodbye_to_visitor())
        self._end(visitor, False, unread=True)

    # Answers from here

    def answer(self, answer: Answer, *, last: bool = False) -> None:
        """`last` closes the connection in any case."""
        visitor = self.visitor
        if visitor is not None:
            head, gateway = self.head, visitor.gateway
            keep = (
                not last
                and visitor.lasts(head)
                and (visitor.body is None or visitor.can_go_on(head))
            )
            self.answered = True
            data = answer_bytes(answer, head, keep, gateway.date_line)
            self.visitor = None  # as `_end`, without a call for the usual answer
            if self.began:
                self._says(answer)
                self._record(visitor)
            visitor.request_over(keep, data)

    def refuse(self, status: int, reason: str) -> bool:
        """Answers and closes, because the start of the next request is unknown. Always False."""
        visitor = self.visitor
        if visitor is not None:
            visitor.counts.refused += 1
            self.detach()
            if self.answered:
                self.cut(reset=False)
            else:
                answer = refusal(status, reason)
                self._says(answer)
                data = answer_bytes(answer, self.head, False, visitor.gateway.date_line)
                self._end(visitor, False, data, unread=True)
        return False

    def _says(self, answer: Answer) -> None:
        self.status = answer.status
        self.sent = 0 if self.head.method == b"HEAD" else len(answer.body)

    # The end

    def overdue(self) -> None:
        visitor = self.visitor
        if visitor is None:
            return
        if self.tunnelling:
            visitor.close()
        elif visitor.half_closed or visitor.write_paused:
            self.cut(reset=True)
        elif (
            visitor.body is not None and visitor.body.flowing and not visitor.flow.reasons & ORIGIN
        ):
            self.detach()
            self.refuse(408, "the body of the request took too long")
        else:
            waiting = self.origin is None
            self.detach()
            self.origin_failed(503 if waiting else 504)

    def session_over(self) -> None:
        """Ends requests of a session whose place now belongs to another. The origin may still
        answer what it has received whole.
        """
        visitor = self.visitor
        if visitor is None or not (self.answered or visitor.body is not None):
            return
        visitor.counts.streams_closed += 1
        if self.tunnel is not None:
            self._say_goodbye(visitor, self.tunnel)
        elif self.answered:
            self.cut(reset=self._until_close)
        else:
            self.refuse(503, "the session has ended; load the page to wait in line")

    def detach(self) -> None:
        """Withdraws a queued request, or breaks one under way."""
        if self._pool is not None and self.origin is None:
            self._pool.withdraw(self)
        origin, self.origin = self.origin, None
        if origin is not None:
            origin.abort()

    def visitor_gone(self) -> None:
        visitor, self.visitor = self.visitor, None
        if visitor is not None:
            if self.tunnelling:
                visitor.counts.tunnels_open -= 1
                if self.origin is not None:
                    self.origin.exchange = None
                    self.origin.close()
                    self.origin = None
            else:
                visitor.counts.abandoned += 1
            self._record(visitor)
        self.detach()

    def cut(self, *, reset: bool) -> None:
        visitor, self.visitor = self.visitor, None
        if visitor is not None:
            self.detach()
            self._record(visitor)
            visitor.request_cut(reset=reset)

    def _end(
        self, visitor: VisitorStream, keep: bool, last: bytes = b"", *, unread: bool = False
    ) -> None:
        """The answer is written except for its `last` bytes."""
        self.visitor = None
        if self.began:
            self._record(visitor)
        visitor.request_over(keep, last, unread=unread)

    def _record(self, visitor: VisitorStream) -> None:
        if self.began:
            gateway, arrival = visitor.gateway, self.head.arrival
            gateway.record(RequestRecord(
                arrival.client, self.status, self.sent, gateway.now() - self.began, arrival,
                self.verdict, self.span,
            ))  # fmt: skip

    def sorry(self, status: int) -> Answer:
        cookie, page = (self.forward.set_cookie, self.forward.page) if self.forward else (b"", None)
        return origin_error(status, self.head.arrival, cookie, page)

    def broken(self, error: BaseException) -> None:
        visitor = self.visitor
        if visitor is not None:
            try:
                visitor.gateway.failed(error)
                if visitor.ending or self.answered:
                    self.cut(reset=True)
                else:
                    self.detach()
                    self.answer(self.sorry(503) if self.forward else OUTAGE, last=True)
            except Exception:
                visitor.transport.abort()
        self.detach()
