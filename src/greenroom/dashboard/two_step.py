"""Two-step sign-in of local accounts: after the password a code from an authenticator app, or one of ten recovery codes.

A code counts once, in every process. Wrong ones are counted by account: six digits stand against guessing only when few may be tried.
A browser in which the account has signed in before has a count of its own, so that who knows the password cannot lock out its owner.

What a person is shown before they turn it on is derived from the secret of their session, so nothing is stored before it is confirmed.
"""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from typing import NamedTuple

from greenroom.control.authenticator import Failures
from greenroom.control.refusals import ApiFault, Code, Refused
from greenroom.core.totp import SECRET_BYTES, STEP_MS, totp_step
from greenroom.model.account import RECOVERY_CODES, Account, recovery_hash
from greenroom.ports import Clock

TRIES = 5
TRIES_MS = 900_000
"""TRIES wrong codes within so long: with three codes that count at a time, an even chance takes more than a year."""

USED_MS = 4 * STEP_MS
"""How long a used code is remembered: longer than it would count."""


class Enrolment(NamedTuple):
    """What a person is shown before they turn it on."""

    seed: str
    secret: str
    recovery: tuple[str, ...]


def enrolment(session_secret: str, seed: str = "") -> Enrolment:
    """That of this seed, a new one without."""
    seed = seed[:100] or secrets.token_urlsafe(16)

    def made(what: str, size: int) -> str:
        mac = hmac.new(
            session_secret.encode("utf-8", "replace"), f"greenroom two-step {what} {seed}".encode("utf-8", "replace"), hashlib.sha256
        )
        return base64.b32encode(mac.digest()[:size]).decode()

    codes = (made(f"recovery {number}", 10).lower() for number in range(RECOVERY_CODES))
    return Enrolment(seed, made("secret", SECRET_BYTES), tuple("-".join(re.findall("....", code)) for code in codes))


class CodeCheck:
    """Judges codes. `use_step(account, step)` and `use_recovery(account, hash)` use one up; False: it was used before."""

    def __init__(self, clock: Clock, use_step: Callable[[Account, int], bool], use_recovery: Callable[[Account, str], bool]) -> None:
        self._clock = clock
        self._use_step = use_step
        self._use_recovery = use_recovery
        self._failures = Failures(clock, TRIES, TRIES_MS)

    def check(self, account: Account, written: str, device: str = "") -> None:
        """Raises Refused when this code does not count now. `device`: a browser that the account has signed in with before."""
        key = f"device {device}" if device else f"account {account.id}"
        wait_s = self._failures.wait_s(key)
        if wait_s:
            raise Refused(ApiFault(Code.SLOW_DOWN, f"too many wrong codes; try again in {wait_s} seconds"))
        problem = self._problem(account, written)
        if problem:
            self._failures.add(key)
            raise Refused(ApiFault(Code.DENIED, problem), status=401)

    def _problem(self, account: Account, written: str) -> str:
        code = re.sub(r"[\s-]", "", written[:100]).lower()
        step = totp_step(account.totp_secret, code, self._clock.now_ms())
        if step is not None:
            return "" if self._use_step(account, step) else "this code has been used: wait for the next one"
        hashed = recovery_hash(code)
        if hashed in account.recovery_sha256:
            return "" if self._use_recovery(account, hashed) else "this recovery code has been used"
        return "wrong code: is the clock of the phone right?"
