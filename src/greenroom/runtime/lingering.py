"""The rest of a request that was not read to its end is discarded, within bounds, before the
connection is closed: closing a socket with unread input destroys the answer on its way.
"""

import asyncio
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from greenroom.web.refusals import ApiFault, Code, Refused


@dataclass(frozen=True)
class LingerLimits:
    most_bytes: int = 16 << 20
    silence_s: float = 2
    most_s: float = 60
    kept_bytes: int = 64 << 20


class LingeringApp:
    def __init__(self, app: ASGIApp, limits: LingerLimits | None = None) -> None:
        self._app = app
        self._limits = limits or LingerLimits()
        self._kept = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"]) if scope["type"] == "http" else {}
        if headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in headers:
            await self._app(scope, receive, send)
            return
        body = _Body(receive, coming=b"expect" not in headers)
        kept = 0

        async def receive_counted() -> Message:
            nonlocal kept
            message = await body.receive()
            size = len(message.get("body", b""))
            if self._kept + size > self._limits.kept_bytes:
                raise Refused(
                    ApiFault(Code.SLOW_DOWN, "too many uploads at once; try again in a minute"),
                    retry_after_s=60,
                )
            self._kept += size
            kept += size
            return message

        async def send_end_later(message: Message) -> None:
            if body.coming and message["type"] == "http.response.start":
                message = {
                    **message,
                    "headers": [*message.get("headers", ()), (b"connection", b"close")],
                }  # or it is read without end
            elif (
                body.coming
                and message["type"] == "http.response.body"
                and not message.get("more_body")
            ):
                await send({**message, "more_body": True})
                await body.discard(self._limits)
                message = {"type": "http.response.body"}
            await send(message)

        try:
            await self._app(scope, receive_counted, send_end_later)
        finally:
            self._kept -= kept


class _Body:
    """`coming` is false while the client waits to be asked for the body (Expect)."""

    def __init__(self, receive: Receive, *, coming: bool) -> None:
        self._receive = receive
        self.coming = coming

    async def receive(self) -> Message:
        message = await self._receive()
        self.coming = bool(message.get("more_body"))
        return message

    async def discard(self, limits: LingerLimits) -> None:
        now = asyncio.get_running_loop().time
        until, left = now() + limits.most_s, limits.most_bytes
        while self.coming and left > 0:
            try:
                async with asyncio.timeout_at(min(until, now() + limits.silence_s)):
                    message = await self.receive()
            except TimeoutError:
                return
            left -= len(message.get("body", b""))
