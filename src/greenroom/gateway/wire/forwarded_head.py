"""Writes the head that the origin is sent, from the understood facts only: nothing is copied that was not read.

Dropped: what is meant for this hop (Connection and what it names, Keep-Alive, Proxy-*, TE, Trailer, Upgrade), our own cookies,
Expect (answered here), forwarding headers (rewritten, so an origin may trust them) and headers that override the path (some
frameworks obey them, and would serve another page than the one that was matched). Header names are in lower case.
"""

from collections.abc import Set

from greenroom.decision.cookies import without_cookies
from greenroom.decision.forwarded import forwarding_lines
from greenroom.gateway.wire.header_lines import HeaderLines
from greenroom.gateway.wire.request_head import Peer, RequestHead

_DROPPED = frozenset(
    b"connection content-length cookie expect forwarded greenroom-update host http2-settings keep-alive proxy proxy-authenticate "
    b"proxy-authorization proxy-connection te trailer transfer-encoding upgrade x-forwarded-for x-forwarded-host x-forwarded-port "
    b"x-forwarded-proto x-original-uri x-original-url x-real-ip x-rewrite-url".split()
)
_FORWARDING = b"x-forwarded-"
_USUAL_HOPS = _DROPPED | {b"close"}


def outgoing_head(head: RequestHead, peer: Peer, authority: bytes, own_cookies: Set[bytes]) -> bytes:
    """The complete head for the origin, up to and including the empty line, always in HTTP/1.1.

    `Host` is `authority`, or the visitor's own when that is empty. Cookies named in `own_cookies` are cut out.
    """
    section = head.section
    wanted = (authority, own_cookies)
    if head.upgrade or section.tail_for != wanted:
        section.tail = _tail(head, peer, authority, own_cookies)
        section.tail_for = None if head.upgrade else wanted
    return b"%b %b%b" % (head.method, head.target, section.tail)


def _tail(head: RequestHead, peer: Peer, authority: bytes, own_cookies: Set[bytes]) -> bytes:
    """Everything behind the target: the same for every request with the same section that is no WebSocket."""
    arrival, host = head.arrival, head.authority
    lines = [b" HTTP/1.1\r\nhost: " + (authority or host) + _passed(head.section.lines)]
    lines += [b"cookie: " + kept for name, value in arrival.headers if name == b"cookie" and (kept := without_cookies(value, own_cookies))]
    if head.content_length is not None:
        lines.append(b"content-length: %d" % head.content_length)
    elif head.chunked:
        lines.append(b"transfer-encoding: chunked")
    if head.upgrade:
        lines.append(b"connection: Upgrade\r\nupgrade: " + head.upgrade)
    visitor = (
        peer.forwarding
        if (arrival.client, arrival.scheme) == (peer.client, peer.scheme)
        else forwarding_lines(arrival.client, arrival.scheme)
    )
    return b'%b\r\n%b"%b"\r\nx-forwarded-host: %b\r\n\r\n' % (b"\r\n".join(lines), visitor, host, host)


def _passed(lines: HeaderLines) -> bytes:
    """The lines that travel on as they were sent, a CRLF before each. The values that are cut out of a frame are not among them."""
    frame = lines.frame
    if frame.passed is None:
        dropped = _DROPPED if _USUAL_HOPS.issuperset(frame.hops) else _DROPPED.union(frame.hops)
        kept = [item for item in lines.headers if item[0] not in dropped and not item[0].startswith(_FORWARDING)]
        frame.passed = b"".join([b"\r\n%b: %b" % item for item in kept])
    return frame.passed
