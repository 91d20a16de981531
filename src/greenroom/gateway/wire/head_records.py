"""What a request head says, once it is understood: the lines behind the request line, the section that they make, the head as a whole.

Records only. `header_lines` and `request_head` make them of bytes.
"""

from collections.abc import Set

import msgspec

from greenroom.decision.forwarded import Headers
from greenroom.model.arrival_kind import HeaderSigns
from greenroom.model.visit import Arrival

Facts = dict[bytes, bytes]


class Frame(msgspec.Struct, gc=False):
    """What header lines say about host, body and connection. `authority` is the host as sent; `count` is the number of lines.

    Both are empty without a Host line, which only HTTP/1.0 may leave out. `passed` is what `forwarded_head` makes of them for the origin
    (without the headers that are for proxies to say), once for all connections, and `signs` what they say of the kind of request, for
    lines that are remembered; nothing else changes.
    """

    count: int
    host: str
    authority: bytes
    content_length: int | None
    chunked: bool
    closes: bool
    keeps: bool
    expects: bool
    websocket: bool
    hops: tuple[bytes, ...]
    passed: bytes | None = None
    signs: HeaderSigns | None = None
    passed_without: frozenset[bytes] | None = None


class HeaderLines(msgspec.Struct, frozen=True, gc=False):
    """Header lines, understood. Connections share them: never to be changed. `facts` is by name, None when a name comes twice."""

    frame: Frame
    headers: Headers
    facts: Facts | None


class RememberedLines(msgspec.Struct, frozen=True, gc=False):
    """Lines from which values may have been cut out, and where in `headers` they belong: the names of `Varying` lines that come once."""

    lines: HeaderLines
    places: dict[bytes, int]
    cost: int


class Section(msgspec.Struct):
    """Everything behind the request line of one head, and whom it is from. `tail` is what `forwarded_head` made of it for `tail_for`.

    A browser sends the same lines with each request of a kind, so the latest section of a connection is compared before one is read.
    """

    raw: bytes
    lines: HeaderLines
    client: str
    scheme: str
    host: str
    authority: bytes
    tail: bytes = b""
    tail_for: tuple[bytes, Set[bytes]] | None = None


class RequestHead(msgspec.Struct, frozen=True, gc=False):
    """One request's head, understood.

    `target` is what the origin is sent: exactly the path and query that were matched, or `*`. A request has a body exactly when
    `chunked` or `content_length` is positive. `plain`: it is in HTTP/1.1 and no HEAD, so its answer is framed in the usual way.
    """

    arrival: Arrival
    method: bytes
    target: bytes
    minor: int
    content_length: int | None
    chunked: bool
    keep_alive: bool
    expect_continue: bool
    upgrade: bytes
    section: Section
    plain: bool

    @property
    def authority(self) -> bytes:
        """The visitor's own host with its port, as sent."""
        return self.section.authority

    @property
    def hops(self) -> tuple[bytes, ...]:
        """The lower-case names that Connection marks as meant for us only."""
        return self.section.lines.frame.hops
