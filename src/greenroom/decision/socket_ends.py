"""Who is at the other end of a connection: an address, or a program of this machine that could open
the file of a Unix socket.

A Unix socket has no addresses. Its file has an owner, a group and a mode instead, so the operator
has said with them who may connect. Such a peer is trusted as a proxy
(`ForwardedPolicy.trust_socket`), at every host. What it does not say about the visitor stays
unknown: its visitors must not become one client with one share of the limits for each address.
"""

import asyncio
from typing import NamedTuple

SOCKET_PEER = "unix:"
"""In the place of the address of such a peer, and of visitors of whom it says none. It is no
address, so no rule and no network covers it.

Only the kernel's word makes a peer one: the text alone, which a client could send, is trusted by no
policy.
"""


class SocketEnds(NamedTuple):
    """Both ends of one connection. `server` is the address and port of the listener; a Unix socket
    has a `path` instead.
    """

    peer: str
    server: tuple[str, int]
    path: str = ""

    @property
    def is_file(self) -> bool:
        """Whether the connection came over a Unix socket."""
        return self.peer == SOCKET_PEER


def socket_ends(transport: asyncio.BaseTransport) -> SocketEnds:
    """The ends of a connection. The peer is empty where it has gone already."""
    here, there = transport.get_extra_info("sockname"), transport.get_extra_info("peername")
    if isinstance(here, str) and here:
        return SocketEnds(SOCKET_PEER, ("", 0), here)
    address, port = here[:2] if isinstance(here, tuple) else ("", 0)
    return SocketEnds(there[0] if isinstance(there, tuple) else "", (address, port))
