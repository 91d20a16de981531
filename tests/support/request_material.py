"""What to read: strategies that make honest heads, hostile ones and everything between, bodies and
cookies.
"""

from hypothesis import strategies as st

METHODS = [
    b"GET", b"POST", b"HEAD", b"PUT", b"OPTIONS", b"get", b"FOO", b"CONNECT", b"TRACE", b"M-SEARCH", b"", b"G T", b"G\x00T", b"PROPFIND",
]  # fmt: skip
TARGETS = [
    b"/", b"/shop", b"/a/../b?c=d", b"//a", b"/%2e%2e", b"/%73hop", b"/a%2Fb", b"/a;b", b"*", b"http://a/", b"http://a/b?c",
    b"http://b/", b"a:80",
    b"", b"/\xff", b"/a b", b"/a#b", b"?x", b"/" + b"a" * 200, b"/%C3%A9", b"/[x]|y", b"/..",
]  # fmt: skip
VERSIONS = [b"HTTP/1.1"] * 8 + [
    b"HTTP/1.0",
    b"HTTP/1.0",
    b"HTTP/2.0",
    b"HTTP/1.10",
    b"http/1.1",
    b"",
    b"HTTP/1.1 ",
    b"HTTP/0.9",
]
HOSTS = [b"a"] * 8 + [b"A.b.:80", b"[::1]:8080", b"", b"a b", b"a,b", b"u@a", b"a:0", b"b", b"a..b"]
NAMES = [
    b"Host", b"Content-Length", b"Transfer-Encoding", b"Connection", b"Upgrade", b"Expect", b"Cookie", b"X-Forwarded-For",
    b"X-Forwarded-Host",
    b"X-Forwarded-Proto", b"Forwarded", b"TE", b"Trailer", b"Keep-Alive", b"Accept", b"Accept", b"X-A", b"X-A",
    b"x_forwarded_for", b"", b"X A",
    b"X-A ", b" X-A", b"\tX", b"X\x00", b"X\xff", b"Proxy", b"content-length", b"TRANSFER-ENCODING", b"Transfer-Encoding\x00",
    b"X-Original-URL",
]  # fmt: skip
VALUES = [
    b"", b"1", b"5", b"0", b"5, 5", b"+5", b"0x5", b"007", b"99999999999999999999", b"chunked", b"Chunked", b"chunked, identity",
    b"identity", b"xchunked",
    b"close", b"keep-alive", b"Upgrade", b"keep-alive, X-A", b"cookie", b"websocket", b"h2c", b"100-continue",
    b"a=1; __cfwaitingroom=x; b=2", b"a",
    b"1.2.3.4", b"evil, 1.2.3.4", b"for=1.2.3.4;proto=https;host=b", b"https", b"\x00", b"a\rb", b"a\nb", b"\xff", b"a\tb",
    b"*/*", b"chunked\x0b", b"TE, close",
]  # fmt: skip
ENDS = [b"\r\n"] * 30 + [b"\n", b"\r", b"\r\n ", b"\n\t", b"\r\r\n", b"\r\n\r\n", b"\x0b\r\n", b""]
COLONS = [b": "] * 12 + [b":", b":\t", b" : ", b"", b"::", b":  "]

honest_names = st.sampled_from(
    [b"Accept", b"User-Agent", b"Cookie", b"X-A", b"Referer", b"Range", b"X-Forwarded-For"]
)
HONEST_VALUES = [
    b"a",
    b"text/html, */*;q=0.8",
    b"a=1; __cfwaitingroom=x; b=2",
    b"keep-alive",
    b"1.2.3.4",
    b"caf\xc3\xa9",
    b"",
    b"x\ty",
]
honest_values = st.sampled_from(HONEST_VALUES)
HONEST_STARTS = [
    b"GET / ",
    b"POST /a/../b?c ",
    b"HEAD /%73hop ",
    b"OPTIONS * ",
    b"PUT /caf%C3%A9?x=%2F ",
    b"GET http://a/b ",
]
framings = st.sampled_from(
    [b""] * 4
    + [b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 0\r\n"]
)


@st.composite
def honest_heads(draw: st.DrawFn) -> bytes:
    """A head that should be understood."""
    start = draw(st.sampled_from(HONEST_STARTS))
    lines = draw(
        st.lists(
            st.tuples(
                honest_names,
                st.sampled_from([b": ", b":", b":\t "]),
                honest_values,
                st.just(b"\r\n"),
            ),
            max_size=8,
        )
    )
    return (
        start
        + b"HTTP/1.1\r\nHost: a\r\n"
        + b"".join(b"".join(line) for line in lines)
        + draw(framings)
        + b"\r\n"
    )


@st.composite
def hostile_heads(draw: st.DrawFn) -> bytes:
    """A head with anything wrong with it, or nothing."""
    blank = st.sampled_from([b" "] * 12 + [b"  ", b"\t", b"", b"\x0b"])
    first = b"".join(
        draw(part)
        for part in (
            st.sampled_from(METHODS),
            blank,
            st.sampled_from(TARGETS),
            blank,
            st.sampled_from(VERSIONS),
        )
    )
    line = st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(COLONS),
        st.sampled_from(VALUES),
        st.sampled_from(ENDS),
    )
    lines = draw(st.lists(line, max_size=6))
    host = draw(st.sampled_from([b"Host: "] * 8 + [b"", b"host:", b"Host : "]))
    host = host + draw(st.sampled_from(HOSTS)) + draw(st.sampled_from(ENDS)) if host else b""
    return (
        first
        + draw(st.sampled_from(ENDS))
        + host
        + b"".join(b"".join(parts) for parts in lines)
        + b"\r\n"
    )


@st.composite
def damaged_heads(draw: st.DrawFn) -> bytes:
    """An honest head with a few bytes changed, added or taken away."""
    head = bytearray(draw(honest_heads()))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(head) - 1))
        head[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(head)


finished = st.binary(max_size=80).map(lambda raw: raw + b"\r\n\r\n")
any_heads = st.one_of(
    honest_heads(), hostile_heads(), damaged_heads(), st.binary(max_size=120), finished
)

COOKIE_PIECES = [
    b"__cfwaitingroom",
    b"=",
    b";",
    b"; ",
    b" ",
    b"\t",
    b"a",
    b"x",
    b"\xff",
    b",",
    b'"',
    b" " * 20,
    b"A" * 100,
    b"A" * 600,
]
BODY_PIECES = [
    b"5", b"\r\n", b"\r\n", b"\n", b"\r", b"hello", b"0", b"0\r\n\r\n", b";", b"ext", b" ", b"a", b"F" * 14, b"F" * 16, b"X: y", b":", b"\t", b"-", b"+",
]  # fmt: skip


def cookie_headers(*sealed: bytes) -> st.SearchStrategy[bytes]:
    """Cookie headers, some with these sealed tickets in them."""
    return st.lists(st.sampled_from([*COOKIE_PIECES, *sealed]), max_size=14).map(b"".join)


chunked_bodies = st.one_of(
    st.lists(st.sampled_from(BODY_PIECES), max_size=14).map(b"".join), st.binary(max_size=60)
)
