"""Every difference between greenroom and nginx as a proxy, by name;
`docs/explanation/beside-nginx.md` gives the reason of each.
"""

import re
import subprocess
from typing import NamedTuple

Version = tuple[int, int]


class Known(NamedTuple):
    """A difference and where it occurs: the names of requests, in full or as a beginning with `*`;
    and the versions of nginx, `until` not included.
    """

    name: str
    differences: tuple[str, ...]
    requests: tuple[str, ...] = ("*",)
    since: Version = (1, 0)
    until: Version = (99, 0)


STRICT: Version = (1, 23)
"""From here on nginx refuses answers whose length or coding is unclear."""
STRICTER: Version = (1, 30)
"""The version seen to refuse chunks that end with LF, and to keep 103 back; 1.26 does neither. In
between it was not tried.
"""


def nginx_version() -> Version:
    """Of the nginx that is installed."""
    told = subprocess.run(
        ["nginx", "-v"], stderr=subprocess.PIPE, text=True, check=True, timeout=60
    ).stderr
    found = re.search(r"nginx/(\d+)\.(\d+)", told)
    assert found, told
    return int(found[1]), int(found[2])


def _answers(*names: str) -> tuple[str, ...]:
    return tuple(f"answer: {name}" for name in names)


KNOWN = (
    Known("ticket", ("to client: header set-cookie", "to client: header cache-control")),
    Known(
        "shared-caches",
        ("to client: header surrogate-control", "to client: header cdn-cache-control"),
        _answers("for shared caches", "for one kind of cache"),
    ),
    Known("server-and-date", ("to client: header server", "to client: header date")),
    Known("keep-alive", ("to client: header connection",)),
    Known("forwarded", ("to origin: header forwarded",)),
    Known("cdn-loop", ("to origin: header cdn-loop",)),
    Known("canonical-path", ("to origin: target",), ("target: *", "message: a whole URL*")),
    Known("error-page", ("to client: own page",), ("target: /a%00", *_answers("*"))),
    Known("chain-of-proxies", ("to origin: header x-forwarded-for",), ("header: a chain of proxies",)),
    Known(
        "trusted-headers",
        ("to origin: header x-forwarded-port", "to origin: header x-forwarded-prefix", "to origin: header x-forwarded-ssl"),
        ("header: X-Forwarded-*",),
    ),
    Known("other-path", ("to origin: header x-original-url", "to origin: header x-rewrite-url"), ("header: another path",)),
    Known("httpoxy", ("to origin: header proxy",), ("header: Proxy",)),
    Known(
        "hop-by-hop",
        ("to origin: header proxy-connection", "to origin: header trailer", "to origin: header x-a", "to client: header x-a"),
        ("header: Proxy-Connection", "header: Trailer", "header: Connection names a field", *_answers("Connection names a field")),
    ),
    Known("trailers", ("to client: header trailer",), _answers("trailers")),
    Known("odd-header-names", ("to origin: header x-a!#$%&'*+.^`|~",), ("header: odd characters in a name",)),
    Known("own-cookies", ("to origin: header cookie",), ("header: a cookie of ours that is none",)),
    Known("upgrade-spelling", ("to origin: header connection",), ("message: a WebSocket*",)),
    Known(
        "h2c",
        ("to origin: header connection", "to origin: header http2-settings", "to origin: header upgrade"),
        ("header: HTTP/2, please", "header: h2c of Java"),
    ),
    Known("h2c-offers", ("to client: header upgrade",), _answers("hands over")),
    Known("no-host", ("to origin: header host", "to origin: header x-forwarded-host"), ("message: HTTP/1.0*without a host",)),
    Known("options-star", ("to origin: arrives only through the second", "to client: status 200 instead of 400"), ("message: everything",)),
    Known("chunked-up", ("to origin: header content-length", "to origin: header transfer-encoding"), ("message: chunked*",)),
    Known("chunked-down", ("to client: header content-length", "to client: header transfer-encoding"), _answers("*")),
    Known("continue", ("to client: interim",), ("header: Expect", "message: expects", *_answers("100 before"))),
    Known("no-content", ("to client: header content-length",), _answers("no content, with*")),
    Known(
        "invalid-names",
        ("to client: header x[a]", "to client: header x-ä", "to client: header malformed b'Nonsense: \\r\\n'", "to client: header nonsense"),
        _answers("a name with brackets", "a name with utf-8", "a line without a colon"),
    ),
    Known("controls", ("to client: header x-a",), _answers("a control character", "an escape character", "a delete character")),
    Known("a-type-twice", ("to client: header content-type",), _answers("a type twice")),
    Known("nginx-fields", ("to client: header x-accel-buffering", "to client: header x-pad"), _answers("nginx's own fields", "a file to send")),
    Known("lf-injected", ("to client: status 502 instead of 200",), _answers("head ends with LF", "one line ends with LF")),
    Known(
        "unclear-length",
        ("to client: status 502 instead of 200",),
        _answers(
            "two lengths", "the same length in one line", "a length with a sign", "a length that is empty", "a length that is a word",
            "a negative length", "a length in hexadecimal",
        ),
        until=STRICT,
    ),
    Known(
        "unclear-coding",
        ("to client: status 502 instead of 200",),
        _answers("chunked twice*", "chunked and a length", "chunked in HTTP/1.0", "gzip as a transfer coding", "gzip and chunked"),
    ),
    Known(
        "clear-framing",
        ("to client: status 200 instead of 502",),
        _answers("the same length twice", "chunked, with a comma", "coded as itself*", "an empty coding"),
        since=STRICT,
    ),
    Known("two-redirections", ("to client: header location",), _answers("two redirections"), since=STRICT),
    Known("chunks-end-with-lf", ("to client: status 200 instead of 0",), _answers("chunks end with LF", "sizes end with LF"), since=STRICTER),
    Known("early-hints", ("to client: interim",), _answers("hints before"), since=STRICTER),
    Known("early-hints-of-old", ("to client: interim",), ("message: HTTP/1.0 hints",), until=STRICTER),
    Known("websocket-accept", ("to client: header sec-websocket-accept",), _answers("accepts a WebSocket unasked")),
    Known("lower-case-methods", ("to origin: arrives only through the second", "to client: status 200 instead of 400"), ("message: a method in lower case",)),
    Known("version", ("to client: status 502 instead of 200",), _answers("HTTP/2.0")),
    Known("long-status", ("to client: status 502 instead of 2000",), _answers("a status of four digits")),
    Known("unasked-101", ("to client: status 502 instead of 101",), _answers("changes protocols unasked")),
    Known(
        "no-http",
        ("to client: status 502 instead of 0",),
        _answers(
            "an empty line before", "HTTP/0.9", "lower-case version", "a status of two digits", "a status like 099", "ICY",
            "a size after a blank", "a chunk longer than it says", "a size that is none",
        ),
    ),
)  # fmt: skip

REFUSED_TARGETS: dict[str, str] = {
    "/a%5Cb": "backslash", "/a\\b": "backslash", "/%C3%28": "not valid UTF-8", "/%FF": "not valid UTF-8",
}  # fmt: skip
"""Targets that nginx passes on and greenroom refuses, with the words of the reason."""

SEVERAL_READINGS = (
    "/a;", "/%3Ba", "/a%2Fb", "/a%252Fb", "/@scope%2fpkg", "/a;b.txt", "/im/https://cdn.x/a.png", "/app;jsessionid=1A2B", "/a//b",
    "/wiki/Who%3F", "/k\u00f6ln?q=\u00f6",
)  # fmt: skip
"""Targets that programs read in several ways."""


def known_with(version: Version) -> tuple[Known, ...]:
    """The rows that hold for this nginx."""
    return tuple(row for row in KNOWN if row.since <= version < row.until)


def known_as(difference: str, request: str, version: Version) -> set[str]:
    """The names under which this difference is known for this request and this nginx."""
    rows = known_with(version)
    return {
        row.name
        for row in rows
        if difference in row.differences
        and any(_fits(pattern, request) for pattern in row.requests)
    }


def _fits(pattern: str, name: str) -> bool:
    begins, star, ends = pattern.partition("*")
    return name.startswith(begins) and name.endswith(ends) if star else name == pattern
