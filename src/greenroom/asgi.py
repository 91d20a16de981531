"""The waiting room as ASGI middleware: FastAPI, Starlette, Django, Quart, and every other ASGI
application.

    from greenroom.asgi import WaitingRoom

    app = WaitingRoom(app, "greenroom.toml")

greenroom runs in the process of the application, on its event loop. It starts with the
application's lifespan (or, on a server without lifespan, with the first request) and ends with it.
Bodies are never read, and WebSockets and streams pass untouched.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from greenroom.errors import GreenroomError
from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.request.forwarded import prefix_of
from greenroom.runtime.embedded import AppRequest, AppRequests, Embedded, Passed, source_of

AsgiScope = dict[str, Any]
AsgiMessage = dict[str, Any]
AsgiReceive = Callable[[], Awaitable[AsgiMessage]]
AsgiSend = Callable[[AsgiMessage], Awaitable[None]]
AsgiApplication = Callable[[AsgiScope, AsgiReceive, AsgiSend], Awaitable[None]]

TRY_AGAIN_LATER = 1013
"""For servers that cannot answer the handshake with a status."""

TARGETS_CACHED, CACHED_MAX = 4_096, 512
"""At most 8 MB."""

_UPGRADE = (b"upgrade", b"websocket")
_DENIAL = "websocket.http.response"
_LITERAL = "/~!$&'()*+,=:@-._;"


class WaitingRoom:
    def __init__(
        self,
        app: AsgiApplication,
        config: str | os.PathLike[str] | Mapping[str, Any],
        *,
        control: bool = False,
    ) -> None:
        """`config` is a configuration file, or its content; `origin` and `listen` are not needed.

        `control`: also open the control listener (/metrics, /status, the management API). Raises
        InvalidConfig with every problem.
        """
        self.app = app
        self.embedded = Embedded(source_of(config), control=control)

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        """Raises ValueError for a kind of connection that it does not know."""
        kind = scope["type"]
        if kind == "http":
            await self._http(scope, receive, send)
        elif kind == "websocket":
            await self._websocket(scope, receive, send)
        elif kind == "lifespan":
            await _Lifespan(self.embedded, receive, send).run(self.app, scope)
        else:
            raise ValueError(f"unknown ASGI scope type {kind!r}")

    async def _http(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        verdict = await self.embedded.decide(_request(scope, scope["method"], scope["headers"]))
        if isinstance(verdict, Answer):
            await _send_answer(send, "http.response", verdict, scope["method"] == "HEAD")
        else:
            await self._let_in(verdict, scope, receive, send)

    async def _websocket(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        headers = scope["headers"]
        if not any(name == b"upgrade" for name, _ in headers):  # over HTTP/2
            headers = [*headers, _UPGRADE]
        verdict = await self.embedded.decide(_request(scope, "GET", headers))
        if isinstance(verdict, Passed):
            await self._let_in(verdict, scope, receive, send)
            return
        await receive()  # websocket.connect
        if _DENIAL in scope.get("extensions", ()):
            await _send_answer(send, _DENIAL, verdict, False)
        else:
            await send(
                {"type": "websocket.close", "code": TRY_AGAIN_LATER, "reason": "waiting room"}
            )

    async def _let_in(
        self, passed: Passed, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend
    ) -> None:
        requests = self.embedded.own_requests
        if passed.document:
            receive = _timing_body(receive, passed)
        try:
            await self.app(
                _for_application(scope, requests), receive, _adding_ticket(send, requests, passed)
            )
        except Exception:
            requests.answered(passed, 500, time.monotonic())
            raise


def _request(scope: AsgiScope, method: str, headers: Any) -> AppRequest:
    client, server = scope.get("client"), scope.get("server")
    path, raw = scope["path"], scope.get("raw_path") or b""
    target = (_target if len(path) + len(raw) <= CACHED_MAX else _target.__wrapped__)(path, raw)
    query = scope.get("query_string")
    return AppRequest(
        method,
        target + b"?" + query if query else target,
        headers,
        client[0] if client else "",
        scope.get("scheme") in ("https", "wss"),
        "HTTP/" + scope.get("http_version", "1.1"),
        (server[0], server[1] or 0) if server else ("", 0),
        _before(scope.get("root_path", "").rstrip("/"), path),
    )


def _before(root: str, path: str) -> str | None:
    """Nothing where the path begins with the root already, as the ASGI specification has it. None
    without one.
    """
    if not root:
        return None
    included = path == root or path.startswith(f"{root}/")
    return "" if included else prefix_of(root.encode("utf-8", "replace"))


@lru_cache(maxsize=TARGETS_CACHED)
def _target(path: str, raw: bytes) -> bytes:
    """The decoded path as the visitor spelled it, where the two agree: middleware in front may have
    rewritten it.
    """
    return (
        raw
        if raw and unquote(raw.decode("latin-1")) == path
        else quote(path, safe=_LITERAL).encode("ascii")
    )


def _for_application(scope: AsgiScope, requests: AppRequests) -> AsgiScope:
    headers, kept, changed = scope["headers"], [], False
    for pair in headers:
        if pair[0] != b"cookie":
            kept.append(pair)
            continue
        cookies = requests.application_cookies(pair[1])
        changed = changed or cookies != pair[1]
        if cookies:
            kept.append((b"cookie", cookies))
    return {**scope, "headers": kept} if changed else scope


def _timing_body(receive: AsgiReceive, passed: Passed) -> AsgiReceive:
    whole = False

    async def receive_timed() -> AsgiMessage:
        nonlocal whole
        if whole:  # what is left to receive is the end of the connection
            return await receive()
        passed.waits()
        cut_off = False
        try:
            message = await receive()
            whole = not message.get("more_body")
            cut_off = message["type"] == "http.disconnect"
        finally:
            passed.received(cut_off=cut_off)
        return message

    return receive_timed


def _adding_ticket(send: AsgiSend, requests: AppRequests, passed: Passed) -> AsgiSend:
    forward = passed.forward

    async def send_with_ticket(message: AsgiMessage) -> None:
        if message["type"] in (
            "http.response.start",
            "websocket.accept",
            "websocket.http.response.start",
        ):
            cookie = forward.set_cookie
            if passed.document:
                cookie = requests.answered(passed, message["status"], time.monotonic())
            headers, command = requests.visitor_headers(message.get("headers") or (), cookie)
            if command and forward.obeys_origin:
                cookie = requests.obey(forward, command) or cookie
            if cookie:
                headers.append((b"set-cookie", cookie))
            if forward.session:
                headers.append((b"greenroom-session", forward.session))
            message = {**message, "headers": headers}
        await send(message)

    return send_with_ticket


async def _send_answer(send: AsgiSend, kind: str, answer: Answer, without_body: bool) -> None:
    headers = [*_lower(answer.headers), (b"content-length", b"%d" % len(answer.body))]
    if answer.set_cookie:
        headers.append((b"set-cookie", answer.set_cookie))
    await send({"type": f"{kind}.start", "status": answer.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": b"" if without_body else answer.body})


@lru_cache(maxsize=1_024)
def _lower(headers: AnswerHeaders) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((name.lower(), value) for name, value in headers.pairs)


class _Lifespan:
    def __init__(self, embedded: Embedded, receive: AsgiReceive, send: AsgiSend) -> None:
        self._embedded = embedded
        self._receive = receive
        self._send = send
        self._answered = False

    async def run(self, app: AsgiApplication, scope: AsgiScope) -> None:
        first = await self._receive()
        try:
            await self._embedded.start()
        except (GreenroomError, OSError) as error:
            await self._send({"type": "lifespan.startup.failed", "message": f"greenroom: {error}"})
            return
        try:
            await self._run_application(app, scope, first)
        finally:
            await self._embedded.stop()

    async def _run_application(
        self, app: AsgiApplication, scope: AsgiScope, first: AsgiMessage
    ) -> None:
        messages = [first]

        async def receive() -> AsgiMessage:
            return messages.pop() if messages else await self._receive()

        try:
            await app(scope, receive, self._pass_on)
        except Exception:
            if self._answered:
                raise
        # an application without lifespan raises or returns: it gets none, greenroom keeps its own
        if not self._answered:
            await self._send({"type": "lifespan.startup.complete"})
            await self._receive()
            await self._embedded.stop()
            await self._send({"type": "lifespan.shutdown.complete"})

    async def _pass_on(self, message: AsgiMessage) -> None:
        self._answered = True
        if message["type"].startswith("lifespan.shutdown."):
            with suppress(asyncio.CancelledError):
                await self._embedded.stop()
        await self._send(message)
