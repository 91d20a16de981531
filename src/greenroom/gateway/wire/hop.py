"""The CDN-Loop mark (RFC 8586): a request that returns to the process that forwarded it is refused.
An origin can lead back here in ways that its address does not show.
"""

import os
from collections.abc import Iterable

from greenroom.request.canonical import Refusal

HEADER = b"cdn-loop"

GREENROOMS_MAX = 8
"""Processes that share a listener pass a loop among each other."""

_PREFIX = b"greenroom-"
MARK = _PREFIX + os.urandom(8).hex().encode()
LOOPS = Refusal(
    508, "the request has come back to where it was forwarded: an origin leads to greenroom itself"
)


def loops(values: Iterable[bytes]) -> bool:
    seen = b",".join(values).lower()
    return MARK in seen or seen.count(_PREFIX) >= GREENROOMS_MAX


def was_forwarded(values: Iterable[bytes]) -> bool:
    """Whether any greenroom's gateway forwarded it."""
    return _PREFIX in b",".join(values).lower()


def marked_line(values: Iterable[bytes]) -> bytes:
    """The header line for the next hop, a CRLF before it; other values stay (RFC 8586)."""
    return b"\r\ncdn-loop: " + b", ".join((*values, MARK))
