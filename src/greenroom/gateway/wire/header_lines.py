"""Reads the lines behind a request line strictly. Browsers of one kind send the same lines but for
Cookie, and X-Forwarded-For behind a trusted proxy; no rule in here looks at these values. So they
are cut out, what is left is read once and cached for all connections, and the values are put back,
checked for control characters only. Lines in which such a name comes twice are read whole.
"""

import re

from greenroom.gateway.wire.head_records import CachedLines, Facts, Frame, HeaderLines
from greenroom.gateway.wire.hop import HEADER, LOOPS, loops
from greenroom.request.admissible import signs_of
from greenroom.request.arrival import (
    DROPPED,
    IS_NAME,
    NO_HOST,
    TOO_MANY,
    WRONG,
    header_name,
    read_host,
    repeated,
)
from greenroom.request.bounded_cache import BoundedCache
from greenroom.request.canonical import Refusal
from greenroom.request.forwarded import Headers
from greenroom.settings.limits import HEADER_LINES_MAX

LENGTH_DIGITS_MAX = 18
"""Digits of Content-Length: below 2^63, so no server behind us can overflow it."""

FRAME_CACHED_MAX = 4_096
"""Longest cached header lines; a browser's have 600 to 2,000 bytes."""

FRAMES_BYTES = 15_000_000
"""Approximate bytes of each of two generations: about 2,000 browsers' lines."""

LINE_BYTES, BYTES_KEPT = 250, 3
"""A line is kept three times: as it came, as name and value, and for the origin."""

PAIRS_SHARED = 8_192

Varying = tuple[bytes, bytes, bytes]
"""The name of a line with a value per visitor, and how such a line begins."""


def _varying(usual: bytes) -> Varying:
    lower = usual.lower()
    return lower, b"\r\n%b:" % usual, b"\r\n%b:" % lower


COOKIE, FORWARDED_FOR = _varying(b"Cookie"), _varying(b"X-Forwarded-For")
IN_QUESTIONS = (
    COOKIE,
    FORWARDED_FOR,
    *(_varying(name) for name in (b"X-Original-URI", b"X-Forwarded-Uri", b"Greenroom-Verdict")),
)
"""Lines of proxies that ask about a visitor's request (`proxies`)."""

_CONTROLS = bytes([*range(0x09), *range(0x0A, 0x20), 0x7F])  # all but TAB
_LENGTH = re.compile(rb"[0-9]{1,%d}" % LENGTH_DIGITS_MAX)
_END_TO_END = frozenset(
    b"accept accept-encoding accept-language authorization cache-control content-encoding"
    b" content-length content-type cookie date forwarded host if-match if-modified-since"
    b" if-none-match if-range if-unmodified-since origin range referer transfer-encoding user-agent"
    b" x-forwarded-for x-forwarded-host x-forwarded-proto x-real-ip".split()
)

_USUAL_HOPS: dict[bytes, tuple[bytes, ...]] = {
    b"": (),
    **{
        spelled: (spelled.lower(),)
        for spelled in (b"keep-alive", b"Keep-Alive", b"close", b"Close", b"Upgrade", b"upgrade")
    },
}

_COMMON = (
    "Accept Accept-Encoding Accept-Language Authorization Cache-Control Connection Content-Length"
    " Content-Type Cookie DNT Expect Host If-Modified-Since If-None-Match Keep-Alive Origin Pragma"
    " Priority Purpose Range Referer Sec-CH-UA Sec-CH-UA-Mobile Sec-CH-UA-Platform Sec-Fetch-Dest"
    " Sec-Fetch-Mode Sec-Fetch-Site Sec-Fetch-User Sec-GPC Sec-Purpose TE Transfer-Encoding Upgrade"
    " Upgrade-Insecure-Requests User-Agent X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto"
    " X-Real-IP X-Requested-With".split()
)
_KNOWN = {
    spelled.encode(): name.lower().encode() for name in _COMMON for spelled in (name, name.lower())
}

NOT_CHUNKED = Refusal(400, "the only supported Transfer-Encoding is chunked, in HTTP/1.1")
_UNPRINTABLE = Refusal(
    400,
    "the head contains a control character, a bare CR or LF, or does not end with an empty line",
)


def read_header_lines(
    raw: bytes, varying: tuple[Varying, ...] = (COOKIE,)
) -> HeaderLines | Refusal:
    """Reads everything from the CRLF behind the request line to the end of the head. Never
    raises.
    """
    shape, values = raw, []
    for name, usual, lower in varying:
        start = shape.rfind(usual)
        if start < 0 and (start := shape.rfind(lower)) < 0:
            continue
        start += len(usual)
        end = shape.find(b"\r\n", start)
        values.append((name, shape[start:end]))
        shape = shape[:start] + shape[end:]
    known = _cached.young.get(shape)
    if known is None and (known := _cached.again(shape) or _learn(shape)) is None:
        return _read_whole(raw)
    lines = known.lines
    if not values:
        return lines
    headers, facts, places = list(lines.headers), lines.facts, known.places
    if facts is not None:
        facts = facts.copy()
    for name, value in values:
        place = places.get(name)
        if place is None:  # it comes twice: which of its lines the value is from matters
            return _read_whole(raw)
        if value.translate(None, _CONTROLS) != value:
            return _UNPRINTABLE
        value = value.strip()
        headers[place] = (name, value)
        if facts is not None:
            facts[name] = value
    return HeaderLines(lines.frame, tuple(headers), facts)


_cached: BoundedCache[bytes, CachedLines] = BoundedCache(FRAMES_BYTES)
_pairs: dict[tuple[bytes, bytes], tuple[bytes, bytes]] = {}


def _learn(shape: bytes) -> CachedLines | None:
    """Caches lines with cut-out values, when they are good and come for the second time."""
    if len(shape) > FRAME_CACHED_MAX or not _cached.came_before(shape):
        return None
    lines = _read_whole(shape)
    if isinstance(lines, Refusal):
        return None
    names = [name for name, _ in lines.headers]
    lines.frame.signs = signs_of(lines.facts or dict(lines.headers))
    places = {name: names.index(name) for name, _, _ in IN_QUESTIONS if names.count(name) == 1}
    known = CachedLines(
        _shared(lines), places, len(shape) * BYTES_KEPT + lines.frame.count * LINE_BYTES
    )
    _cached.keep(shape, known)
    return known


def _shared(lines: HeaderLines) -> HeaderLines:
    """Replaces pairs with shared ones: less memory, nearly all of it in the processor's cache."""
    if len(_pairs) >= PAIRS_SHARED:
        _pairs.clear()
    headers = tuple([_pairs.setdefault(pair, pair) for pair in lines.headers])
    return HeaderLines(lines.frame, headers, dict(headers) if lines.facts is not None else None)


def _read_whole(raw: bytes) -> HeaderLines | Refusal:
    lines = raw.split(b"\r\n")
    if (
        len(raw) - len(raw.translate(None, _CONTROLS)) != 2 * len(lines) - 2
        or len(lines) < 3
        or lines[-1]
        or lines[-2]
    ):
        return _UNPRINTABLE
    if len(lines) > HEADER_LINES_MAX + 3:
        return TOO_MANY
    headers = _headers(lines)
    return headers if isinstance(headers, Refusal) else _checked(headers, len(lines) - 3)


def _checked(headers: Headers, count: int) -> HeaderLines | Refusal:
    facts = dict(headers)
    if WRONG in facts:
        return Refusal(400, "a header name is not a token")
    if facts.pop(DROPPED, None) is not None:
        headers = tuple([item for item in headers if item[0] != DROPPED])
    once = len(facts) == len(headers)
    if not once:
        twice = repeated(headers)
        if twice:
            return Refusal(400, f"{twice} is sent more than once")
        for listed in (b"connection", b"upgrade", HEADER):
            if listed in facts:
                facts[listed] = b",".join([value for name, value in headers if name == listed])
    frame = _judged(facts, count)
    return (
        frame
        if isinstance(frame, Refusal)
        else HeaderLines(frame, headers, facts if once else None)
    )


def _judged(facts: Facts, count: int) -> Frame | Refusal:
    authority = facts.get(b"host")
    host = read_host(authority) if authority is not None else ""
    if not host and authority is not None:
        return NO_HOST
    if HEADER in facts and loops((facts[HEADER],)):
        return LOOPS
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
    websocket = (
        facts.get(b"upgrade", b"").lower() == b"websocket" and b"upgrade" in hops and not body
    )
    return Frame(
        count, host, authority or b"", content_length, chunked, b"close" in hops,
        b"keep-alive" in hops, expected is not None and body, websocket, hops,
    )  # fmt: skip


def _headers(lines: list[bytes]) -> Headers | Refusal:
    known = _KNOWN.get
    try:
        return tuple(
            [
                (known(name) or header_name(name), value.strip())
                for name, value in [line.split(b":", 1) for line in lines[1:-2]]
            ]
        )
    except ValueError:
        return Refusal(400, "a header line has no colon")


def _framing(facts: Facts) -> tuple[int | None, bool] | Refusal:
    length, coding = facts.get(b"content-length"), facts.get(b"transfer-encoding")
    if length is None and coding is None:
        return None, False
    if coding is None:
        return (
            (int(length or b""), False)
            if _LENGTH.fullmatch(length or b"")
            else Refusal(400, "Content-Length is not a plain number")
        )
    if length is not None:
        return Refusal(400, "Content-Length and Transfer-Encoding are sent together")
    if coding.lower() != b"chunked":
        return NOT_CHUNKED
    return None, True


def _hops(connection: bytes) -> tuple[bytes, ...] | Refusal:
    """The names in Connection, in lower case. Naming headers meant for the origin would strip them
    (credentials, say): refused.
    """
    usual = _USUAL_HOPS.get(connection)
    if usual is not None:
        return usual
    names = tuple([name for item in connection.lower().split(b",") if (name := item.strip())])
    if any(not IS_NAME.fullmatch(name) for name in names):
        return Refusal(400, "Connection is not a list of names")
    if _END_TO_END.intersection(names):
        return Refusal(400, "Connection names a header that is meant for the origin")
    return names
