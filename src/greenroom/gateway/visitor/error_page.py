"""What is answered from here, as bytes; and what a visitor gets when something goes wrong: short, never cached, the place kept."""

from functools import lru_cache
from http import HTTPStatus

from greenroom.gateway.wire.request_head import RequestHead
from greenroom.model.visit import Answer, Arrival

STATUS_LINES = {status.value: b"%d %b" % (status.value, status.phrase.encode()) for status in HTTPStatus}

HEADS_REMEMBERED = 1_024
"""Heads of answers that are put together once, 1 MB at most."""

RETRY_S = 10
"""When a page about a troubled origin tries again: slow enough not to add to the error_page."""

_NEVER_STORED = b"Cache-Control: private, no-store\r\nX-Robots-Tag: noindex\r\n"
_PLAIN = b"Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n" + _NEVER_STORED
_HTML = (
    b"Content-Type: text/html; charset=utf-8\r\n"
    b"Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\r\n"
    b"X-Content-Type-Options: nosniff\r\n" + _NEVER_STORED
)

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>One moment please</title>
<style>
:root {{ color-scheme: light dark }}
body {{ margin: 0; min-height: 100vh; display: grid; place-items: center; font: 1.05rem/1.6 system-ui, sans-serif;
  background: light-dark(#f4f7f5, #141a17); color: light-dark(#1d2b24, #e3ece7) }}
main {{ max-width: 30rem; margin: 1.5rem; padding: 2rem 2.25rem; border-radius: 1rem; background: light-dark(#fff, #1d2622);
  box-shadow: 0 1px 3px #0002, 0 8px 30px #0001 }}
h1 {{ margin: 0 0 .75rem; font-size: 1.5rem; line-height: 1.25 }}
p {{ margin: .75rem 0 0 }}
small {{ opacity: .7 }}
</style>
<main>
<h1>One moment please</h1>
<p>{what} <strong>You have not lost your place.</strong></p>
<p>{next}</p>
<p><small>{status}</small></p>
</main>
</html>
"""

_WHAT = {
    502: "The site could not be reached just now.",
    503: "The site is very busy just now.",
    504: "The site takes longer than usual to answer.",
}
_REFRESHES = f"This page tries again by itself every {RETRY_S} seconds; there is nothing you need to do."
_BY_HAND = "What you sent may or may not have arrived. Please go back and check before you send it again."


def error_page(status: int, arrival: Arrival, cookie: bytes) -> Answer:
    """The page for 502, 503 or 504 of a visitor that may go on: keeps the place (the ticket goes out) and tries again by itself.

    Only a request that is safe to repeat refreshes by itself. Programs that ask for JSON get JSON.
    """
    repeatable = arrival.method in ("GET", "HEAD")
    head = b"Retry-After: %d\r\n" % RETRY_S
    if repeatable:
        head += b"Refresh: %d\r\n" % RETRY_S
    wanted = arrival.header(b"accept") or b""
    if b"json" in wanted and b"text/html" not in wanted:
        body = b'{"error":"%b","status":%d,"retryAfter":%d}' % (STATUS_LINES[status][4:].lower(), status, RETRY_S)
        return Answer(status, head + b"Content-Type: application/json\r\n" + _NEVER_STORED, body, cookie)
    page = _PAGE.format(what=_WHAT[status], next=_REFRESHES if repeatable else _BY_HAND, status=STATUS_LINES[status].decode())
    return Answer(status, head + _HTML, page.encode(), cookie)


def refusal(status: int, reason: str) -> Answer:
    """For a request that cannot be understood or is too large or too slow."""
    retry = b"Retry-After: %d\r\n" % RETRY_S if status == 503 else b""
    return Answer(status, retry + _PLAIN, f"{status} {HTTPStatus(status).phrase}: {reason}\n".encode())


def answer_bytes(answer: Answer, head: RequestHead | None, keep: bool, date_line: bytes) -> bytes:
    """An answer as it is written. `head` is the request's (None: it could not be read), `keep` whether the connection goes on."""
    body, cookie = answer.body, answer.set_cookie
    lines = _lines(answer.status, answer.head, len(body), keep, head is None or head.minor > 0, date_line)
    if head is not None and head.method == b"HEAD":
        body = b""
    if cookie:
        return b"".join((lines, b"Set-Cookie: ", cookie, b"\r\n\r\n", body))
    return lines + b"\r\n" + body


@lru_cache(maxsize=HEADS_REMEMBERED)
def _lines(status: int, head: bytes, length: int, keep: bool, modern: bool, date_line: bytes) -> bytes:
    """The head of an answer as far as many visitors are given the same within a second."""
    line = STATUS_LINES.get(status) or b"%d Answer" % status
    lasting = (b"" if modern else b"Connection: keep-alive\r\n") if keep else b"Connection: close\r\n"
    return b"HTTP/1.1 %b\r\n%b%bContent-Length: %d\r\n%b" % (line, date_line, head, length, lasting)
