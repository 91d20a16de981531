"""nginx and HAProxy, as origins, read exactly what greenroom matched: the same method, target,
path, host and end of the body.
"""

import contextlib
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from ports import free_port

from greenroom.gateway.wire.forwarded_head import outgoing_head
from greenroom.gateway.wire.head_records import RequestHead
from greenroom.gateway.wire.request_head import Peer, read_head
from greenroom.request.canonical import Target, canonical_target
from greenroom.request.forwarded import ForwardedPolicy

PEER = Peer("203.0.113.5", tls=False, policy=ForwardedPolicy())
PATIENCE_S = 60
DOCUMENTED = (Path(__file__).parents[2] / "docs/explanation/request-canonical-form.md").read_text()

NGINX = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder}; large_client_header_buffers 4 16k;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      return 200 "$request_method $request_uri $host cl=$content_length te=$http_transfer_encoding for=$http_x_forwarded_for path=$uri";
    }}
  }}
}}
"""
HAPROXY = """
global
  maxconn 64
defaults
  mode http
  timeout client 10s
  timeout http-request 10s
frontend f
  bind 127.0.0.1:{port}
  http-request return status 200 content-type text/plain lf-string "%[method] %[url] %[req.hdr(host)] cl=%[req.hdr(content-length)] \
te=%[req.hdr(transfer-encoding)] for=%[req.hdr(x-forwarded-for)] path=%[path]"
"""

TARGETS = [
    *[text for text in re.findall(r"`(/[^`]*)`", DOCUMENTED) if "\\" not in text],
    "/", "/shop", "/shop?x=1&y=%2F..%2F&z=//../", "/a//b/./c/../d", "/%7euser/%41", "/caf%C3%A9/%E2%82%AC", "/100%25", "/a%20b+c%2Bd", "/?", "/x?a?b??c",
    "/[slug]/{x}|y^z", '/"quoted"/<b>', "/a%3Fb%23c", "/!$&'()*+,=:@", "/.well-known/x", "/.../..a/a..", "/a%2520b", "/-_.~", "/x?%00%zz\\^`{|}",
]  # fmt: skip


def answers_at(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
        return True
    return False


@contextlib.contextmanager
def running(command: list[str], port: int) -> Iterator[int]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + PATIENCE_S
        while not answers_at(port):
            assert process.poll() is None, process.stdout.read()
            assert time.monotonic() < end
            time.sleep(0.02)  # another process needs a moment
        yield port
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module", params=["nginx", "haproxy"])
def origin_port(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[int]:
    folder, port = tmp_path_factory.mktemp(request.param), free_port()
    config = folder / "config"
    config.write_text(
        {"nginx": NGINX, "haproxy": HAPROXY}[request.param].format(folder=folder, port=port)
    )
    command = {
        "nginx": ["nginx", "-e", f"{folder}/error.log", "-c", str(config)],
        "haproxy": ["haproxy", "-f", str(config)],
    }[request.param]
    with running(command, port) as found:
        yield found


def read(lines: str, body: bytes = b"") -> tuple[RequestHead, bytes]:
    """The head as greenroom reads it, and the bytes that the origin is sent."""
    head = read_head(lines.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n", PEER)
    assert isinstance(head, RequestHead), head
    return head, outgoing_head(head, PEER, b"", frozenset((b"__cfwaitingroom",))) + body


def said(port: int, sent: bytes, answers: int = 1) -> list[str]:
    """What the origin says it read, for each request that it found in these bytes."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock:
        sock.sendall(sent)
        stream = sock.makefile("rb")
        found = []
        for _ in range(answers):
            status = stream.readline().decode()
            head = iter(lambda: stream.readline().decode().strip().lower(), "")
            length = next(
                int(line.split(":")[1]) for line in list(head) if line.startswith("content-length")
            )
            text = stream.read(length).decode("latin-1")
            found.append(text if " 200 " in status else f"{status} {text}")
        return found


@pytest.mark.parametrize(
    "target",
    sorted({target for target in TARGETS if isinstance(canonical_target(target.encode()), Target)}),
)
def test_an_origin_sees_the_path_that_was_matched(origin_port: int, target: str) -> None:
    head, sent = read(f"GET {target} HTTP/1.1\nHost: shop.example")
    (text,) = said(origin_port, sent)
    line, _, path = text.partition(" path=")
    assert line == f"GET {head.target.decode()} shop.example cl= te= for=203.0.113.5"
    readings = head.arrival.readings or (head.arrival.path,)
    decoded = path.encode("latin-1").decode() if path not in readings else unquote(path)
    assert decoded in {unquote(reading) for reading in readings}


HEADS: list[tuple[str, bytes, str]] = [
    ("POST /a HTTP/1.1\nHost: a\nContent-Length: 005", b"hello", "cl=5 te="),
    ("POST /a HTTP/1.1\nHost: a\nContent-Length: 0", b"", "cl=0 te="),
    (
        "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: CHUNKED",
        b"5\r\nhello\r\n0\r\n\r\n",
        "cl= te=chunked",
    ),
    ("GET /a HTTP/1.1\nHost: a\nContent-Length: 5", b"hello", "cl=5 te="),
    (
        "POST /a HTTP/1.1\nHost: a\nContent-Length: 44",
        b"GET /shop HTTP/1.1\r\nHost: a\r\nX: aaaaaaaaa\r\n\r\n",
        "cl=44 te=",
    ),
    ("PUT /a HTTP/1.1\nHost: a\nExpect: 100-continue\nContent-Length: 2", b"{}", "cl=2 te="),
    ("POST /a HTTP/1.0\nHost: a\nContent-Length: 2", b"{}", "cl=2 te="),
    ("POST /a HTTP/1.1\nHost: a", b"", "cl= te="),
    (
        "GET /a HTTP/1.1\nHost: a\nX-Forwarded-For: 6.6.6.6\nX_Forwarded_For: 6.6.6.6\nForwarded: for=6.6.6.6\nTransfer_Encoding: chunked",
        b"",
        "cl= te=",
    ),
    (
        "GET /a HTTP/1.1\nHost: a\nConnection: x-a, close\nX-A: 1\nTE: trailers\nCookie: __cfwaitingroom=x",
        b"",
        "cl= te=",
    ),
    (
        "GET /a HTTP/1.1\nHost: a\nUpgrade: h2c\nConnection: Upgrade, HTTP2-Settings\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
        b"",
        "cl= te=",
    ),
]


@pytest.mark.parametrize(("lines", "body", "framing"), HEADS)
def test_an_origin_finds_the_end_of_a_request_where_greenroom_finds_it(
    origin_port: int, lines: str, body: bytes, framing: str
) -> None:
    head, sent = read(lines, body)
    _, following = read("GET /next HTTP/1.1\nHost: b")
    first, second = said(origin_port, sent + following, 2)
    first = re.sub(
        r"cl=\d* te=chunked", "cl= te=chunked", first
    )  # nginx tells what it has counted so far
    assert first == f"{head.method.decode()} /a a {framing} for=203.0.113.5 path=/a"
    assert second == "GET /next b cl= te= for=203.0.113.5 path=/next"


def test_one_byte_too_many_would_be_noticed(origin_port: int) -> None:
    """The test above can fail: what stands behind a body begins the next request."""
    _, sent = read("POST /a HTTP/1.1\nHost: a\nContent-Length: 5", b"hello!")
    _, following = read("GET /next HTTP/1.1\nHost: b")
    first, second = said(origin_port, sent + following, 2)
    assert first.startswith("POST /a a cl=5")
    assert not second.startswith("GET /next")
