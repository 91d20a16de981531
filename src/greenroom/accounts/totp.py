"""Time-based one-time codes (RFC 6238): six digits, 30 seconds, SHA-1, as apps expect."""

import base64
import hashlib
import hmac
from urllib.parse import quote

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
