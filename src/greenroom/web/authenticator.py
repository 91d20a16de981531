"""Authenticates API calls: constant-time comparison, and delays after too many failures."""

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from greenroom.model.account import FAILED, SCOPES, TOKEN_PREFIX, SessionRow, Token, secret_hash
from greenroom.model.clock import Clock
from greenroom.model.configuration import Configuration
from greenroom.request.forwarded import network_of
from greenroom.web.refusals import ApiFault, Code, Refused
from greenroom.web.stores import ConfigStore, SessionStore

# Counts wrong tokens, passwords and codes, for all processes and over restarts. An attempt counts
# before it is judged and is taken back if right, so concurrent attempts cannot exceed the limit.

FAILURES_MAX = 20

FAILURES_MS = 60_000
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
        """After `most` failures within `within_ms` of the first, a client waits for the rest of
        that time.
        """
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


GRANTS: dict[str, tuple[str, ...]] = {
    "read": ("read", "edit"),
    "edit": ("edit",),
    "analytics": ("analytics",),
    "probe": ("probe",),
    "any": SCOPES,
}


KNOWN_MAX = 1_000


class Credentials(NamedTuple):
    """`email` is None for a bearer token."""

    secret: str
    email: str | None = None


class Caller(NamedTuple):
    token: Token

    @property
    def author(self) -> str:
        return f"token {self.token.name} ({self.token.id})"

    def sees(self, zone_id: str) -> bool:
        return not self.token.zone_ids or zone_id in self.token.zone_ids

    def require(self, asked: str, zone_id: str | None) -> None:
        """Raises Refused. Zone None: the account."""
        if not set(GRANTS[asked]) & set(self.token.scopes):
            raise Refused(ApiFault(Code.DENIED, f"the token lacks the scope {asked}"))
        if self.token.zone_ids and (zone_id is None or not self.sees(zone_id)):
            raise Refused(
                ApiFault(
                    Code.DENIED,
                    "the token is not valid for "
                    + ("this zone" if zone_id else "the whole account"),
                )
            )


class Authenticator:
    def __init__(self, store: ConfigStore, clock: Clock, sessions: SessionStore) -> None:
        self._store = store
        self._clock = clock
        self._failures = StoredFailures(sessions, clock, "token")
        self._known: dict[tuple[str, str, str | None], None] = {}
        self._guard = threading.Lock()

    def open(self, credentials: Credentials | Refused, client: str) -> Caller:
        """Raises Refused, StorageFailed. Not counted: requests without credentials (pages that
        forget the header would lock out their network) and tokens that were valid from there
        before.
        """
        if isinstance(credentials, Refused) and credentials.faults[0].code is Code.NO_CREDENTIALS:
            raise credentials
        guesser = network_of(client)
        wait_s = self._failures.wait_s(guesser)
        if wait_s:
            raise _too_many(wait_s)
        if isinstance(credentials, Refused):
            with self._failures.attempt(guesser, refusal=_too_many):
                raise credentials
        pair = (guesser, secret_hash(credentials.secret), credentials.email)
        token = self._token(credentials) if pair in self._known else None
        if token is None:
            # one at a time, or the first requests of a busy client would use up its attempts
            with self._guard:
                token = self._token(credentials) if pair in self._known else None
                if token is None:
                    token = self._judged(guesser, credentials)
                    self._known[pair] = None
                    if len(self._known) > KNOWN_MAX:
                        del self._known[next(iter(self._known))]
        return Caller(token)

    def _token(self, credentials: Credentials) -> Token | None:
        return known_token(self._store.read(), credentials, self._clock.now_ms())

    def _judged(self, guesser: str, credentials: Credentials) -> Token:
        with self._failures.attempt(guesser, refusal=_too_many):
            token = self._token(credentials)
            if token is None:
                raise Refused(
                    ApiFault(
                        Code.DENIED, "Authentication error: the token is unknown or has expired"
                    ),
                    status=401,
                )
            return token


def _too_many(wait_s: int) -> Refused:
    return Refused(
        ApiFault(Code.SLOW_DOWN, "too many wrong credentials from this address"),
        retry_after_s=wait_s,
    )


def known_token(known: Configuration, credentials: Credentials, now_ms: int) -> Token | None:
    """Takes equally long without one."""
    wanted = secret_hash(credentials.secret)
    found = None
    for token in known.tokens.records():
        same = hmac.compare_digest(token.secret_sha256, wanted)
        if same and not token.expired(now_ms) and _owner(token, credentials.email):
            found = token
    return found


def _owner(token: Token, email: str | None) -> bool:
    return (
        email is None
        or not token.email
        or hmac.compare_digest(token.email.lower().encode(), email.lower().encode())
    )


def make_token(
    token_id: str,
    name: str,
    scopes: Sequence[str],
    zone_ids: Sequence[str] = (),
    email: str = "",
    expires_ms: int | None = None,
) -> tuple[str, Token]:
    """(secret, token): the secret is shown once. Raises InvalidConfig with every problem."""
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    token = Token(
        id=token_id,
        name=name,
        scopes=tuple(scopes),
        zone_ids=tuple(zone_ids),
        secret_sha256=secret_hash(secret),
        email=email,
        expires_ms=expires_ms,
    )
    return secret, token
