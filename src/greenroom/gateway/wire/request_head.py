"""Reads a raw request head strictly: into facts that mean the same to every server behind us, or
into a refusal.

Theory. Request smuggling is two servers that disagree about where a request ends or what it asks
for. So nothing is repaired and nothing is guessed: a head is lines of `token ":" value` between
CRLFs and nothing else, a body is announced once in one way, there is one host. Everything that is
left is re-serialised (`wire.forwarded_head`), never copied.

Why our own reader and not llhttp (httptools) is told in decision 2
(docs/decisions/0002-own-data-path.md) and measured by `bench/heads.py`. llhttp is the test oracle:
it must read every request that is accepted here in the same way.
"""

from collections import deque

from greenroom.gateway.wire.head_records import Frame, Framing, HeaderLines, RequestHead
from greenroom.gateway.wire.header_lines import (
    COOKIE,
    FORWARDED_FOR,
    NOT_CHUNKED,
    Varying,
    read_header_lines,
)
from greenroom.gateway.wire.request_line import (
    LINE_CACHED_MAX,
    RequestLine,
    cached_line,
    read_line,
)
from greenroom.model.visit import Arrival
from greenroom.request.arrival import (
    NO_HOST,
    TOO_LARGE,
    TOO_LONG,
    TOO_MANY,
    Sender,
    target_of,
    visitor_of,
)
from greenroom.request.canonical import Refusal
from greenroom.request.forwarded import ForwardedPolicy, forwarding_lines
from greenroom.settings.limits import Limits

BLOCK_CACHED_MAX = 4_096
"""Longer heads are not cached; a browser's have 600 to 2,000 bytes."""

HEADS_CACHED = 1_000
"""Connections whose latest head is cached: at most 12 MB."""


_LIMITS = Limits()


class Peer(Sender):
    """The other end of one connection. Only `block` and its `head` change."""

    __slots__ = ("block", "forwarding", "head", "limits", "varying")

    def __init__(
        self,
        address: str,
        tls: bool,
        policy: ForwardedPolicy,
        server: tuple[str, int] = ("", 0),
        limits: Limits = _LIMITS,
        varying: tuple[Varying, ...] = (),
        by_socket: bool = False,
    ) -> None:
        """`server`: the listener's address and port; `by_socket`: as in `Sender`. `varying`: header
        lines that differ between visitors (`header_lines`); empty: the usual ones.
        """
        super().__init__(address, tls, policy, server, by_socket=by_socket)
        self.limits = limits
        self.varying = varying or ((COOKIE, FORWARDED_FOR) if self.trusted else (COOKIE,))
        self.forwarding = forwarding_lines(self.client, self.scheme)
        self.block = b""
        self.head: RequestHead | None = None

    @property
    def default_authority(self) -> bytes:
        """The host of a request that names none: the configured one, else the listener's
        address.
        """
        address, port = self.server
        here = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        return (self.policy.default_host or here).encode()

    def forget(self) -> None:
        self.head = None
        self.block = b""


_peers_with_heads: deque[Peer] = deque()


_VERSIONS = ("HTTP/1.0", "HTTP/1.1")


def read_head(block: bytes, peer: Peer) -> RequestHead | Refusal:
    """Parses one request head, or returns a refusal with a status from 400 to 505. Never raises,
    for any bytes.

    `block` ends with the first CRLFCRLF. After a refusal the connection must be closed: the start
    of the next request is unknown.
    """
    before = peer.head
    if before is not None and block == peer.block:
        return before
    end, size, limits = block.find(b"\r\n"), len(block), peer.limits
    if size > limits.head_bytes:
        return TOO_LARGE
    if end > limits.url_bytes:
        return TOO_LONG
    line = cached_line(block[:end]) if end <= LINE_CACHED_MAX else read_line(block[:end])
    if isinstance(line, Refusal):
        return line
    raw = block[end:]
    lines = (
        before.lines
        if before is not None and before.arrival.lines == raw
        else read_header_lines(raw, peer.varying)
    )
    if isinstance(lines, Refusal):
        return lines
    if lines.frame.count > limits.header_lines:
        return TOO_MANY
    head = _understood(line, raw, lines, peer)
    if size <= BLOCK_CACHED_MAX and isinstance(head, RequestHead):
        if before is None:
            _let_go_for(peer)
        peer.block, peer.head = block, head
    return head


def _let_go_for(peer: Peer) -> None:
    """Caches this connection's latest head and evicts the oldest connection's."""
    _peers_with_heads.append(peer)
    if len(_peers_with_heads) > HEADS_CACHED:
        _peers_with_heads.popleft().forget()


def _understood(
    line: RequestLine, raw: bytes, lines: HeaderLines, peer: Peer
) -> RequestHead | Refusal:
    frame, target = lines.frame, line.target
    framing = frame.framings.get(line.kind) or _framed(line, frame)
    if isinstance(framing, Refusal):
        return framing
    client, scheme, host, authority = peer.client, peer.scheme, frame.host, frame.authority
    prefix = ""
    if peer.trusted or not host:
        visitor = visitor_of(lines.headers, authority or peer.default_authority, peer, lines.facts)
        if isinstance(visitor, Refusal):
            return visitor
        client, scheme, host, authority, prefix = visitor
    if target is None:
        found = target_of(
            line.raw, line.name, frame.authority or authority, scheme, peer.policy.paths.of(host)
        )
        if isinstance(found, Refusal):
            return found
        target = found
    arrival = Arrival(
        line.name,
        scheme,
        host,
        target.path,
        target.query,
        lines.headers,
        client,
        line.raw,
        _VERSIONS[line.minor],
        peer.server,
        0,
        target.readings,
        lines.facts,
        raw,
        frame.signs,
        None,
        target.otherwise,
        prefix,
    )
    return RequestHead(arrival, target.raw, framing, lines, authority)


def _framed(line: RequestLine, frame: Frame) -> Framing | Refusal:
    """Body and connection as both say, cached for usual methods; a refusal when they contradict."""
    method, minor = line.method, line.minor
    if minor and not frame.host:
        return NO_HOST
    if frame.chunked and not minor:
        return NOT_CHUNKED
    upgrade = b"websocket" if frame.websocket and method == b"GET" and minor == 1 else b""
    framing = Framing(
        method,
        minor,
        frame.content_length,
        frame.chunked,
        not frame.closes and (minor == 1 or frame.keeps),
        frame.expects and minor == 1,
        upgrade,
        frame.chunked or bool(frame.content_length),
        frame.content_length is None and not frame.chunked and not upgrade,
        minor == 1 and method != b"HEAD",
    )
    if line.kind:
        frame.framings[line.kind] = framing
    return framing
