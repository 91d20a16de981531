"""One request on its way: the decision, the origin, the answer. Everything that can go wrong
between the two sides ends here.

An exchange begins when a head is read and ends exactly once: with a whole answer, with a cut
connection, or with the visitor gone. The visitor's connection owns the reading of the request, the
origin's connection the reading of the answer; this object carries bytes between them and keeps them
from outrunning each other.
"""

from __future__ import annotations

from greenroom.decision.render import origin_error, render
from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.gateway.origin.connection import OriginConnection
from greenroom.gateway.visitor.collected_body import CollectedBody
from greenroom.gateway.visitor.contracts import VisitorSide
from greenroom.gateway.visitor.flow import ORIGIN
from greenroom.gateway.visitor.late_tries import Trying
from greenroom.gateway.visitor.request_body import RequestBody
from greenroom.gateway.visitor.tunnelling import Tunnelling
from greenroom.gateway.wire.answer_head import (
    NO_BODY,
    TICKET,
    AnswerHead,
    publicly_cacheable,
    visitor_lines,
)
from greenroom.gateway.wire.body import LAST_CHUNK, BadBody, chunk
from greenroom.gateway.wire.forwarded_head import outgoing_head
from greenroom.model.answer import Answer
from greenroom.request.admissible import is_part
from greenroom.request.form_replay import FORM_BYTES_MAX, may_keep_form

REPEATABLE = frozenset((b"GET", b"HEAD", b"OPTIONS"))
"""Methods that may be sent a second time when the first may have reached the origin."""


_UNDECIDED: Verdict | None = (
    # the compiler leaves an attribute out whose default is a plain None, where there are several
    # types
    None
)


class Exchange(Tunnelling):
    """One request and its answer. `visitor` is None once the visitor needs nothing more from it;
    each exchange equals only itself.
    """

    began: float = 0.0  # the loop's time, where it is measured
    verdict: Verdict | None = _UNDECIDED
    hints: int = 0  # answers of the origin before its answer
    queued_s: float = 0.0  # waited for a connection
    _queued_at: float = 0.0
    sent: int = 0  # bytes of the answer's body
    _collected: CollectedBody | None = (
        None  # the body so far, while it is read before a connection is taken, or for the page
    )
    _held: Hold | None = None  # the verdict, while its form is read
    _retried: bool = False
    _chunked: bool = False  # how the answer's body is written
    _until_close: bool = False
    _keep: bool = False  # whether the visitor's connection goes on afterwards

    # The decision

    def wait_for_verdict(self) -> None:
        """There is no verdict yet, unless it came while it was asked for."""
        if self.visitor is not None and self.verdict is None:
            self.visitor.expect_decision()

    def late(self, trying: Trying) -> bool:
        """A visitor who tries rarely: whether the answer is held, to try again."""
        return self.visitor is not None and self.visitor.hold_answer(self, trying)

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
                if verdict.target:
                    self.head = self.head.to(verdict.target)
                self._send(visitor)
            elif type(verdict) is Hold:
                visitor.counts.answered += 1
                arrival = self.head.arrival
                if arrival.method == "POST":
                    self._hold_form(visitor, verdict)
                else:
                    visitor.answer(render(verdict, arrival))
            elif type(verdict) is Answer:
                visitor.counts.answered += 1
                visitor.answer(verdict)
            else:
                raise TypeError(
                    f"a verdict is Forward, Hold or Answer, not {type(verdict).__name__}"
                )
        except BadBody as bad:
            visitor.refuse(bad.status, str(bad))
        except Exception as error:
            self.broken(error)

    def _hold_form(self, visitor: VisitorSide, hold: Hold) -> None:
        """Answers with the waiting page; reads the form first that may be kept on it."""
        arrival, body = self.head.arrival, visitor.body
        if not may_keep_form(arrival):
            visitor.answer(render(hold, arrival))
        elif body is None:
            visitor.answer(render(hold, arrival, b""))
        elif (self.head.content_length or 0) > FORM_BYTES_MAX:
            visitor.answer(render(hold, arrival))
        else:
            self._held = hold
            self._collect(visitor, body, FORM_BYTES_MAX + 1)

    def _send(self, visitor: VisitorSide) -> None:
        head = self.head
        self._pool = pool = visitor.gateway.pool_for(head.arrival.host)
        if pool is None:
            visitor.refuse(421, "this host is not configured")
        elif head.framing.upgrade and not self.may_tunnel(visitor, pool):
            return
        elif (body := visitor.body) is not None and body.read_first():
            self._collect(visitor, body, visitor.limits.body_first_bytes)
        else:
            pool.lend(self)

    def _collect(self, visitor: VisitorSide, body: RequestBody, most: int) -> None:
        """Reads the body, or so much of it, before anything else."""
        self._collected = CollectedBody(most)
        visitor.expect(visitor.limits.body_idle_s)
        self._collect_more(visitor, self._collected, visitor.start_body(self, body))

    def _collect_more(self, visitor: VisitorSide, collected: CollectedBody, data: bytes) -> None:
        whole = visitor.body is None
        if not collected.add(data, whole):
            return
        if self._held is not None:
            visitor.answer(
                render(self._held, self.head.arrival, collected.take() if whole else None)
            )
        elif self._pool is not None:
            if not whole:
                visitor.flow.pause(ORIGIN)  # the rest is read when there is an origin to take it
            self._pool.lend(self)

    # The origin, request side

    def waits(self) -> None:
        """No connection is ready."""
        if self.visitor is not None:
            self._queued_at = self.visitor.gateway.now()
            self.visitor.expect(self.visitor.limits.origin_queue_s)

    def connected(self, connection: OriginConnection) -> None:
        """A connection to the origin is open: sends the head and the body received so far in one
        write.
        """
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
            if visitor.body is not None or self._collected is not None:
                data += self._body_so_far(visitor)
            visitor.expect(
                visitor.limits.origin_read_s if visitor.body is None else visitor.limits.body_idle_s
            )
            connection.begin(self, data)
        except BadBody as bad:
            visitor.refuse(bad.status, str(bad))
        except Exception as error:
            self.broken(error)

    def _body_so_far(self, visitor: VisitorSide) -> bytes:
        collected, self._collected = self._collected, None
        if collected is None:
            return visitor.start_body(self, visitor.body) if visitor.body is not None else b""
        self.origin_has_room()
        return collected.take()

    def not_connected(self, status: int) -> None:
        """No connection to be had."""
        self.origin_failed(status)

    def framed(self, payload: bytes, done: bool) -> bytes:
        """A part of the request's body as the origin gets it; of a form that is kept, as it is."""
        if not self.head.chunked or self._held is not None:
            return payload
        framed = chunk(payload) if payload else b""
        return framed + LAST_CHUNK if done else framed

    def request_continues(self, payload: bytes, done: bool) -> None:
        """More of the request's body."""
        data = self.framed(payload, done)
        if self._collected is not None and self.visitor is not None:
            self._collect_more(self.visitor, self._collected, data)
        elif self.origin is not None and data:
            self.origin.write(data)

    def origin_is_full(self) -> None:
        """The origin does not keep up with the request: read no more of it until it has taken what
        there is.
        """
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
            visitor.expect(
                visitor.limits.body_idle_s if visitor.body is not None else self._silence_s(visitor)
            )

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
        """An answer before the answer: hints go on, 100 does not (it was given from here), nor
        anything to HTTP/1.0.
        """
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
        visitor.counts.origin_answers[head.digit] += 1
        cookie, passed, request = forward.set_cookie, forward.pass_cookie, self.head
        if head.directs:
            cookie, passed = self._cookies(visitor, forward, head)
        keep = visitor.lasts(request) and (
            visitor.body is None or not done or visitor.can_go_on(request)
        )
        if (
            done and keep and cookie and head.behind_ticket and request.framing.plain and not passed
        ):  # as nearly always
            data = b"".join((head.lines, TICKET, cookie, head.behind_ticket, payload))
        else:
            lines = visitor_lines(head, cookie, visitor.gateway.receiver.own_cookies)
            framing, payload, keep = self._framing(head, payload, done, passed, keep)
            data = b"".join((lines, framing, b"\r\n", payload))
        self.answered = True
        if visitor.gateway.on_request is not None:
            self.status, self.sent = head.status, len(payload)
        if done:
            visitor.finished(keep, data)
        else:
            visitor.write(data)
            self._keep = keep
            self.progressed()

    def _cookies(
        self, visitor: VisitorSide, forward: Forward, head: AnswerHead
    ) -> tuple[bytes, bytes]:
        """The ticket and the pass that go out with this answer: none when shared caches may keep
        it, a farewell when the origin says so.
        """
        if (
            head.command
            and forward.obeys_origin
            and (obeyed := visitor.gateway.receiver.obey(forward, head.command))
        ):
            return obeyed, b""
        if (
            forward.renews_early
            and head.caching
            and not head.cookies
            and publicly_cacheable(head.caching)
            and is_part(self.head.arrival)
        ):
            return b"", b""
        return forward.set_cookie, forward.pass_cookie

    def _framing(
        self, head: AnswerHead, payload: bytes, done: bool, passed: bytes, keep: bool
    ) -> tuple[bytes, bytes, bool]:
        """How the visitor is told where the body ends, the payload framed so, and whether the
        connection goes on.
        """
        request, length = self.head, head.content_length
        framing = b"Set-Cookie: %b\r\n" % passed if passed else b""
        if head.status in NO_BODY or request.method == b"HEAD":
            if head.status != 204:
                framing += head.length_line
        elif length is not None:
            framing += head.length_line
        elif done:
            framing += b"Content-Length: %d\r\n" % len(payload)
        elif request.minor:
            framing += b"Transfer-Encoding: chunked\r\n"
            self._chunked = True
            payload = chunk(payload) if payload else b""
        else:
            keep, self._until_close = False, True
        if not keep:
            framing += b"Connection: close\r\n"
        elif not request.minor:
            framing += b"Connection: keep-alive\r\n"
        return framing, payload, keep

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
        """Releases the connection to the origin; it may serve another request only if this one was
        sent completely.
        """
        self.origin = None
        visitor = self.visitor
        if visitor is None:
            return False
        if visitor.flow.reasons:
            self.origin_has_room()
        return visitor.body is None

    def origin_lost(self, *, stale: bool) -> None:
        """The origin closed the connection. `stale`: it had been used before and not one byte of
        this answer came.
        """
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
        """No (more) answer will come from the origin: a page that keeps the place, or a cut if the
        answer had begun.
        """
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
            if status != 503:
                visitor.counts.documents.failed(self.forward, self.head)
            self.origin_has_room()
            visitor.answer(self.sorry(status))

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
        elif (
            visitor.body is not None and visitor.body.flowing and not visitor.flow.reasons & ORIGIN
        ):
            self.detach()
            visitor.refuse(408, "the body of the request took too long")
        else:
            waiting = self.origin is None
            self.detach()
            self.origin_failed(503 if waiting else 504)

    def session_over(self) -> None:
        """The visitor's session has ended, and the place belongs to another. What the origin has
        been sent whole it may still answer.
        """
        visitor = self.visitor
        if visitor is None or not (self.answered or visitor.body is not None):
            return
        visitor.counts.streams_closed += 1
        if self.tunnel is not None:
            self._say_goodbye(visitor, self.tunnel)
        elif self.answered:
            visitor.cut(reset=self._until_close)
        else:
            visitor.refuse(503, "the session has ended; load the page to wait in line")

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
        cookie, page = (self.forward.set_cookie, self.forward.page) if self.forward else (b"", None)
        return origin_error(status, self.head.arrival, cookie, page)

    def broken(self, error: BaseException) -> None:
        """An exception on the origin's side of this exchange."""
        if self.visitor is not None:
            self.visitor.broken(error)
        self.detach()
