"""The waiting room as WSGI middleware: Flask, Django, Bottle, and every other WSGI application.

    from greenroom.wsgi import WaitingRoom

    app = WaitingRoom(app, "greenroom.toml")

greenroom runs in a thread of the application's process. It starts with the first request (or with
`start()`), after the server has made its workers, and ends with the process (or with `close()`).
Bodies are never read.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote, unquote_to_bytes

from greenroom.model.answer import Answer
from greenroom.runtime.embedded import AppRequest, EmbeddedThread, Passed, source_of

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
WsgiApplication = Callable[[Environ, StartResponse], Iterable[bytes]]
Found = TypeVar("Found", bytes, list[bytes])

RAW_TARGETS = ("RAW_URI", "REQUEST_URI")

TARGETS_CACHED, CACHED_MAX = 4_096, 512
"""At most 8 MB."""

_LITERAL = "/~!$&'()*+,=:@-._;"
_BODY_HEADERS = (("CONTENT_TYPE", b"content-type"), ("CONTENT_LENGTH", b"content-length"))


class WaitingRoom:
    def __init__(
        self,
        app: WsgiApplication,
        config: str | os.PathLike[str] | Mapping[str, Any],
        *,
        control: bool = False,
    ) -> None:
        """`config` is a configuration file, or its content; `origin` and `listen` are not needed.

        `control`: also open the control listener (/metrics, /status, the management API). Raises
        InvalidConfig with every problem.
        """
        self.app = app
        self.embedded = EmbeddedThread(source_of(config), control=control)

    def start(self) -> None:
        """For servers that tell when a worker begins. Raises CannotStart or StorageFailed."""
        self.embedded.start()

    def close(self) -> None:
        self.embedded.close()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        verdict = self.embedded.decide(_request(environ))
        if isinstance(verdict, Answer):
            return _answer(verdict, environ["REQUEST_METHOD"] == "HEAD", start_response)
        requests = self.embedded.own_requests
        sent = environ.get("HTTP_COOKIE")
        if sent:
            kept = requests.application_cookies(sent.encode("latin-1")).decode("latin-1")
            if kept:
                environ["HTTP_COOKIE"] = kept
            else:
                del environ["HTTP_COOKIE"]
        answer = _Answer(self.embedded, verdict)
        if verdict.document and "wsgi.input" in environ:
            environ["wsgi.input"] = _TimedBody(environ, verdict)
        try:
            body = self.app(environ, self._adding_ticket(start_response, verdict, answer))
        except Exception:
            answer.begins(500)
            raise
        # A generator begins its answer while it is read; any other body stays as it is, such as a
        # file that the server sends by itself.
        return body if answer.began else answer.of(body)

    def _adding_ticket(
        self, start_response: StartResponse, passed: Passed, answer: "_Answer"
    ) -> StartResponse:
        forward = passed.forward

        def started(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            cookie = answer.begins(int(status[:3]))
            pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
            kept, command = self.embedded.own_requests.visitor_headers(pairs, cookie)
            if command and forward.obeys_origin:
                cookie = self.embedded.obey(forward, command) or cookie
            if cookie:
                kept.append((b"Set-Cookie", cookie))
            if forward.session:
                kept.append((b"Greenroom-Session", forward.session))
            return start_response(status, _text(kept), *error)

        return started


class _Answer:
    def __init__(self, embedded: EmbeddedThread, passed: Passed) -> None:
        self._embedded = embedded
        self._passed = passed
        self._body: Iterable[bytes] = ()
        self.began = not passed.document

    def begins(self, status: int) -> bytes:
        """Returns the ticket cookie to send."""
        if self.began:
            return self._passed.forward.set_cookie
        self.began = True
        return self._embedded.answered(self._passed, status, time.monotonic())

    def of(self, body: Iterable[bytes]) -> "_Answer":
        self._body = body
        return self

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._body
        except Exception:
            self.begins(500)
            raise

    def close(self) -> None:
        if (close := getattr(self._body, "close", None)) is not None:
            close()


class _TimedBody:
    """`wsgi.input` of a document."""

    def __init__(self, environ: Environ, passed: Passed) -> None:
        self._body, self._passed = environ["wsgi.input"], passed
        length = environ.get("CONTENT_LENGTH") or ""
        self._left = int(length) if length.isascii() and length.isdecimal() else 0

    def read(self, *size: Any) -> bytes:
        read: Callable[..., bytes] = self._body.read
        return self._timed(read, size, None)

    def readinto(self, buffer: Any) -> int:
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def readline(self, *size: Any) -> bytes:
        read: Callable[..., bytes] = self._body.readline
        return self._timed(read, size, 1)

    def readlines(self, *hint: Any) -> list[bytes]:
        read: Callable[..., list[bytes]] = self._body.readlines
        return self._timed(read, hint, None)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.readline, b"")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)

    def _timed(self, read: Callable[..., Found], size: tuple[Any, ...], least: int | None) -> Found:
        """`least` bytes, or as many as `size` says, or else all come from a body that is whole."""
        self._passed.waits()
        cut_off = True
        try:
            found = read(*size)
            count = len(found) if isinstance(found, bytes) else sum(map(len, found))
            self._left -= count
            asked = size[0] if size and size[0] is not None and size[0] >= 0 else self._left + count
            cut_off = self._left > 0 and count < min(asked, least or asked)
        finally:
            self._passed.received(cut_off=cut_off)
        return found


def _text(pairs: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs]


def _request(environ: Environ) -> AppRequest:
    headers = [
        (key[5:].replace("_", "-").lower().encode("latin-1"), value.encode("latin-1"))
        for key, value in environ.items()
        if key.startswith("HTTP_")
    ]
    headers += [
        (name, environ[key].encode("latin-1")) for key, name in _BODY_HEADERS if environ.get(key)
    ]
    raw = next((environ[key] for key in RAW_TARGETS if key in environ), "").partition("?")[0]
    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    target = (_target if len(path) + len(raw) <= CACHED_MAX else _target.__wrapped__)(
        path or "/", raw
    )
    query = environ.get("QUERY_STRING")
    return AppRequest(
        environ["REQUEST_METHOD"],
        target + b"?" + query.encode("latin-1") if query else target,
        headers,
        environ.get("REMOTE_ADDR") or "",
        environ["wsgi.url_scheme"] == "https",
        environ.get("SERVER_PROTOCOL", "HTTP/1.1"),
        (environ["SERVER_NAME"], int(environ["SERVER_PORT"]))
        if environ.get("SERVER_PORT", "").isdigit()
        else ("", 0),
        "" if environ.get("SCRIPT_NAME") else None,  # the target begins with it
    )


@lru_cache(maxsize=TARGETS_CACHED)
def _target(path: str, raw: str) -> bytes:
    """The decoded path as the visitor spelled it, where the two agree: middleware in front may have
    rewritten it.
    """
    served = path.encode("latin-1")
    spelled = raw.encode("latin-1", "replace")
    return (
        spelled
        if raw and unquote_to_bytes(spelled) == served
        else quote(served, safe=_LITERAL).encode("ascii")
    )


def _answer(answer: Answer, without_body: bool, start_response: StartResponse) -> Iterable[bytes]:
    headers = [*answer.headers.pairs, (b"Content-Length", b"%d" % len(answer.body))]
    if answer.set_cookie:
        headers.append((b"Set-Cookie", answer.set_cookie))
    start_response(f"{answer.status} {HTTPStatus(answer.status).phrase}", _text(headers))
    return [] if without_body else [answer.body]
