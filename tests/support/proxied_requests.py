"""Requests as real clients send them, to an application behind a proxy: browsers, scripts,
programs, devices; usual and odd.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from origin_answers import ANSWERS

HOST = "shop.example.com"


@dataclass
class ProxiedRequest:
    """One request: what it is, and its bytes."""

    name: str
    method: str
    raw: bytes


CHROME = {
    "Connection": "keep-alive", "sec-ch-ua": '"Chromium";v="130", "Not?A_Brand";v="99"', "sec-ch-ua-mobile": "?0",
    "sec-ch-ua-platform": '"Linux"', "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0",
    "Accept-Encoding": "gzip, deflate, br, zstd", "Accept-Language": "en-US,en;q=0.9",
}  # fmt: skip
SAME = {"Sec-Fetch-Site": "same-origin"}
PAGE = {
    "Upgrade-Insecure-Requests": "1", "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-User": "?1", "Sec-Fetch-Dest": "document",
}  # fmt: skip


def part(destination: str, accept: str = "*/*", mode: str = "no-cors") -> dict[str, str]:
    return (
        CHROME
        | SAME
        | {
            "Accept": accept,
            "Sec-Fetch-Mode": mode,
            "Sec-Fetch-Dest": destination,
            "Referer": f"http://{HOST}/",
        }
    )


SCRIPT = part("empty", mode="cors")

CLIENTS: dict[str, dict[str, str]] = {
    "a page in Chrome": CHROME | PAGE,
    "a page in Firefox": {"User-Agent": "Mozilla/5.0 (X11; rv:132.0) Gecko/20100101 Firefox/132.0", "Connection": "keep-alive", "DNT": "1", "Priority": "u=0, i"} | PAGE,
    "a page in an old browser": {"User-Agent": "Mozilla/4.0 (compatible; MSIE 8.0)", "Accept": "image/gif, image/jpeg, */*", "Connection": "Keep-Alive"},
    "a reload": CHROME | PAGE | {"Cache-Control": "max-age=0", "If-None-Match": 'W/"abc"', "If-Modified-Since": "Sun, 06 Nov 1994 08:49:37 GMT"},
    "a hard reload": CHROME | PAGE | {"Cache-Control": "no-cache", "Pragma": "no-cache"},
    "a frame": CHROME | PAGE | {"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "cross-site"},
    "a prefetch": CHROME | PAGE | {"Sec-Purpose": "prefetch;prerender", "Purpose": "prefetch"},
    "an image": part("image", "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"),
    "a style": part("style", "text/css,*/*;q=0.1"),
    "a script": part("script"),
    "a module": part("script", mode="cors") | {"Origin": f"http://{HOST}"},
    "a font": part("font", mode="cors") | {"Origin": f"http://{HOST}"},
    "a web manifest": part("manifest", mode="cors"),
    "a service worker": part("serviceworker", mode="same-origin") | {"Service-Worker": "script"},
    "a video": part("video") | {"Range": "bytes=0-", "Accept-Encoding": "identity;q=1, *;q=0"},
    "an image hotlinked": part("image", "image/*") | {"Sec-Fetch-Site": "cross-site", "Referer": "https://forum.example.net/"},
    "fetch": SCRIPT,
    "fetch, JSON": SCRIPT | {"Accept": "application/json, text/plain, */*", "X-Requested-With": "XMLHttpRequest"},
    "fetch, GraphQL": SCRIPT | {"Accept": "application/graphql-response+json", "Apollo-Require-Preflight": "true"},
    "an event source": SCRIPT | {"Accept": "text/event-stream", "Cache-Control": "no-cache", "Last-Event-ID": "17"},
    "from another site": SCRIPT | {"Sec-Fetch-Site": "cross-site", "Origin": "https://app.example.net"},
    "curl": {"User-Agent": "curl/8.5.0", "Accept": "*/*"},
    "wget": {"User-Agent": "Wget/1.21.3", "Accept": "*/*", "Accept-Encoding": "identity", "Connection": "Keep-Alive"},
    "Go": {"User-Agent": "Go-http-client/1.1", "Accept-Encoding": "gzip"},
    "requests": {"User-Agent": "python-requests/2.32", "Accept-Encoding": "gzip, deflate", "Accept": "*/*", "Connection": "keep-alive"},
    "OkHttp": {"User-Agent": "okhttp/4.12.0", "Accept-Encoding": "gzip", "Connection": "Keep-Alive"},
    "an app with a token": {"User-Agent": "Shop/3.1 CFNetwork/1494 Darwin/23.4.0", "Accept": "application/json", "Authorization": "Bearer abc.def.ghi"},
    "nothing but a host": {},
    "a link preview": {"User-Agent": "facebookexternalhit/1.1", "Accept": "*/*", "Range": "bytes=0-524287"},
    "a crawler": {"User-Agent": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Accept": "text/html,*/*;q=0.8", "From": "googlebot(at)googlebot.com"},
    "a monitor": {"User-Agent": "Uptime-Kuma/1.23", "Accept": "text/html,application/xhtml+xml", "Connection": "close"},
    "a feed reader": {"User-Agent": "Feedly/1.0", "Accept": "application/rss+xml, application/atom+xml, */*", "A-IM": "feed"},
    "Prometheus": {"User-Agent": "Prometheus/2.50", "Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.3", "X-Prometheus-Scrape-Timeout-Seconds": "10"},
}  # fmt: skip

TARGETS = ("/", "/shop/cart?id=1&next=%2Fhome", "/static/app.6f1a.js", "/a%20b/caf%C3%A9.html")

BODIES: dict[str, tuple[str, dict[str, str], bytes]] = {
    "a form": ("POST", CHROME | PAGE | SAME | {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://{HOST}"}, b"a=1&b=2"),
    "a form from a payment page": ("POST", CHROME | PAGE | {"Sec-Fetch-Site": "cross-site", "Content-Type": "application/x-www-form-urlencoded", "Origin": "https://pay.example.net"}, b"paid=yes"),
    "an upload": ("POST", CHROME | PAGE | SAME | {"Content-Type": "multipart/form-data; boundary=b"}, b'--b\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n\x00\xff\r\n--b--\r\n'),
    "JSON": ("POST", SCRIPT | {"Content-Type": "application/json", "X-CSRFToken": "abc"}, b'{"a":1}'),
    "a beacon": ("POST", part("empty") | {"Content-Type": "text/plain;charset=UTF-8"}, b"seen"),
    "autosave": ("PUT", SCRIPT | {"Content-Type": "application/json", "If-Match": '"1"'}, b"{}"),
    "a patch": ("PATCH", SCRIPT | {"Content-Type": "application/merge-patch+json"}, b"{}"),
    "a webhook": ("POST", {"User-Agent": "Stripe/1.0", "Content-Type": "application/json", "Stripe-Signature": "t=1,v1=a", "Accept": "*/*; q=0.5, application/xml"}, b"{}"),
    "a push": ("POST", {"User-Agent": "git/2.39", "Content-Type": "application/x-git-receive-pack-request", "Accept": "application/x-git-receive-pack-result", "Git-Protocol": "version=2"}, b"0000"),
    "SOAP": ("POST", {"Content-Type": "text/xml", "SOAPAction": '""'}, b"<e/>"),
    "gRPC-Web": ("POST", SCRIPT | {"Content-Type": "application/grpc-web+proto", "X-Grpc-Web": "1"}, b"\x00\x00\x00\x00\x00"),
    "a query with a body": ("GET", {"Content-Type": "application/json"}, b'{"query":{}}'),
    "a delete with a body": ("DELETE", SCRIPT | {"Content-Type": "application/json"}, b"[1]"),
    "large": ("POST", {"Content-Type": "application/octet-stream"}, bytes(range(256)) * 1024),
    "a property search": ("PROPFIND", {"Depth": "1", "User-Agent": "gvfs/1.50"}, b"<propfind/>"),
    "a report": ("REPORT", {"Depth": "1"}, b"<sync/>"),
    "a calendar": ("MKCALENDAR", {}, b"<c/>"),
    "a query": ("QUERY", {"Content-Type": "application/sql"}, b"select 1"),
}  # fmt: skip

METHODS = (
    "HEAD",
    "OPTIONS",
    "DELETE",
    "PURGE",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "MKCOL",
    "SEARCH",
    "M-SEARCH",
    "CUSTOM",
)

ODD_TARGETS = (
    "/?", "/x?a?b??c", "/?q=a/../b//c", "/?next=https://a.example/?x=1", "/a+b", "/a%2Bb", "/100%25", "/~user", "/%7Euser", "/a%3Fb%23c",
    "/!$&'()*+,=:@", "/.well-known/acme-challenge/abc", "/robots.txt", "/favicon.ico", "/.../..a/a..", "/a.b.c/d", "/-_.~", "/[id]/{x}",
    "/a|b^c`d", '/"quoted"', "/a%00", "/?a=%00", "/%E2%82%AC", "/%e2%82%ac", "/a%20", "/" + "long/" * 800, "/?" + "q" * 5000,
    "//", "/a//b", "/a/./b", "/a/../b", "/a/%2e%2e/b", "/a/.", "/a/..", "/wiki/A_%26_B", "/api/v4/projects/1/files?path=a%2Fb", "/@scope/pkg",
    "/x?redirect=%0d%0aa", "/a:80/b", "/index.php/x", "/cgi-bin/a.cgi?a+b", "/?;a;b", "/?a\\b",
)  # fmt: skip

ODD_HEADERS: dict[str, str] = {
    "no blank behind a colon": "X-A:1", "blanks around a value": "X-A: \t 1 \t", "an empty value": "X-A:", "a name with underscores": "X_A: 1",
    "utf-8 in a value": "X-City: Zürich", "a tab in a value": "X-A: 1\t2", "odd characters in a name": "X-A!#$%&'*+.^`|~: 1",
    "the same name twice": "X-A: 1\r\nX-A: 2", "two Cookie lines": "Cookie: a=1\r\nCookie: b=2", "odd cookies": 'Cookie: a; =b; c="d; e"; f=\\',
    "a cookie of ours that is none": "Cookie: a=1; __cfwaitingroom=old; b=2", "Proxy-Connection": "Proxy-Connection: keep-alive",
    "Proxy-Authorization": "Proxy-Authorization: Basic YTpi", "TE": "TE: trailers", "Via": "Via: 1.1 squid", "Max-Forwards": "Max-Forwards: 5",
    "a chain of proxies": "X-Forwarded-For: 198.51.100.7, 10.0.0.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: other.example",
    "Forwarded": "Forwarded: for=198.51.100.7;proto=https", "X-Real-IP": "X-Real-IP: 198.51.100.7", "X-Forwarded-Port": "X-Forwarded-Port: 8443",
    "X-Forwarded-Prefix": "X-Forwarded-Prefix: /shop", "X-Forwarded-Ssl": "X-Forwarded-Ssl: on", "another method": "X-HTTP-Method-Override: DELETE",
    "another path": "X-Original-URL: /admin\r\nX-Rewrite-URL: /admin", "HTTP/2, please": "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nConnection: Upgrade, HTTP2-Settings",
    "h2c of Java": "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAA\r\nUpgrade: h2c\r\nUser-Agent: Java-http-client/17",
    "Connection names a field": "Connection: X-A\r\nX-A: 1", "Keep-Alive": "Keep-Alive: 300\r\nConnection: keep-alive", "close": "Connection: close",
    "a range": "Range: bytes=0-1,5-6\r\nIf-Range: \"1\"", "a length of 0": "Content-Length: 0", "Accept-Charset": "Accept-Charset: utf-8",
    "Expect": "Expect: 100-continue", "a trace": "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nb3: 0",
    "a long cookie": "Cookie: s=" + "a" * 6000, "many fields": "\r\n".join(f"X-{number}: {number}" for number in range(80)),
    "digest": 'Authorization: Digest username="a", realm="b", nonce="c", uri="/", response="d"', "negotiate": "Authorization: Negotiate " + "a" * 3000,
    "the early data mark": "Early-Data: 1", "Save-Data": "Save-Data: on\r\nSec-GPC: 1\r\nViewport-Width: 400", "an id": "X-Request-ID: abc",
    "Proxy": "Proxy: http://evil.example/", "Destination": f"Destination: http://{HOST}/b\r\nOverwrite: F", "Trailer": "Trailer: X-T",
}  # fmt: skip


def _bytes(
    method: str, target: str, lines: str, body: bytes = b"", version: str = "1.1", host: str = HOST
) -> bytes:
    named = f"Host: {host}\r\n" if host else ""
    return f"{method} {target} HTTP/{version}\r\n{named}{lines}\r\n".encode() + body


def _lines(fields: dict[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in fields.items())


def _chunks(*pieces: bytes, last: bytes = b"0\r\n\r\n", extension: bytes = b"") -> bytes:
    return b"".join(b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces) + last


_KEY = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
_CHUNKED = "Transfer-Encoding: chunked\r\n"

ODD_MESSAGES: dict[str, tuple[str, bytes]] = {
    "chunked upload": ("POST", _bytes("POST", "/up", _CHUNKED, _chunks(b"hello", b"world"))),
    "chunked, with extensions": ("POST", _bytes("POST", "/up", _CHUNKED, _chunks(b"hello", extension=b";a=b"))),
    "chunked, with trailers": ("POST", _bytes("POST", "/up", _CHUNKED, _chunks(b"hello", last=b"0\r\nX-T: 1\r\n\r\n"))),
    "chunked, empty": ("POST", _bytes("POST", "/up", _CHUNKED, _chunks())),
    "chunked, in capitals": ("POST", _bytes("POST", "/up", "Transfer-Encoding: Chunked\r\n", _chunks(b"hello"))),
    "expects": ("PUT", _bytes("PUT", "/up", "Expect: 100-continue\r\nContent-Length: 5\r\n", b"hello")),
    "HTTP/1.0": ("GET", _bytes("GET", "/", "", version="1.0")),
    "HTTP/1.0 hints": ("GET", _bytes("GET", "/o", "X-Case: hints before\r\n", version="1.0")),
    "a method in lower case": ("get", _bytes("get", "/", "")),
    "HTTP/1.0 keeps": ("GET", _bytes("GET", "/", "Connection: keep-alive\r\n", version="1.0")),
    "HTTP/1.0 without a host": ("GET", _bytes("GET", "/", "User-Agent: probe\r\n", version="1.0", host="")),
    "HTTP/1.0 HEAD without a host": ("HEAD", _bytes("HEAD", "/", "", version="1.0", host="")),
    "HTTP/1.0 form": ("POST", _bytes("POST", "/", "Content-Length: 3\r\n", b"a=1", version="1.0")),
    "a whole URL": ("GET", _bytes("GET", f"http://{HOST}/a?b", "")),
    "a whole URL in capitals": ("GET", _bytes("GET", f"HTTP://{HOST.upper()}/a", "")),
    "a host with a port": ("GET", _bytes("GET", "/", "", host=f"{HOST}:8080")),
    "a host in capitals": ("GET", _bytes("GET", "/", "", host=HOST.upper())),
    "a host with a dot at the end": ("GET", _bytes("GET", "/", "", host=f"{HOST}.")),
    "everything": ("OPTIONS", _bytes("OPTIONS", "*", "")),
    "a preflight": ("OPTIONS", _bytes("OPTIONS", "/api", "Origin: https://a.example\r\nAccess-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: x-a\r\n")),
    "a WebSocket": ("GET", _bytes("GET", "/ws", _KEY)),
    "a WebSocket of a browser": ("GET", _bytes("GET", "/ws", _KEY + f"Origin: http://{HOST}\r\nSec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Protocol: a, b\r\n")),
    "an empty line before": ("GET", b"\r\n" + _bytes("GET", "/", "")),
    "many slashes in a query": ("GET", _bytes("GET", "/?a=//b//../c", "")),
}  # fmt: skip

HEAD_CASES = (
    "status 200",
    "chunked",
    "ends with the connection",
    "empty",
    "no content",
    "not modified",
    "HTTP/1.0",
    "a download",
)
"""Answers that are asked for with HEAD too; what stands behind their heads is left away by real
origins, but not by all.
"""


def every_request() -> Iterator[ProxiedRequest]:
    """All of them; the name of each says which table it is from."""
    for client, fields in CLIENTS.items():
        for target in TARGETS:
            yield ProxiedRequest(
                f"client: {client}, {target}", "GET", _bytes("GET", target, _lines(fields))
            )
    for name, (method, fields, body) in BODIES.items():
        sent = _lines(fields | {"Content-Length": str(len(body))})
        yield ProxiedRequest(f"body: {name}", method, _bytes(method, "/shop/do", sent, body))
    for method in METHODS:
        yield ProxiedRequest(f"method: {method}", method, _bytes(method, "/dav/a", ""))
    for target in ODD_TARGETS:
        yield ProxiedRequest(f"target: {target[:40]}", "GET", _bytes("GET", target, ""))
    for name, line in ODD_HEADERS.items():
        yield ProxiedRequest(f"header: {name}", "GET", _bytes("GET", "/h", f"{line}\r\n"))
    for name, (method, raw) in ODD_MESSAGES.items():
        yield ProxiedRequest(f"message: {name}", method, raw)
    for name in ANSWERS:
        yield ProxiedRequest(f"answer: {name}", "GET", _bytes("GET", "/o", f"X-Case: {name}\r\n"))
    for name in HEAD_CASES:
        yield ProxiedRequest(
            f"answer to HEAD: {name}", "HEAD", _bytes("HEAD", "/o", f"X-Case: {name}\r\n")
        )
