"""API tokens as stored: rights, and the hash of the secret."""

import hashlib
from dataclasses import dataclass

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.fields import field_problems, spec, vars_of

SCOPES = ("read", "edit", "analytics", "probe")

TOKEN_PREFIX = "grt_"  # noqa: S105  # says to people and secret scanners what it is
"""256 random bits follow: a plain SHA-256 is enough to keep."""

ZONES_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Raises InvalidConfig with every problem."""

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
