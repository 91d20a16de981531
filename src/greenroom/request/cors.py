"""CORS: from which listed origin a script asks, and whether a request is the preflight that a
browser sends ahead of it.

A preflight goes past the room (`admission.decide`), so only what a browser would send counts as
one. The Fetch standard gives it no body, no cookie and no other credentials, so a request that
brings any of them is not a preflight: it is treated as every other OPTIONS. So is one with a header
that may tell an application to take it for another method (X-HTTP-Method-Override and its many
spellings).
"""

from collections.abc import Sequence

from greenroom.model.visit import Arrival

REQUEST_METHOD = b"access-control-request-method"

NOT_IN_PREFLIGHTS = frozenset(
    b"authorization content-type cookie proxy-authorization range sec-websocket-key"
    b" transfer-encoding upgrade".split()
)
"""A request with any of these headers is no preflight: browsers never send them with one."""


def listed_origin(arrival: Arrival, origins: Sequence[str]) -> bytes:
    """The Origin if listed, byte for byte as browsers write it; else empty, also for several Origin
    headers.
    """
    sent = arrival.values(b"origin")
    return sent[0] if len(sent) == 1 and sent[0].decode("latin-1") in origins else b""


def is_preflight(arrival: Arrival, origins: Sequence[str]) -> bool:
    """Whether a browser asks if a script of one of these origins may send a request."""
    if arrival.method != "OPTIONS" or arrival.target == b"*" or not listed_origin(arrival, origins):
        return False
    names = {name for name, _ in arrival.headers}
    if len(arrival.values(REQUEST_METHOD)) != 1 or not NOT_IN_PREFLIGHTS.isdisjoint(names):
        return False
    if any(b"method" in name for name in names - {REQUEST_METHOD}):
        return False
    return all(length == b"0" for length in arrival.values(b"content-length"))
