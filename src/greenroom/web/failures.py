"""Counts wrong tokens, passwords and codes, for all processes and over restarts. An attempt counts
before it is judged and is taken back if right, so concurrent attempts cannot exceed the limit.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, ip_address, ip_network

from greenroom.model.clock import Clock
from greenroom.model.session import FAILED, SessionRow
from greenroom.web.stores import SessionStore

FAILURES_MAX = 20

FAILURES_MS = 60_000
NETWORK_BITS = 64
"""A subscriber has a whole such network."""

KEPT_MAX = 10_000
"""The least recent is forgotten first."""


class StoredFailures:
    """Blocks, and raises StorageFailed."""

    def __init__(
        self,
        store: SessionStore,
        clock: Clock,
        purpose: str,
        most: int = FAILURES_MAX,
        within_ms: int = FAILURES_MS,
    ) -> None:
        """`most` failures within `within_ms` of the first; then a client waits for the rest."""
        self._store = store
        self._clock = clock
        self._purpose = purpose
        self._most = most
        self._within_ms = within_ms

    def wait_s(self, client: str) -> int:
        """0 for now."""
        row = self._store.get(FAILED, self._hash(client))
        left_ms = row.expires_ms - self._clock.now_ms() if row else 0
        return -(-left_ms // 1000) if row and int(row.facts) >= self._most and left_ms > 0 else 0

    @contextmanager
    def attempt(self, *clients: str, refusal: Callable[[int], Exception]) -> Iterator[None]:
        """An exception inside leaves the attempt counted. Raises `refusal` with the seconds to
        wait, and counts nothing.
        """
        reserved: list[tuple[str, int]] = []
        for client in clients:
            wait_s = self.reserve(client)
            if wait_s:
                for earlier in reserved:
                    self.release(*earlier)
                raise refusal(wait_s)
            # Read after the count: the row that it may have made is not younger.
            reserved.append((client, self._clock.now_ms()))
        yield
        for each in reserved:
            self.release(*each)

    def reserve(self, client: str) -> int:
        """Returns the seconds to wait without counting."""
        wait_s = self.wait_s(client)  # a read: who is refused writes nothing
        if wait_s:
            return wait_s
        now_ms = self._clock.now_ms()
        row = SessionRow(
            kind=FAILED,
            secret_sha256=self._hash(client),
            id=secrets.token_hex(16),
            owner="",
            created_ms=now_ms,
            seen_ms=now_ms,
            expires_ms=now_ms + self._within_ms,
        )
        if self._store.count(row, KEPT_MAX, self._most):
            return 0
        return self.wait_s(client) or 1

    def release(self, client: str, since_ms: int) -> None:
        self._store.uncount(FAILED, self._hash(client), since_ms)

    def _hash(self, client: str) -> str:
        return hashlib.sha256(f"{self._purpose} {client}".encode("utf-8", "replace")).hexdigest()


def subscriber(client: str) -> str:
    """One IPv4 address, or one network of IPv6."""
    try:
        address = ip_address(client)
    except ValueError:
        return client
    if isinstance(address, IPv4Address):
        return client
    return str(address.ipv4_mapped or ip_network((int(address), NETWORK_BITS), strict=False))
