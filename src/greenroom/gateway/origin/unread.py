"""Reads what an origin sent before it reset the connection. An event loop drops these bytes when a
write fails first, and an origin's refusal of an upload would be lost.
"""

import asyncio
import os
import select

MOST_BYTES = 256 * 1024
"""Bound of one event loop turn; a longer answer is truncated."""


def unread(transport: asyncio.BaseTransport) -> bytes:
    """Call it in `connection_lost`, while the plain socket is still open."""
    sock = transport.get_extra_info("socket")
    found = b""
    try:
        while len(found) < MOST_BYTES and (
            piece := os.read(sock.fileno(), MOST_BYTES - len(found))
        ):
            found += piece
    except OSError:  # nothing more, or the reset itself
        pass
    return found


def is_broken(transport: asyncio.BaseTransport) -> bool:
    """Whether a write would fail and make the loop drop unread bytes."""
    asked = select.poll()
    asked.register(transport.get_extra_info("socket").fileno(), 0)  # errors are always told
    return bool(asked.poll(0))
