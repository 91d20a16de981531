"""Fetches an operator's picture once, when it is configured; greenroom serves the copy."""

import base64

from greenroom.outbound.exchange import Request, RequestLimits, exchange
from greenroom.outbound.guard import Guard
from greenroom.outbound.policy import OutboundFailed

TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif", "image/svg+xml")
TOTAL_S = 5.0
REDIRECTS = 3


async def fetch_picture(guard: Guard, url: str, bytes_max: int) -> str:
    """As a `data:` URL. Raises OutboundRefused, or OutboundFailed without a picture of at most
    `bytes_max`.
    """
    limits = RequestLimits(total_s=TOTAL_S, body_max=bytes_max, redirects=REDIRECTS)
    answer = await exchange(guard, Request("GET", url, (("Accept", ", ".join(TYPES)),)), limits)
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if answer.status != 200:
        raise OutboundFailed(f"was answered with status {answer.status}")
    if kind not in TYPES:
        raise OutboundFailed(f"is {kind[:60] or 'of no type'}, not one of {', '.join(TYPES)}")
    if answer.truncated:
        raise OutboundFailed(f"has more than {bytes_max} bytes")
    return f"data:{kind};base64,{base64.b64encode(answer.body).decode()}"
