"""The control listener's host and path as browsers see them, as trusted proxies say."""

import re
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from greenroom.decision.forwarded import ForwardedPolicy, prefix_of

_HOST = re.compile(rb"[A-Za-z0-9.:\[\]_-]{1,300}")


class BehindProxy:
    """A trusted proxy's `X-Forwarded-Host` replaces Host, and its `X-Forwarded-Prefix` is the
    scope's `prefix_key`.
    """

    def __init__(
        self,
        app: ASGIApp,
        policy: Callable[[], ForwardedPolicy],
        prefix_key: str,
        *,
        by_socket: bool = False,
    ) -> None:
        """`policy` is asked for each request. `by_socket`: every peer came over a Unix socket."""
        self._app = app
        self._policy = policy
        self._prefix_key = prefix_key
        self._by_socket = by_socket

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (
            self._by_socket or (scope.get("client") and self._policy().covers(scope["client"][0]))
        ):
            scope = self._said(scope)
        await self._app(scope, receive, send)

    def _said(self, scope: Scope) -> Scope:
        headers = list(scope["headers"])
        said = {
            name: value.rpartition(b",")[2].strip()
            for name, value in headers
            if name.startswith(b"x-forwarded-")
        }
        prefix, host = said.get(b"x-forwarded-prefix", b""), said.get(b"x-forwarded-host", b"")
        if _HOST.fullmatch(host):
            headers = [(name, host if name == b"host" else value) for name, value in headers]
        return {**scope, "headers": headers, self._prefix_key: prefix_of(prefix)}
