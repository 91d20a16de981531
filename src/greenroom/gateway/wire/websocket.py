"""WebSocket: verifies that the origin changed protocols, and relays. A tunnel opens only behind a
verified 101; otherwise a visitor could send requests past the gate through a tunnel that the origin
never opened.
"""

import base64
import hashlib
import re
import secrets
import struct

from greenroom.gateway.wire.answer_head import AnswerHead

# Frames of WebSocket (RFC 6455, 5.2), as far as the end of a tunnel needs them: where one ends,
# and the frame that says goodbye.
#
# A tunnel carries bytes and understands nothing. But a closing frame in the middle of another
# frame would be read as a part of it, so each direction is counted along: a header is 2 to 14
# bytes, its payload is skipped.

TRY_AGAIN_LATER = 1013
"""Close code: reconnect, and wait in line."""

FRAMES_MAX = 1_024
"""Most frames counted in one read: 0.3 ms. Beyond it counting stops for good."""

_CLOSE = 0x88
_MASKED = 0x80


class FrameCount:
    __slots__ = ("_head", "_left", "_lost")

    def __init__(self) -> None:
        self._head = b""  # of a frame whose header is not complete
        self._left = 0  # bytes of the payload still to come
        self._lost = False

    @property
    def between(self) -> bool:
        return not self._lost and not self._left and not self._head

    def feed(self, data: bytes) -> None:
        if self._lost:
            return
        if self._head:
            data, self._head = self._head + data, b""
        at, size = self._left, len(data)
        for _ in range(FRAMES_MAX + 1):
            if at >= size:
                self._left = at - size
                return
            end = _payload_end(data, at)
            if not end:
                self._head, self._left = data[at:], 0
                return
            at = end
        self._lost, self._head = True, b""


def _payload_end(data: bytes, at: int) -> int:
    """The end of the frame at `at`; 0 while its header is incomplete."""
    if len(data) < at + 2:
        return 0
    short = data[at + 1] & 0x7F
    begins = at + (2 if short < 126 else 4 if short == 126 else 10)
    if len(data) < begins:
        return 0
    length = short if short < 126 else int.from_bytes(data[at + 2 : begins], "big")
    return begins + (4 if data[at + 1] & _MASKED else 0) + length


def close_frame(code: int, mask: bytes = b"") -> bytes:
    """`mask`: four unpredictable bytes from a client; empty from a server."""
    payload = struct.pack("!H", code)
    if not mask:
        return bytes((_CLOSE, len(payload))) + payload
    return (
        bytes((_CLOSE, _MASKED | len(payload)))
        + mask
        + bytes(byte ^ mask[place] for place, byte in enumerate(payload))
    )


_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY = re.compile(rb"[A-Za-z0-9+/]{21}[AQgw]==")


def valid_key(key: bytes | None) -> bool:
    return key is not None and _KEY.fullmatch(key) is not None


def accept_of(key: bytes) -> bytes:
    return base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())


def verified(head: AnswerHead, key: bytes) -> bool:
    return (
        head.upgrade == b"websocket"
        and head.upgrading
        and head.accept == accept_of(key)
        and not head.chunked
        and not head.content_length
    )


class Tunnel:
    """Relays bytes both ways and counts frames, so that both sides get a proper closing frame."""

    __slots__ = ("of_origin", "of_visitor")

    def __init__(self) -> None:
        self.of_visitor = FrameCount()
        self.of_origin = FrameCount()

    def goodbye_to_visitor(self) -> bytes:
        """A closing frame, or nothing in the middle of another frame."""
        return close_frame(TRY_AGAIN_LATER) if self.of_origin.between else b""

    def goodbye_to_origin(self) -> bytes:
        return (
            close_frame(TRY_AGAIN_LATER, secrets.token_bytes(4)) if self.of_visitor.between else b""
        )
