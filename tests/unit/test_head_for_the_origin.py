"""The head that the origin is sent: written again from its facts, nothing passed on that was not
meant for it.
"""

from ipaddress import ip_network

import pytest

from greenroom.gateway.wire.forwarded_head import outgoing_head, without_cookies
from greenroom.gateway.wire.head_records import RequestHead
from greenroom.gateway.wire.hop import MARK
from greenroom.gateway.wire.request_head import Peer, read_head
from greenroom.request.forwarded import ForwardedPolicy

PEER = Peer("203.0.113.5", tls=False, policy=ForwardedPolicy())
OURS = frozenset((b"__cfwaitingroom", b"__cfwaitingroom_x"))
MARKED = f"cdn-loop: {MARK.decode()}"
WRITTEN_ANEW = [
    "x-forwarded-for: 203.0.113.5",
    "x-real-ip: 203.0.113.5",
    "x-forwarded-proto: http",
    'forwarded: for=203.0.113.5;proto=http;host="shop.example:81"',
    "x-forwarded-host: shop.example:81",
]


def sent(*lines, start="GET / HTTP/1.1", authority=b"", peer=PEER):
    head = read_head(
        "\r\n".join([start, "Host: shop.example:81", *lines, "", ""]).encode("latin-1"), peer
    )
    assert isinstance(head, RequestHead), head
    text = outgoing_head(head, peer, authority, OURS).decode("latin-1")
    assert text.endswith("\r\n\r\n")
    assert text.count("\r\n\r\n") == 1
    lines_sent = text[:-4].split("\r\n")
    assert [line for line in lines_sent if line.startswith("cdn-loop:")] == [MARKED]
    lines_sent.remove(MARKED)
    return lines_sent


def test_a_bare_request_is_sent_with_its_host_and_the_visitor():
    assert sent() == ["GET / HTTP/1.1", "host: shop.example:81", *WRITTEN_ANEW]


def test_the_origins_own_name_can_be_set_and_the_visitors_is_still_told():
    assert sent(authority=b"app.internal:3000") == [
        "GET / HTTP/1.1",
        "host: app.internal:3000",
        *WRITTEN_ANEW,
    ]


def test_headers_keep_order_and_bytes():
    lines = ["Accept: a,  b\t", "X-B: 1", "X-A:caf\xe9", "x-b: 2", "Range: bytes=0-1"]
    assert sent(*lines)[2:-5] == [
        "accept: a,  b",
        "x-b: 1",
        "x-a: caf\xe9",
        "x-b: 2",
        "range: bytes=0-1",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "Connection: close", "Connection: keep-alive", "Keep-Alive: timeout=5", "Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic x",
        "Proxy-Connection: keep-alive",
        "Proxy: http://evil", "TE: trailers", "Trailer: X", "Upgrade: h2c", "HTTP2-Settings: AA", "Expect: 100-continue",
        "X-Forwarded-For: 1.2.3.4",
        "X-Forwarded-Proto: https", "X-Forwarded-Host: evil", "X-Forwarded-Port: 1", "X-Forwarded-Prefix: /x",
        "X-Real-IP: 1.2.3.4", "Forwarded: for=1.2.3.4", "CF-Connecting-IP: 1.2.3.4", "True-Client-IP: 1.2.3.4",
        "X-Original-URL: /shop", "X-Rewrite-URL: /shop", "X_Forwarded_For: 1.2.3.4", "Greenroom-Update: 1", "X-Forwarded-Anything: 1",
        "Cookie: __cfwaitingroom=abc",
    ],
)  # fmt: skip
def test_what_is_not_meant_for_the_origin_is_not_sent(line):
    assert sent(line, "X-Kept: 1") == [
        "GET / HTTP/1.1",
        "host: shop.example:81",
        "x-kept: 1",
        *WRITTEN_ANEW,
    ]


TRUSTED = Peer(
    "10.0.0.1",
    tls=False,
    policy=ForwardedPolicy(
        [ip_network("10.0.0.0/8")], kept=("X-Forwarded-Prefix", "X-Client-Cert")
    ),
)


@pytest.mark.parametrize(
    ("peer", "kept"),
    [
        (TRUSTED, ["x-forwarded-prefix: /shop", "x-client-cert: abc"]),
        (Peer("203.0.113.5", tls=False, policy=TRUSTED.policy), []),
    ],
)
def test_a_trusted_proxy_alone_may_say_how_visitors_came(peer, kept):
    lines = ["X-Forwarded-Prefix: /shop", "X-Client-Cert: abc", "X-Forwarded-Port: 1", "X-Kept: 1"]
    assert sent(*lines, peer=peer)[2:-5] == ["x-kept: 1", *kept]


def test_a_password_for_a_proxy_is_passed_unless_we_are_the_proxy():
    assert sent("Proxy-Authorization: Basic x")[2:-5] == ["proxy-authorization: Basic x"]
    assert sent("Proxy-Authorization: Basic x", "Proxy-Connection: keep-alive")[2:-5] == []
    assert sent("Proxy-Authorization: Basic x", "Connection: Proxy-Authorization")[2:-5] == []


def test_what_connection_names_is_not_sent():
    assert sent("X-Hop: 1", "Connection: x-hop, close", "X-Kept: 1", "x-HOP: 2")[2:-5] == [
        "x-kept: 1"
    ]
    assert sent("X-Hop: 1", "Connection: x-hop")[2:-5] == []


@pytest.mark.parametrize(
    ("lines", "framing"),
    [
        (["Content-Length: 007"], ["content-length: 7"]),
        (["Content-Length: 0"], ["content-length: 0"]),
        (["Transfer-Encoding:CHUNKED"], ["transfer-encoding: chunked"]),
        ([], []),
    ],
)
def test_the_framing_is_what_was_understood(lines, framing):
    assert sent(*lines, start="POST / HTTP/1.1")[2:-5] == framing


def test_a_websocket_keeps_its_upgrade_and_nothing_else_does():
    lines = ["Connection: keep-alive, Upgrade", "Upgrade: WebSocket", "Sec-WebSocket-Key: x"]
    assert sent(*lines)[2:-5] == [
        "sec-websocket-key: x",
        "connection: Upgrade",
        "upgrade: websocket",
    ]
    assert sent(*lines, start="POST / HTTP/1.1")[2:-5] == ["sec-websocket-key: x"]


def test_the_target_is_the_canonical_one_and_the_version_ours():
    assert sent(start="GET /a/../b?x HTTP/1.0")[0] == "GET /b?x HTTP/1.1"
    assert sent(start="OPTIONS * HTTP/1.1")[0] == "OPTIONS * HTTP/1.1"
    assert sent(start="GET http://shop.example:81/a HTTP/1.1")[0] == "GET /a HTTP/1.1"


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ("__cfwaitingroom=a", ""),
        ("a=1; __cfwaitingroom=x; b=2", "a=1; b=2"),
        ("__cfwaitingroom=x; a=1;b=2 ;  c=3", "a=1;b=2 ;  c=3"),
        ("a=1; __cfwaitingroom=x", "a=1"),
        ("a=1;__cfwaitingroom_x=x;__cfwaitingroom=", "a=1"),
        ("__cfwaitingroom =x; a", "a"),
        (
            "__cfwaitingroom_other=1; x__cfwaitingroom=2; a=__cfwaitingroom",
            "__cfwaitingroom_other=1; x__cfwaitingroom=2; a=__cfwaitingroom",
        ),
        ("__CFWAITINGROOM=1", "__CFWAITINGROOM=1"),
        ('a="x; y=1', 'a="x; y=1'),
        (";;=; ;", ";;=; ;"),
        ("", ""),
    ],
)
def test_our_own_cookies_are_cut_out_and_the_others_keep_every_byte(value, left):
    assert without_cookies(value.encode(), OURS).decode() == left


def test_every_cookie_line_is_cut_by_itself():
    assert sent("Cookie: a=1; __cfwaitingroom=x", "cookie: __cfwaitingroom=y", "Cookie: b=2")[
        2:-5
    ] == ["cookie: a=1", "cookie: b=2"]


def test_behind_a_trusted_proxy_the_visitor_is_told_and_not_the_proxy():
    peer = Peer("10.0.0.1", tls=False, policy=ForwardedPolicy([ip_network("10.0.0.0/8")]))
    lines = sent("X-Forwarded-For: 6.6.6.6, 2001:db8::7", "X-Forwarded-Proto: https", peer=peer)
    assert lines[2:] == [
        "x-forwarded-for: 2001:db8::7",
        "x-real-ip: 2001:db8::7",
        "x-forwarded-proto: https",
        'forwarded: for="[2001:db8::7]";proto=https;host="shop.example:81"',
        "x-forwarded-host: shop.example:81",
    ]
