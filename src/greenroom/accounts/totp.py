"""One-time codes that change with time (RFC 6238): six digits, 30 seconds, SHA-1, as every
authenticator app computes them.
"""

import base64
import hashlib
import hmac
from urllib.parse import quote

STEP_MS = 30_000
DIGITS = 6
SECRET_BYTES = 20
"""As long as a SHA-1 value, which RFC 4226 advises."""

WINDOW = (0, -1, 1)
"""Steps besides the present one that count: the clock of a phone may be half a minute away, and
typing takes time.
"""


def totp_code(secret: str, step: int) -> str:
    """The code of one step for a secret in base32."""
    mac = hmac.new(base64.b32decode(secret), step.to_bytes(8, "big"), hashlib.sha1).digest()
    at = mac[-1] & 15
    number = int.from_bytes(mac[at : at + 4], "big") & 0x7FFF_FFFF
    return f"{number % 10**DIGITS:0{DIGITS}d}"


def totp_step(secret: str, code: str, now_ms: int) -> int | None:
    """The step whose code this is, near this moment; None: there is none. The caller sees to it
    that a step counts once.
    """
    present, found = now_ms // STEP_MS, None
    for away in WINDOW:
        if present + away >= 0 and hmac.compare_digest(
            totp_code(secret, present + away).encode(), code.encode("utf-8", "replace")
        ):
            found = present + away
    return found


def totp_uri(secret: str, name: str) -> str:
    """What a QR code for an authenticator app holds."""
    return f"otpauth://totp/greenroom:{quote(name, safe='')}?secret={secret}&issuer=greenroom&algorithm=SHA1&digits={DIGITS}&period=30"
