"""WebSocket: proof that the origin really changed protocols, and the tunnel that follows.

A tunnel opens only behind a verified 101: with anything less a visitor could make us believe in a
tunnel while the origin goes on reading requests, and send it requests that bypass the gate.
"""

import base64
import hashlib
import re

from greenroom.gateway.wire.answer_head import AnswerHead

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY = re.compile(rb"[A-Za-z0-9+/]{21}[AQgw]==")


def valid_key(key: bytes | None) -> bool:
    """Whether this is 16 bytes in base64."""
    return key is not None and _KEY.fullmatch(key) is not None


def accept_of(key: bytes) -> bytes:
    """The Sec-WebSocket-Accept for this key (RFC 6455)."""
    return base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())


def verified(head: AnswerHead, key: bytes) -> bool:
    """Whether a 101 agrees to WebSocket with the visitor that sent `key`."""
    return (
        head.upgrade == b"websocket"
        and head.upgrading
        and head.accept == accept_of(key)
        and not head.chunked
        and not head.content_length
    )
