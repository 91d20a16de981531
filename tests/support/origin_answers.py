"""What origins answer: usual and odd, the complete bytes of each. Odd ones come from real servers,
old CGI scripts and appliances.
"""

from dataclasses import dataclass


@dataclass
class OriginAnswer:
    """The bytes of an answer. `closes`: the origin closes the connection behind it."""

    raw: bytes
    closes: bool = False


def _head(
    *lines: str, body: bytes = b"hello", first: str = "HTTP/1.1 200 OK", length: bool = True
) -> OriginAnswer:
    """A head with its body; a length unless the lines announce the body otherwise."""
    framing = (f"Content-Length: {len(body)}",) if length else ()
    return OriginAnswer("\r\n".join((first, *lines, *framing, "", "")).encode("latin-1") + body)


def _ends(*lines: str, body: bytes = b"hello", first: str = "HTTP/1.1 200 OK") -> OriginAnswer:
    """As `_head`, with a body that ends with the connection."""
    return OriginAnswer(_head(*lines, body=body, first=first, length=False).raw, closes=True)


def _raw(text: bytes, *, closes: bool = True) -> OriginAnswer:
    return OriginAnswer(text, closes)


_CHUNKED = "Transfer-Encoding: chunked"
_OK = b"HTTP/1.1 200 OK\r\n"

STATUSES = (
    200, 201, 202, 203, 206, 207, 226, 300, 301, 302, 303, 307, 308, 400, 401, 402, 403, 404, 405, 406, 409, 410, 411, 412, 413, 415, 416,
    418, 421, 422, 423, 425, 426, 428, 429, 431, 451, 499, 500, 501, 502, 503, 504, 507, 511, 520, 599, 600, 777, 999,
)  # fmt: skip

USUAL: dict[str, OriginAnswer] = {
    **{
        f"status {status}": _head("Location: /elsewhere", first=f"HTTP/1.1 {status} Said")
        for status in STATUSES
    },
    "no content": _head(first="HTTP/1.1 204 No Content", body=b"", length=False),
    "not modified": _head('ETag: "1"', first="HTTP/1.1 304 Not Modified", body=b"", length=False),
    "not modified, with a length": OriginAnswer(
        b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\nContent-Length: 5\r\n\r\n'
    ),
    "several cookies": _head(
        "Set-Cookie: a=1; Path=/",
        "Set-Cookie: b=2; HttpOnly",
        "Set-Cookie: c=3; SameSite=None; Secure",
    ),
    "odd cookies": _head(
        "Set-Cookie: lonely", "Set-Cookie: =nameless", 'Set-Cookie: quoted="a b; c"', "Set-Cookie: "
    ),
    "chunked": _head(_CHUNKED, body=b"5\r\nhello\r\n0\r\n\r\n", length=False),
    "chunked in parts": _head(_CHUNKED, body=b"1\r\nh\r\n4\r\nello\r\n0\r\n\r\n", length=False),
    "ends with the connection": _ends(),
    "ends with the connection, says so": _ends("Connection: close"),
    "HTTP/1.0": _ends(first="HTTP/1.0 200 OK"),
    "HTTP/1.0 with a length": OriginAnswer(_head(first="HTTP/1.0 200 OK").raw, closes=True),
    "HTTP/1.0 keeps": _head("Connection: keep-alive", first="HTTP/1.0 200 OK"),
    "keeps for long": _head("Connection: keep-alive", "Keep-Alive: timeout=5, max=100"),
    "empty": _head(body=b""),
    "hints before": _raw(
        b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n" + _head().raw,
        closes=False,
    ),
    "100 before": _raw(b"HTTP/1.1 100 Continue\r\n\r\n" + _head().raw, closes=False),
    "102 before": _raw(b"HTTP/1.1 102 Processing\r\n\r\n" + _head().raw, closes=False),
    "its own Date and Server": _head(
        "Date: Sun, 06 Nov 1994 08:49:37 GMT", "Server: Apache/2.4.57 (Debian)"
    ),
    "asks for a password": _head(
        'WWW-Authenticate: Basic realm="a"',
        "WWW-Authenticate: Negotiate",
        first="HTTP/1.1 401 Unauthorized",
    ),
    "asks as a proxy": _head(
        'Proxy-Authenticate: Basic realm="a"', first="HTTP/1.1 407 Proxy Authentication Required"
    ),
    "security": _head(
        "Strict-Transport-Security: max-age=1",
        "Content-Security-Policy: default-src 'self'",
        "X-Frame-Options: DENY",
        "Referrer-Policy: no-referrer",
        "Permissions-Policy: camera=()",
        "Cross-Origin-Opener-Policy: same-origin",
    ),
    "cross-origin": _head(
        "Access-Control-Allow-Origin: *",
        "Access-Control-Expose-Headers: X-A",
        "Vary: Origin",
        "Vary: Accept",
    ),
    "a part": _head(
        "Content-Range: bytes 0-4/10", "Accept-Ranges: bytes", first="HTTP/1.1 206 Partial Content"
    ),
    "several parts": _head(
        "Content-Type: multipart/byteranges; boundary=b", first="HTTP/1.1 206 Partial Content"
    ),
    "compressed": _head(
        "Content-Encoding: gzip", "Vary: Accept-Encoding", body=b"\x1f\x8b\x08\x00not really"
    ),
    "a download": _head(
        "Content-Disposition: attachment; filename*=UTF-8''%e2%82%ac.txt",
        "Content-Type: application/octet-stream",
    ),
    "events": _ends(
        "Content-Type: text/event-stream", "Cache-Control: no-cache", body=b"data: 1\n\ndata: 2\n\n"
    ),
    "a long field": _head("X-Long: " + "a" * 3000),
    "many fields": _head(*(f"X-{number}: {number}" for number in range(150))),
    "no type": _head(),
    "refreshes": _head("Refresh: 5; url=/elsewhere"),
    "links to itself": _head(
        "Location: http://shop.example.com/elsewhere", first="HTTP/1.1 302 Found"
    ),
    "a weak tag": _head('ETag: W/"1"', "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"),
    "old cache": _head("Expires: Sun, 06 Nov 1994 08:49:37 GMT", "Pragma: no-cache", "Age: 5"),
    "never stored": _head("Cache-Control: no-store"),
    "only for one": _head("Cache-Control: private, max-age=60"),
    "forever": _head(
        "Cache-Control: public, max-age=31536000, immutable", "Content-Type: text/css"
    ),
    "for shared caches": _head(
        "Cache-Control: max-age=60, s-maxage=600, stale-while-revalidate=30",
        "Surrogate-Control: max-age=60",
    ),
    "for one kind of cache": _head("Cache-Control: max-age=60", "CDN-Cache-Control: max-age=600"),
    "accepts a WebSocket unasked": _head("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
    "cookies not stored": _head('Cache-Control: no-cache="Set-Cookie", max-age=60'),
    "hands over": _head("Upgrade: h2,h2c", "Connection: Upgrade, Keep-Alive"),
    "trailers": _head(
        _CHUNKED, "Trailer: X-T", body=b"5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n", length=False
    ),
    "alternative services": _head('Alt-Svc: h3=":443"; ma=86400', "NEL: {}", "Report-To: {}"),
    "utf-8 in a field": _head("X-City: Zürich".encode().decode("latin-1")),
    "latin-1 in a field": _head("X-City: Zürich"),
}

ODD: dict[str, OriginAnswer] = {
    "no reason": _raw(b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello"),
    "an empty reason": _raw(b"HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\nhello"),
    "a reason in utf-8": _raw(
        "HTTP/1.1 200 D'accord, ça va\r\nContent-Length: 5\r\n\r\nhello".encode()
    ),
    "a tab in the reason": _raw(b"HTTP/1.1 200 O\tK\r\nContent-Length: 5\r\n\r\nhello"),
    "lines end with LF": _raw(b"HTTP/1.1 200 OK\nContent-Length: 5\nX-A: 1\n\nhello"),
    "head ends with LF": _raw(_OK + b"Content-Length: 5\r\nX-A: 1\r\n\nhello"),
    "one line ends with LF": _raw(_OK + b"X-A: 1\nContent-Length: 5\r\n\r\nhello"),
    "no fields": _raw(b"HTTP/1.1 200 OK\r\n\r\nhello"),
    "no blank behind the colon": _head("X-A:1"),
    "many blanks behind the colon": _head("X-A: \t  1 \t"),
    "an empty field": _head("X-A:", "X-B: "),
    "a blank before the colon": _head("X-A : 1"),
    "a name with underscores": _head("X_A: 1"),
    "a name with odd characters": _head("X-A!#$%&'*+.^`|~: 1"),
    "a name with brackets": _head("X[A]: 1"),
    "a name with a blank": _head("X A: 1"),
    "a name with utf-8": _head("X-Ä: 1"),
    "a line without a colon": _head("Nonsense"),
    "a second status line": _head("HTTP/1.1 200 OK"),
    "a line that begins with a colon": _head(": 1"),
    "a folded line": _head("X-A: 1\r\n  2"),
    "a control character": _head("X-A: 1\x012"),
    "an escape character": _head("X-A: \x1b[31mred"),
    "a delete character": _head("X-A: 1\x7f2"),
    "a NUL": _head("X-A: 1\x002"),
    "a bare CR": _head("X-A: 1\r2"),
    "the same length twice": _head("Content-Length: 5"),
    "the same length in one line": _head("Content-Length: 5, 5", length=False),
    "two lengths": _head("Content-Length: 4"),
    "a length with a sign": _head("Content-Length: +5", length=False),
    "a length with zeros": _head("Content-Length: 0005", length=False),
    "a length with blanks": _head("Content-Length:   5  ", length=False),
    "a length that is empty": _ends("Content-Length: "),
    "a length that is a word": _ends("Content-Length: five"),
    "a negative length": _ends("Content-Length: -1"),
    "a length in hexadecimal": _ends("Content-Length: 0x5"),
    "chunked, in capitals": _head(
        "Transfer-Encoding: Chunked", body=b"5\r\nhello\r\n0\r\n\r\n", length=False
    ),
    "chunked, with a blank": _head(
        "Transfer-Encoding: chunked ", body=b"5\r\nhello\r\n0\r\n\r\n", length=False
    ),
    "chunked, with a comma": _head(
        "Transfer-Encoding: chunked,", body=b"5\r\nhello\r\n0\r\n\r\n", length=False
    ),
    "chunked twice": _head(_CHUNKED, _CHUNKED, body=b"5\r\nhello\r\n0\r\n\r\n", length=False),
    "chunked twice in one line": _head(
        "Transfer-Encoding: chunked, chunked", body=b"5\r\nhello\r\n0\r\n\r\n", length=False
    ),
    "chunked and a length": _head(
        _CHUNKED, "Content-Length: 5", body=b"5\r\nhello\r\n0\r\n\r\n", length=False
    ),
    "chunked in HTTP/1.0": _raw(
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    ),
    "coded as itself": _ends("Transfer-Encoding: identity"),
    "coded as itself, with a length": _head("Transfer-Encoding: identity"),
    "an empty coding": _head("Transfer-Encoding: "),
    "gzip as a transfer coding": _ends("Transfer-Encoding: gzip"),
    "gzip and chunked": _head(
        "Transfer-Encoding: gzip, chunked", body=b"5\r\nhello\r\n0\r\n\r\n", length=False
    ),
    "sizes with zeros": _head(_CHUNKED, body=b"0005\r\nhello\r\n0000\r\n\r\n", length=False),
    "sizes padded with blanks": _head(_CHUNKED, body=b"5  \r\nhello\r\n0\r\n\r\n", length=False),
    "a size after a blank": _head(_CHUNKED, body=b" 5\r\nhello\r\n0\r\n\r\n", length=False),
    "sizes with extensions": _head(
        _CHUNKED, body=b'5;a=b;c="d"\r\nhello\r\n0;e\r\n\r\n', length=False
    ),
    "chunks end with LF": _head(_CHUNKED, body=b"5\nhello\n0\n\n", length=False),
    "sizes end with LF": _head(_CHUNKED, body=b"5\nhello\r\n0\n\r\n", length=False),
    "no line behind the last chunk": OriginAnswer(
        _head(_CHUNKED, body=b"5\r\nhello\r\n0\r\n", length=False).raw, closes=True
    ),
    "no last chunk": OriginAnswer(
        _head(_CHUNKED, body=b"5\r\nhello\r\n", length=False).raw, closes=True
    ),
    "a chunk without an end": OriginAnswer(
        _head(_CHUNKED, body=b"5\r\nhel", length=False).raw, closes=True
    ),
    "a chunk longer than it says": _head(_CHUNKED, body=b"4\r\nhello\r\n0\r\n\r\n", length=False),
    "a size that is none": OriginAnswer(
        _head(_CHUNKED, body=b"x\r\nhello\r\n0\r\n\r\n", length=False).raw, closes=True
    ),
    "more than it says": OriginAnswer(_head(body=b"hello").raw + b" world", closes=True),
    "less than it says": OriginAnswer(_head("Content-Length: 10", length=False).raw, closes=True),
    "no content, with a length of 0": _head(first="HTTP/1.1 204 No Content", body=b""),
    "no content, with content": OriginAnswer(
        _head(first="HTTP/1.1 204 No Content").raw, closes=True
    ),
    "no content, chunked": _head(
        _CHUNKED, first="HTTP/1.1 204 No Content", body=b"0\r\n\r\n", length=False
    ),
    "not modified, chunked": _head(
        _CHUNKED, first="HTTP/1.1 304 Not Modified", body=b"0\r\n\r\n", length=False
    ),
    "not modified, with content": OriginAnswer(
        _head(first="HTTP/1.1 304 Not Modified").raw, closes=True
    ),
    "reset content, with content": _head(first="HTTP/1.1 205 Reset Content"),
    "an empty line before": _raw(b"\r\n" + _head().raw),
    "HTTP/0.9": _raw(b"<p>hello"),
    "lower-case version": _raw(b"http/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    "HTTP/1.2": _raw(b"HTTP/1.2 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    "HTTP/2.0": _raw(b"HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    "a status of two digits": _raw(b"HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello"),
    "a status of four digits": _raw(b"HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nhello"),
    "two blanks before the status": _raw(b"HTTP/1.1  200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    "a status like 099": _raw(b"HTTP/1.1 099 Low\r\nContent-Length: 5\r\n\r\nhello"),
    "changes protocols unasked": _raw(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello"
    ),
    "ICY": _raw(b"ICY 200 OK\r\nicy-name: radio\r\n\r\nhello"),
    "Connection twice": _head("Connection: keep-alive", "Connection: close"),
    "Connection names a field": _head("Connection: close, X-A", "X-A: 1"),
    "an odd Connection": _head("Connection: whatever, ,close"),
    "an odd Keep-Alive": _head("Keep-Alive: forever"),
    "a type twice": _head("Content-Type: text/html", "Content-Type: text/plain"),
    "two redirections": _head("Location: /a", "Location: /b", first="HTTP/1.1 302 Found"),
    "dates that are none": _head("Date: yesterday", "Last-Modified: never", "Expires: 0"),
    "closes at once": _raw(b""),
    "half a head": _raw(b"HTTP/1.1 200 OK\r\nContent-Le"),
    "nginx's own fields": _head("X-Accel-Buffering: no", "X-Accel-Expires: 60"),
    "a file to send": _head("X-Sendfile: /etc/passwd", "X-Pad: avoid"),
    "a status field, as CGI": _head("Status: 404 Not Found"),
}

ANSWERS = USUAL | ODD
