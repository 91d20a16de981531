"""Protects the control listener from DNS rebinding: a page of `evil.example` may read
`http://evil.example:8081`, and that name may later resolve to 127.0.0.1. Such a request comes from
this machine over plain HTTP with that name as Host.
"""

import re
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from greenroom.gateway.wire.hop import HEADER, was_forwarded
from greenroom.request.forwarded import ForwardedPolicy, prefix_of

REFUSED = """421 Misdirected Request: this name is not one of the control listener

From this machine it answers to addresses, localhost and names without a dot, such as http://127.0.0.1:8081. List a proxy on this
machine in trusted_proxies.
"""


THROUGH_GATEWAY = """421 Misdirected Request: this request came through a gateway for visitors

The control listener is for operators only. No origin may lead to it.
"""


class OwnNamesOnly:
    """Refuses requests that a greenroom gateway forwarded, and requests from this machine for a
    name with a dot, except through trusted proxies, HTTPS or a Unix socket.
    """

    def __init__(self, app: ASGIApp, policy: Callable[[], ForwardedPolicy]) -> None:
        """`policy` is asked for each request."""
        self._app = app
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp = self._app
        if _came_through_gateway(scope):
            # the gateway judges addresses when it connects, so it must connect again
            answer = PlainTextResponse(THROUGH_GATEWAY, 421, {"Connection": "close"})
        elif self._is_foreign(scope):
            answer = PlainTextResponse(REFUSED, 421)
        await answer(scope, receive, send)

    def _is_foreign(self, scope: Scope) -> bool:
        client = (scope.get("client") or ("",))[0] if scope["type"] == "http" else ""
        if not _is_loopback(client) or scope["scheme"] == "https" or self._policy().covers(client):
            return False
        return any(
            name == b"host" and _may_be_rebound(value.decode("latin-1"))
            for name, value in scope["headers"]
        )


def _came_through_gateway(scope: Scope) -> bool:
    return scope["type"] == "http" and was_forwarded(
        value for name, value in scope["headers"] if name == HEADER
    )


def _is_loopback(client: str) -> bool:
    try:
        address = ip_address(client)
    except ValueError:
        return False
    return ((isinstance(address, IPv6Address) and address.ipv4_mapped) or address).is_loopback


def _may_be_rebound(host: str) -> bool:
    # Names without a dot have no public owner who could let them lead here.
    name = host.lower() if host.startswith("[") else host.lower().rpartition(":")[0] or host.lower()
    try:
        ip_address(name.partition("]")[0].strip("["))
    except ValueError:
        return "." in name and not name.endswith(".localhost")
    return False


# The control listener's host and path as browsers see them, as trusted proxies say.

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
