"""Password rules and argon2id hashes: 50 ms and 64 MB each on purpose, a few at once."""

import threading
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from greenroom.model.account import PASSWORD_LEAST, PASSWORD_LONGEST

AT_ONCE = 2

_hasher = PasswordHasher()
_slots = threading.BoundedSemaphore(AT_ONCE)


def password_problem(password: str) -> str | None:
    """Only the length counts (NIST SP 800-63B)."""
    if len(password) < PASSWORD_LEAST:
        return f"must be at least {PASSWORD_LEAST} characters, not {len(password)}"
    if len(password) > PASSWORD_LONGEST:
        return f"must be at most {PASSWORD_LONGEST} characters, not {len(password)}"
    return "must not be one character repeated" if len(set(password)) == 1 else None


def hash_password(password: str) -> str:
    with _slots:
        return _hasher.hash(password)


def password_fits(password: str, hashed: str) -> bool:
    """Takes as long without a hash. Longer passwords than may be set never fit."""
    if len(password) > PASSWORD_LONGEST:
        return False
    with _slots:
        try:
            return _hasher.verify(hashed or _nothing(), password) and bool(hashed)
        except (VerificationError, InvalidHashError):
            return False


@cache
def _nothing() -> str:
    return _hasher.hash("\0")
