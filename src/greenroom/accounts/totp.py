"""Time-based one-time codes (RFC 6238): six digits, 30 seconds, SHA-1, as apps expect."""

import base64
import hashlib
import hmac
from urllib.parse import quote

STEP_MS = 30_000
DIGITS = 6
SECRET_BYTES = 20
"""The length of a SHA-1 value, as RFC 4226 advises."""

WINDOW = (0, -1, 1)
"""Accepted steps: a phone's clock may be half a minute off, and typing takes time."""


def totp_code(secret: str, step: int) -> str:
    """`secret` is base32."""
    mac = hmac.new(base64.b32decode(secret), step.to_bytes(8, "big"), hashlib.sha1).digest()
    at = mac[-1] & 15
    number = int.from_bytes(mac[at : at + 4], "big") & 0x7FFF_FFFF
    return f"{number % 10**DIGITS:0{DIGITS}d}"


def totp_step(secret: str, code: str, now_ms: int) -> int | None:
    """The step of this code near this moment. The caller must accept each step only once."""
    present, found = now_ms // STEP_MS, None
    for away in WINDOW:
        if present + away >= 0 and hmac.compare_digest(
            totp_code(secret, present + away).encode(), code.encode("utf-8", "replace")
        ):
            found = present + away
    return found


def totp_uri(secret: str, name: str) -> str:
    """The content of a QR code for an authenticator app."""
    return (
        f"otpauth://totp/greenroom:{quote(name, safe='')}?secret={secret}"
        f"&issuer=greenroom&algorithm=SHA1&digits={DIGITS}&period=30"
    )
