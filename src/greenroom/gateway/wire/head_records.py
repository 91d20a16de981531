"""What a request head says, once it is understood: the lines behind the request line, how it is
framed, the head as a whole.

Records only. `header_lines` and `request_head` make them of bytes.
"""

from collections.abc import Set

import msgspec

from greenroom.decision.forwarded import Headers
from greenroom.model.arrival_kind import HeaderSigns
from greenroom.model.visit import Arrival

Facts = dict[bytes, bytes]


class Framing(msgspec.Struct, frozen=True, gc=False):
    """What method, version and header lines together say about the body and about what becomes of
    the connection.

    `embodied`: it has a body. `bare`: it announces neither a body nor a WebSocket. `plain`: it is
    in HTTP/1.1 and no HEAD, so its answer is framed in the usual way.
    """

    method: bytes
    minor: int
    content_length: int | None
    chunked: bool
    keep_alive: bool
    expect_continue: bool
    upgrade: bytes
    embodied: bool
    bare: bool
    plain: bool


class Frame(msgspec.Struct, gc=False):
    """What header lines say about host, body and connection. `authority` is the host as sent;
    `count` is the number of lines.

    Both are empty without a Host line, which only HTTP/1.0 may leave out. `passed` is what
    `forwarded_head` makes of them for the origin (without the headers that are for proxies to say),
    once for all connections, `signs` what they say of the kind of request, for lines that are
    remembered, and `framings` what they say behind each usual method and version; nothing else
    changes.
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
    framings: dict[bytes, Framing] = {}


class HeaderLines(msgspec.Struct, frozen=True, gc=False):
    """Header lines, understood. Connections share them: never to be changed. `facts` is by name,
    None when a name comes twice.
    """

    frame: Frame
    headers: Headers
    facts: Facts | None


class RememberedLines(msgspec.Struct, frozen=True, gc=False):
    """Lines from which values may have been cut out, and where in `headers` they belong: the names
    of `Varying` lines that come once.
    """

    lines: HeaderLines
    places: dict[bytes, int]
    cost: int


class RequestHead(msgspec.Struct, gc=False):
    """One request's head, understood.

    `target` is what the origin is sent: exactly the path and query that were matched, or `*`. A
    request has a body exactly when `chunked` or `content_length` is positive. `authority` is the
    visitor's own host with its port, as sent. `sent` is what `forwarded_head` made of it for
    `sent_for`; nothing else changes.
    """

    arrival: Arrival
    target: bytes
    framing: Framing
    lines: HeaderLines
    authority: bytes
    sent: bytes = b""
    sent_for: tuple[bytes, Set[bytes]] | None = None

    def to(self, target: bytes) -> "RequestHead":
        """The same request, with this target for the origin."""
        return RequestHead(self.arrival, target, self.framing, self.lines, self.authority)

    @property
    def method(self) -> bytes:
        """As sent."""
        return self.framing.method

    @property
    def minor(self) -> int:
        """Of the version: 0 or 1."""
        return self.framing.minor

    @property
    def content_length(self) -> int | None:
        """Bytes of the body; None: not announced."""
        return self.framing.content_length

    @property
    def chunked(self) -> bool:
        """Whether the body comes in chunks."""
        return self.framing.chunked

    @property
    def keep_alive(self) -> bool:
        """Whether the client wants to go on with this connection."""
        return self.framing.keep_alive

    @property
    def expect_continue(self) -> bool:
        """Whether the client waits for 100 Continue."""
        return self.framing.expect_continue

    @property
    def upgrade(self) -> bytes:
        """`websocket`, or empty."""
        return self.framing.upgrade

    @property
    def hops(self) -> tuple[bytes, ...]:
        """The lower-case names that Connection marks as meant for us only."""
        return self.lines.frame.hops
