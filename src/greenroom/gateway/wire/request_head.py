"""Reads a raw request head strictly: into facts that mean the same to every server behind us, or into a refusal.

Theory. Request smuggling is two servers that disagree about where a request ends or what it asks for. So nothing is repaired
and nothing is guessed: a head is lines of `token ":" value` between CRLFs and nothing else, a body is announced once in one way,
there is one host. Everything that is left is re-serialised (gateway.outgoing), never copied.

Why our own reader and not llhttp (httptools) is told in decision 2 (docs/decisions/0002-own-data-path.md) and measured by `bench/heads.py`.
llhttp is the test oracle: it must read every request that is accepted here in the same way.
"""

from collections import deque

from greenroom.core.canonical import Refusal
from greenroom.decision.arrival import NO_HOST, TOO_LARGE, TOO_LONG, TOO_MANY, Sender, read_host, target_of, visitor_of
from greenroom.decision.forwarded import ForwardedPolicy, forwarding_lines
from greenroom.gateway.wire.head_records import RequestHead, Section
from greenroom.gateway.wire.header_lines import COOKIE, FORWARDED_FOR, NOT_CHUNKED, Varying, read_header_lines
from greenroom.gateway.wire.limits import Limits
from greenroom.gateway.wire.request_line import LINE_REMEMBERED_MAX, RequestLine, read_line, remembered_line
from greenroom.model.visit import Arrival

SECTION_REMEMBERED_MAX = 4_096
"""Longer header sections are parsed each time; a browser's have 600 to 2,000 bytes."""

BLOCK_REMEMBERED_MAX = 4_096
"""The longest whole head that is remembered with what it said."""

SECTIONS_REMEMBERED = 1_000
"""Connections whose latest head is remembered: those that are busy, at most 12 MB however many there are."""


_LIMITS = Limits()


class Peer(Sender):
    """The other end of one connection of the gateway. Only what came last changes: `section`, and `block` with the `head` it made."""

    __slots__ = ("block", "forwarding", "head", "limits", "section", "varying")

    def __init__(
        self,
        address: str,
        tls: bool,
        policy: ForwardedPolicy,
        server: tuple[str, int] = ("", 0),
        limits: Limits = _LIMITS,
        varying: tuple[Varying, ...] = (),
    ) -> None:
        """`server` is the address and port of the listener; `limits` hold for every head.

        `varying` are header lines whose values are other ones for each visitor (`header_lines`); empty: the usual ones.
        """
        super().__init__(address, tls, policy, server)
        self.limits = limits
        self.varying = varying or ((COOKIE, FORWARDED_FOR) if self.trusted else (COOKIE,))
        self.forwarding = forwarding_lines(self.client, self.scheme)
        self.section: Section | None = None
        self.block = b""
        self.head: RequestHead | None = None

    def remember(self, section: Section) -> None:
        """Keeps this section at hand for the next request, and lets go of that of the connection that was least lately new here."""
        if len(section.raw) > SECTION_REMEMBERED_MAX:
            return
        if self.section is None:
            _remembering.append(self)
            if len(_remembering) > SECTIONS_REMEMBERED:
                _remembering.popleft().forget()
        self.section = section

    @property
    def default_authority(self) -> bytes:
        """The host of a request that names none: the configured one, else the address of the listener."""
        address, port = self.server
        here = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        return (self.policy.default_host or here).encode()

    def forget(self) -> None:
        """Lets go of what came last."""
        self.section = self.head = None
        self.block = b""


_remembering: deque[Peer] = deque()


_VERSIONS = ("HTTP/1.0", "HTTP/1.1")


def read_head(block: bytes, peer: Peer) -> RequestHead | Refusal:
    """The facts of one request head, or a refusal with a status from 400 to 505. `block` ends with the first CRLFCRLF.

    Never raises, for any bytes. After a refusal the connection must be closed: the start of the next request is unknown.
    """
    if peer.head is not None and block == peer.block:
        return peer.head
    end, limits = block.find(b"\r\n"), peer.limits
    if len(block) > limits.head_bytes:
        return TOO_LARGE
    if end > limits.url_bytes:
        return TOO_LONG
    line = remembered_line(block[:end]) if end <= LINE_REMEMBERED_MAX else read_line(block[:end])
    if isinstance(line, Refusal):
        return line
    raw = block[end:]
    known = peer.section
    if known is not None and known.raw == raw:
        section = known
    else:
        read = _read_section(raw, peer)
        if isinstance(read, Refusal):
            return read
        section = read
        peer.remember(section)
    head = _understood(line, section, peer)
    if isinstance(head, RequestHead) and section is peer.section and len(block) <= BLOCK_REMEMBERED_MAX:
        peer.block, peer.head = block, head
    return head


def _read_section(raw: bytes, peer: Peer) -> Section | Refusal:
    """Everything from the CRLF behind the request line to the end."""
    lines = read_header_lines(raw, peer.varying)
    if isinstance(lines, Refusal):
        return lines
    frame = lines.frame
    if frame.count > peer.limits.header_lines:
        return TOO_MANY
    authority = frame.authority or peer.default_authority
    if not peer.trusted:
        return Section(raw, lines, peer.client, peer.scheme, frame.host or read_host(authority), authority)
    visitor = visitor_of(lines.headers, authority, peer, lines.facts)
    return visitor if isinstance(visitor, Refusal) else Section(raw, lines, *visitor)


def _understood(line: RequestLine, section: Section, peer: Peer) -> RequestHead | Refusal:
    """The request line and the lines behind it, together."""
    method, minor, lines = line.method, line.minor, section.lines
    frame = lines.frame
    if not section.host or (minor and not frame.host):
        return NO_HOST
    target = line.target
    if target is None:
        authority, paths = frame.authority or section.authority, peer.policy.paths.of(section.host)
        found = target_of(line.raw, line.name, authority, section.scheme, paths)
        if isinstance(found, Refusal):
            return found
        target = found
    if frame.chunked and not minor:
        return NOT_CHUNKED
    return RequestHead(
        Arrival(
            line.name,
            section.scheme,
            section.host,
            target.path,
            target.query,
            lines.headers,
            section.client,
            line.raw,
            _VERSIONS[minor],
            peer.server,
            facts=lines.facts,
            readings=target.readings,
            lines=section.raw,
            signs=frame.signs,
        ),
        method,
        target.raw,
        minor,
        frame.content_length,
        frame.chunked,
        not frame.closes and (minor == 1 or frame.keeps),
        frame.expects and minor == 1,
        b"websocket" if frame.websocket and method == b"GET" and minor == 1 else b"",
        section,
        minor == 1 and method != b"HEAD",
    )
