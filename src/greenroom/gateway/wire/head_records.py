"""Records of an understood request head; `header_lines` and `request_head` make them from bytes."""

from collections.abc import Set

import msgspec

from greenroom.model.arrival_kind import HeaderSigns
from greenroom.model.visit import Arrival
from greenroom.request.forwarded import Headers

Facts = dict[bytes, bytes]


class Framing(msgspec.Struct, frozen=True, gc=False):
    """What method, version and header lines say about body and connection.

    `embodied`: it has a body. `bare`: it announces neither a body nor a WebSocket. `plain`:
    HTTP/1.1 and no HEAD, so its answer is framed in the usual way.
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
    """`authority` is the host as sent; empty without a Host line, which only HTTP/1.0 may leave
    out. Caches, filled once for all connections: `passed`, the lines for the origin; `signs`;
    `framings`, by usual method and version. Nothing else changes.
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
    """Header lines, shared by connections: never to be changed. `facts` is by name, None when a
    name comes twice.
    """

    frame: Frame
    headers: Headers
    facts: Facts | None


class CachedLines(msgspec.Struct, frozen=True, gc=False):
    """Lines with values cut out, and their positions in `headers`: the names of `Varying` lines
    that come once.
    """

    lines: HeaderLines
    places: dict[bytes, int]
    cost: int


class RequestHead(msgspec.Struct, gc=False):
    """`target` is exactly the matched path and query, or `*`. A request has a body exactly when
    `chunked` or `content_length` is positive. `sent` caches what `forwarded_head` made for
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
        return RequestHead(self.arrival, target, self.framing, self.lines, self.authority)

    @property
    def method(self) -> bytes:
        return self.framing.method

    @property
    def minor(self) -> int:
        return self.framing.minor

    @property
    def content_length(self) -> int | None:
        return self.framing.content_length

    @property
    def chunked(self) -> bool:
        return self.framing.chunked

    @property
    def keep_alive(self) -> bool:
        return self.framing.keep_alive

    @property
    def expect_continue(self) -> bool:
        return self.framing.expect_continue

    @property
    def upgrade(self) -> bytes:
        return self.framing.upgrade

    @property
    def hops(self) -> tuple[bytes, ...]:
        """Lower-case names that Connection marks as meant for us only."""
        return self.lines.frame.hops
