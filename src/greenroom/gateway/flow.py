"""Reading from one socket, paused as long as anybody has a reason to; and its hard end."""

import asyncio
import socket
import struct

_AT_ONCE = struct.pack("ii", 1, 0)


class Flow:
    """Reasons are bits. After the other side has closed its sending side there is nothing left to pause (`ended`)."""

    __slots__ = ("_transport", "ended", "reasons")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.reasons = 0
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

    def reset(self) -> None:
        """Ends the connection with a reset, which nobody can take for the end of an answer."""
        sock = self._transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self._transport.abort()
