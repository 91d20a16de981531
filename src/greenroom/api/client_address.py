"""Who calls the API: the other end of the connection, or what a trusted proxy says about it; never what a caller says about itself."""

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from greenroom.decision.forwarded import ForwardedPolicy


class WithClientAddress:
    """Middleware: puts the caller's address and scheme into the scope, read like those of a visitor."""

    def __init__(self, app: ASGIApp, policy: Callable[[], ForwardedPolicy]) -> None:
        """`policy` is asked for each request, so that a reload counts at once."""
        self._app = app
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and scope.get("client"):
            peer, port = scope["client"]
            policy = self._policy()
            if policy.covers(peer):
                visitor = policy.visitor(peer, scope["scheme"], tuple(scope["headers"]))
                scope = {**scope, "client": (visitor.client, port if visitor.client == peer else 0), "scheme": visitor.scheme}
        await self._app(scope, receive, send)
