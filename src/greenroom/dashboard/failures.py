"""Wrong attempts at signing in, counted in the session store: all processes that share it have one count, and a restart keeps it."""

import hashlib
import secrets

from greenroom.control.authenticator import FAILURES_MAX, FAILURES_MS
from greenroom.model.session import FAILED, SessionRow
from greenroom.ports import Clock, SessionStore

KEPT_MAX = 10_000
"""Addresses, accounts and devices whose attempts are remembered; the one heard of longest ago is forgotten first."""


class StoredFailures:
    """Failures of one purpose. Blocks on the store, and raises StorageFailed."""

    def __init__(self, store: SessionStore, clock: Clock, purpose: str, most: int = FAILURES_MAX, within_ms: int = FAILURES_MS) -> None:
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
