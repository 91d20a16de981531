"""CORS: from which listed origin a script asks, and whether a request is a preflight. A preflight
goes past the room, so only what a browser would send counts as one (Fetch): no body, no cookie, no
credentials, no header that overrides the method.
"""

from collections.abc import Sequence

from greenroom.model.visit import Arrival

REQUEST_METHOD = b"access-control-request-method"

NOT_IN_PREFLIGHTS = frozenset(
    b"authorization content-type cookie proxy-authorization range sec-websocket-key"
    b" transfer-encoding upgrade".split()
)
"""Browsers never send them with a preflight."""


def listed_origin(arrival: Arrival, origins: Sequence[str]) -> bytes:
    """Byte for byte as browsers write it; else empty, also for several Origin headers."""
    sent = arrival.values(b"origin")
    return sent[0] if len(sent) == 1 and sent[0].decode("latin-1") in origins else b""


def is_preflight(arrival: Arrival, origins: Sequence[str]) -> bool:
    if arrival.method != "OPTIONS" or arrival.target == b"*" or not listed_origin(arrival, origins):
        return False
    names = {name for name, _ in arrival.headers}
    if len(arrival.values(REQUEST_METHOD)) != 1 or not NOT_IN_PREFLIGHTS.isdisjoint(names):
        return False
    if any(b"method" in name for name in names - {REQUEST_METHOD}):
        return False
    return all(length == b"0" for length in arrival.values(b"content-length"))
