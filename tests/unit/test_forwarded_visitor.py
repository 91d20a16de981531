"""Who the visitor is behind proxies: believed from trusted peers, from the right, and never from
anyone else.
"""

from ipaddress import ip_network

import pytest

from greenroom.gateway.wire.forwarded_head import outgoing_head
from greenroom.gateway.wire.request_head import Peer, read_head
from greenroom.request.forwarded import (
    HOPS_MAX,
    ForwardedPolicy,
    ForwardedVisitor,
    forwarding_lines,
    parse_address,
)

TRUSTED = ForwardedPolicy([ip_network("10.0.0.0/8"), ip_network("fd00::/8")])


def visitor(*headers, peer="10.0.0.1", policy=TRUSTED):
    return policy.visitor(
        peer, "http", tuple((name.encode(), value.encode("latin-1")) for name, value in headers)
    )


@pytest.mark.parametrize(
    ("listed", "client"),
    [
        ("1.2.3.4", "1.2.3.4"),
        (" 1.2.3.4 ", "1.2.3.4"),
        ("1.2.3.4:5678", "1.2.3.4"),
        ("6.6.6.6, 1.2.3.4", "1.2.3.4"),
        ("6.6.6.6, 1.2.3.4, 10.0.0.7, fd00::1", "1.2.3.4"),
        ("<script>, 1.2.3.4", "1.2.3.4"),
        ("::ffff:1.2.3.4", "1.2.3.4"),
        ("2001:DB8:0:0::1", "2001:db8::1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("10.0.0.9, 10.0.0.8", "10.0.0.9"),
    ],
)
def test_the_rightmost_address_that_is_no_trusted_proxy_is_the_visitor(listed, client):
    assert visitor(("x-forwarded-for", listed)).client == client


@pytest.mark.parametrize(
    "listed",
    ["", ",", "unknown", "_hidden", "1.2.3.4,", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4:x", "1.2.3.4:123456", "fe80::1%eth0",
    "[fe80::1%25eth0]",
     "[1.2.3.4", "::1]", "1.2.3.4 5", "6.6.6.6, 1.2.3.4, evil", "1.2.3.4\x00", "1.2.3.4;x", "caf\xe9", "http://1.2.3.4",
     "16909060", "0x01020304"]
)  # fmt: skip
def test_what_cannot_be_read_leaves_the_peer_as_the_visitor(listed):
    assert visitor(("x-forwarded-for", listed)).client == "10.0.0.1"


def test_several_lines_of_the_list_are_one_list():
    assert (
        visitor(("x-forwarded-for", "1.2.3.4"), ("x-forwarded-for", "10.0.0.5")).client == "1.2.3.4"
    )
    assert (
        visitor(("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "1.2.3.4")).client == "1.2.3.4"
    )


def test_no_one_makes_us_read_a_long_list():
    assert (
        visitor(("x-forwarded-for", "1.2.3.4" + ", 10.0.0.1" * (HOPS_MAX - 1))).client == "1.2.3.4"
    )
    assert visitor(("x-forwarded-for", "1.2.3.4" + ", 10.0.0.1" * HOPS_MAX)).client == "10.0.0.1"
    assert visitor(("x-forwarded-for", "6.6.6.6, " * 1000 + "1.2.3.4")).client == "1.2.3.4"


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("for=1.2.3.4", ForwardedVisitor("1.2.3.4", "http")),
        (
            'For="[2001:db8::1]:80";Proto=HTTPS;by=10.0.0.2',
            ForwardedVisitor("2001:db8::1", "https"),
        ),
        ("for=6.6.6.6;proto=http, for=1.2.3.4;proto=https", ForwardedVisitor("1.2.3.4", "https")),
        ("for=1.2.3.4, for=10.0.0.3", ForwardedVisitor("1.2.3.4", "http")),
        ("for=unknown", ForwardedVisitor("10.0.0.1", "http")),
        ("for=1.2.3.4;", ForwardedVisitor("10.0.0.1", "http")),
        ('for="1.2.3.4', ForwardedVisitor("10.0.0.1", "http")),
        ("for=1.2.3.4;proto=WSS", ForwardedVisitor("1.2.3.4", "https")),
        ("for=_secret;proto=gopher", ForwardedVisitor("10.0.0.1", "http")),
        ("for=1.2.3.4 proto=https", ForwardedVisitor("10.0.0.1", "http")),
    ],
)
def test_the_standard_header_is_understood_too(header, found):
    assert visitor(("forwarded", header)) == found


def test_the_list_counts_before_the_standard_header():
    assert visitor(
        ("forwarded", "for=6.6.6.6;proto=https"), ("x-forwarded-for", "1.2.3.4")
    ) == ForwardedVisitor("1.2.3.4", "http")


@pytest.mark.parametrize(
    ("value", "scheme"),
    [
        ("https", "https"),
        ("HTTP", "http"),
        ("http, https", "https"),
        ("wss", "https"),
        ("WSS", "https"),
        ("ws", "http"),
        ("https, ws", "http"),
        ("wss ", "https"),
        ("", "http"),
        ("htt\xe9ps", "http"),
    ],
)
def test_the_scheme_is_the_last_one_written_and_only_http_or_https(value, scheme):
    assert visitor(("x-forwarded-proto", value)).scheme == scheme


def test_the_host_is_believed_only_when_the_operator_says_so():
    headers = (("x-forwarded-for", "1.2.3.4"), ("x-forwarded-host", "evil.example, shop.example"))
    assert visitor(*headers).host == b""
    believing = ForwardedPolicy(TRUSTED.trusted_proxies, trust_host=True)
    assert visitor(*headers, policy=believing).host == b"shop.example"
    assert (
        visitor(("forwarded", 'for=1.2.3.4;host="shop.example:81"'), policy=believing).host
        == b"shop.example:81"
    )


@pytest.mark.parametrize(
    "policy",
    [ForwardedPolicy(), TRUSTED, ForwardedPolicy(TRUSTED.trusted_proxies, trust_host=True)],
)
@pytest.mark.parametrize("address", ["203.0.113.5", "::1", "11.0.0.1"])
def test_a_peer_that_is_not_trusted_is_never_believed(policy, address):
    block = (
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\n"
        b"X-Real-IP: 1.2.3.4\r\nForwarded: for=1.2.3.4;proto=https;host=evil\r\n\r\n"
    )
    arrival = read_head(block, Peer(address, tls=False, policy=policy)).arrival
    assert (arrival.client, arrival.scheme, arrival.host) == (address, "http", "a")


@pytest.mark.parametrize("address", ["10.1.2.3", "::ffff:10.1.2.3", "fd00::7"])
def test_a_trusted_peer_is_known_in_every_spelling(address):
    block = b"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: other\r\n\r\n"
    arrival = read_head(block, Peer(address, tls=False, policy=TRUSTED)).arrival
    assert (arrival.client, arrival.scheme, arrival.host) == ("1.2.3.4", "https", "a")
    believing = ForwardedPolicy(TRUSTED.trusted_proxies, trust_host=True)
    head = read_head(block, Peer(address, tls=False, policy=believing))
    assert (head.arrival.host, head.authority) == ("other", b"other")


ZONED = ForwardedPolicy(
    [ip_network("10.0.0.1/32")],
    trust_host=True,
    zones={"a.example": [ip_network("192.0.2.0/24")], "b.example": []},
)


@pytest.mark.parametrize(
    ("peer", "host", "client"),
    [
        ("192.0.2.7", "a.example", "1.2.3.4"),
        ("192.0.2.7", "shop.a.example", "1.2.3.4"),
        ("192.0.2.7", "nota.example", "192.0.2.7"),
        ("192.0.2.7", "b.example", "192.0.2.7"),
        ("10.0.0.1", "a.example", "1.2.3.4"),
        ("10.0.0.1", "b.example", "1.2.3.4"),
        ("10.0.0.1", "c.example", "1.2.3.4"),
        ("198.51.100.1", "a.example", "198.51.100.1"),
    ],
)
def test_the_proxies_of_a_zone_are_believed_about_its_hosts_only(peer, host, client):
    block = f"GET / HTTP/1.1\r\nHost: {host}\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n".encode()
    connection = Peer(peer, tls=False, policy=ZONED)
    head = read_head(block, connection)
    assert (head.arrival.client, head.arrival.host) == (client, host)
    assert f"x-forwarded-for: {client}\r\n".encode() in outgoing_head(
        head, connection, b"", frozenset()
    )


def test_the_proxies_of_a_zone_chain_with_those_of_the_process():
    block = b"GET / HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: 1.2.3.4, 192.0.2.9\r\n\r\n"
    assert read_head(block, Peer("10.0.0.1", tls=False, policy=ZONED)).arrival.client == "1.2.3.4"
    elsewhere = block.replace(b"a.example", b"b.example")
    assert (
        read_head(elsewhere, Peer("10.0.0.1", tls=False, policy=ZONED)).arrival.client
        == "192.0.2.9"
    )


@pytest.mark.parametrize(
    ("named", "host"),
    [("b.example", "a.example"), ("c.example", "a.example"), ("x.a.example", "x.a.example")],
)
def test_a_proxy_of_one_zone_cannot_carry_a_request_into_another_by_name(named, host):
    block = f"GET / HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host: {named}\r\n\r\n".encode()
    assert read_head(block, Peer("192.0.2.7", tls=False, policy=ZONED)).arrival.host == host


@pytest.mark.parametrize("said", ["", "u@x", "a b", "a/b", "a\xe9"])
def test_a_forwarded_host_that_is_not_one_is_ignored(said):
    block = f"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-Host: {said}\r\n\r\n".encode("latin-1")
    peer = Peer(
        "10.0.0.1", tls=False, policy=ForwardedPolicy(TRUSTED.trusted_proxies, trust_host=True)
    )
    head = read_head(block, peer)
    assert (head.arrival.host, head.authority) == ("a", b"a")


def test_addresses_are_written_in_one_spelling():
    assert Peer("::ffff:203.0.113.5", tls=False, policy=ForwardedPolicy()).client == "203.0.113.5"
    assert str(parse_address("[2001:DB8::1]:80")) == "2001:db8::1"
    assert b'for="[2001:db8::1]";proto=https;host=' in forwarding_lines("2001:db8::1", "https")
    assert b"x-forwarded-for: unknown\r\n" in forwarding_lines("", "http")


@pytest.mark.parametrize(("proto", "scheme"), [("wss", b"https"), ("WS", b"http")])
def test_the_origin_hears_the_scheme_of_a_websocket_as_that_of_http(proto, scheme):
    head = (
        f"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: {proto}\r\n\r\n"
    ).encode()
    peer = Peer("10.0.0.1", scheme == b"http", TRUSTED)
    sent = outgoing_head(read_head(head, peer), peer, b"", frozenset())
    assert b"x-forwarded-proto: " + scheme + b"\r\n" in sent
