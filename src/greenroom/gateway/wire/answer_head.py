"""Reads the head of an origin's answer strictly, and words the head that the visitor gets. Lines
repeat from answer to answer, so each is checked once and then cached. What is odd but can be read
in one way only is repaired, as nginx reads it; everything that two readers could understand
differently makes the answer invalid. `docs/explanation/beside-nginx.md` lists both.
"""

import re
from functools import lru_cache

import msgspec

from greenroom.decision.kept_turn import FAILURES
from greenroom.gateway.wire.body import chunk
from greenroom.gateway.wire.head_records import RequestHead

_CACHE_HEADERS = frozenset((b"cache-control", b"edge-control", b"x-accel-expires"))

COMMAND = b"cf-waiting-room-command"
OFFERS = b"greenroom-offers"

NO_BODY = frozenset((204, 304))

_DROPPED = frozenset((b"proxy-connection", b"te", b"trailer"))
_READ = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"transfer-encoding",
        b"content-length",
        b"upgrade",
        b"sec-websocket-accept",
        b"set-cookie",
    )
)
_SPECIAL_NAMES = _DROPPED | _READ | _CACHE_HEADERS | {COMMAND, OFFERS}

_LINE = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*")
_STATUS_LINE = re.compile(rb"HTTP/1\.([0-9]) +([1-9][0-9][0-9](?: [\t\x20-\x7e\x80-\xff]*)?)")
_CONTROL = re.compile(rb"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SECOND_STATUS_LINE = re.compile(rb"HTTP/1\.[0-9] ")
_NO_NAME = re.compile(rb"[\x21-\x39\x3b-\x7e\x80-\xff]+(?::.*)?", re.DOTALL)
"""A line whose name is no token, but that no reader could take for one: without blanks, controls or
an early end.
"""
_LENGTH = re.compile(rb"[0-9]{1,18}")
_IDLE = re.compile(rb"(?:\A|[ ,;])timeout=([0-9]{1,6})", re.IGNORECASE)
_CONNECTION_OPTIONS = frozenset((b"", b"keep-alive", b"close", b"upgrade"))

LINES_CACHED = 4_096
"""Cached header lines, cleared when full (at most 1 MB)."""

LINE_CACHED_MAX = 256
"""Longer lines are parsed each time; they rarely repeat."""

HEADS_CACHED, HEAD_CACHED_MAX = 512, 1_024
"""Cached heads and the longest: one page or file requested often within a second."""

PRIVATE = b"Cache-Control: private\r\n"
TICKET = b"Set-Cookie: "


class AnswerHead(msgspec.Struct):
    """A parsed answer head. `lines` are the status line and the forwarded headers, CRLF after each.

    `digit` is the first one of the status, 5 at most; `length_line` is the Content-Length line for
    the visitor. `plain`: the answer to anything but a HEAD has a body of this length.
    `behind_ticket` follows the ticket's value in the usual head of a plain answer without cookies
    of its own; else empty. `directs`: it says something to shared caches, or to us; or it is a failure.
    """

    status: int
    lines: bytes
    content_length: int | None = None
    chunked: bool = False
    keep_alive: bool = True
    idle_s: int = 0  # Keep-Alive: timeout, or 0
    cookies: tuple[bytes, ...] = ()
    caching: tuple[tuple[bytes, bytes], ...] = ()  # lower-case name and value by `is_for_caches`
    command: bytes = b""
    offers: bytes = b""
    upgrade: bytes = b""
    upgrading: bool = False  # Connection has the option upgrade
    accept: bytes = b""
    digit: int = 0
    length_line: bytes = b""
    plain: bool = False
    behind_ticket: bytes = b""
    directs: bool = False


_Item = tuple[bytes, bytes]
_PASS: _Item = (b"", b"")  # not to be looked for by identity: compiled code makes pairs again
_BAD: _Item = (b"!", b"")
_known: dict[bytes, _Item] = {}
_heads: dict[bytes, AnswerHead] = {}


def read_answer_head(block: bytes) -> AnswerHead | None:
    """None when malformed, or when the body could end in two places. Equal bytes give the same
    object: do not change it.
    """
    head = _heads.get(block)
    if head is None:
        head = _read(block)
        if head is None and (repaired := _repaired(block)):
            head = _read(repaired)
        if head is not None and not head.cookies and len(block) <= HEAD_CACHED_MAX:
            if len(_heads) >= HEADS_CACHED:
                _heads.clear()
            _heads[block] = head
    return head


def end_of_lf_head(data: bytes) -> int:
    """The end of a head whose lines all end with LF alone, as old CGI programs write; 0: it is no
    such head, or incomplete.

    A single LF among CRLFs is no such head: that is how an injected header looks.
    """
    line = data.find(b"\n")
    if line < 1 or data[line - 1] == 0x0D:
        return 0
    end = data.find(b"\n\n") + 2
    return end if end > 1 and b"\r" not in data[:end] else 0


def _repaired(block: bytes) -> bytes:
    """Empty when it cannot be repaired. Control characters in values become blanks; lines with
    impossible names and a second status line (old IIS) are dropped. NUL, CR, folded lines and
    blanks before the colon are never repaired.
    """
    if b"\r\n" not in block:
        block = block.replace(b"\n", b"\r\n")
    kept: list[bytes] = []
    for line in block.split(b"\r\n"):
        if b"\n" in line or b"\r" in line or b"\0" in line or line[:1] in (b" ", b"\t", b":"):
            return b""
        name, colon, value = line.partition(b":")
        if not kept or not line:
            kept.append(_CONTROL.sub(b" ", line))
        elif colon and _LINE.fullmatch(name + colon):
            kept.append(name + colon + _CONTROL.sub(b" ", value))
        elif not _NO_NAME.fullmatch(line) and not _SECOND_STATUS_LINE.match(line):
            return b""
    return b"\r\n".join(kept)


def _read(block: bytes) -> AnswerHead | None:
    lines = block.split(b"\r\n")
    status = _status_line(lines[0])
    if status is None:
        return None
    known = _known.get
    code, line, modern = status
    kept = [line]
    special = []
    for line in lines[1:-2]:
        item = known(line) or _learn(line)
        if not item[0]:
            kept.append(line)
        else:
            special.append(item)
    kept.append(b"")
    head = AnswerHead(code, b"\r\n".join(kept), None, False, modern)
    connection, codings = b"", None
    for name, value in special:
        if name == b"content-length":
            if not _LENGTH.fullmatch(value) or head.content_length not in (None, int(value)):
                return None
            head.content_length = int(value)
        elif name == b"connection":
            connection = connection + b"," + value if connection else value
        elif name == b"transfer-encoding":
            codings = value if codings is None else codings + b"," + value
        elif name == _BAD[0]:
            return None
        elif name not in _DROPPED:
            _read_other(head, name, value)
    if connection:
        _read_connection(head, connection.lower())
    _classify(head, code)
    return head if codings is None or _read_codings(head, codings, modern) else None


def _classify(head: AnswerHead, code: int) -> None:
    head.digit = min(code // 100, 5)
    head.directs = bool(head.caching or head.command or head.offers) or code in FAILURES
    if head.content_length is not None:
        head.length_line = b"Content-Length: %d\r\n" % head.content_length
        head.plain = code >= 200 and code not in NO_BODY
    if head.plain and not head.cookies:
        head.behind_ticket = b"\r\n" + _private(head) + head.length_line + b"\r\n"


def _read_codings(head: AnswerHead, codings: bytes, modern: bool) -> bool:
    """Accepts `chunked`, or only `identity`, which old servers send for none."""
    if codings == b"chunked":
        head.chunked = True
    else:
        named = [coding for item in codings.lower().split(b",") if (coding := item.strip(b" \t"))]
        head.chunked = named == [b"chunked"]
        if named and named != [b"chunked"] and named != [b"identity"]:
            return False
        if not head.chunked:
            head.keep_alive = False  # were it wrong, only this answer would suffer
    return not head.chunked or (modern and head.content_length is None)


@lru_cache(maxsize=256)
def _status_line(line: bytes) -> tuple[int, bytes, bool] | None:
    """Status, the line for the visitor, and whether the version is 1.1 or later."""
    found = _STATUS_LINE.fullmatch(line)
    return (int(found[2][:3]), b"HTTP/1.1 " + found[2], found[1] != b"0") if found else None


def _learn(line: bytes) -> _Item:
    """Classifies a line: forwarded, inspected (lower-case name and value), or dropped."""
    if not _LINE.fullmatch(line):
        return _BAD
    name, _, value = line.partition(b":")
    name = name.lower()
    special = name in _SPECIAL_NAMES or is_for_caches(name)
    item = (name, value.strip(b" \t")) if special else _PASS
    if len(line) <= LINE_CACHED_MAX and name != b"set-cookie":  # cookies differ, and are secrets
        if len(_known) >= LINES_CACHED:
            _known.clear()
        _known[line] = item
    return item


def _read_connection(head: AnswerHead, value: bytes) -> None:
    if value == b"keep-alive":
        head.keep_alive = True
        return
    options = {option.strip(b" \t") for option in value.split(b",")}
    head.keep_alive = (head.keep_alive or b"keep-alive" in options) and b"close" not in options
    head.upgrading = head.upgrading or b"upgrade" in options
    if named := options - _CONNECTION_OPTIONS:
        status, *lines = head.lines.split(b"\r\n")[:-1]
        head.lines = b"".join(
            line + b"\r\n"
            for line in [status, *lines]
            if line is status or line[: line.index(b":")].lower() not in named
        )


def _read_other(head: AnswerHead, name: bytes, value: bytes) -> None:
    if name == b"set-cookie":
        head.cookies = (*head.cookies, value)
    elif is_for_caches(name):
        head.caching = (*head.caching, (name, value))
    elif name == b"keep-alive":
        found = _IDLE.search(value)
        head.idle_s = int(found[1]) if found else 0
    elif name == COMMAND:
        head.command = head.command + b"," + value if head.command else value
    elif name == OFFERS:
        head.offers = value
    elif name == b"upgrade":
        head.upgrade = value.lower()
    else:
        head.accept = value


def is_for_caches(name: bytes) -> bool:
    """Whether shared caches obey this lower-case header name: a response with a ticket must not
    reach one.

    Every CDN has its own Cache-Control (RFC 9213): Akamai-, CDN-, Google-CDN-, Netlify-,
    Vercel-CDN-Cache-Control.
    """
    return (
        name in _CACHE_HEADERS or name.endswith(b"-cache-control") or name.startswith(b"surrogate-")
    )


def visitor_lines(head: AnswerHead, ticket_cookie: bytes, own_cookies: frozenset[bytes]) -> bytes:
    """Without framing, Connection and the empty line. An origin can never set the ticket cookie. An
    answer with a ticket is `private`, and headers for shared caches are dropped.
    """
    lines = head.lines
    for cookie in head.cookies:
        if cookie.partition(b"=")[0].strip(b" \t") not in own_cookies:
            lines += b"Set-Cookie: " + cookie + b"\r\n"
    if ticket_cookie:
        return b"".join((lines, TICKET, ticket_cookie, b"\r\n", _private(head)))
    for name, value in head.caching:
        lines += name.title() + b": " + value + b"\r\n"
    return lines


class AnswerFraming(msgspec.Struct):
    """The framing for the visitor: header lines, the first framed bytes, and whether the connection
    stays open.
    """

    lines: bytes
    payload: bytes
    keep: bool
    chunked: bool = False
    until_close: bool = False


def framing_of(
    head: AnswerHead, payload: bytes, done: bool, request: RequestHead, keep: bool
) -> AnswerFraming:
    """`done`: the payload is the whole body; `keep`: the connection may stay open."""
    framing, length = AnswerFraming(b"", payload, keep), head.content_length
    if head.status in NO_BODY or request.method == b"HEAD":
        if head.status != 204:
            framing.lines = head.length_line
    elif length is not None:
        framing.lines = head.length_line
    elif done:
        framing.lines = b"Content-Length: %d\r\n" % len(payload)
    elif request.minor:
        framing.lines = b"Transfer-Encoding: chunked\r\n"
        framing.chunked = True
        framing.payload = chunk(payload) if payload else b""
    else:
        framing.keep, framing.until_close = False, True
    if not framing.keep:
        framing.lines += b"Connection: close\r\n"
    elif not request.minor:
        framing.lines += b"Connection: keep-alive\r\n"
    return framing


def _private(head: AnswerHead) -> bytes:
    return private_caching(head.caching) if head.caching else PRIVATE


@lru_cache(maxsize=256)
def private_caching(caching: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """The Cache-Control line of an answer for one visitor."""
    directives = _directives(caching)
    if directives is None:  # a quote without an end: only ever less caching
        return b"Cache-Control: private, no-cache\r\n"
    kept = [text for name, text in directives if name not in _SHARED_ONLY]
    return b"Cache-Control: " + b", ".join([b"private", *kept]) + b"\r\n"


@lru_cache(maxsize=256)
def publicly_cacheable(caching: tuple[tuple[bytes, bytes], ...]) -> bool:
    """Whether Cache-Control lets shared caches keep an answer without asking again."""
    directives = dict(_directives(caching) or ())
    lasts = any(
        directives.get(name, b"0").partition(b"=")[2].strip(b'" 0')
        for name in (b"max-age", b"s-maxage")
    )
    return (lasts or b"immutable" in directives) and directives.keys().isdisjoint(_NOT_SHARED)


def _directives(caching: tuple[tuple[bytes, bytes], ...]) -> list[tuple[bytes, bytes]] | None:
    """Cache-Control as (lower-case name, text) in order; None when unreadable. Quoted lists may
    contain commas.
    """
    said = b",".join(value for name, value in caching if name == b"cache-control")
    texts = [text for item in _DIRECTIVE.findall(said) if (text := item.strip(b" \t"))]
    if any(text.count(b'"') % 2 for text in texts):
        return None
    return [(text.partition(b"=")[0].rstrip(b" \t").lower(), text) for text in texts]


_DIRECTIVE = re.compile(rb'(?:[^",]|"[^"]*"|")+')
_SHARED_ONLY = frozenset((b"public", b"private", b"s-maxage", b"proxy-revalidate"))
_NOT_SHARED = frozenset((b"private", b"no-store", b"no-cache"))
