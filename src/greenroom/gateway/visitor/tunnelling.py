"""The part of an exchange that carries a WebSocket: opened when the origin agrees, carried both
ways, closed at both ends.
"""

from __future__ import annotations

from abc import abstractmethod

from greenroom.decision.verdict import Forward
from greenroom.gateway.origin.connection import OriginConnection
from greenroom.gateway.origin.pool import Pool
from greenroom.gateway.visitor.contracts import VisitorSide
from greenroom.gateway.visitor.tunnel import Tunnel
from greenroom.gateway.wire.answer_head import AnswerHead, visitor_lines
from greenroom.gateway.wire.head_records import RequestHead
from greenroom.gateway.wire.websocket import valid_key

TOO_MANY = "too many open WebSockets (%s)"


class Tunnelling:
    """What `Exchange` does once it is a tunnel. All that it begins with stands in the class, so
    that making one costs little.
    """

    head: RequestHead  # set at once
    visitor: VisitorSide | None = None  # the connection that the request came by
    forward: Forward | None = None  # the verdict, when it is one
    origin: OriginConnection | None = None
    answered: bool = False  # the head of the answer went out
    status: int = 0  # of the answer
    tunnel: Tunnel | None = None
    tunnelling: bool = False
    key: bytes = b""  # Sec-WebSocket-Key of a WebSocket request
    _pool: Pool | None = None

    @abstractmethod
    def detach(self) -> None:
        """Lets go of the origin."""

    @abstractmethod
    def origin_failed(self, status: int) -> None:
        """No answer will come from the origin."""

    def may_tunnel(self, visitor: VisitorSide, pool: Pool) -> bool:
        """Whether the request for a WebSocket goes on; else it has its answer."""
        keys = [value for name, value in self.head.arrival.headers if name == b"sec-websocket-key"]
        if len(keys) != 1 or not valid_key(keys[0]):
            return visitor.refuse(400, "Sec-WebSocket-Key is missing or malformed")
        self.key = keys[0]
        passed = pool.tunnel_limit(self)
        return not passed or visitor.refuse(503, TOO_MANY % passed)

    def open_tunnel(self, head: AnswerHead, rest: bytes) -> None:
        """The origin agreed: from here on bytes are carried both ways until one side ends."""
        visitor, forward = self.visitor, self.forward
        if visitor is None or forward is None:
            return
        if self._pool is None or self.origin is None:
            self.detach()
            self.origin_failed(503)
            return
        if passed := self._pool.becomes_tunnel(self.origin, self):
            visitor.refuse(503, TOO_MANY % passed)
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
        """From the visitor to the origin."""
        if self.origin is not None and self.visitor is not None and self.tunnel is not None:
            self.tunnel.of_visitor.feed(data)
            self.origin.write(data)
            self.visitor.expect(self.visitor.limits.tunnel_idle_s)

    def from_tunnel(self, data: bytes) -> None:
        """From the origin to the visitor."""
        if self.visitor is not None and self.tunnel is not None:
            self.tunnel.of_origin.feed(data)
            self.visitor.write(data)
            self.visitor.expect(self.visitor.limits.tunnel_idle_s)

    def _say_goodbye(self, visitor: VisitorSide, tunnel: Tunnel) -> None:
        """Closes a tunnel at both ends, each with a closing frame where one fits."""
        visitor.counts.tunnels_open -= 1
        origin, self.origin = self.origin, None
        if origin is not None:
            origin.exchange = None
            origin.write(tunnel.goodbye_to_origin())
            origin.close()
        visitor.write(tunnel.goodbye_to_visitor())
        visitor.finished(False, unread=True)
