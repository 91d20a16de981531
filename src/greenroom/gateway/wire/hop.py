"""The mark of requests that went through here (RFC 8586): a request that comes back to the process
that forwarded it goes no further. An origin can lead back to us in ways that no look at its address
shows.
"""

import os
from collections.abc import Iterable

from greenroom.request.canonical import Refusal

HEADER = b"cdn-loop"

GREENROOMS_MAX = 8
"""Processes that share a listener forward a loop to one another."""

_PREFIX = b"greenroom-"
MARK = _PREFIX + os.urandom(8).hex().encode()
LOOPS = Refusal(
    508, "the request has come back to where it was forwarded: an origin leads to greenroom itself"
)


def loops(values: Iterable[bytes]) -> bool:
    """Whether these values of CDN-Loop show that the request was here before."""
    seen = b",".join(values).lower()
    return MARK in seen or seen.count(_PREFIX) >= GREENROOMS_MAX


def was_forwarded(values: Iterable[bytes]) -> bool:
    """Whether these values of CDN-Loop are from a gateway of any greenroom."""
    return _PREFIX in b",".join(values).lower()


def marked_line(values: Iterable[bytes]) -> bytes:
    """The header line for the next hop, a CRLF before it; other values stay (RFC 8586)."""
    return b"\r\ncdn-loop: " + b", ".join((*values, MARK))
