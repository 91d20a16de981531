"""Reads what an origin sent before it reset the connection. The kernel keeps it, but an event loop
drops it when a write fails first: so an origin's refusal of an upload would be lost by chance.
"""

import asyncio
import os
import select

MOST_BYTES = 256 * 1024
"""One turn of the event loop; a longer answer breaks off here."""


def unread(transport: asyncio.BaseTransport) -> bytes:
    """Unread bytes of this plain connection; call in `connection_lost`, while the socket is still
    open.
    """
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
    """Whether a write would fail. The loop still reads what came before, unless a write fails
    first.
    """
    asked = select.poll()
    asked.register(transport.get_extra_info("socket").fileno(), 0)  # errors are always told
    return bool(asked.poll(0))
