"""Where a body ends: the laws of the chunked reader, and answers' heads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.gateway.origin.address import Origin
from greenroom.gateway.wire.answer_head import (
    PRIVATE,
    end_of_lf_head,
    private_caching,
    publicly_cacheable,
    read_answer_head,
    visitor_lines,
)
from greenroom.gateway.wire.body import LAST_CHUNK, BadBody, ChunkedBody, LengthBody, chunk
from greenroom.gateway.wire.websocket import accept_of, valid_key
from greenroom.model.fields import specs
from greenroom.settings.limits import Limits

pieces = st.lists(st.binary(min_size=1, max_size=60), max_size=8)
extensions = st.sampled_from([b"", b";a", b" ;a=b", b'; a="b c"'])
trailers = st.lists(st.sampled_from([b"A: b\r\n", b"Trailer-Two:\r\n"]), max_size=3).map(b"".join)


def cut(data: bytes, draw) -> list[bytes]:
    """`data` in arbitrary parts."""
    places = sorted(draw(st.lists(st.integers(0, len(data)), max_size=10)))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


@given(pieces, extensions, trailers, st.binary(max_size=40), st.data())
def test_a_chunked_body_is_read_back_however_it_arrives(
    payloads, extension, trailer, behind, data
) -> None:
    encoded = (
        b"".join(b"%X%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in payloads)
        + b"0\r\n"
        + trailer
        + b"\r\n"
    )
    body, read, rest = ChunkedBody(), b"", b""
    for part in cut(encoded + behind, data.draw):
        if body.done:
            rest += part
        elif part:
            read += body.feed(part)
            rest += body.rest
    assert body.done
    assert read == b"".join(payloads)
    assert rest == behind


@given(st.binary(max_size=200), st.data())
def test_garbage_is_a_bad_body_or_an_unfinished_one_and_never_anything_else(garbage, data) -> None:
    """And how it is cut makes no difference to the verdict."""

    def verdict(parts: list[bytes]) -> tuple[bytes, bool] | None:
        body, read = ChunkedBody(), b""
        try:
            for part in parts:
                if part and not body.done:
                    read += body.feed(part)
        except BadBody:
            return None
        return read, body.done

    byte_by_byte = verdict([bytes((byte,)) for byte in garbage])
    assert verdict([garbage]) == byte_by_byte
    assert verdict(cut(garbage, data.draw)) == byte_by_byte


@given(pieces)
def test_what_is_written_as_chunks_is_read_as_the_same(payloads) -> None:
    body = ChunkedBody()
    assert body.feed(b"".join(map(chunk, payloads)) + LAST_CHUNK) == b"".join(payloads)
    assert body.done


@given(st.binary(min_size=1, max_size=50), st.binary(max_size=20), st.data())
def test_a_body_of_known_length_ends_there(payload, behind, data) -> None:
    body, read, rest = LengthBody(len(payload)), b"", b""
    for part in cut(payload + behind, data.draw):
        if body.done:
            rest += part
        else:
            read += body.feed(part)
            rest += body.rest
    assert (read, rest, body.done) == (payload, behind, True)


@pytest.mark.parametrize("line", [b"A" * 8200, b"A: " + b"b" * 8200])
def test_an_endless_trailer_is_not_kept(line) -> None:
    body = ChunkedBody()
    with pytest.raises(BadBody):
        body.feed(b"0\r\n" + line)


HEAD = b"HTTP/1.1 200 OK\r\n%b\r\n"


@given(st.binary(max_size=300))
def test_any_bytes_are_an_answers_head_or_none(garbage) -> None:
    read_answer_head(garbage + b"\r\n\r\n")
    head = read_answer_head(HEAD % garbage)
    if head is not None:
        assert b"\0" not in head.lines
        assert head.lines.count(b"\r") == head.lines.count(b"\n") == head.lines.count(b"\r\n")


def test_an_answers_head_keeps_what_is_meant_for_the_visitor_in_order() -> None:
    lines = b"Server: x\r\nContent-length: 5 \r\nLocation: /a\r\nx-y:z\r\nConnection: Keep-Alive, foo\r\nFOO: 1\r\nfoo-bar: 2\r\n"
    for _ in range(2):  # read, then remembered
        head = read_answer_head(HEAD % lines)
        assert head is not None
        assert (
            head.lines == b"HTTP/1.1 200 OK\r\nServer: x\r\nLocation: /a\r\nx-y:z\r\nfoo-bar: 2\r\n"
        )
        assert (head.status, head.content_length, head.keep_alive) == (200, 5, True)


@pytest.mark.parametrize(
    ("version", "connection", "lasts"),
    [
        (b"1.1", b"", True), (b"1.1", b"Connection: close\r\n", False), (b"1.1", b"Connection: Close, x\r\n", False),
        (b"1.0", b"", False), (b"1.0", b"Connection: keep-alive\r\n", True), (b"1.1", b"Connection: keep-alive\r\nConnection: close\r\n", False),
        (b"1.1", b"Connection: close\r\nConnection: keep-alive\r\n", False), (b"1.0", b"Connection: close, keep-alive\r\n", False),
    ],
)  # fmt: skip
def test_whether_an_origin_keeps_the_connection(version, connection, lasts) -> None:
    head = read_answer_head(b"HTTP/%b 200 OK\r\n%b\r\n" % (version, connection))
    assert head is not None
    assert head.keep_alive is lasts


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ((), b"private"),
        ((b"public",), b"private"),
        ((b"public, max-age=60, S-MAXAGE=9",), b"private, max-age=60"),
        ((b"no-store",), b"private, no-store"),
        ((b"max-age=1", b"must-revalidate,public"), b"private, max-age=1, must-revalidate"),
        ((b'private="a, public", max-age=3',), b"private, max-age=3"),
        ((b'no-cache="Set-Cookie", max-age=60',), b'private, no-cache="Set-Cookie", max-age=60'),
        (
            (b'max-age=60, no-cache="Set-Cookie, X-A", public',),
            b'private, max-age=60, no-cache="Set-Cookie, X-A"',
        ),
        ((b'max-age=60, no-cache="Set-Cookie',), b"private, no-cache"),
        ((b",, ,",), b"private"),
    ],
)
def test_an_answer_for_one_visitor_is_private(said, line) -> None:
    caching = (*((b"cache-control", value) for value in said), (b"cdn-cache-control", b"max-age=9"))
    assert private_caching(caching) == b"Cache-Control: " + line + b"\r\n"


CACHES_OWN = (
    "Akamai-Cache-Control Google-CDN-Cache-Control Netlify-CDN-Cache-Control Netlify-Cache-Control "
    "Vercel-CDN-Cache-Control CDN-Cache-Control Surrogate-Control Surrogate-Key Edge-Control".split()
)


@pytest.mark.parametrize("name", CACHES_OWN)
def test_no_header_to_a_shared_cache_goes_out_beside_a_ticket(name) -> None:
    line = f"{name}: public, max-age=60\r\n".encode()
    head = read_answer_head(b"HTTP/1.1 200 OK\r\n" + line + b"Content-Length: 0\r\n\r\n")
    assert head is not None
    assert line.lower() in visitor_lines(head, b"", frozenset()).lower()
    beside = visitor_lines(head, b"t=1", frozenset())
    assert name.lower().encode() not in beside.lower().replace(PRIVATE.lower(), b"")
    assert beside.endswith(PRIVATE)


def test_only_cookies_with_exactly_our_names_are_withheld() -> None:
    head = read_answer_head(
        HEAD
        % b"Set-Cookie: mine=1\r\nSet-Cookie: mine2=2\r\nSet-Cookie:  mine =3\r\nSet-Cookie: Mine=4\r\n"
    )
    assert head is not None
    assert (
        visitor_lines(head, b"", frozenset((b"mine",)))
        == b"HTTP/1.1 200 OK\r\nSet-Cookie: mine2=2\r\nSet-Cookie: Mine=4\r\n"
    )


def test_every_limit_is_described_and_the_defaults_are_within_bounds() -> None:
    limits = Limits()
    assert limits.problems() == []
    assert set(specs(Limits)) == set(Limits.__slots__)
    assert all(rule.low is not None and rule.help for rule in specs(Limits).values())


def test_all_limits_out_of_bounds_are_named_at_once() -> None:
    found = Limits(head_bytes=1, origin_connections=0, keep_alive_s=0).problems()
    assert [problem.partition(":")[0] for problem in found] == [
        "head_bytes",
        "keep_alive_s",
        "origin_connections",
    ]


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("http://127.0.0.1:3000", ("http", "127.0.0.1", 3000)),
        ("https://Shop.internal/", ("https", "shop.internal", 443)),
        ("http://[::1]:80", ("http", "::1", 80)),
        ("http://web", ("http", "web", 80)),
    ],
)
def test_an_origin_is_read_from_its_url(url, parts) -> None:
    origin = Origin.of(url)
    assert (origin.scheme, origin.host, origin.port) == parts
    assert Origin.of(origin.url) == origin


@pytest.mark.parametrize(
    "url",
    [
        "shop",
        "ftp://shop",
        "http://",
        "http://a/b",
        "http://a?x",
        "http://u:p@a",
        "http://a:0",
        "http://a:99999",
        "http://a:x",
    ],
)
def test_what_is_no_origin_is_refused(url) -> None:
    with pytest.raises(ValueError, match=r"."):
        Origin.of(url)


@given(st.binary(min_size=16, max_size=16))
def test_every_websocket_key_is_known_and_has_its_answer(raw) -> None:
    import base64

    key = base64.b64encode(raw)
    assert valid_key(key)
    assert not valid_key(key[:-1])
    assert accept_of(key) != accept_of(base64.b64encode(bytes(16))) or raw == bytes(16)


@pytest.mark.parametrize(
    ("head", "lines"),
    [
        (b"HTTP/1.1 200 OK\nX-A: 1\n\n", b"HTTP/1.1 200 OK\r\nX-A: 1\r\n"),
        (b"HTTP/1.1  200 OK\r\nX-A: \x1b[1m\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-A:  [1m\r\n"),
        (
            b"HTTP/1.7 799 Odd\r\nX[a]: 1\r\nNonsense\r\nX-A: 1\r\n\r\n",
            b"HTTP/1.1 799 Odd\r\nX-A: 1\r\n",
        ),
        (b"HTTP/1.1 200 OK\r\nHTTP/1.1 200 OK\r\nX-A: 1\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-A: 1\r\n"),
    ],
)
def test_a_head_that_is_odd_but_clear_is_repaired(head, lines) -> None:
    assert read_answer_head(head).lines == lines


@pytest.mark.parametrize(
    "line",
    [
        b"X: 1\nSet-Cookie: injected=1", b"X: 1\r2", b"X: 1\x002", b" folded", b"\tfolded", b"Content-Length : 5", b"X Y: 1", b": 1", b"two words",
        b"Transfer-Encoding\x0b: chunked", b"Content-Length\x00: 5", b"Content-Length: 5\r\nContent-Length: 6", b"Content-Length: 5, 5",
        b"Transfer-Encoding: chunked, identity", b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5",
    ],
)  # fmt: skip
def test_what_two_readers_could_understand_differently_is_not_repaired(line) -> None:
    assert read_answer_head(b"HTTP/1.1 200 OK\r\n" + line + b"\r\n\r\n") is None
    lf = line.replace(b"\r\n", b"\n")
    assert (
        b"\r" in lf
        or read_answer_head(b"HTTP/1.1 200 OK\n" + lf + b"\n\n") is None
        or line.startswith(b"X: 1\n")
    )


@pytest.mark.parametrize(
    ("line", "framing"),
    [
        (b"Content-Length: 5\r\nContent-Length: 05", (5, False, True)), (b"Transfer-Encoding: identity", (None, False, False)),
        (b"Transfer-Encoding:\r\nContent-Length: 5", (5, False, False)), (b"Transfer-Encoding: CHUNKED ,", (None, True, True)),
    ],
)  # fmt: skip
def test_framing_that_is_odd_but_clear_is_understood(line, framing) -> None:
    head = read_answer_head(b"HTTP/1.1 200 OK\r\n" + line + b"\r\n\r\n")
    assert (head.content_length, head.chunked, head.keep_alive) == framing


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (b"HTTP/1.1 200 OK\nX: 1\n\nbody\n\n", 22), (b"HTTP/1.1 200 OK\nX: 1\n", 0), (b"HTTP/1.1 200 OK\r\nX: 1\n\n", 0), (b"", 0),
        (b"HTTP/1.1 200 OK\nX: 1\r\n\n", 0), (b"HTTP/1.1 200 OK\nX: 1\n\n\r\n\r\n", 22), (b"\n\n", 0),
    ],
)  # fmt: skip
def test_a_head_of_lf_ends_at_its_first_empty_line(data, end) -> None:
    assert end_of_lf_head(data) == end


@given(st.binary(max_size=200))
def test_a_repaired_head_never_says_more_than_its_lines(garbage) -> None:
    head = read_answer_head(b"HTTP/1.1 200 OK\r\nX-A: 1\r\n" + garbage + b"\r\n\r\n")
    if head is not None:
        assert head.lines.count(b"\r") == head.lines.count(b"\n") == head.lines.count(b"\r\n")
        assert not any(byte in head.lines for byte in (b"\0", b"\x0b", b"\x7f"))


@pytest.mark.parametrize(
    "body", [b"5\nhello\n0\n\n", b"5 \t\r\nhello\n0\r\n\n", b"5;a=b\nhello\r\n0\nX-T: 1\n\r\n"]
)
def test_chunks_of_an_origin_may_end_with_lf_and_those_of_a_visitor_not(body) -> None:
    for at in range(len(body)):
        reader = ChunkedBody(lenient=True)
        assert reader.feed(body[:at]) + reader.feed(body[at:] + b"rest") == b"hello"
        assert (reader.done, reader.rest) == (True, b"rest")
    with pytest.raises(BadBody):
        ChunkedBody().feed(body)


@pytest.mark.parametrize(
    ("said", "cacheable"),
    [
        (b"public, max-age=31536000, immutable", True), (b"max-age=60", True), (b"s-maxage=60", True), (b"immutable", True), (b"public", False),
        (b"max-age=0", False), (b"max-age=60, private", False), (b"no-store, max-age=60", False), (b'no-cache="Set-Cookie", max-age=60', False),
        (b"", False), (b'max-age=60, x="', False),
    ],
)  # fmt: skip
def test_what_shared_caches_may_keep(said, cacheable) -> None:
    assert publicly_cacheable(((b"cache-control", said),)) is cacheable
