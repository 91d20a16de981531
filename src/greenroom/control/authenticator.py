"""Authentication of API calls: tokens are compared in constant time, and an address with too many failures has to wait."""

import hmac
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from ipaddress import IPv4Address, ip_address, ip_network
from typing import NamedTuple

from greenroom.control.refusals import ApiFault, Code, Refused
from greenroom.model.configuration import Configuration
from greenroom.model.token import SCOPES, TOKEN_PREFIX, Token, secret_hash
from greenroom.ports import Clock, ConfigStore

FAILURES_MAX = 20
"""Wrong credentials from one address within FAILURES_MS; a program with an old token is told so, a guesser gets nowhere."""

FAILURES_MS = 60_000
NETWORK_BITS = 64
"""Of an IPv6 address: one subscriber has a whole network of that size, and with every address of it a new budget."""

CLIENTS_MAX = 10_000
"""Addresses whose failures are remembered, about 2 MB; the one heard of longest ago is forgotten first."""

GRANTS: dict[str, tuple[str, ...]] = {
    "read": ("read", "edit"),
    "edit": ("edit",),
    "analytics": ("analytics",),
    "probe": ("probe",),
    "any": SCOPES,
}
"""What is asked for -> the scopes that allow it: who may change things may look at them."""


class Credentials(NamedTuple):
    """What came with a request. `email` is None when it was a bearer token."""

    secret: str
    email: str | None = None


class Caller(NamedTuple):
    """An authenticated caller."""

    token: Token

    @property
    def author(self) -> str:
        """For the audit log."""
        return f"token {self.token.name} ({self.token.id})"

    def sees(self, zone_id: str) -> bool:
        """Whether the token is good for this zone."""
        return not self.token.zone_ids or zone_id in self.token.zone_ids

    def require(self, asked: str, zone_id: str | None) -> None:
        """Raises Refused unless the token may do this in this zone; None: it concerns the whole account."""
        if not set(GRANTS[asked]) & set(self.token.scopes):
            raise Refused(ApiFault(Code.DENIED, f"the token lacks the scope {asked}"))
        if self.token.zone_ids and (zone_id is None or not self.sees(zone_id)):
            raise Refused(ApiFault(Code.DENIED, "the token is not valid for " + ("this zone" if zone_id else "the whole account")))


class Failures:
    """Wrong credentials by client address; may be used from several threads."""

    def __init__(self, clock: Clock, most: int = FAILURES_MAX, within_ms: int = FAILURES_MS) -> None:
        """`most` of them within `within_ms`, then a client has to wait."""
        self._clock = clock
        self._most = most
        self._within_ms = within_ms
        self._seen: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._guard = threading.Lock()

    def wait_s(self, client: str) -> int:
        """Seconds until this client may try again, 0 for now."""
        with self._guard:
            began_ms, count = self._seen.get(subscriber(client), (0, 0))
        left_ms = began_ms + self._within_ms - self._clock.now_ms()
        return -(-left_ms // 1000) if count >= self._most and left_ms > 0 else 0

    def add(self, client: str) -> None:
        """One more."""
        now_ms, client = self._clock.now_ms(), subscriber(client)
        with self._guard:
            began_ms, count = self._seen.pop(client, (now_ms, 0))
            self._seen[client] = (began_ms, count + 1) if now_ms - began_ms < self._within_ms else (now_ms, 1)
            if len(self._seen) > CLIENTS_MAX:
                self._seen.popitem(last=False)


def subscriber(client: str) -> str:
    """Whose failures count together: one IPv4 address, or one network of IPv6."""
    try:
        address = ip_address(client)
    except ValueError:
        return client
    if isinstance(address, IPv4Address):
        return client
    return str(address.ipv4_mapped or ip_network((int(address), NETWORK_BITS), strict=False))


class Authenticator:
    """Lets in who has a good token."""

    def __init__(self, store: ConfigStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._failures = Failures(clock)

    def wait_s(self, client: str) -> int:
        """Seconds that this client has to wait after too many failures."""
        return self._failures.wait_s(client)

    def open(self, credentials: Credentials | Refused, client: str) -> Caller:
        """The caller behind these credentials (or why there are none). Raises Refused; wrong ones of a `client` are counted.

        A request without any is no guess: it is refused and not counted, or pages that forget the header would lock out their own network.
        """
        if isinstance(credentials, Refused) and credentials.faults[0].code is Code.NO_CREDENTIALS:
            raise credentials
        if self.wait_s(client):
            raise Refused(ApiFault(Code.SLOW_DOWN, "too many wrong credentials from this address"))
        if isinstance(credentials, Refused):
            self._failures.add(client)
            raise credentials
        token = known_token(self._store.read(), credentials, self._clock.now_ms())
        if token is None:
            self._failures.add(client)
            raise Refused(ApiFault(Code.DENIED, "Authentication error: the token is unknown or has expired"), status=401)
        return Caller(token)


def known_token(known: Configuration, credentials: Credentials, now_ms: int) -> Token | None:
    """The living token with this secret. Takes as long whether there is one or not."""
    wanted = secret_hash(credentials.secret)
    found = None
    for token in known.tokens.records():
        same = hmac.compare_digest(token.secret_sha256, wanted)
        if same and not token.expired(now_ms) and _owner(token, credentials.email):
            found = token
    return found


def _owner(token: Token, email: str | None) -> bool:
    return email is None or not token.email or hmac.compare_digest(token.email.lower().encode(), email.lower().encode())


def make_token(
    token_id: str, name: str, scopes: Sequence[str], zone_ids: Sequence[str] = (), email: str = "", expires_ms: int | None = None
) -> tuple[str, Token]:
    """(secret, token): the secret is shown once and not kept. Raises InvalidConfig with every problem."""
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
