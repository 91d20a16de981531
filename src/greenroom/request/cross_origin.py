"""Cross-origin requests: CORS, and whether a page of the requested host sent a request."""

import re
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


_ORIGIN = re.compile(
    rb"http(?P<tls>s)?://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(?::(?P<port>[0-9]{1,5}))?"
)
_PORT = re.compile(rb":([0-9]{1,5})\Z")


def from_here(arrival: Arrival) -> bool:
    """True without `Origin` (a program). The scheme is not compared: a proxy that ends TLS need not
    say so. `null` is foreign.
    """
    sent = arrival.header(b"origin")
    if sent is None:
        return True
    origin = _ORIGIN.fullmatch(sent.lower())
    if origin is None or origin["host"].decode("latin-1") != arrival.host:
        return False
    asked = _PORT.search(arrival.header(b"host") or b"")
    return asked is None or int(asked[1]) == int(origin["port"] or (443 if origin["tls"] else 80))


def provably_from_here(arrival: Arrival) -> bool:
    """By Sec-Fetch-Site, or else by `Origin`. A page over http cannot prove anything to one over
    https.
    """
    site = arrival.header(b"sec-fetch-site")
    if site is not None:
        return site == b"same-origin"
    origin = arrival.header(b"origin")
    return (
        origin is not None
        and from_here(arrival)
        and (arrival.scheme == "http" or origin[:6].lower() == b"https:")
    )
