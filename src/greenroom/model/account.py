"""Accounts of the dashboard as stored: with the argon2 hash of the password, never the password."""

import hashlib
from dataclasses import dataclass
from enum import IntEnum

import msgspec

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.fields import field_problems, spec, vars_of

ROLES = ("viewer", "operator", "admin")
"""Each may do what those before it may."""

PASSWORD_LEAST, PASSWORD_LONGEST = 12, 256
"""Hashing a megabyte would be an attack."""

ACCOUNT_ZONES_MAX = 1_000

RECOVERY_CODES = 10


class Role(IntEnum):
    VIEWER = 0
    OPERATOR = 1
    ADMIN = 2

    @property
    def word(self) -> str:
        return ROLES[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    id: str = spec("opaque identifier, unique", "", read_only=True)
    name: str = spec(
        "user name",
        pattern=r"[a-z0-9][a-z0-9._@+-]*",
        pattern_words=(
            "have only lower-case letters (a to z), digits, and after the first one also . _ @ +"
            " and -"
        ),
        low=1,
        high=100,
        example="ada",
    )
    role: str = spec("what the account may do", "viewer", choices=ROLES)
    zone_ids: tuple[str, ...] = spec(
        "the zones it is valid for; empty: all zones", (), high=ACCOUNT_ZONES_MAX
    )
    password_hash: str = spec(
        "argon2id hash of the password in its usual text form; empty: it cannot sign in with a"
        " password",
        "",
        high=512,
    )
    two_step_since_ms: int = spec(
        "when two-step sign-in was turned on; 0: it is off", 0, unit="ms", low=0
    )
    totp_secret: str = spec(
        "secret of the authenticator app in base32; empty: it signs in with the password alone",
        "",
        pattern="[A-Z2-7]*",
        pattern_words="be base32: letters from A to Z and digits from 2 to 7",
        high=256,
        sealed=True,
    )
    recovery_sha256: tuple[str, ...] = spec(
        "SHA-256 of the recovery codes that are left", (), high=RECOVERY_CODES
    )

    def __post_init__(self) -> None:
        problems = field_problems(Account, vars_of(self))
        if not problems and self.role == "admin" and self.zone_ids:
            problems.append(
                Problem(
                    "zone_ids", "must be empty for an admin, who manages the whole installation"
                )
            )
        if problems:
            raise InvalidConfig(problems)

    @property
    def credentials(self) -> str:
        """Every session ends when it changes."""
        steps = str(self.two_step_since_ms) if self.totp_secret else ""
        return hashlib.sha256((self.password_hash + steps).encode()).hexdigest()[:16]

    @property
    def rank(self) -> Role:
        return Role(ROLES.index(self.role))


def recovery_hash(code: str) -> str:
    """80 random bits need no slow hash."""
    return hashlib.sha256(code.encode("utf-8", "replace")).hexdigest()


# API tokens as stored: rights, and the hash of the secret.

SCOPES = ("read", "edit", "analytics", "probe")

TOKEN_PREFIX = "grt_"  # noqa: S105  # says to people and secret scanners what it is
"""256 random bits follow: a plain SHA-256 is enough to keep."""

ZONES_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    id: str = spec("opaque identifier, unique", "", read_only=True)
    name: str = spec("what it is for", low=1, high=200, one_line=True)
    scopes: tuple[str, ...] = spec("scopes: read, edit, analytics", low=1, high=len(SCOPES))
    zone_ids: tuple[str, ...] = spec(
        "the zones it is valid for; empty: all zones and the account", (), high=ZONES_MAX
    )
    secret_sha256: str = spec(
        "SHA-256 of the whole token in hex",
        pattern=r"[0-9a-f]{64}",
        pattern_words="be 64 hexadecimal digits in lower case",
    )
    email: str = spec(
        "e-mail address required in X-Auth-Email when the token is used as X-Auth-Key; empty: any",
        "",
        high=320,
    )
    expires_ms: int | None = spec("expiry time; null: never", None, unit="ms", low=0, nullable=True)

    def __post_init__(self) -> None:
        problems = field_problems(Token, vars_of(self))
        if not problems and (
            set(self.scopes) - set(SCOPES) or len(set(self.scopes)) < len(self.scopes)
        ):
            problems.append(Problem("scopes", f"must be different ones of {', '.join(SCOPES)}"))
        if problems:
            raise InvalidConfig(problems)

    def expired(self, now_ms: int) -> bool:
        return self.expires_ms is not None and self.expires_ms <= now_ms


def secret_hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


SESSION, LINK, DEVICE, SECOND, USED, FAILED, LISTENERS = (
    "session",
    "link",
    "device",
    "second",
    "used",
    "failed",
    "listeners",
)
"""A signed-in browser; a link that signs in once; a browser known from an earlier sign-in; a sign-in
that still needs its code; a used one-time value; wrong attempts; the listeners of a process.
"""


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """`owner`: `account:<id>`, `token:<id>`, `oidc:<hash>` or `link`; `id` is not secret."""

    kind: str
    secret_sha256: str
    id: str
    owner: str
    created_ms: int
    seen_ms: int
    expires_ms: int
    address: str = ""
    agent: str = ""
    facts: str = ""
    """JSON of the owner's OidcPerson or of listeners; number of failed attempts; else empty."""
