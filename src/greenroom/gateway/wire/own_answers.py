"""greenroom's own answers as bytes, and refusals of requests that are malformed, too large or too
slow.
"""

from functools import lru_cache
from http import HTTPStatus

from greenroom.gateway.wire.head_records import RequestHead
from greenroom.model.answer import Answer, AnswerHeaders

STATUS_LINES = {
    status.value: b"%d %b" % (status.value, status.phrase.encode()) for status in HTTPStatus
}

HEADS_CACHED = 1_024
"""Cached heads of answers, at most 1 MB."""

RETRY_S = 10
"""Retry for a visitor who got no connection."""

_PLAIN = AnswerHeaders(
    (b"Content-Type", b"text/plain; charset=utf-8"),
    (b"X-Content-Type-Options", b"nosniff"),
    (b"Cache-Control", b"private, no-store"),
    (b"X-Robots-Tag", b"noindex"),
)
_BUSY = _PLAIN.plus((b"Retry-After", b"%d" % RETRY_S))


LIVE_TARGET = b"/.well-known/greenroom/live"
LIVE = Answer(200, _PLAIN, b"live\n")
"""For health checks by a proxy in front, which may reach only the visitors' listener."""


def refusal(status: int, reason: str) -> Answer:
    return Answer(
        status,
        _BUSY if status == 503 else _PLAIN,
        f"{status} {HTTPStatus(status).phrase}: {reason}\n".encode(),
    )


def answer_bytes(
    answer: Answer, head: RequestHead | None, keep: bool, date_line: bytes, bodiless: bool = False
) -> bytes:
    """`head` None: an unreadable request; `keep`: the connection stays open. `bodiless`: a HEAD
    whose head could not be read completely.
    """
    body, cookie, headers = answer.body, answer.set_cookie, answer.headers
    length, modern = b"%d" % len(body), True
    if headers.own:
        length += b"".join([b"\r\n%b: %b" % pair for pair in headers.own])
    if bodiless or (head is not None and not head.framing.plain):  # the other case is the usual one
        modern = head is None or head.minor > 0
        if bodiless or (head is not None and head.method == b"HEAD"):
            body = b""
    lines = _lines(answer.status, headers.shared, keep, modern, date_line)
    if cookie:
        return b"".join((lines, length, b"\r\nSet-Cookie: ", cookie, b"\r\n\r\n", body))
    return b"".join((lines, length, b"\r\n\r\n", body))


@lru_cache(maxsize=HEADS_CACHED)
def _lines(
    status: int, headers: AnswerHeaders, keep: bool, modern: bool, date_line: bytes
) -> bytes:
    """The head before its length, shared by many visitors within a second."""
    line = STATUS_LINES.get(status) or b"%d Answer" % status
    lasting = (
        (b"" if modern else b"Connection: keep-alive\r\n") if keep else b"Connection: close\r\n"
    )
    own = b"".join([b"%b: %b\r\n" % pair for pair in headers.pairs])
    return b"HTTP/1.1 %b\r\n%b%b%bContent-Length: " % (line, date_line, own, lasting)
