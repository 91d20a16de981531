"""Wrong tokens, passwords and codes, counted in the session store: all processes that share it have one count, and a restart keeps it.

Only a failure writes; who is asking often with a good token costs one read.
"""

import hashlib
import secrets
from ipaddress import IPv4Address, ip_address, ip_network

from greenroom.model.session import FAILED, SessionRow
from greenroom.ports import Clock, SessionStore

FAILURES_MAX = 20
"""Wrong credentials from one address within FAILURES_MS; a program with an old token is told so, a guesser gets nowhere."""

FAILURES_MS = 60_000
NETWORK_BITS = 64
"""Of an IPv6 address: one subscriber has a whole network of that size, and with every address of it a new budget."""

KEPT_MAX = 10_000
"""Addresses, accounts and devices whose attempts are remembered; the one heard of longest ago is forgotten first."""


class StoredFailures:
    """Failures of one purpose. Blocks on the store, and raises StorageFailed."""

    def __init__(
        self,
        store: SessionStore,
        clock: Clock,
        purpose: str,
        most: int = FAILURES_MAX,
        within_ms: int = FAILURES_MS,
    ) -> None:
        """`most` of them within `within_ms`, counted from the first one; then a client has to wait for the rest of that time."""
        self._store = store
        self._clock = clock
        self._purpose = purpose
        self._most = most
        self._within_ms = within_ms

    def wait_s(self, client: str) -> int:
        """Seconds until this client may try again, 0 for now."""
        row = self._store.get(FAILED, self._hash(client))
        left_ms = row.expires_ms - self._clock.now_ms() if row else 0
        return -(-left_ms // 1000) if row and int(row.facts) >= self._most and left_ms > 0 else 0

    def add(self, client: str) -> None:
        """One more."""
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
        self._store.count(row, KEPT_MAX)

    def _hash(self, client: str) -> str:
        return hashlib.sha256(f"{self._purpose} {client}".encode("utf-8", "replace")).hexdigest()


def subscriber(client: str) -> str:
    """Whose failures count together: one IPv4 address, or one network of IPv6."""
    try:
        address = ip_address(client)
    except ValueError:
        return client
    if isinstance(address, IPv4Address):
        return client
    return str(address.ipv4_mapped or ip_network((int(address), NETWORK_BITS), strict=False))
