"""Writes the head that the origin is sent, from the understood facts only. Dropped: what is meant
for this hop, our own cookies, Expect, forwarding headers (rewritten, but for those that a trusted
proxy may send) and headers that override the path. Added: the mark of `hop`.
"""

from collections.abc import Set

from greenroom.decision.cookies import without_cookies
from greenroom.gateway.wire.head_records import Framing, HeaderLines, RequestHead
from greenroom.gateway.wire.hop import HEADER, marked_line
from greenroom.gateway.wire.request_head import Peer
from greenroom.request.forwarded import forwarding_lines

NEVER_KEPT = frozenset(
    b"cdn-loop connection content-length cookie expect forwarded greenroom-update host"
    b" http2-settings keep-alive proxy proxy-authenticate proxy-connection te trailer"
    b" transfer-encoding upgrade x-forwarded-for x-forwarded-host x-forwarded-proto x-original-uri"
    b" x-original-url x-real-ip x-rewrite-url".split()
)

_PROXY_ONLY = (b"proxy-connection", b"proxy-authorization")
"""A client that sends the first takes us for a forward proxy: the second is then for us, not for
the origin.
"""

_FORWARDING = b"x-forwarded-"
_USUAL_HOPS = NEVER_KEPT | {b"close"}


def outgoing_head(
    head: RequestHead, peer: Peer, authority: bytes, own_cookies: Set[bytes]
) -> bytes:
    """Always HTTP/1.1, with its empty line. `authority` empty: the visitor's own Host."""
    if head.sent_for == (authority, own_cookies):
        return head.sent  # the same visitor asks for the same again
    arrival, framing, frame, of_proxies = (
        head.arrival,
        head.framing,
        head.lines.frame,
        peer.policy.kept,
    )
    host, visitor, more = head.authority, peer.forwarding, b""
    passed = frame.passed
    if passed is None or frame.passed_without is not of_proxies:
        passed = _passed(head.lines, of_proxies)
    if peer.trusted:
        visitor = forwarding_lines(arrival.client, arrival.scheme)
        if peer.is_trusted_at(arrival.host):
            more = b"".join(
                [b"\r\n%b: %b" % item for item in arrival.headers if item[0] in of_proxies]
            )
    for value in arrival.values(b"cookie"):
        if kept := without_cookies(value, own_cookies):
            more += b"\r\ncookie: " + kept
    if not framing.bare:
        more += _framed(framing)
    sent = b"".join(
        (
            framing.method, b" ", head.target, b" HTTP/1.1\r\nhost: ", authority or host, passed, more, b"\r\n",
            visitor, b'"', host, b'"\r\nx-forwarded-host: ', host, b"\r\n\r\n",
        )
    )  # fmt: skip
    head.sent, head.sent_for = sent, (authority, own_cookies)
    return sent


def _framed(framing: Framing) -> bytes:
    told = b""
    if framing.content_length is not None:
        told = b"\r\ncontent-length: %d" % framing.content_length
    elif framing.chunked:
        told = b"\r\ntransfer-encoding: chunked"
    return (
        told + b"\r\nconnection: Upgrade\r\nupgrade: " + framing.upgrade
        if framing.upgrade
        else told
    )


def _passed(lines: HeaderLines, of_proxies: frozenset[bytes]) -> bytes:
    """The forwarded lines, a CRLF before each, without values cut out of a frame."""
    frame = lines.frame
    dropped = NEVER_KEPT | of_proxies
    if not _USUAL_HOPS.issuperset(frame.hops):
        dropped = dropped.union(frame.hops)
    if any(name == _PROXY_ONLY[0] for name, _ in lines.headers):
        dropped = dropped.union(_PROXY_ONLY)
    kept = [
        item
        for item in lines.headers
        if item[0] not in dropped and not item[0].startswith(_FORWARDING)
    ]
    mark = marked_line([v for name, v in lines.headers if name == HEADER])
    frame.passed, frame.passed_without = (
        b"".join([b"\r\n%b: %b" % item for item in kept]) + mark,
        of_proxies,
    )
    return frame.passed
