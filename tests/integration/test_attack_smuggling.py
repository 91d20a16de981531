"""Request smuggling: for any framing, the origin sees only whole requests that were each gated by
themselves.

`/shop` is a room that lets no visitor in, everything else is forwarded. Every attack carries a
request for `/shop` inside something that goes to `/open`. If the origin ever sees `/shop`,
greenroom and the origin disagreed about where a request ends.
"""

from collections.abc import Iterator

import pytest
from attack_rig import Got, NotingOrigin, Seen, lines_of, throw
from tests.conftest import Running, StartGreenroom

CONFIG = """
origin = "{url}"
[[rooms]]
name = "shop"
host = "*"
path = "/shop"
total_active_users = 1
new_users_per_minute = 1
queue_all = true
[limits]
head_s = 1
body_idle_s = 1
keep_alive_s = 1
half_closed_s = 1
linger_s = 1
"""

HOST = b"Host: a\r\n"
INNER = b"GET /shop/secret HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST /open HTTP/1.1\r\n" + HOST


def held(lines: list[str]) -> list[str]:
    """Requests among these that the room should have held."""
    return [line for line in lines if "/shop" in line.split(" ")[1].partition("?")[0]]


class Target:
    """What is attacked. `seen` and `lines` are what the origin saw of the last attack."""

    def __init__(self, running: Running, origin: NotingOrigin) -> None:
        self.running, self.origin = running, origin
        self.seen: list[Seen] = []

    @property
    def lines(self) -> list[str]:
        return lines_of(self.seen)

    def throw(self, data: bytes) -> list[Got]:
        """Attacks; nothing of it may reach the origin but whole requests beside the room. Then an
        honest visitor is served.
        """
        before = len(self.origin.seen)
        got = throw(self.running.address, data)
        self.seen = self.origin.seen[before:]
        (honest,) = throw(
            self.running.address, b"GET /honest HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
        )
        assert (honest.status, honest.body) == (200, b"GET /honest HTTP/1.1")
        assert self.origin.garbage == []
        assert held(lines_of(self.origin.seen[before:])) == []
        return got


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    origin = NotingOrigin()
    start = StartGreenroom(tmp_path_factory.mktemp("smuggling"))
    running = start.config(CONFIG.format(url=origin.url))
    yield Target(running, origin)
    assert running.alive
    assert origin.garbage == []
    assert held(lines_of(origin.seen)) == []
    running.kill()
    origin.close()


def test_the_rig_notices_what_a_lax_proxy_would_let_through() -> None:
    origin = NotingOrigin()
    throw(origin.address, POST + b"Content-Length: 5\r\n\r\nhello" + INNER)
    throw(origin.address, POST + b"Content-Length: 3\r\n\r\nhello" + INNER)
    throw(
        origin.address, POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    )
    origin.close()
    assert held(lines_of(origin.seen)) == ["GET /shop/secret"]
    assert len(origin.garbage) == 2


TE = b"Transfer-Encoding"
FRAMINGS = [
    b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 6\r\n",
    b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
    b"Content-Length: 0\r\nContent-Length: 44\r\n",
    b"Content-Length: 44\r\nContent-Length: 44\r\n",
    b"Content-Length: 0, 44\r\n",
    b"Content-Length: 44, 44\r\n",
    b"Content-Length: +44\r\n",
    b"Content-Length: 4 4\r\n",
    b"Content-Length: 0x2c\r\n",
    b"Content-Length: 44\r\n 5\r\n",
    b"Content-Length : 44\r\n",
    b"Content-Length\t: 44\r\n",
    b"Content-Length: 44\x00\r\n",
    b"Content-Length: 99999999999999999999999999\r\n",
    b"Content-Length: -1\r\n",
    b"Content-Length: 44\nX: y\r\n",
    b"X: y\nContent-Length: 44\r\n",
    b"X: y\rContent-Length: 44\r\n",
    b"X: y\r\n\tContent-Length: 44\r\n",
    b"Content-Length:\r\n",
    TE + b" : chunked\r\n",
    TE + b"\t: chunked\r\n",
    TE + b": xchunked\r\n",
    TE + b": chunkedx\r\n",
    TE + b": chunked, identity\r\n",
    TE + b": identity, chunked\r\n",
    TE + b": gzip, chunked\r\n",
    TE + b": chunked\r\n" + TE + b": identity\r\n",
    TE + b": identity\r\n" + TE + b": chunked\r\n",
    TE + b": chunked\r\n" + TE + b": chunked\r\n",
    TE + b":\x0bchunked\r\n",
    TE + b":\x0cchunked\r\n",
    TE + b": \x00chunked\r\n",
    TE + b": chunked\x00\r\n",
    TE + b": 'chunked'\r\n",
    TE + b': "chunked"\r\n',
    TE + b": chunked;x=1\r\n",
    TE + b":\r\n chunked\r\n",
    TE + b": identity\r\n",
    TE + b"\r\n: chunked\r\n",
    TE + b"\x00: chunked\r\n",
    b" " + TE + b": chunked\r\n",
    b"X: y\n" + TE + b": chunked\r\n",
    b"X: y\r" + TE + b": chunked\r\n",
    b"X: y\r\r\n" + TE + b": chunked\r\n",
    b"\xef\xbb\xbf" + TE + b": chunked\r\n",
    TE + b": chun\xc4\xb8ed\r\n",
    TE + b": \xc4\x89hunked\r\n",
    TE + b":chunked\xa0\r\n",
    TE + b": cow\r\n",
]


@pytest.mark.parametrize("framing", FRAMINGS, ids=range(len(FRAMINGS)))
@pytest.mark.parametrize("also", [b"", b"Content-Length: 5\r\n"], ids=["alone", "with-length"])
def test_a_body_announced_doubtfully_ends_the_connection(
    target: Target, framing: bytes, also: bytes
) -> None:
    for body in (INNER, b"0\r\n\r\n" + INNER, b"5\r\nhello\r\n0\r\n\r\n" + INNER):
        got = target.throw(POST + also + framing + b"\r\n" + body)
        assert [answer.status for answer in got] == [400]
        assert target.seen == []


@pytest.mark.parametrize(
    "name", [b"Transfer_Encoding: chunked", b"Content_Length: 0", b"X-Transfer-Encoding: chunked"]
)
def test_a_name_that_only_looks_like_framing_is_none(target: Target, name: bytes) -> None:
    got = target.throw(POST + name + b"\r\nContent-Length: %d\r\n\r\n" % len(INNER) + INNER)
    assert [answer.status for answer in got] == [200]
    assert target.seen[0].body == INNER


def test_http_1_0_has_no_chunks(target: Target) -> None:
    got = target.throw(
        b"POST /open HTTP/1.0\r\n" + HOST + TE + b": chunked\r\n\r\n0\r\n\r\n" + INNER
    )
    assert [answer.status for answer in got] == [400]


CHUNKS = [
    b"0\n\n", b"0\r\n\n", b"0\n\r\n", b"5\nhello\n0\n\n", b"5\r\nhello\n0\r\n\r\n", b"5\r\nhello\r0\r\n\r\n", b"5\r\nhello!\r\n0\r\n\r\n", b"5\r\nhello0\r\n\r\n",
    b"5\r\nhell\r\n0\r\n\r\n", b"\r\n0\r\n\r\n", b" 0\r\n\r\n", b"+0\r\n\r\n", b"-0\r\n\r\n", b"0x0\r\n\r\n", b"0_0\r\n\r\n", b"g\r\n\r\n", b";\r\n\r\n", b"\x000\r\n\r\n",
    b"10000000000000000\r\n", b"ffffffffffffffff\r\n", b"fffffffffffffffffffffffff5\r\nhello\r\n0\r\n\r\n", b"100000000000000005\r\nhello\r\n0\r\n\r\n",
    b"5;\nhello\r\n0\r\n\r\n", b"5;a\n\r\nhello\r\n0\r\n\r\n", b"5;a\rb\r\nhello\r\n0\r\n\r\n", b"5;a=\x00\r\nhello\r\n0\r\n\r\n", b"5;" + b"a" * 300 + b"\r\nhello\r\n0\r\n\r\n",
    b"0\r\nX: y\n\r\n", b"0\r\nX: y\nZ: z\r\n\r\n", b"0\r\nX : y\r\n\r\n", b"0\r\n folded\r\n\r\n", b"0\r\nno colon\r\n\r\n", b"0\r\nX: \x00\r\n\r\n",
    b"0\r\nGET /shop/secret HTTP/1.1\r\nHost: a\r\n\r\n", b"0\r\n" + b"X: y\r\n" * 2000 + b"\r\n", b"5\r\nhello\r\n0\r\n\r" + b"\rX",
]  # fmt: skip


@pytest.mark.parametrize("chunks", CHUNKS, ids=range(len(CHUNKS)))
def test_chunks_that_servers_read_differently_end_the_connection(
    target: Target, chunks: bytes
) -> None:
    got = target.throw(POST + TE + b": chunked\r\n\r\n" + chunks + INNER)
    assert [answer.status for answer in got] == [400]
    assert not [seen for seen in target.seen if seen.body]


@pytest.mark.parametrize(
    "chunks",
    [
        b"5;a=b\r\nhello\r\n0;c\r\n\r\n",
        b"0005\r\nhello\r\n00\r\nX: y\r\nContent-Length: 44\r\nTransfer-Encoding: x\r\n\r\n",
        b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
    ],
)
def test_extensions_and_trailers_do_not_reach_the_origin(target: Target, chunks: bytes) -> None:
    got = target.throw(POST + TE + b": chunked\r\n\r\n" + chunks + INNER)
    assert [(answer.status, answer.from_origin) for answer in got] == [(200, True), (200, False)]
    (seen,) = target.seen
    assert seen.body == b"hello"
    assert seen.header("transfer-encoding") == ["chunked"]


@pytest.mark.parametrize("method", [b"POST", b"GET", b"OPTIONS", b"DELETE", b"FOO"])
def test_a_body_is_a_body_regardless_of_the_method_and_regardless_of_what_it_says(
    target: Target, method: bytes
) -> None:
    """CL.0 and GET with a body: the origin is told the length and finds the same end."""
    got = target.throw(
        method
        + b" /open HTTP/1.1\r\n"
        + HOST
        + b"Content-Length: %d\r\n\r\n" % len(INNER)
        + INNER
        + INNER
    )
    assert [(answer.status, answer.from_origin) for answer in got] == [(200, True), (200, False)]
    (seen,) = target.seen
    assert seen.body == INNER


def test_pipelined_requests_are_each_gated_by_themselves(target: Target) -> None:
    first = b"GET /open HTTP/1.1\r\n" + HOST + b"\r\n"
    got = target.throw(first + INNER + first + INNER)
    assert [(answer.status, answer.from_origin) for answer in got] == [
        (200, True),
        (200, False),
    ] * 2
    assert target.lines == ["GET /open", "GET /open"]


def test_the_body_of_a_held_request_is_no_request(target: Target) -> None:
    body = b"GET /open?smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
    held = b"POST /shop HTTP/1.1\r\n" + HOST
    for framed in (
        b"Content-Length: %d\r\n\r\n" % len(body) + body,
        TE + b": chunked\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n",
    ):
        got = target.throw(held + framed + b"GET /open HTTP/1.1\r\n" + HOST + b"\r\n")
        assert not got[0].from_origin
        assert target.lines in ([], ["GET /open"])


REQUEST_LINES = [
    b"GET /open HTTP/1.1 /shop HTTP/1.1", b"GET /open\tHTTP/1.1", b"GET  /shop HTTP/1.1", b"GET\x0b/shop HTTP/1.1", b"GET /open\x00/../shop HTTP/1.1",
    b"GET /shop", b"GET /shop HTTP/1.1\r", b" GET /shop HTTP/1.1", b"\x00GET /shop HTTP/1.1", b"GET /open HTTP/1.1\x00", b"GET /open\rHTTP/1.1",
    b"GET /open HTTP/1.1\nHost: a\n\nGET /shop HTTP/1.1", b"GET http://b/shop HTTP/1.1", b"GET http://a@b/shop HTTP/1.1", b"CONNECT a:80 HTTP/1.1",
    b"TRACE /shop HTTP/1.1", b"GET //a/shop\\..\\ HTTP/1.1", b"GET /shop HTTP/2.0", b"PRI * HTTP/2.0", b"GET /open#/../shop HTTP/1.1", b"GET \xff HTTP/1.1",
]  # fmt: skip


@pytest.mark.parametrize("line", REQUEST_LINES, ids=range(len(REQUEST_LINES)))
def test_a_request_line_that_servers_read_differently_is_refused(
    target: Target, line: bytes
) -> None:
    got = target.throw(line + b"\r\n" + HOST + b"\r\n" + INNER)
    assert len(got) == 1
    assert got[0].status in (400, 405, 505)
    assert target.seen == []


@pytest.mark.parametrize(
    "hosts",
    [
        b"",
        b"Host: a\r\nHost: b\r\n",
        b"Host: a, b\r\n",
        b"Host: a b\r\n",
        b"Host: u@a\r\n",
        b"Host:\r\n",
        b"Host: a\r\n b\r\n",
        b"Host: a/shop\r\n",
    ],
)
def test_a_doubtful_host_is_refused(target: Target, hosts: bytes) -> None:
    assert [
        answer.status for answer in target.throw(b"GET /open HTTP/1.1\r\n" + hosts + b"\r\n")
    ] == [400]
    assert target.seen == []


WEBSOCKET = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


@pytest.mark.parametrize(
    ("upgrade", "path"),
    [
        (WEBSOCKET, b"/open"),
        (WEBSOCKET, b"/agree"),
        (
            b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n",
            b"/open",
        ),
        (b"Upgrade: websocket\r\n", b"/open"),
        (b"Upgrade: websocket\r\nConnection: Upgrade\r\n", b"/open"),
        (b"Upgrade: tcp\r\nConnection: Upgrade\r\n", b"/open"),
    ],
)
def test_no_tunnel_opens_unless_the_origin_really_agreed(
    target: Target, upgrade: bytes, path: bytes
) -> None:
    got = target.throw(b"GET " + path + b" HTTP/1.1\r\n" + HOST + upgrade + b"\r\n" + INNER)
    assert 101 not in [answer.status for answer in got]
    assert not any(answer.from_origin for answer in got[1:])


@pytest.mark.parametrize(
    "named",
    [b"Content-Length", b"Transfer-Encoding", b"Host", b"close, Cookie", b"X-Forwarded-For"],
)
def test_connection_cannot_take_framing_or_identity_away(target: Target, named: bytes) -> None:
    got = target.throw(
        POST + b"Connection: " + named + b"\r\nContent-Length: %d\r\n\r\n" % len(INNER) + INNER
    )
    assert [answer.status for answer in got] == [400]
