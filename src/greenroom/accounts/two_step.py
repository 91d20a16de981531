"""Two-step sign-in: a code from an authenticator app, or a recovery code. A code counts once, in
every process. Wrong ones are counted by account; a browser in which the account has signed in
before has its own count. The enrolment is derived from the session's secret, so nothing is stored
before it is confirmed.
"""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote

import structlog

from greenroom.model.account import RECOVERY_CODES, Account, recovery_hash
from greenroom.model.clock import Clock
from greenroom.model.fields import is_sealed, key_of_sealed, with_unit
from greenroom.web.authenticator import StoredFailures
from greenroom.web.refusals import ApiFault, Code, Refused

# Time-based one-time codes (RFC 6238): six digits, 30 seconds, SHA-1, as apps expect.

STEP_MS = 30_000
DIGITS = 6
SECRET_BYTES = 20

WINDOW = (0, -1, 1)
"""A phone's clock may be half a minute off."""


def totp_code(secret: str, step: int) -> str:
    """`secret` is base32."""
    mac = hmac.new(base64.b32decode(secret), step.to_bytes(8, "big"), hashlib.sha1).digest()
    at = mac[-1] & 15
    number = int.from_bytes(mac[at : at + 4], "big") & 0x7FFF_FFFF
    return f"{number % 10**DIGITS:0{DIGITS}d}"


def totp_step(secret: str, code: str, now_ms: int) -> int | None:
    """The caller must accept each step only once."""
    present, found = now_ms // STEP_MS, None
    for away in WINDOW:
        if present + away >= 0 and hmac.compare_digest(
            totp_code(secret, present + away).encode(), code.encode("utf-8", "replace")
        ):
            found = present + away
    return found


def totp_uri(secret: str, name: str) -> str:
    return (
        f"otpauth://totp/greenroom:{quote(name, safe='')}?secret={secret}"
        f"&issuer=greenroom&algorithm=SHA1&digits={DIGITS}&period=30"
    )


TRIES = 5
TRIES_MS = 900_000
"""For TRIES wrong codes: an even chance takes more than a year."""

LOST = (
    "the secret of your authenticator app cannot be read on this machine: use a recovery code, or"
    " ask an admin to turn two steps off"
)

_log = structlog.get_logger()

USED_MS = 4 * STEP_MS
"""Longer than a code is valid."""


class Enrolment(NamedTuple):
    seed: str
    secret: str
    recovery: tuple[str, ...]


def enrolment(session_secret: str, seed: str) -> Enrolment:
    seed = seed[:100] or secrets.token_urlsafe(16)

    def made(what: str, size: int) -> str:
        mac = hmac.new(
            session_secret.encode("utf-8", "replace"),
            f"greenroom two-step {what} {seed}".encode("utf-8", "replace"),
            hashlib.sha256,
        )
        return base64.b32encode(mac.digest()[:size]).decode()

    codes = (made(f"recovery {number}", 10).lower() for number in range(RECOVERY_CODES))
    return Enrolment(
        seed,
        made("secret", SECRET_BYTES),
        tuple("-".join(re.findall("....", code)) for code in codes),
    )


class CodeCheck:
    def __init__(
        self,
        clock: Clock,
        failures: StoredFailures,
        use_step: Callable[[Account, int], bool],
        use_recovery: Callable[[Account, str], bool],
    ) -> None:
        """`use_step` and `use_recovery` return whether the code had not been used before."""
        self._clock = clock
        self._failures = failures
        self._use_step = use_step
        self._use_recovery = use_recovery

    def check(self, account: Account, written: str, device: str = "") -> None:
        """Raises Refused when this code does not count now. `device`: known from an earlier
        sign-in.
        """
        key = f"device {device}" if device else f"account {account.id}"
        with self._failures.attempt(key, refusal=_too_many):
            problem = self._problem(account, written)
            if problem:
                raise Refused(ApiFault(Code.DENIED, problem), status=401)

    def _problem(self, account: Account, written: str) -> str:
        code = re.sub(r"[\s-]", "", written[:100]).lower()
        hashed = recovery_hash(code)
        if hashed in account.recovery_sha256:
            return "" if self._use_recovery(account, hashed) else "this recovery code has been used"
        if is_sealed(account.totp_secret):
            _log.error(
                "two_step_secret_lost", account=account.name, key=key_of_sealed(account.totp_secret)
            )
            return LOST
        step = totp_step(account.totp_secret, code, self._clock.now_ms())
        if step is None:
            return "wrong code: is the clock of the phone right?"
        return (
            ""
            if self._use_step(account, step)
            else "this code has been used: wait for the next one"
        )


def _too_many(wait_s: int) -> Refused:
    return Refused(
        ApiFault(
            Code.SLOW_DOWN, f"too many wrong codes; try again in {with_unit(wait_s, 'seconds')}"
        )
    )
