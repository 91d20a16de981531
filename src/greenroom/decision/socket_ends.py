"""The peer of a connection: an address, or a local program that could open a Unix socket. Such a
peer is trusted as a proxy at every host; visitors whose address it does not say must not become one
client with one share of the limits.
"""

import asyncio
from typing import NamedTuple

SOCKET_PEER = "unix:"
"""Only the kernel makes a peer one: no policy trusts the text, which a client could send."""


class SocketEnds(NamedTuple):
    """A Unix socket has a `path`."""

    peer: str
    server: tuple[str, int]
    path: str = ""

    @property
    def is_file(self) -> bool:
        return self.peer == SOCKET_PEER


def socket_ends(transport: asyncio.BaseTransport) -> SocketEnds:
    """The peer is empty when it has gone already."""
    here, there = transport.get_extra_info("sockname"), transport.get_extra_info("peername")
    if isinstance(here, str) and here:
        return SocketEnds(SOCKET_PEER, ("", 0), here)
    address, port = here[:2] if isinstance(here, tuple) else ("", 0)
    return SocketEnds(there[0] if isinstance(there, tuple) else "", (address, port))
