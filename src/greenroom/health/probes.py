"""One probe of a health check. Each try has the whole `timeout`, from name resolution to the end of
the body; only a timeout leads to another try, at once. A response is judged by its code, then by
the first 10 KB of its body; the rest is read to time it, up to BODY_TIMED.
"""

import asyncio
import contextlib
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from urllib.parse import urljoin

import httpcore
import msgspec
import structlog

from greenroom.health.network import Course, ProbeNetwork
from greenroom.health.reasons import lacking, reason_of
from greenroom.health.tls import TlsContexts, is_address
from greenroom.model.health_check import BODY_READ, BODY_TIMED, HealthCheck, HttpCheck
from greenroom.model.probe import TIMEOUTS, ProbeResult, Reason
from greenroom.outbound import Guard, OutboundRefused, OutboundTarget, read_target
from greenroom.outbound.policy import is_outside, outside_only

REDIRECTS_MAX = 5

REDIRECTS = frozenset({301, 302, 303, 307, 308})

USER_AGENT = "Mozilla/5.0 (compatible; greenroom-health-check/{version}; health-check-id: {id})"
COMPARED_SHOWN = 200

ID_SHOWN = 16

RETURNS_S = 0.05
"""A body that is still being timed ends this long before the try would time out."""

_VERSION = version("greenroom")

log = structlog.get_logger(__name__)


_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@dataclass(frozen=True, slots=True)
class Equipment:
    guard: Guard
    tls: TlsContexts


class CannotProbe(Exception):
    """The probe could not run, which says nothing about the origin."""


async def probe(check: HealthCheck, equipment: Equipment) -> ProbeResult:
    """Raises CannotProbe, and nothing else unless cancelled."""
    tries = 1
    while (result := await _try(check, equipment)).reason in TIMEOUTS and tries <= check.retries:
        tries += 1
    return msgspec.structs.replace(result, tries=tries)


async def _try(check: HealthCheck, equipment: Equipment) -> ProbeResult:
    course = Course(time.perf_counter)
    code, reason = 0, ""
    try:
        async with asyncio.timeout(check.timeout) as limit:
            course.until = limit.when() or 0.0
            code, reason = await PROBES[check.type](check, equipment, course)
    except Exception as error:
        # what a server makes the libraries raise is a failure of the probe, not of greenroom
        lack = lacking(error)
        if lack:
            raise CannotProbe(lack) from error
        reason = _reason(check, course, error)
    return _result(course, code, str(reason))


_LATE = {"dns": Reason.UNKNOWN_HOST, "tcp": Reason.TCP_TIMEOUT, "http": Reason.HTTP_TIMEOUT}


def _reason(check: HealthCheck, course: Course, error: Exception) -> Reason:
    if isinstance(error, TimeoutError) and error.errno is None:
        return _LATE[course.phase]
    if (
        isinstance(error, OutboundRefused)
        and course.phase == "dns"
        and not is_address(check.address)
    ):
        # a name that leads to a forbidden address, other than a forbidden address that was written
        # down
        return Reason.RESTRICTED
    return reason_of(error)


def _result(course: Course, code: int, reason: str) -> ProbeResult:
    ttfb = (course.first - course.ready) * 1000 if course.first else 0.0
    end = course.marks.get("end", course.first)
    return ProbeResult(
        reason=reason,
        code=code,
        address=course.address,
        dns_ms=round(course.dns_ms, 2),
        tcp_ms=round(course.tcp_ms, 2),
        tls_ms=round(course.tls_ms, 2),
        request_ms=round((course.sent - course.ready) * 1000, 2) if course.sent else 0.0,
        ttfb_ms=round(ttfb, 2),
        rtt_ms=round((end - course.ready) * 1000, 2) if end else 0.0,
    )


async def probe_tcp(check: HealthCheck, equipment: Equipment, course: Course) -> tuple[int, str]:
    addresses = await course.resolved(equipment.guard.addresses(check.address.lower(), check.port))
    await course.trace("connection.connect_tcp.started", None)
    stream = await ProbeNetwork(addresses, course).connect_tcp(
        check.address, check.port, check.timeout
    )
    await course.trace("connection.connect_tcp.complete", None)
    await stream.aclose()
    return 0, ""


async def probe_http(check: HealthCheck, equipment: Equipment, course: Course) -> tuple[int, str]:
    """Returns (code, reason or empty) after redirects."""
    config = check.http_config or HttpCheck()
    target = OutboundTarget(check.type.lower(), check.address.lower(), check.port, config.path)
    outside = False
    for _ in range(REDIRECTS_MAX + 1):
        found = await course.resolved(equipment.guard.check(target))
        addresses = outside_only(found) if outside else found
        status, headers, body = await _asked(check, config, equipment, course, target, addresses)
        where = headers.get("location")
        if not (config.follow_redirects and status in REDIRECTS and where):
            reason = judged(config, status, body)
            if reason == Reason.BODY:
                log.info(
                    "health_check_body_mismatch",
                    check=check.name,
                    encoding=headers.get("content-encoding", ""),
                    compared=body[:COMPARED_SHOWN].decode("utf-8", "replace"),
                )
            return status, reason
        target, outside = _following(check, config, target, where), is_outside(course.address)
    raise OutboundRefused(f"more than {REDIRECTS_MAX} redirects")


def _following(
    check: HealthCheck, config: HttpCheck, before: OutboundTarget, where: str
) -> OutboundTarget:
    """The check's own host is the checked server, whatever its public address."""
    found = read_target(urljoin(before.url, where))
    return replace(found, host=check.address.lower()) if found.host == _own_host(config) else found


async def _asked(
    check: HealthCheck,
    config: HttpCheck,
    equipment: Equipment,
    course: Course,
    target: OutboundTarget,
    addresses: list[str],
) -> tuple[int, Mapping[str, str], bytes]:
    same_host = target.host == check.address.lower() and (
        target.scheme == "https" or check.type == "HTTP"
    )
    sent, name = _names(config, target, same_host=same_host)
    network = ProbeNetwork(addresses, course, name=name, sent=sent, tls=equipment.tls)
    url = httpcore.URL(
        scheme=target.scheme.encode(),
        host=target.host.encode(),
        port=target.port,
        target=target.path.encode(),
    )
    course.first = course.sent = course.tls_ms = 0.0
    async with httpcore.AsyncHTTPConnection(
        url.origin, ssl_context=_NO_TLS, network_backend=network
    ) as connection:
        request = httpcore.Request(
            config.method,
            url,
            headers=_headers(check, config, target, same_host=same_host),
            extensions={"trace": course.trace, "timeout": {"connect": float(check.timeout)}},
        )
        response = await connection.handle_async_request(request)
        try:
            parts = response.aiter_stream()
            body = await _beginning(response, parts)
            await _timed(parts, course)
        finally:
            await response.aclose()
    course.marks["end"] = course.now()
    return (
        response.status,
        {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in response.headers
        },
        body,
    )


def _names(config: HttpCheck, target: OutboundTarget, *, same_host: bool) -> tuple[str, str]:
    """(SNI, certificate name); SNI is sent only with a Host header, as published."""
    host = _own_host(config) if same_host else target.host
    sent = "" if is_address(host) else host
    return sent, "" if config.allow_insecure else host or target.host


def _own_host(config: HttpCheck) -> str:
    authority = config.header_value("host").lower()
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    return authority.partition(":")[0]


def _headers(
    check: HealthCheck, config: HttpCheck, target: OutboundTarget, *, same_host: bool
) -> list[tuple[str, str]]:
    # Headers of the check are for its own host: they may hold secrets, and a redirect may lead
    # anywhere.
    own = {name: values for name, values in (config.header or {}).items() if same_host}
    given = {name.lower() for name in own}
    fixed = [
        ("Host", target.authority),
        ("User-Agent", USER_AGENT.format(version=_VERSION, id=check.id[:ID_SHOWN])),
        ("Accept", "*/*"),
        ("Accept-Encoding", "identity"),
    ]
    found = [pair for pair in fixed if pair[0].lower() not in given]
    found += [(name, value) for name, values in own.items() for value in values]
    return [*found, ("Connection", "close")]


async def _timed(parts: AsyncIterator[bytes], course: Course) -> None:
    """Reads the rest of the body for its time only; an endless body passes like its beginning."""
    read = 0
    with contextlib.suppress(TimeoutError, httpcore.NetworkError, httpcore.ProtocolError):
        async with asyncio.timeout_at(course.until - RETURNS_S):
            async for part in parts:
                read += len(part)
                if read >= BODY_TIMED:
                    break


async def _beginning(response: httpcore.Response, parts: AsyncIterator[bytes]) -> bytes:
    """Decodes content codings: some servers compress unasked."""
    encoding = b",".join(v for name, v in response.headers if name.lower() == b"content-encoding")
    decode = _decoder(encoding.strip().lower())
    body = b""
    async for part in parts:
        try:
            body += decode(part, BODY_READ - len(body))
        except zlib.error:
            break
        if len(body) >= BODY_READ:
            break
    return body[:BODY_READ]


def _decoder(encoding: bytes) -> Callable[[bytes, int], bytes]:
    """`deflate` may lack zlib's header."""
    if encoding in (b"gzip", b"x-gzip"):
        return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress
    if encoding != b"deflate":
        return lambda part, _most: part
    made: list[Callable[[bytes, int], bytes]] = []

    def inflate(part: bytes, most: int) -> bytes:
        if not made and part:
            wrapped = part[0] & 0x0F == zlib.DEFLATED
            bits = zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS
            made.append(zlib.decompressobj(bits).decompress)
        return made[0](part, most) if part else b""

    return inflate


def judged(config: HttpCheck, status: int, body: bytes) -> str:
    """Returns a reason, or empty. Compares the body as UTF-8, ignoring case."""
    code = str(status)
    if not any(
        code == wanted or (wanted[1:].lower() == "xx" and code[0] == wanted[0])
        for wanted in config.codes
    ):
        return Reason.CODE
    if (
        config.expected_body
        and config.expected_body.casefold() not in body.decode("utf-8", "replace").casefold()
    ):
        return Reason.BODY
    return ""


PROBES: Mapping[str, Callable[[HealthCheck, Equipment, Course], Awaitable[tuple[int, str]]]] = {
    "HTTP": probe_http,
    "HTTPS": probe_http,
    "TCP": probe_tcp,
}
"""Each returns (response code or 0, reason or empty) and may raise anything."""
