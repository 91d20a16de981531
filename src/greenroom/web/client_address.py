"""The address of an API caller: the peer, or what a trusted proxy says, never the caller."""

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from greenroom.request.forwarded import ForwardedPolicy

LOCAL = "127.0.0.1"
"""A Unix socket has no address."""


class WithClientAddress:
    """Puts the caller's address and scheme into the scope, read like a visitor's."""

    def __init__(
        self, app: ASGIApp, policy: Callable[[], ForwardedPolicy], *, by_socket: bool = False
    ) -> None:
        """`policy` is called for each request. `by_socket`: every program that can open the socket
        is trusted as a proxy.
        """
        self._app = app
        self._policy = policy
        self._by_socket = by_socket

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (self._by_socket or scope.get("client")):
            peer, port = (LOCAL, 0) if self._by_socket else scope["client"]
            policy = self._policy()
            scope = {**scope, "client": (peer, port)}
            if self._by_socket or policy.covers(peer):
                visitor = policy.visitor(peer, scope["scheme"], tuple(scope["headers"]))
                scope = {
                    **scope,
                    "client": (visitor.client, port if visitor.client == peer else 0),
                    "scheme": visitor.scheme,
                }
        await self._app(scope, receive, send)
