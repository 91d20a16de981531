"""One visitor's connection as a stream: its peer, writing, request bodies, flow control, closing."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import socket
import struct
import termios
from abc import abstractmethod

from greenroom.gateway.state import GatewayState
from greenroom.gateway.visitor.request_body import RequestBody
from greenroom.gateway.wire.head_records import RequestHead
from greenroom.gateway.wire.request_head import Peer
from greenroom.request.forwarded import socket_ends
from greenroom.settings.limits import Limits

AHEAD, ORIGIN, TURN = 1, 2, 4
"""Reasons to pause reading: too much buffered, a slow origin, or the turn of other connections."""

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

LINGER_MOST_S = 60
"""Longest time that an upload is discarded: 16 MiB at 2 Mbit/s."""

_COUNT = struct.Struct("i")
_AT_ONCE = struct.pack("ii", 1, 0)


def peer_of(transport: asyncio.BaseTransport, gateway: GatewayState) -> Peer:
    ends = socket_ends(transport.get_extra_info)
    tls = transport.get_extra_info("sslcontext") is not None
    return Peer(
        ends.peer,
        tls,
        gateway.forwarded_policy,
        ends.server,
        gateway.limits,
        gateway.varying,
        ends.is_file,
    )


class Flow:
    """Flow control of one socket. Reasons are bits. After the peer's EOF there is nothing to pause
    (`ended`).
    """

    __slots__ = ("_transport", "_unsent", "ended", "reasons")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.reasons = 0
        self._unsent = 0
        self.ended = False

    def pause(self, reason: int) -> None:
        """Reading resumes when every reason is gone."""
        if not self.reasons and not self.ended and not self._transport.is_closing():
            self._transport.pause_reading()
        self.reasons |= reason

    def resume(self, reasons: int) -> None:
        were, self.reasons = self.reasons, self.reasons & ~reasons
        if were and not self.reasons and not self.ended and not self._transport.is_closing():
            self._transport.resume_reading()

    @property
    def descriptor(self) -> int:
        """-1 when closed."""
        sock = self._transport.get_extra_info("socket")
        return -1 if sock is None else int(sock.fileno())

    def mark(self) -> None:
        """Starts counting what the other side takes."""
        self._unsent = self._left()

    @property
    def taken(self) -> int:
        """Bytes taken since `mark`; negative when more was written than taken."""
        return self._unsent - self._left()

    def _left(self) -> int:
        """Bytes written and not acknowledged, in the process and the kernel."""
        kept = self._transport.get_write_buffer_size()
        sock = self._transport.get_extra_info("socket")
        with contextlib.suppress(OSError):  # closed by now
            return kept + int(
                _COUNT.unpack(fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(_COUNT.size)))[0]
            )
        return kept

    def reset(self) -> None:
        """Resets the connection, which cannot be mistaken for the end of a response."""
        sock = self._transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self._transport.abort()


class VisitorStream(asyncio.Protocol):
    """The connection as an exchange uses it. A body waits unread until an origin takes it or it is
    discarded, and is read in pieces, so that other connections get their turn.
    """

    __slots__ = (
        "_buffer", "_linger_bytes", "_linger_until", "_taken_since", "body", "counts", "deadline", "ending", "flow", "gateway",
        "half_closed", "limits", "peer", "requests", "transport", "write_paused",
    )  # fmt: skip

    transport: asyncio.Transport
    peer: Peer
    flow: Flow

    def __init__(self, gateway: GatewayState) -> None:
        self.gateway = gateway
        self.limits: Limits = gateway.limits
        self.counts = gateway.counts
        self.body: RequestBody | None = None  # the present request's, until it is read
        self.requests = 0  # read so far
        self.deadline = 0.0
        self.half_closed = self.write_paused = False
        self.ending = False  # the last answer is out; what comes is discarded
        self._buffer = b""
        self._linger_until = 0.0  # set once ending, while the visitor may still be sending
        self._linger_bytes = 0
        self._taken_since = 0.0

    @abstractmethod
    def request_over(self, keep: bool, last: bytes = b"", *, unread: bool = False) -> None:
        """The answer is written except for its `last` bytes. `unread`: the visitor may still be
        sending and needs time to read.
        """

    @abstractmethod
    def request_cut(self, *, reset: bool) -> None: ...

    # Output and time

    def write(self, data: bytes) -> None:
        self.counts.bytes_out += len(data)
        self.transport.write(data)

    def expect(self, seconds: float) -> None:
        if self.half_closed and not self.write_paused and not self.ending:
            seconds = min(seconds, self.limits.half_closed_s)
        self.deadline = self.gateway.sweep_at + seconds

    def expect_taken(self) -> None:
        self.flow.mark()
        self._taken_since = self.gateway.now()
        self.expect(self.limits.send_idle_s)

    def takes_enough(self, seconds: float) -> bool:
        return self.flow.taken >= max(1, self.limits.send_rate * seconds)

    def lasts(self, head: RequestHead) -> bool:
        return (
            head.framing.keep_alive
            and self.gateway.keeps
            and self.requests < self.limits.requests_per_connection
        )

    # Bodies

    def start_body(self, body: RequestBody, asked: bool) -> tuple[bytes, bool]:
        """Starts passing the body on: returns the payload so far, and whether it is complete.
        `asked`: the visitor waits for 100. Raises BadBody.
        """
        body.wait(self.gateway.now())
        data = self._piece(body, self.take_buffer())
        if not data:
            if asked:
                self.write(CONTINUE)
            return b"", False
        payload = body.take(data)
        return payload, self._body_over(body)

    def continue_body(self, body: RequestBody, data: bytes) -> tuple[bytes, bool]:
        payload = body.take_in_time(self._piece(body, data), self.gateway.now())
        return payload, self._body_over(body)

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
        return self._body_over(body) or (not self.peer.trusted and body.small_rest())

    def take_buffer(self) -> bytes:
        data, self._buffer = self._buffer, b""
        if self.flow.reasons & AHEAD:
            self.flow.resume(AHEAD)
        return data

    def _piece(self, body: RequestBody, data: bytes) -> bytes:
        """Reads a piece; the rest is read in a later turn."""
        data, self._buffer = body.cut(data)
        if self._buffer:
            self.flow.pause(TURN)
            self.gateway.later(self._next_piece)
        return data

    def _next_piece(self) -> None:
        self.flow.resume(TURN)
        if self.body is not None and self.body.flowing:
            self.data_received(self.take_buffer())

    def _body_over(self, body: RequestBody) -> bool:
        if body.done:
            self.body = None
            self._buffer = body.rest + self._buffer
        return body.done

    # The end

    def linger(self) -> None:
        """Discards what the visitor still sends, so that the last answer arrives.

        Closing a socket with unread input resets the connection, and the reset destroys the answer
        on its way. A browser that uploads 7 MB into a full room reads the answer only when it has
        sent everything, so discarding goes on while something comes.
        """
        if self.half_closed:
            self.close()
            return
        self.ending = True
        self._linger_until = self.gateway.now() + LINGER_MOST_S
        self._linger_bytes = self.limits.linger_bytes
        self._buffer, self.body = b"", None
        self.flow.resume(AHEAD | ORIGIN | TURN)
        if self.write_paused:
            self.expect_taken()
        else:
            self.expect(self.limits.linger_s)
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def discard(self, received: int) -> None:
        """Counts bytes after the last answer; the connection closes when no more come."""
        if self._linger_until and not self.write_paused:
            now = self.gateway.now()
            self._linger_bytes -= received
            self.deadline = (
                min(self._linger_until, now + self.limits.linger_s)
                if self._linger_bytes > 0
                else now
            )

    def close(self) -> None:
        self.ending = True
        self._buffer, self.body = b"", None
        self.expect_taken()
        self.transport.close()
