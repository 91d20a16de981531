"""Reads a raw request head strictly: into facts that mean the same to every server behind us, or into a refusal.

Theory. Request smuggling is two servers that disagree about where a request ends or what it asks for. So nothing is repaired
and nothing is guessed: a head is lines of `token ":" value` between CRLFs and nothing else, a body is announced once in one way,
there is one host. Everything that is left is re-serialised (gateway.outgoing), never copied.

Why an own reader and not llhttp (httptools): for a browser's head of 14 headers llhttp with callbacks into Python takes 4.1 us and this
5.0 us for the same work, on one machine; but llhttp also reads HTTP/0.9, doubled blanks and a fragment in the target, several transfer
codings and chunked HTTP/1.0, knows no extension methods, and where a wrong byte is forgiven is decided elsewhere. It is the test oracle:
whatever is accepted here, llhttp must read the same way.
"""

import re
from collections import deque
from collections.abc import Set

import msgspec

from greenroom.core.canonical import Refusal
from greenroom.decision.arrival import (
    DROPPED,
    IS_NAME,
    TOO_LARGE,
    TOO_LONG,
    TOO_MANY,
    WRONG,
    Sender,
    header_name,
    other_form,
    repeated,
    visitor_of,
)
from greenroom.decision.forwarded import ForwardedPolicy, Headers, forwarding_lines
from greenroom.gateway.wire.limits import Limits
from greenroom.gateway.wire.request_line import RequestLine, read_request_line
from greenroom.model.visit import Arrival

LENGTH_DIGITS_MAX = 18
"""Digits of Content-Length: below 2^63 with certainty, so no server behind us can overflow it."""

SECTION_REMEMBERED_MAX = 4_096
"""Header sections above this are read anew each time; a browser's have 600 to 2,000 bytes."""

SECTIONS_REMEMBERED = 1_000
"""Connections whose latest header section is remembered: those that are busy, at most 8 MB however many there are."""


class Section(msgspec.Struct):
    """Everything behind the request line of one head, understood. `tail` is what `gateway.wire.forwarded_head` made of it for `tail_for`.

    A browser sends the same lines with each request of a kind, so the latest section of a connection is compared before one is read.
    """

    raw: bytes
    headers: Headers
    facts: dict[bytes, bytes] | None  # by name, when no name comes twice
    client: str
    scheme: str
    host: str
    sent_host: bytes
    authority: bytes
    content_length: int | None
    chunked: bool
    closes: bool
    keeps: bool
    expects: bool
    websocket: bool
    hops: tuple[bytes, ...]
    tail: bytes = b""
    tail_for: tuple[bytes, Set[bytes]] | None = None


_LIMITS = Limits()


class Peer(Sender):
    """The other end of one connection of the gateway. Only what came last changes: `line`, `section` and the `head` that they made."""

    __slots__ = ("forwarding", "head", "limits", "line", "section")

    def __init__(
        self, address: str, tls: bool, policy: ForwardedPolicy, server: tuple[str, int] = ("", 0), limits: Limits = _LIMITS
    ) -> None:
        """`server` is the address and port of the listener; `limits` hold for every head."""
        super().__init__(address, tls, policy, server)
        self.limits = limits
        self.forwarding = forwarding_lines(self.client, self.scheme)
        self.line: RequestLine | None = None
        self.section: Section | None = None
        self.head: RequestHead | None = None

    def remember(self, section: Section) -> None:
        """Keeps this section at hand for the next request, and lets go of that of the connection that was least lately new here."""
        if len(section.raw) > SECTION_REMEMBERED_MAX:
            return
        if self.section is None:
            _remembering.append(self)
            if len(_remembering) > SECTIONS_REMEMBERED:
                _remembering.popleft().forget()
        self.section, self.head = section, None

    def forget(self) -> None:
        """Lets go of what came last."""
        self.line = self.section = self.head = None


_remembering: deque[Peer] = deque()


class RequestHead(msgspec.Struct, frozen=True, gc=False):
    """One request's head, understood.

    `target` is what the origin is sent: exactly the path and query that were matched, or `*`. A request has a body exactly when
    `chunked` or `content_length` is positive.
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

    @property
    def authority(self) -> bytes:
        """The visitor's own host with its port, as sent."""
        return self.section.authority

    @property
    def hops(self) -> tuple[bytes, ...]:
        """The lower-case names that Connection marks as meant for us only."""
        return self.section.hops


_CONTROLS = bytes([*range(0x09), *range(0x0A, 0x20), 0x7F])  # all but TAB
_VERSIONS = ("HTTP/1.0", "HTTP/1.1")
_LENGTH = re.compile(rb"[0-9]{1,%d}" % LENGTH_DIGITS_MAX)
_END_TO_END = frozenset(
    b"accept accept-encoding accept-language authorization cache-control content-encoding content-length content-type cookie date "
    b"forwarded host if-match if-modified-since if-none-match if-range if-unmodified-since origin range referer "
    b"transfer-encoding user-agent x-forwarded-for x-forwarded-host x-forwarded-proto x-real-ip".split()
)

_USUAL_HOPS: dict[bytes, tuple[bytes, ...]] = {
    b"": (),
    **{spelled: (spelled.lower(),) for spelled in (b"keep-alive", b"Keep-Alive", b"close", b"Close", b"Upgrade", b"upgrade")},
}

_COMMON = (
    "Accept Accept-Encoding Accept-Language Authorization Cache-Control Connection Content-Length Content-Type Cookie DNT Expect Host "
    "If-Modified-Since If-None-Match Keep-Alive Origin Pragma Priority Purpose Range Referer Sec-CH-UA Sec-CH-UA-Mobile "
    "Sec-CH-UA-Platform Sec-Fetch-Dest Sec-Fetch-Mode Sec-Fetch-Site Sec-Fetch-User Sec-GPC Sec-Purpose TE Transfer-Encoding Upgrade "
    "Upgrade-Insecure-Requests User-Agent X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto X-Real-IP X-Requested-With".split()
)
_KNOWN = {spelled.encode(): name.lower().encode() for name in _COMMON for spelled in (name, name.lower())}

_NOT_CHUNKED = Refusal(400, "the only supported Transfer-Encoding is chunked, in HTTP/1.1")

_Facts = dict[bytes, bytes]


def read_head(block: bytes, peer: Peer) -> RequestHead | Refusal:
    """The facts of one request head, or a refusal with a status from 400 to 505. `block` ends with the first CRLFCRLF.

    Never raises, whatever the bytes. After a refusal the connection must be closed: where the next request begins is unknown.
    """
    end, limits = block.find(b"\r\n"), peer.limits
    if len(block) > limits.head_bytes:
        return TOO_LARGE
    if end > limits.url_bytes:
        return TOO_LONG
    line = read_request_line(block[:end])
    if isinstance(line, Refusal):
        return line
    raw = block[end:]
    known = peer.section
    if known is not None and known.raw == raw:
        if peer.line is line and peer.head is not None:
            return peer.head
        section = known
    else:
        read = _read_section(raw, peer)
        if isinstance(read, Refusal):
            return read
        section = read
        peer.remember(section)
    head = _understood(line, section, peer)
    if isinstance(head, RequestHead) and section is peer.section:
        peer.line, peer.head = line, head
    return head


def _read_section(raw: bytes, peer: Peer) -> Section | Refusal:
    """Everything from the CRLF behind the request line to the end."""
    lines = raw.split(b"\r\n")
    if len(raw) - len(raw.translate(None, _CONTROLS)) != 2 * len(lines) - 2 or len(lines) < 3 or lines[-1] or lines[-2]:
        return Refusal(400, "the head contains a control character, a bare CR or LF, or does not end with an empty line")
    if len(lines) > peer.limits.header_lines + 3:
        return TOO_MANY
    headers = _headers(lines)
    if isinstance(headers, Refusal):
        return headers
    facts = dict(headers)
    if WRONG in facts:
        return Refusal(400, "a header name is not a token")
    if facts.pop(DROPPED, None) is not None:
        headers = tuple([item for item in headers if item[0] != DROPPED])
    if len(facts) == len(headers):
        return _section(raw, headers, facts, True, peer)
    twice = repeated(headers)
    if twice:
        return Refusal(400, f"{twice} is sent more than once")
    for listed in (b"connection", b"upgrade"):
        if listed in facts:
            facts[listed] = b",".join([value for name, value in headers if name == listed])
    return _section(raw, headers, facts, False, peer)


def _section(raw: bytes, headers: Headers, facts: _Facts, once: bool, peer: Peer) -> Section | Refusal:
    """What the checked lines say: whom it is from, how long it is, what becomes of the connection. `once`: no name comes twice."""
    visitor = visitor_of(headers, facts.get(b"host", b""), peer)
    if isinstance(visitor, Refusal):
        return visitor
    framing = _framing(facts)
    if isinstance(framing, Refusal):
        return framing
    content_length, chunked = framing
    hops = _hops(facts.get(b"connection", b""))
    if isinstance(hops, Refusal):
        return hops
    body = chunked or bool(content_length)
    expected = facts.get(b"expect")
    if expected is not None and expected.lower() != b"100-continue":
        return Refusal(417, "the only supported expectation is 100-continue")
    websocket = facts.get(b"upgrade", b"").lower() == b"websocket" and b"upgrade" in hops and not body
    return Section(
        raw, headers, facts if once else None, *visitor[:3], facts[b"host"], visitor.authority, content_length,
        chunked, b"close" in hops, b"keep-alive" in hops, expected is not None and body, websocket, hops,
    )  # fmt: skip


def _headers(lines: list[bytes]) -> Headers | Refusal:
    """Names in lower case with stripped values, in order."""
    known = _KNOWN.get
    try:
        return tuple([(known(name) or header_name(name), value.strip()) for name, value in [line.split(b":", 1) for line in lines[1:-2]]])
    except ValueError:
        return Refusal(400, "a header line has no colon")


def _understood(line: RequestLine, section: Section, peer: Peer) -> RequestHead | Refusal:
    """The request line and the lines behind it, together."""
    method, minor = line.method, line.minor
    target = line.target or other_form(line.raw, method, section.sent_host, section.scheme)
    if isinstance(target, Refusal):
        return target
    if section.chunked and not minor:
        return _NOT_CHUNKED
    return RequestHead(
        Arrival(
            line.name,
            section.scheme,
            section.host,
            target.path,
            target.query,
            section.headers,
            section.client,
            line.raw,
            _VERSIONS[minor],
            peer.server,
            facts=section.facts,
        ),
        method,
        target.raw,
        minor,
        section.content_length,
        section.chunked,
        not section.closes and (minor == 1 or section.keeps),
        section.expects and minor == 1,
        b"websocket" if section.websocket and method == b"GET" and minor == 1 else b"",
        section,
    )


def _framing(facts: _Facts) -> tuple[int | None, bool] | Refusal:
    """How the body is announced: (Content-Length, chunked)."""
    length, coding = facts.get(b"content-length"), facts.get(b"transfer-encoding")
    if length is None and coding is None:
        return None, False
    if coding is None:
        return (int(length or b""), False) if _LENGTH.fullmatch(length or b"") else Refusal(400, "Content-Length is not a plain number")
    if length is not None:
        return Refusal(400, "Content-Length and Transfer-Encoding are sent together")
    if coding.lower() != b"chunked":
        return _NOT_CHUNKED
    return None, True


def _hops(connection: bytes) -> tuple[bytes, ...] | Refusal:
    """The names in Connection, in lower case. Naming what is meant for the origin would strip it (credentials, say): refused."""
    usual = _USUAL_HOPS.get(connection)
    if usual is not None:
        return usual
    names = tuple([name for item in connection.lower().split(b",") if (name := item.strip())])
    if any(not IS_NAME.fullmatch(name) for name in names):
        return Refusal(400, "Connection is not a list of names")
    if _END_TO_END.intersection(names):
        return Refusal(400, "Connection names a header that is meant for the origin")
    return names
