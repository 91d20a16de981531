"""Both directions of one socket: reading, paused while there is a reason; unsent output; the hard
end.
"""

import asyncio
import contextlib
import fcntl
import socket
import struct
import termios

from greenroom.decision.forwarded import ForwardedPolicy
from greenroom.decision.socket_ends import socket_ends
from greenroom.gateway.wire.header_lines import Varying
from greenroom.gateway.wire.request_head import Peer
from greenroom.settings.limits import Limits

AHEAD, ORIGIN, TURN = 1, 2, 4
"""Why reading is paused: too much is kept, the origin does not keep up, or other connections have
their turn.
"""


def peer_of(
    transport: asyncio.BaseTransport,
    policy: ForwardedPolicy,
    limits: Limits,
    varying: tuple[Varying, ...],
) -> Peer:
    """Who is at the other end of a new connection, and at which of our addresses; `varying` see
    `Peer`.
    """
    ends = socket_ends(transport)
    tls = transport.get_extra_info("sslcontext") is not None
    return Peer(ends.peer, tls, policy, ends.server, limits, varying, ends.is_file)


_COUNT = struct.Struct("i")
_AT_ONCE = struct.pack("ii", 1, 0)


class Flow:
    """Reasons are bits. After the other side has closed its sending side there is nothing left to
    pause (`ended`).
    """

    __slots__ = ("_transport", "_unsent", "ended", "reasons")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.reasons = 0
        self._unsent = 0
        self.ended = False

    def pause(self, reason: int) -> None:
        """Nothing more is read until every reason is gone."""
        if not self.reasons and not self.ended and not self._transport.is_closing():
            self._transport.pause_reading()
        self.reasons |= reason

    def resume(self, reasons: int) -> None:
        """These reasons are gone."""
        were, self.reasons = self.reasons, self.reasons & ~reasons
        if were and not self.reasons and not self.ended and not self._transport.is_closing():
            self._transport.resume_reading()

    @property
    def descriptor(self) -> int:
        """The number of the socket's file descriptor; -1 when it is closed by now."""
        sock = self._transport.get_extra_info("socket")
        return -1 if sock is None else int(sock.fileno())

    def mark(self) -> None:
        """From now on what the other side takes is counted."""
        self._unsent = self._left()

    @property
    def taken(self) -> int:
        """Bytes taken since `mark`; negative when more was written than taken."""
        return self._unsent - self._left()

    def _left(self) -> int:
        """Bytes written that the other side has not acknowledged: those kept here and those in the
        kernel's hands.
        """
        kept = self._transport.get_write_buffer_size()
        sock = self._transport.get_extra_info("socket")
        with contextlib.suppress(OSError):  # closed by now
            return kept + int(
                _COUNT.unpack(fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(_COUNT.size)))[0]
            )
        return kept

    def reset(self) -> None:
        """Ends the connection with a reset, which cannot be mistaken for the end of a response."""
        sock = self._transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self._transport.abort()
