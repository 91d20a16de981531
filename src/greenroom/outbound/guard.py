"""Resolves a name once, judges every address, and connects to a judged one: DNS rebinding gains
nothing. A network backend of httpcore, so code built on it cannot connect past it.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import httpcore

from greenroom.outbound.policy import (
    IpAddress,
    OutboundFailed,
    OutboundPolicy,
    OutboundRefused,
    OutboundTarget,
    host_problem,
    outside_only,
    read_address,
    unwrapped,
)

# Recognizes greenroom's own listeners, however their addresses are spelled.

ADDRESSES_CACHED = 1_024

Listening = Callable[[], Collection[tuple[str, int]]]
"""(numeric address, port), with `0.0.0.0` and `::` for all addresses; (file, 0) for a Unix socket.
"""


def reaches_listener(address: IpAddress, port: int, listening: Collection[tuple[str, int]]) -> bool:
    found = unwrapped(address)
    for text, number in listening:
        if number != port:
            continue
        own = read_address(text)
        if own is None or own.is_unspecified:  # every address of this machine
            if is_this_machine(str(found)):
                return True
        elif unwrapped(own) == found or (
            found.is_unspecified and own.is_loopback
        ):  # systems connect `0.0.0.0` to the loopback address
            return True
    return False


def is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


@lru_cache(maxsize=ADDRESSES_CACHED)
def is_this_machine(address: str) -> bool:
    """Whether a socket can be bound to it here."""
    read = read_address(address)
    if read is None or read.is_loopback or read.is_unspecified:
        return read is not None
    try:
        with socket.socket(
            socket.AF_INET if read.version == 4 else socket.AF_INET6, socket.SOCK_DGRAM
        ) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


ADDRESSES_MAX = 8

RESOLVE_S = 10.0

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Best first. Raises OSError (socket.gaierror)."""


async def resolve_by_system(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for _, _, _, _, sockaddr in found))


class Guard:
    """`policy` may be replaced while in use."""

    def __init__(
        self,
        policy: OutboundPolicy,
        resolve: Resolve = resolve_by_system,
        listening: Listening = tuple,
    ) -> None:
        """`listening`: greenroom's own listeners, which are always refused."""
        self.policy = policy
        self._resolve = resolve
        self._listening = listening

    def for_visitors(self) -> "Guard":
        """For URLs that visitors choose: what the settings allow is only for those of operators."""
        policy = replace(self.policy, schemes=("https",), ports=(443,), allowed=())
        return Guard(policy, self._resolve, self._listening)

    async def addresses(self, host: str, port: int) -> list[str]:
        """Raises OutboundRefused when all are forbidden, OSError (socket.gaierror) when there are
        none.
        """
        reason = host_problem(host)
        if reason:
            raise OutboundRefused(reason)
        written = (
            [host] if read_address(host) else list(await self._resolve(host, port))[:ADDRESSES_MAX]
        )
        if not written:
            raise socket.gaierror(socket.EAI_NONAME, "the name has no address")
        allowed, reasons = [], []
        listening = self._listening()
        for text in written:
            address = read_address(text)
            reason = (
                "an address with a zone index"
                if address is None
                else self.policy.address_problem(address)
            )
            if address is not None and reaches_listener(address, port, listening):
                raise OutboundRefused(f"{host}:{port} is a listener of greenroom itself")
            if address is None or reason:
                reasons.append(reason)
            else:
                allowed.append(str(address))
        if not allowed:
            raise OutboundRefused(f"{host}: {reasons[0]}")
        return list(dict.fromkeys(allowed))

    async def check(self, target: OutboundTarget) -> list[str]:
        reason = self.policy.target_problem(target)
        if reason:
            raise OutboundRefused(f"{target.host}: {reason}")
        return await self.addresses(target.host, target.port)


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """`reached` is the address that answered."""

    def __init__(self, guard: Guard, *, outside: bool = False) -> None:
        """`outside`: public addresses only, because a redirect of a public server leads here."""
        self._guard = guard
        self._outside = outside
        self._network = httpcore.AnyIOBackend()
        self.reached = ""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Raises OutboundRefused, and httpcore.ConnectError for an unknown name."""
        try:
            async with asyncio.timeout(timeout or RESOLVE_S):
                found = await self._guard.addresses(host, port)
        except TimeoutError:
            raise httpcore.ConnectTimeout(f"the name {host} was not resolved in time") from None
        except OSError as error:
            raise httpcore.ConnectError(reason_of(error)) from error
        addresses = outside_only(found) if self._outside else found
        for address in addresses:
            self.reached = address
            try:
                return await self._network.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if address == addresses[-1]:
                    raise
        raise httpcore.ConnectError(f"the name {host} has no address")

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        # A socket file is not an address that anyone may write down.
        del path, timeout, socket_options
        raise OutboundRefused("socket files are not allowed")

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)


def tls_context(authorities: str = "") -> ssl.SSLContext:
    """TLS 1.2 and later. `authorities`: PEM text. Raises ssl.SSLError or ValueError."""
    context = ssl.create_default_context(cadata=authorities or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def reason_of(error: BaseException) -> str:
    """Never contains the URL, which may be a secret."""
    if isinstance(error, (OutboundRefused, OutboundFailed)):
        return str(error)
    named = _REASONS.get(type(error))
    if named:
        return named
    if isinstance(error, socket.gaierror):
        return f"cannot resolve the name of the server: {error.strerror}"
    cause = error.__cause__ or error.__context__
    return str(error) or (reason_of(cause) if cause else type(error).__name__)


_REASONS: dict[type[BaseException], str] = {
    httpcore.ConnectTimeout: "the server did not accept the connection in time",
    httpcore.ReadTimeout: "the server did not answer in time",
    httpcore.WriteTimeout: "the server did not take the request in time",
    httpcore.RemoteProtocolError: "the answer is not HTTP",
    httpcore.ReadError: "the server closed the connection",
    httpcore.WriteError: "the server closed the connection",
    TimeoutError: "the server did not answer in time",
}
