"""Reads the head of an origin's answer strictly, and words the head that the visitor gets.

Why our own reader: llhttp calls back into Python for every header, 1.5 us for a head of eight with nothing checked, against 3.4 us here
for a head that never came before and 0.1 us for one that did (`bench/heads.py`); and what is forgiven is decided elsewhere.
The lines of an origin's heads repeat from answer to answer (Server, Content-Type, Date within its second), so every line is
checked and classified once and then remembered: a head costs one look into a dict per line.
"""

import re
from functools import lru_cache

import msgspec

CACHE_HEADERS = frozenset(
    (b"cache-control", b"cdn-cache-control", b"cloudflare-cdn-cache-control", b"surrogate-control", b"edge-control", b"x-accel-expires")
)
"""All that shared caches obey; set aside, because an answer with a visitor's ticket must not reach a shared cache."""

COMMAND = b"cf-waiting-room-command"

_DROPPED = frozenset((b"proxy-connection", b"proxy-authenticate", b"proxy-authentication-info", b"te", b"trailer"))
_READ = frozenset(
    (b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"upgrade", b"sec-websocket-accept", b"set-cookie")
)
_SPECIAL_NAMES = _DROPPED | _READ | CACHE_HEADERS | {COMMAND}

_LINE = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] [1-5][0-9][0-9](?: [\t\x20-\x7e\x80-\xff]*)?")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_IDLE = re.compile(rb"(?:\A|[ ,;])timeout=([0-9]{1,6})", re.IGNORECASE)
_CONNECTION_OPTIONS = frozenset((b"", b"keep-alive", b"close", b"upgrade"))

LINES_REMEMBERED = 4_096
"""Distinct header lines whose meaning is remembered; the memory starts afresh when it is full (at most 1 MB)."""

LINE_REMEMBERED_MAX = 256
"""Longer lines are parsed each time; they rarely repeat."""

HEADS_REMEMBERED, HEAD_REMEMBERED_MAX = 512, 1_024
"""Whole heads that are remembered, and their longest: one file, or one page of fixed length, asked for often within a second."""

PRIVATE = b"Cache-Control: private\r\n"


class AnswerHead(msgspec.Struct):
    """What an origin's answer says. `lines` are the status line and the headers that travel on, CRLF after each."""

    status: int
    lines: bytes
    content_length: int | None = None
    chunked: bool = False
    keep_alive: bool = True
    idle_s: int = 0  # Keep-Alive: timeout, or 0
    cookies: tuple[bytes, ...] = ()
    caching: tuple[tuple[bytes, bytes], ...] = ()  # lower-case name and value of CACHE_HEADERS
    command: bytes = b""
    upgrade: bytes = b""
    upgrading: bool = False  # Connection has the option upgrade
    accept: bytes = b""


_Item = tuple[bytes, bytes]
_PASS: _Item = (b"", b"")
_BAD: _Item = (b"!", b"")
_known: dict[bytes, _Item] = {}
_heads: dict[bytes, AnswerHead] = {}


def read_answer_head(block: bytes) -> AnswerHead | None:
    """One head from the status line to the empty line; None when it is malformed or its body could end in two places.

    The same bytes give the same object, which must not be changed.
    """
    head = _heads.get(block)
    if head is None:
        head = _read(block)
        if head is not None and not head.cookies and len(block) <= HEAD_REMEMBERED_MAX:
            if len(_heads) >= HEADS_REMEMBERED:
                _heads.clear()
            _heads[block] = head
    return head


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
        if item is _PASS:
            kept.append(line)
        else:
            special.append(item)
    kept.append(b"")
    head = AnswerHead(code, b"\r\n".join(kept), None, False, modern)
    connection = b""
    for name, value in special:
        if name == b"content-length":
            if head.content_length is not None or not _LENGTH.fullmatch(value):
                return None
            head.content_length = int(value)
        elif name == b"connection":
            connection = connection + b"," + value if connection else value
        elif name == b"transfer-encoding":
            if head.chunked or not modern or value.lower() != b"chunked":
                return None
            head.chunked = True
        elif name == _BAD[0]:
            return None
        elif name not in _DROPPED:
            _read_other(head, name, value)
    if connection:
        _read_connection(head, connection.lower())
    return None if head.chunked and head.content_length is not None else head


@lru_cache(maxsize=256)
def _status_line(line: bytes) -> tuple[int, bytes, bool] | None:
    """Status, the line as the visitor gets it, and whether its version is 1.1."""
    return (int(line[9:12]), b"HTTP/1.1 " + line[9:], line[7] == 0x31) if _STATUS_LINE.fullmatch(line) else None


def _learn(line: bytes) -> _Item:
    """What a header line is: one to pass on, one to look at (lower-case name and value), or none at all."""
    if not _LINE.fullmatch(line):
        return _BAD
    name, _, value = line.partition(b":")
    name = name.lower()
    item = (name, value.strip(b" \t")) if name in _SPECIAL_NAMES else _PASS
    if len(line) <= LINE_REMEMBERED_MAX and name != b"set-cookie":  # cookies differ, and are secrets
        if len(_known) >= LINES_REMEMBERED:
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
            line + b"\r\n" for line in [status, *lines] if line is status or line[: line.index(b":")].lower() not in named
        )


def _read_other(head: AnswerHead, name: bytes, value: bytes) -> None:
    if name == b"set-cookie":
        head.cookies = (*head.cookies, value)
    elif name in CACHE_HEADERS:
        head.caching = (*head.caching, (name, value))
    elif name == b"keep-alive":
        found = _IDLE.search(value)
        head.idle_s = int(found[1]) if found else 0
    elif name == COMMAND:
        head.command = value
    elif name == b"upgrade":
        head.upgrade = value.lower()
    else:
        head.accept = value


def visitor_lines(head: AnswerHead, ticket_cookie: bytes, own_cookies: frozenset[bytes]) -> bytes:
    """The visitor's head without framing, Connection and the empty line.

    An origin can never set the ticket cookie. An answer that carries a ticket is never publicly cacheable: what is said to
    shared caches is dropped, and Cache-Control keeps its other directives behind `private`.
    """
    lines = head.lines
    for cookie in head.cookies:
        if cookie.partition(b"=")[0].strip(b" \t") not in own_cookies:
            lines += b"Set-Cookie: " + cookie + b"\r\n"
    if ticket_cookie:
        caching = private_caching(head.caching) if head.caching else PRIVATE
        return b"%bSet-Cookie: %b\r\n%b" % (lines, ticket_cookie, caching)
    for name, value in head.caching:
        lines += name.title() + b": " + value + b"\r\n"
    return lines


@lru_cache(maxsize=256)
def private_caching(caching: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """The one Cache-Control line of an answer that is only for one visitor."""
    said = b",".join(value for name, value in caching if name == b"cache-control")
    if b'"' in said:  # quoted field lists may contain commas; they only ever make caching less likely
        return b"Cache-Control: private, no-cache\r\n"
    directives = [directive.strip(b" \t") for directive in said.split(b",")]
    kept = [d for d in directives if d and d.partition(b"=")[0].rstrip(b" \t").lower() not in _SHARED_ONLY]
    return b"Cache-Control: " + b", ".join([b"private", *kept]) + b"\r\n"


_SHARED_ONLY = frozenset((b"public", b"private", b"s-maxage", b"proxy-revalidate"))
