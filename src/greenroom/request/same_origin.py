"""Whether a page of the requested host sent a request."""

import re

from greenroom.model.visit import Arrival

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
