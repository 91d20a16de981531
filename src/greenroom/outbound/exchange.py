"""One guarded HTTP request, bounded in size and time, with redirects only where allowed."""

import asyncio
import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from urllib.parse import urljoin

import httpcore

from greenroom.outbound.guard import Guard, GuardedBackend, reason_of, tls_context
from greenroom.outbound.policy import OutboundFailed, OutboundTarget, is_outside, read_target

REDIRECTS = frozenset({301, 302, 303, 307, 308})
PICTURE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif", "image/svg+xml")
PICTURE_S = 5.0


@dataclass(frozen=True, slots=True)
class Request:
    """Host, Content-Length, Accept-Encoding and User-Agent are added when it is sent."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """`total_s` covers name resolution, connections, redirects and the whole body."""

    total_s: float = 10.0
    connect_s: float = 5.0
    body_max: int = 65_536
    redirects: int = 0


@dataclass(frozen=True, slots=True)
class OutboundAnswer:
    """The body is never decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    truncated: bool = False


USER_AGENT = "greenroom"


async def exchange(
    guard: Guard, request: Request, limits: RequestLimits, tls: ssl.SSLContext | None = None
) -> OutboundAnswer:
    """Judges redirects like the first request. Raises OutboundRefused, or OutboundFailed without a
    usable answer.
    """
    target = read_target(request.url)
    try:
        async with asyncio.timeout(limits.total_s):
            network = GuardedBackend(guard)
            for _ in range(limits.redirects + 1):
                await guard.check(target)
                answer = await _once(network, request, target, limits, tls or _tls())
                where = (
                    answer.headers.get("location")
                    if answer.status in REDIRECTS and limits.redirects
                    else None
                )
                if where is None:
                    return answer
                following = read_target(urljoin(target.url, where))
                request = _redirected(request, answer.status, target, following)
                target, network = (
                    following,
                    GuardedBackend(guard, outside=is_outside(network.reached)),
                )
    except (
        TimeoutError,
        OSError,
        httpcore.TimeoutException,
        httpcore.NetworkError,
        httpcore.ProtocolError,
    ) as error:
        raise OutboundFailed(reason_of(error)) from error
    raise OutboundFailed(f"more than {limits.redirects} redirects")


async def _once(
    network: GuardedBackend,
    request: Request,
    target: OutboundTarget,
    limits: RequestLimits,
    tls: ssl.SSLContext,
) -> OutboundAnswer:
    fixed = [
        ("Host", target.authority),
        ("User-Agent", USER_AGENT),
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
    ]
    if request.body or request.method not in ("GET", "HEAD"):
        fixed.append(("Content-Length", str(len(request.body))))
    timeouts = {
        "connect": limits.connect_s,
        "read": limits.total_s,
        "write": limits.total_s,
        "pool": limits.total_s,
    }
    url = httpcore.URL(
        scheme=target.scheme.encode(),
        host=target.host.encode(),
        port=target.port,
        target=target.path.encode(),
    )
    async with (
        httpcore.AsyncConnectionPool(ssl_context=tls, network_backend=network) as pool,
        pool.stream(
            request.method,
            url,
            headers=[*fixed, *request.headers],
            content=request.body,
            extensions={"timeout": timeouts},
        ) as response,
    ):
        body, truncated = await _bounded(response, limits.body_max)
    headers = {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers
    }
    return OutboundAnswer(response.status, headers, body, target.url, truncated)


async def _bounded(response: httpcore.Response, most: int) -> tuple[bytes, bool]:
    body = b""
    async for part in response.aiter_stream():
        body += part
        if len(body) > most:
            return body[:most], True
    return body, False


def _redirected(
    request: Request, status: int, before: OutboundTarget, after: OutboundTarget
) -> Request:
    """Drops headers that were meant for another server."""
    headers = request.headers
    if (before.scheme, before.host, before.port) != (after.scheme, after.host, after.port):
        headers = tuple(pair for pair in headers if pair[0].lower() in ("content-type", "accept"))
    if status in (301, 302, 303) and request.method not in ("GET", "HEAD"):
        headers = tuple(pair for pair in headers if pair[0].lower() != "content-type")
        return replace(request, method="GET", body=b"", headers=headers)
    return replace(request, headers=headers)


@cache
def _tls() -> ssl.SSLContext:
    return tls_context()


async def fetch_picture(guard: Guard, url: str, bytes_max: int) -> str:
    """Fetches a picture that an operator configures, as a `data:` URL. Raises OutboundRefused, or
    OutboundFailed without a picture of at most `bytes_max`.
    """
    limits = RequestLimits(total_s=PICTURE_S, body_max=bytes_max, redirects=3)
    answer = await exchange(
        guard, Request("GET", url, (("Accept", ", ".join(PICTURE_TYPES)),)), limits
    )
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if answer.status != 200:
        raise OutboundFailed(f"was answered with status {answer.status}")
    if kind not in PICTURE_TYPES:
        raise OutboundFailed(
            f"is {kind[:60] or 'of no type'}, not one of {', '.join(PICTURE_TYPES)}"
        )
    if answer.truncated:
        raise OutboundFailed(f"has more than {bytes_max} bytes")
    return f"data:{kind};base64,{base64.b64encode(answer.body).decode()}"
