"""Reading a request head: what is understood, and what is refused with which status."""

from ipaddress import ip_network

import pytest

from greenroom.gateway.wire.forwarded_head import outgoing_head
from greenroom.gateway.wire.head_records import RequestHead
from greenroom.gateway.wire.request_head import Peer, read_head
from greenroom.request.arrival import METHOD_MAX
from greenroom.request.canonical import Refusal
from greenroom.request.forwarded import ForwardedPolicy
from greenroom.settings.limits import Limits

PEER = Peer("203.0.113.5", tls=False, policy=ForwardedPolicy())


def read(*lines, start="GET / HTTP/1.1", host="Host: shop.example"):
    block = "\r\n".join([start, *([host] if host else []), *lines, "", ""])
    return read_head(block.encode("latin-1"), PEER)


def understood(*lines, **parts):
    found = read(*lines, **parts)
    assert isinstance(found, RequestHead), found
    return found


def status(*lines, **parts):
    found = read(*lines, **parts)
    assert isinstance(found, Refusal), found
    return found.status


def test_a_browsers_head_is_understood():
    head = understood(
        "Connection: keep-alive", "User-Agent:Browser/1 (x)  ", "X-Custom:\t a\tb ", "Cookie: a=1", "cookie: b=2", "Empty:",
        start="GET /shop/./x?b=%2F HTTP/1.1", host="HOST: Shop.Example.:8080",
    )  # fmt: skip
    arrival = head.arrival
    assert (arrival.method, arrival.scheme, arrival.host, arrival.path, arrival.query) == (
        "GET",
        "http",
        "shop.example",
        "/shop/x",
        "b=%2F",
    )
    assert arrival.client == "203.0.113.5"
    assert arrival.headers == (
        (b"host", b"Shop.Example.:8080"), (b"connection", b"keep-alive"), (b"user-agent", b"Browser/1 (x)"), (b"x-custom", b"a\tb"),
        (b"cookie", b"a=1"), (b"cookie", b"b=2"), (b"empty", b""),
    )  # fmt: skip
    assert (head.method, head.target, head.minor, head.authority) == (
        b"GET",
        b"/shop/x?b=%2F",
        1,
        b"Shop.Example.:8080",
    )
    assert (
        head.content_length,
        head.chunked,
        head.keep_alive,
        head.expect_continue,
        head.upgrade,
    ) == (None, False, True, False, b"")


@pytest.mark.parametrize(
    "method", ["GET", "get", "PROPFIND", "M-SEARCH", "X" * METHOD_MAX, "!#$%&'*+-.^_`|~"]
)
def test_a_method_is_passed_as_it_was_sent(method):
    head = understood(start=f"{method} / HTTP/1.1")
    assert (head.method, head.arrival.method) == (method.encode(), method)


@pytest.mark.parametrize(
    ("start", "answer"),
    [
        ("CONNECT shop.example:443 HTTP/1.1", 405),
        ("TRACE / HTTP/1.1", 405),
        ("GET / HTTP/2.0", 505),
        ("PRI * HTTP/2.0", 505),
        ("GET / HTTP/1.2", 505),
        ("GET / HTTP/0.9", 505),
        ("GET / HTTP/1", 400),
        ("GET / http/1.1", 400),
        ("GET / HTTP/1.1 ", 400),
        ("GET / HTTP/01.1", 400),
        ("GET / HTTP/1.10", 400),
        ("GET /", 400),
        ("GET", 400),
        ("", 400),
        (" GET / HTTP/1.1", 400),
        ("GET  / HTTP/1.1", 400),
        ("GET /  HTTP/1.1", 400),
        ("GET\t/ HTTP/1.1", 400),
        ("GET / x HTTP/1.1", 400),
        ("G(T / HTTP/1.1", 400),
        ("G\xebT / HTTP/1.1", 400),
        (f"{'X' * (METHOD_MAX + 1)} / HTTP/1.1", 400),
        ("GET /%5C HTTP/1.1", 400),
        ("GET * HTTP/1.1", 400),
        ("GET shop.example HTTP/1.1", 400),
        ("GET shop.example:80 HTTP/1.1", 400),
        (f"GET /{'a' * 9000} HTTP/1.1", 414),
    ],
)
def test_a_request_line_that_is_not_exactly_right_is_refused(start, answer):
    assert status(start=start) == answer


def test_options_may_ask_about_the_whole_server_and_is_gated_like_the_root():
    head = understood(start="OPTIONS * HTTP/1.1")
    assert (head.target, head.arrival.path) == (b"*", "/")


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://shop.example/a/../b?c", b"/b?c"),
        ("HTTP://SHOP.example/", b"/"),
        ("http://shop.example", b"/"),
        ("http://shop.example?a", b"/?a"),
    ],
)
def test_a_full_url_that_names_this_host_is_read_as_its_path(url, target):
    assert understood(start=f"GET {url} HTTP/1.1").target == target


@pytest.mark.parametrize(
    "url",
    [
        "http://other.example/", "https://shop.example/", "http://shop.example:81/", "http://u@shop.example/", "http://shop.example@other/",
        "http:///", "ftp://shop.example/", "http:/shop.example/", "http://shop.example%2F/", "http://shop.example#/", "//shop.example:x y/",
    ],
)  # fmt: skip
def test_a_full_url_that_names_anything_else_is_refused(url):
    assert status(start=f"GET {url} HTTP/1.1") == 400


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("a", "a"), ("A.B.", "a.b"), ("a:1", "a"), ("a:65535", "a"), ("127.0.0.1:80", "127.0.0.1"), ("[::1]", "[::1]"),
        ("[2001:DB8::0:1]:8080", "[2001:db8::1]"), ("my_host", "my_host"), ("xn--bcher-kva.example", "xn--bcher-kva.example"),
    ],
)  # fmt: skip
def test_a_host_is_matched_in_lower_case_without_port_and_closing_dot(host, name):
    head = understood(host=f"Host: {host}")
    assert (head.arrival.host, head.authority) == (name, host.encode())


@pytest.mark.parametrize(
    "host",
    [
        "", "a b", "a,b", "a, a", "u@a", "u:p@a", "a:", "a:0", "a:65536", "a:+1", "a:1x", "a:1:2", "::1", "[::1", "[::1%25eth0]", "[::1]x",
        "[1.2.3.4]", "[]", "a..b", ".", ".a", "a/b", "a?b", "a#b", "a\\b", "a%2eb", "a\xe9", "http://a", "*", "a" * 64, "a." * 127 + "aa",
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/1.0"])
def test_a_host_that_is_no_host_is_refused(host, version):
    assert status(host=f"Host: {host}", start=f"GET / {version}") == 400


@pytest.mark.parametrize(
    ("policy", "server", "host", "authority"),
    [
        (ForwardedPolicy(), ("10.0.0.1", 80), "10.0.0.1", b"10.0.0.1:80"),
        (ForwardedPolicy(), ("2001:db8::1", 80), "[2001:db8::1]", b"[2001:db8::1]:80"),
        (
            ForwardedPolicy(default_host="Shop.example:81"),
            ("10.0.0.1", 80),
            "shop.example",
            b"Shop.example:81",
        ),
        (
            ForwardedPolicy([ip_network("10.0.0.0/8")], default_host="shop.example"),
            ("10.0.0.1", 80),
            "shop.example",
            b"shop.example",
        ),
    ],
)
def test_http_1_0_without_a_host_goes_to_the_default_host(policy, server, host, authority):
    peer = Peer("10.0.0.9", tls=False, policy=policy, server=server)
    head = read_head(b"GET /a HTTP/1.0\r\nX-A: 1\r\n\r\n", peer)
    assert isinstance(head, RequestHead), head
    assert (head.arrival.host, head.arrival.path, head.authority) == (host, "/a", authority)
    assert b"\r\nhost: %b\r\n" % authority in outgoing_head(head, peer, b"", frozenset())
    for lines in (
        b"GET /a HTTP/1.1\r\nX-A: 1\r\n\r\n",
        b"GET /a HTTP/1.0\r\nHost:\r\n\r\n",
        b"GET http://shop.example/a HTTP/1.1\r\n\r\n",
    ):
        assert isinstance(read_head(lines, peer), Refusal)


def test_a_host_is_required_once_in_http_1_1():
    assert status(host="") == status(host="", start="GET / HTTP/1.0") == 400, (
        "there is no default where the listener is unknown"
    )
    assert status("Host: shop.example") == status("host: other.example") == 400


@pytest.mark.parametrize(
    "line",
    [
        "X : a", "X\t: a", " X: a", "\tfolded", " folded", ": a", "no colon", "", "X\xe9: a", "X(: a", "X: a\x00b", "X: a\x01",
        "X: a\x7f", "X\x00: a",
        "X: a\rb", "X: a\nY: b", "X: a\n", "X: a\r", "\rX: a", "\nX: a", "X: a\x0b", "X: a\x0c", "X: \x1b[0m", "X\r: a",
        "[x]: a", "X/Y: a", '"X": a',
    ],
)  # fmt: skip
def test_a_header_line_that_is_not_name_colon_value_is_refused(line):
    if line == "":
        assert isinstance(
            read_head(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nX: a\r\n\r\n", PEER), Refusal
        )
    else:
        assert status("Before: 1", line, "After: 1") == 400
        assert status(line) == 400


@pytest.mark.parametrize(
    "block",
    [
        b"", b"\r\n", b"\r\n\r\n", b"GET / HTTP/1.1", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n", b"GET / HTTP/1.1\r\nHost: a\n\r\n", b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\nx",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\n",
    ],
)  # fmt: skip
def test_a_block_that_is_not_one_whole_head_is_refused(block):
    assert read_head(block, PEER).status == 400


def test_bytes_beyond_ascii_and_tabs_may_stand_in_a_value():
    assert understood("X: caf\xc3\xa9\t\xff").arrival.header(b"x") == b"caf\xc3\xa9\t\xff"


def test_a_name_with_an_underscore_is_not_heard():
    head = understood(
        "X_Forwarded_For: 1.2.3.4",
        "Content_Length: 5",
        "_: a",
        "Transfer_Encoding: chunked",
        "Kept: 1",
    )
    assert [name for name, _ in head.arrival.headers] == [b"host", b"kept"]
    assert not head.chunked
    assert head.content_length is None


@pytest.mark.parametrize("unheard", [0, 1, 2, 3])
@pytest.mark.parametrize(
    "beside",
    [[], ["Connection: keep-alive"], ["Upgrade: x"], ["Connection: keep-alive", "Upgrade: x"]],
)
@pytest.mark.parametrize("times", [1, 2, 3, 4])
def test_facts_are_given_exactly_when_no_name_comes_twice(times, beside, unheard):
    """A ticket was once remembered by the last of two Cookie lines, so that a visitor who sent that
    line alone came in with it.
    """
    arrival = understood(
        *beside, *["X_Y: 1"] * unheard, *[f"Cookie: c{number}=1" for number in range(times)]
    ).arrival
    assert [name for name, _ in arrival.headers].count(b"cookie") == times
    assert (arrival.facts is None) == (times > 1)
    assert arrival.header(b"cookie") == b"c0=1"
    assert arrival.header(b"connection") == (
        b"keep-alive" if "Connection: keep-alive" in beside else None
    )


@pytest.mark.parametrize("unheard", [0, 1, 2])
@pytest.mark.parametrize("beside", [[], ["Connection: keep-alive"], ["Cookie: a=1"]])
@pytest.mark.parametrize(
    "twice",
    [
        ["Host: other"],
        ["Content-Length: 3", "Content-Length: 5"],
        ["Content-Length: 5", "Content-Length: 5"],
        ["Transfer-Encoding: identity", "Transfer-Encoding: chunked"],
        ["Expect: foo", "Expect: 100-continue"],
    ],
)
def test_what_must_stand_alone_is_refused_twice_with_anything_else_beside_it(
    twice, beside, unheard
):
    assert status(*beside, *["X_Y: 1"] * unheard, *twice, start="POST / HTTP/1.1") == 400


def test_there_may_be_as_many_headers_as_the_limit_and_no_more():
    lines = [f"x{number}: 1" for number in range(Limits().header_lines)]
    assert len(understood(*lines[1:]).arrival.headers) == Limits().header_lines
    assert status(*lines) == 431


@pytest.mark.parametrize(
    ("lines", "framing"),
    [
        ([], (None, False)),
        (["Content-Length: 0"], (0, False)),
        (["content-length:  42  "], (42, False)),
        (["Content-Length: 000000000000000042"], (42, False)),
        (["Content-Length: 999999999999999999"], (999_999_999_999_999_999, False)),
        (["Transfer-Encoding: chunked"], (None, True)),
        (["transfer-encoding: Chunked"], (None, True)),
    ],
)
def test_a_body_is_announced_in_one_way(lines, framing):
    head = understood(*lines, start="POST / HTTP/1.1")
    assert (head.content_length, head.chunked) == framing


@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 5", "Content-Length: 5"], ["Content-Length: 5", "Content-Length: 6"], ["Content-Length: 5, 5"],
        ["Content-Length: 5,6"],
        ["Content-Length: +5"], ["Content-Length: -5"], ["Content-Length: 0x5"], ["Content-Length: 5.0"],
        ["Content-Length: 5e1"], ["Content-Length:"],
        ["Content-Length: 5 5"], ["Content-Length: \xb2"], ["Content-Length: 1_0"], ["Content-Length: 1000000000000000000"],
        ["Content-Length: five"],
        ["Content-Length: 5", "Transfer-Encoding: chunked"], ["Transfer-Encoding: chunked", "Content-Length: 5"],
        ["Content-Length: 0", "Transfer-Encoding: identity"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
        ["Transfer-Encoding: identity"], ["Transfer-Encoding: gzip, chunked"], ["Transfer-Encoding: chunked, chunked"],
        ["Transfer-Encoding: chunked,"],
        ["Transfer-Encoding: ,chunked"], ["Transfer-Encoding: xchunked"], ["Transfer-Encoding: chunkedx"], ['Transfer-Encoding: "chunked"'],
        ["Transfer-Encoding: chunked;q=1"], ["Transfer-Encoding:"], ["Transfer-Encoding: chun\tked"], ["Transfer-Encoding: chunked\x0b"],
        ["Transfer-Encoding : chunked"], ["Transfer-Encoding: \x00chunked"], ["X: a\nTransfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked\xa0"],
    ],
)  # fmt: skip
def test_a_body_announced_doubtfully_is_refused(lines):
    assert status(*lines, start="POST / HTTP/1.1") == 400


def test_http_1_0_has_no_chunks_and_no_100_continue():
    assert status("Transfer-Encoding: chunked", start="POST / HTTP/1.0") == 400
    assert not understood(
        "Expect: 100-continue", "Content-Length: 5", start="POST / HTTP/1.0"
    ).expect_continue


@pytest.mark.parametrize(
    ("version", "lines", "stays"),
    [
        ("1.1", [], True), ("1.1", ["Connection: close"], False), ("1.1", ["Connection: Keep-Alive"], True),
        ("1.1", ["Connection: x, CLOSE"], False),
        ("1.1", ["Connection: keep-alive", "Connection: close"], False), ("1.0", [], False), ("1.0", ["Connection: keep-alive"], True),
        ("1.0", ["Connection: close, keep-alive"], False), ("1.1", ["Connection:"], True), ("1.1", ["Connection: ,, a ,"], True),
    ],
)  # fmt: skip
def test_a_connection_stays_when_both_sides_say_so(version, lines, stays):
    assert understood(*lines, start=f"GET / HTTP/{version}").keep_alive == stays


@pytest.mark.parametrize(
    "named",
    [
        "host",
        "Cookie",
        "x-a, AUTHORIZATION",
        "content-length",
        "transfer-encoding",
        "X-Forwarded-For",
        "a b",
        "(",
        "caf\xe9",
    ],
)
def test_connection_may_not_name_what_is_meant_for_the_origin(named):
    assert status(f"Connection: {named}") == 400


def test_a_second_connection_line_cannot_hide_a_name():
    assert (
        status("Connection: keep-alive", "Connection: cookie")
        == status("Connection: cookie", "Connection: keep-alive")
        == 400
    )


def test_the_one_expectation_that_is_met_is_100_continue_for_a_body():
    assert understood(
        "Expect: 100-Continue", "Content-Length: 5", start="POST / HTTP/1.1"
    ).expect_continue
    assert understood(
        "Expect: 100-continue", "Transfer-Encoding: chunked", start="POST / HTTP/1.1"
    ).expect_continue
    assert not understood("Expect: 100-continue").expect_continue
    assert not understood("Expect: 100-continue", "Content-Length: 0").expect_continue
    assert status("Expect: 200-ok") == status("Expect:") == 417
    assert status("Expect: 100-continue", "Expect: 100-continue") == 400


@pytest.mark.parametrize(
    ("start", "lines", "upgrade"),
    [
        ("GET / HTTP/1.1", ["Connection: Upgrade", "Upgrade: websocket"], b"websocket"),
        ("GET / HTTP/1.1", ["Connection: keep-alive, upgrade", "Upgrade: WebSocket"], b"websocket"),
        ("GET / HTTP/1.1", ["Upgrade: websocket"], b""),
        ("GET / HTTP/1.1", ["Connection: Upgrade"], b""),
        (
            "GET / HTTP/1.1",
            ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AA"],
            b"",
        ),
        ("GET / HTTP/1.1", ["Connection: Upgrade", "Upgrade: websocket, h2c"], b""),
        ("GET / HTTP/1.1", ["Connection: Upgrade", "Upgrade: h2c", "Upgrade: websocket"], b""),
        (
            "GET / HTTP/1.1",
            ["Connection: Upgrade", "Upgrade: websocket", "Upgrade: websocket"],
            b"",
        ),
        ("GET / HTTP/1.1", ["Connection: Upgrade", "Upgrade: websocket", "Content-Length: 5"], b""),
        ("POST / HTTP/1.1", ["Connection: Upgrade", "Upgrade: websocket"], b""),
        ("GET / HTTP/1.0", ["Connection: Upgrade", "Upgrade: websocket"], b""),
    ],
)
def test_only_a_plain_websocket_request_is_an_upgrade(start, lines, upgrade):
    assert understood(*lines, start=start).upgrade == upgrade


def test_a_reason_never_repeats_what_was_sent():
    for found in (
        read("<b>x"),
        read(start="<b> / HTTP/1.1\x00"),
        read(host="Host: <b>"),
        read("Expect: <b>"),
        read("Connection: <b>("),
    ):
        assert "<b>" not in found.reason


def test_the_scheme_is_that_of_the_connection():
    block = b"GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n"
    assert (
        read_head(block, Peer("::1", tls=True, policy=ForwardedPolicy())).arrival.scheme == "https"
    )
