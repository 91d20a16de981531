"""The peer of a connection: an address, or a local program that could open a Unix socket.

A Unix socket's file has owner, group and mode instead of an address: with them the operator says
who may connect. Such a peer is trusted as a proxy (`ForwardedPolicy.trust_socket`) at every host.
What it does not say about the visitor stays unknown: its visitors must not become one client with
one share of the limits for each address.
"""

import asyncio
from typing import NamedTuple

SOCKET_PEER = "unix:"
"""Stands for the address of such a peer, and of its visitors without one. It is no address, so no
rule or network covers it. Only the kernel makes a peer one: no policy trusts the text, which a
client could send.
"""


class SocketEnds(NamedTuple):
    """Both ends of one connection. `server` is the listener's address and port; a Unix socket has a
    `path`.
    """

    peer: str
    server: tuple[str, int]
    path: str = ""

    @property
    def is_file(self) -> bool:
        return self.peer == SOCKET_PEER


def socket_ends(transport: asyncio.BaseTransport) -> SocketEnds:
    """The ends of a connection. The peer is empty when it has gone already."""
    here, there = transport.get_extra_info("sockname"), transport.get_extra_info("peername")
    if isinstance(here, str) and here:
        return SocketEnds(SOCKET_PEER, ("", 0), here)
    address, port = here[:2] if isinstance(here, tuple) else ("", 0)
    return SocketEnds(there[0] if isinstance(there, tuple) else "", (address, port))
