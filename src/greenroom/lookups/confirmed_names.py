"""Names of addresses by reverse lookup, confirmed by resolving them forwards, never while a visitor
waits: the first request gets no name yet. A liar can pretend to be a crawler from many addresses, so
lookups, their queue, time and cache are bounded.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Sequence
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Protocol, TypeVar, cast

from greenroom.notifier import Wake

DnsAnswer = TypeVar("DnsAnswer")

UNDER_WAY_MAX = 8
"""A liar's slow servers hold one each."""

PENDING_MAX = 256
"""More are dropped; the next request tries again."""

KNOWN_MAX = 20_000
"""Of each kind, about 5 MB."""

TIMEOUT_S = 5.0
GOOD_FOR_MS = 24 * 3600 * 1000
BAD_FOR_MS = 3600 * 1000
FAILED_FOR_MS = 60 * 1000

NETWORK_BITS = {4: 24, 6: 48}
"""The least that one owner has: one lookup per network at a time."""


class Resolves(Protocol):
    async def backwards(self, address: str) -> str: ...

    async def forwards(self, name: str) -> Sequence[str]: ...


class Resolver:
    """Each query has a daemon thread, which cannot be cancelled; at most UNDER_WAY_MAX."""

    def __init__(self) -> None:
        self._threads = 0

    async def backwards(self, address: str) -> str:
        return await self._run(partial(_backwards, address))

    async def forwards(self, name: str) -> Sequence[str]:
        return await self._run(partial(_forwards, name))

    async def _run(self, ask: Callable[[], DnsAnswer]) -> DnsAnswer:
        if self._threads >= UNDER_WAY_MAX:
            raise BlockingIOError("every thread for the resolver is taken")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[DnsAnswer] = loop.create_future()
        self._threads += 1

        def settle(found: DnsAnswer | None, error: Exception | None) -> None:
            self._threads -= 1
            if not answer.done():
                answer.set_exception(error) if error else answer.set_result(cast(DnsAnswer, found))

        def work() -> None:
            found, failed = None, None
            try:
                found = ask()
            except Exception as error:  # passed to the awaiting task
                failed = error
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(settle, found, failed)

        threading.Thread(target=work, name="resolver", daemon=True).start()
        return await answer


NOBODY = frozenset(
    getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name)
)


def _backwards(address: str) -> str:
    try:
        return socket.getnameinfo((address, 0), socket.NI_NAMEREQD)[0]
    except socket.gaierror as error:
        if error.errno in NOBODY:
            return ""
        raise


def _forwards(name: str) -> list[str]:
    try:
        return [
            str(found[4][0]) for found in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        ]
    except socket.gaierror as error:
        if error.errno in NOBODY:
            return []
        raise


class ConfirmedNames:
    """`name_of` is for the path of a request; `run` does the lookups."""

    def __init__(self, resolver: Resolves, now_ms: Callable[[], int]) -> None:
        self._resolver = resolver
        self._now_ms = now_ms
        self._good: dict[str, tuple[str, int]] = {}  # address -> (name, until), oldest first
        self._bad: dict[str, tuple[str, int]] = {}
        self._pending: dict[str, str] = {}  # network -> the address to ask about
        self._under_way: set[str] = set()
        self._asked = Wake()

    def name_of(self, address: str) -> str:
        """Empty until it is known."""
        name, until_ms = self._good.get(address) or self._bad.get(address) or ("", 0)
        if self._now_ms() >= until_ms:
            self._ask(address)
        return name if self._now_ms() < until_ms else ""

    @property
    def busy(self) -> bool:
        return bool(self._pending or self._under_way)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                await self._asked.rest()
                while self._pending and len(self._under_way) < UNDER_WAY_MAX:
                    network = next(iter(self._pending))
                    self._under_way.add(network)
                    group.create_task(self._answer(network, self._pending.pop(network)))

    def _ask(self, address: str) -> None:
        network = _network(address)
        if (
            network
            and network not in self._under_way
            and network not in self._pending
            and len(self._pending) < PENDING_MAX
        ):
            self._pending[network] = address
            self._asked.set()

    async def _answer(self, network: str, address: str) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                name = await self._confirmed(address)
            self._keep(address, name, GOOD_FOR_MS if name else BAD_FOR_MS)
        except (OSError, TimeoutError, UnicodeError):
            self._keep(address, "", FAILED_FOR_MS)
        finally:
            self._under_way.discard(network)
            self._asked.set()

    async def _confirmed(self, address: str) -> str:
        name = (await self._resolver.backwards(address)).rstrip(".").lower()
        if not name:
            return ""
        wanted = ip_address(address)
        return (
            name
            if any(
                ip_address(found.partition("%")[0]) == wanted
                for found in await self._resolver.forwards(name)
            )
            else ""
        )

    def _keep(self, address: str, name: str, for_ms: int) -> None:
        self._good.pop(address, None)
        self._bad.pop(address, None)
        index_of = self._good if name else self._bad
        index_of[address] = (name, self._now_ms() + for_ms)
        if len(index_of) > KNOWN_MAX:
            del index_of[next(iter(index_of))]


def _network(address: str) -> str:
    try:
        found = ip_address(address)
    except ValueError:
        return ""
    return str(ip_network(f"{found}/{NETWORK_BITS[found.version]}", strict=False))
