"""What visitors and attackers send through every integration, with the real servers: protocols that
must work, and attacks that must not.
"""

import contextlib
import re
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

import pytest
import websockets
import websockets.sync.client
from attack_rig import Attacker, lines_of
from integrations import INTEGRATIONS, PROXIES, SERVERS, middleware, proxy, with_http2
from ports import free_port
from talking_origin import TalkingOrigin
from tests.conftest import StartGreenroom, Visitor, eventually
from tests.integration.test_attack_cookies import MALFORMED
from tests.integration.test_attack_paths import ANOTHER_PAGE, HELD, REFUSED
from tests.integration.test_attack_smuggling import (
    CHUNKS,
    FRAMINGS,
    HOST,
    INNER,
    REQUEST_LINES,
    TE,
    WEBSOCKET,
)

from greenroom.settings.process import TRUSTED_HEADERS

ROOMS = """
[[rooms]]
name = "full"
host = "full.example"
total_active_users = 1
new_users_per_minute = 1
[[rooms]]
name = "closed"
host = "*"
path = "/shop"
total_active_users = 1
new_users_per_minute = 1
queue_all = true
[[rooms]]
name = "plus"
host = "*"
path = "/c++"
total_active_users = 1
new_users_per_minute = 1
queue_all = true
cookie_suffix = "plus"
[[rooms]]
name = "vip"
host = "vip.example"
total_active_users = 1
new_users_per_minute = 1
queue_all = true
cookie_suffix = "vip"
[[rooms]]
name = "near"
host = "near.example"
total_active_users = 1
new_users_per_minute = 1
queue_all = true
cookie_suffix = "near"
[[rooms.rules]]
expression = 'ip.src == 127.0.0.1'
[[rooms]]
name = "other"
host = "other.example"
total_active_users = 100
new_users_per_minute = 100
"""
NAME = "__cfwaitingroom"
AT_ONCE, PATIENCE_S = 64, 0.7
"""Attacks at a time, and how long the next byte is waited for: servers that take half a request for
one that is on its way say nothing.
"""
HONEST_S = 30.0
"""How long the answer to a request that must get one is waited for."""

FORWARDS = ("haproxy", "haproxy-native-pass", "apache")
"""Proxies that forward to the gateway, instead of asking."""

FROM_ORIGIN = "\r\nx-origin: yes"
SHOP_SERVED = '"path": "/shop'
"""What an application says of itself (in lower case) that serves a page of the closed room."""


class Front:
    """One integration: `seen` are the requests that an application got, as far as an origin of ours
    is behind it.
    """

    def __init__(
        self, name: str, address: tuple[str, int], http2: tuple[str, int], origin: TalkingOrigin
    ) -> None:
        self.name, self.address, self.http2, self.origin = name, address, http2, origin
        self.inside_application = name in SERVERS
        inside, other = Visitor(address, "full.example"), Visitor(address, "other.example")
        assert not inside.get("/").waiting
        assert not other.get("/").waiting
        self.inside, self.other = inside.cookies[NAME], other.cookies[NAME]

    def throw(
        self, attacks: list[bytes], patience_s: float = PATIENCE_S, source: str = "127.0.0.1"
    ) -> list[str]:
        """Sends each on a connection of its own from the `source` address, many at once; what came
        back, in lower case.
        """
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda data: self._one(data, patience_s, source), attacks))

    def _one(self, data: bytes, patience_s: float, source: str) -> str:
        with Attacker(self.address, source=source) as attacker:
            attacker.sock.settimeout(patience_s)
            attacker.send(data)
            got = b""
            with contextlib.suppress(OSError):
                while piece := attacker.sock.recv(65_536):
                    got += piece
        return got.decode("latin-1").lower()

    def let_through(self, sent: list[bytes], patience_s: float = PATIENCE_S) -> list[bytes]:
        """Those of these requests that an application answered."""
        return [
            data
            for data, got in zip(sent, self.throw(sent, patience_s), strict=True)
            if FROM_ORIGIN in got
        ]

    def get(
        self,
        path: str = "/",
        host: str = "full.example",
        cookie: str = "",
        more: str = "",
        method: str = "GET",
    ) -> bytes:
        """A request as bytes."""
        cookies = f"Cookie: {cookie}\r\n" if cookie else ""
        head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/html\r\nConnection: close\r\n{cookies}{more}\r\n"
        return head.encode("latin-1")


def read_as_shop(line: str) -> bool:
    """Whether a lax application would read this request line as a page of a room that lets no
    visitor in.
    """
    path = line.split(" ")[1].partition("?")[0]
    for _ in range(2):
        path = unquote(path).replace("\\", "/")
    kept: list[str] = []
    for part in re.sub(r"^https?://[^/]*", "", path).split("/"):
        name = part.partition(";")[0]
        if name == "..":
            kept[-1:] = []
        elif name not in ("", "."):
            kept.append(name)
    return kept[:1] in (["shop"], ["c++"])


@pytest.fixture(
    scope="module",
    params=[*PROXIES, "nginx-native-pass", "haproxy-native-pass", "uvicorn", "gunicorn"],
)
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    """Its rooms: one visitor is inside full.example, /shop is closed on every host, vip.example is
    closed.
    """
    name, folder, origin, start = (
        request.param,
        tmp_path_factory.mktemp("front"),
        TalkingOrigin(),
        None,
    )
    start = StartGreenroom(folder)
    http2 = free_port() if name.startswith(("nginx", "haproxy")) else 0
    try:
        if INTEGRATIONS.get(name) is middleware:
            place = middleware(name, folder, start, "", ROOMS)
        else:
            place = proxy(
                name, folder, start, origin.url, ROOMS, lambda text: with_http2(name, http2, text)
            )
        with place as address:
            yield Front(name, address, (address[0], http2 or address[1]), origin)
        assert origin.garbage == []
    finally:
        for running in start.processes:
            running.kill()
        origin.close()


def test_every_spelling_of_a_path_is_held_or_refused_or_really_another_page(front: Front) -> None:
    before = len(front.origin.seen)
    sent = [front.get(path, "a") for path in HELD] + [
        front.get("/shop", host) for host in ("a", "a, b", "a@b", "a/", "a..", "a%2eb")
    ]
    sent += [
        front.get("/open", host)
        for host in (
            "vip.example",
            "VIP.Example",
            "vip.example.",
            "vip.example:80",
            "a@vip.example",
        )
    ]
    assert front.let_through(sent) == []
    assert lines_of(front.origin.seen[before:]) == []
    # What the gateway refuses, some servers repair first ("?/shop" is "/?/shop", "/#x" is "/");
    # then that is what is asked about.
    odd = [path for path in REFUSED if path != "*"]
    served = [
        got for got in front.throw([front.get(path, "a") for path in odd]) if FROM_ORIGIN in got
    ]
    assert [got for got in served if SHOP_SERVED in got] == []
    assert [line for line in lines_of(front.origin.seen[before:]) if read_as_shop(line)] == []
    # The gateway forwards the canonical form; a proxy that asks forwards what the visitor sent, and
    # so may refuse.
    before = len(front.origin.seen)
    for (path, _), got in zip(
        ANOTHER_PAGE,
        front.throw([front.get(path, "a") for path, _ in ANOTHER_PAGE], 60),
        strict=True,
    ):
        assert FROM_ORIGIN in got or got[9:12] in ("400", "404"), (path, got)
    lines = lines_of(front.origin.seen[before:])
    assert [line for line in lines if read_as_shop(line)] == []
    asked_as = {"traefik": lambda line: line.replace(";", "&")}.get(front.name, str)
    assert set(lines) <= {asked_as(f"GET {one}") for pair in ANOTHER_PAGE for one in pair}
    if not front.inside_application:
        eventually(
            lambda: front.let_through([front.get("/shopping", "a")], 60),
            "a page of no room is let through",
        )


def test_no_method_and_no_header_of_a_visitor_changes_what_is_decided(front: Front) -> None:
    before = len(front.origin.seen)
    methods = [
        "GET",
        "HEAD",
        "POST",
        "PUT",
        "DELETE",
        "PATCH",
        "OPTIONS",
        "FOO",
        "get",
        "TRACE",
        "PROPFIND",
    ]
    headers = [
        *(f"X-{name}: {value}" for name in ("HTTP-Method-Override", "Method-Override", "HTTP-Method") for value in ("OPTIONS", "HEAD")),
        *(f"X-{name}: /open" for name in ("Original-URL", "Rewrite-URL", "Original-URI", "Forwarded-Uri", "Forwarded-Path", "Envoy-Original-Path")),
        *(f"X-{name}: open.example" for name in ("Forwarded-Host", "Host", "Original-Host", "Forwarded-Server")),
        "X-Forwarded-Method: OPTIONS", "X-Original-Method: OPTIONS", "X_Forwarded_Uri: /open", "X_Original_Method: OPTIONS",
        "X-Forwarded-For: 127.0.0.1", "X-Real-IP: 127.0.0.1", "Forwarded: for=127.0.0.1;host=open.example", "Greenroom-Verdict: forward",
        "Greenroom-Pass: x", "Greenroom-Status: 200", "X-Accel-Redirect: /open", "X-Envoy-Auth-Headers-To-Remove: host",
        "Connection: close, X-Original-URI", "Connection: close, X-Forwarded-Uri, Cookie", "Content-Length: 0",
    ]  # fmt: skip
    twice = [
        f"{line}\r\n{line.partition(':')[0]}: /other" for line in headers if line.startswith("X-")
    ]
    sent = [front.get("/shop", "a", method=method) for method in methods]
    sent += [front.get("/shop", "a", more=f"{line}\r\n") for line in (*headers, *twice)]
    sent += [front.get(host="vip.example", more=f"{line}\r\n") for line in headers]
    sent += [
        front.get("/shop", "a").replace(b"Host: a", hosts)
        for hosts in (b"Host: a\r\nHost: b", b"Host: b\r\nHost: a", b"X-Host: a")
    ]
    assert front.let_through(sent) == []
    assert lines_of(front.origin.seen[before:]) == []
    allowed = [front.get("/open", "a", more=f"{line}\r\n") for line in headers]
    read = any(
        len(front.let_through(allowed, HONEST_S)) > len(allowed) / 2 for _ in range(5)
    )  # Envoy asks none that was slow for a second
    assert read, "the same headers beside the room: the attacks are read as requests"


def test_no_header_of_a_visitor_asks_the_application_for_another_page(front: Front) -> None:
    """Applications take a page, a prefix, a host or an address from these headers; greenroom behind
    a trusted proxy passes `trusted_headers`.
    """
    if front.inside_application:  # what is in front of its server sets them
        return
    before = len(front.origin.seen)
    lines = [
        *(f"X-{name}: /forged" for name in ("Original-URL", "Rewrite-URL", "Script-Name")),
        *("X-Forwarded-Prefix: /forged", "X-Forwarded-Host: forged", "Forwarded: host=forged"),
        *(f"{name}: forged" for name in TRUSTED_HEADERS if front.name in FORWARDS),
    ]
    sent = [front.get("/open", "a", more=f"{line}\r\n") for line in lines]
    sent += [front.get("/open", "a", more=f"{line.lower()}\r\n{line}\r\n") for line in lines]
    assert front.let_through(sent, HONEST_S) == sent
    assert [one.head for one in front.origin.seen[before:] if "forged" in one.head] == []


def test_no_visitor_takes_the_address_of_the_proxy(front: Front) -> None:
    """A rule lets 127.0.0.1 in, which is where the proxy is; the attackers are at 127.0.0.2."""
    before = len(front.origin.seen)
    named = (
        "X-Forwarded-For",
        "x-forwarded-for, X-Forwarded-Proto",
        "X-Real-IP, Forwarded, X-Forwarded-For",
        "X-Envoy-External-Address",
    )
    said = (
        "X-Forwarded-For: 127.0.0.1",
        "X-Forwarded-For:",
        "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-For: 127.0.0.1",
        "X_Forwarded_For: 127.0.0.1",
    )
    lines = [*said, "Forwarded: for=127.0.0.1", "X-Real-IP: 127.0.0.1", "X-A: b"]
    attacks = [front.get(host="near.example", more=f"{line}\r\n") for line in lines]
    attacks += [
        attack.replace(b"close", f"close, {names}".encode())
        for attack in attacks
        for names in named
    ]
    attacks += [
        attack.replace(b"close", f"close\r\nConnection: {names}".encode())
        for attack in attacks[:2]
        for names in named
    ]
    assert [got for got in front.throw(attacks, source="127.0.0.2") if FROM_ORIGIN in got] == []
    assert lines_of(front.origin.seen[before:]) == []
    if front.name != "envoy":  # which writes another address of the machine for 127.0.0.1
        assert front.let_through([front.get(host="near.example")], HONEST_S), (
            "the rule holds for the address itself"
        )


def test_only_the_ticket_of_the_visitor_inside_opens_the_room(front: Front) -> None:
    before = len(front.origin.seen)
    inside, other = (f"{NAME}={ticket}" for ticket in (front.inside, front.other))
    forged = [
        f"{NAME}={front.inside[:at]}{'A' if front.inside[at] != 'A' else 'B'}{front.inside[at + 1 :]}"
        for at in (0, 6, 17, 50, 98)
    ]
    wrong = [
        other,
        *forged,
        f"{NAME}={front.inside[:-1]}",
        f"{other}; {forged[0]}",
        f"{other}\r\nCookie: {forged[0]}",
        *MALFORMED,
    ]
    assert (
        front.let_through([front.get(cookie=cookie) for cookie in wrong if len(cookie) < 4_000])
        == []
    )
    assert (
        front.let_through([front.get("/shop", "a", inside), front.get("/", "vip.example", inside)])
        == []
    )
    assert lines_of(front.origin.seen[before:]) == []
    right = [
        front.get(cookie=cookie)
        for cookie in (
            inside,
            f"{forged[0]}; {inside}",
            f"{inside}; {other}",
            f"a=1; {inside}; b=2",
        )
    ]
    assert front.let_through(right, HONEST_S) == right
    assert not [one for one in front.origin.seen[before:] if NAME in one.head], (
        "the application never sees a ticket"
    )


def test_no_request_is_smuggled_past_the_room_inside_another_one(front: Front) -> None:
    before = len(front.origin.seen)
    post = b"POST /open HTTP/1.1\r\n" + HOST
    bodies = (INNER, b"5\r\nhello\r\n0\r\n\r\n" + INNER)
    sent = [
        post + also + framing + b"\r\n" + body
        for framing in FRAMINGS
        for also in (b"", b"Content-Length: 5\r\n")
        for body in bodies
    ]
    sent += [post + TE + b": chunked\r\n\r\n" + chunks + INNER for chunks in CHUNKS]
    sent += [line + b"\r\n" + HOST + b"\r\n" + INNER for line in REQUEST_LINES]
    sent += [
        b"GET /open HTTP/1.1\r\n" + HOST + more + b"\r\n" + INNER
        for more in (b"", WEBSOCKET, b"Upgrade: h2c\r\n")
    ]
    sent += [
        post + b"Connection: %b\r\nContent-Length: %d\r\n\r\n" % (name, len(INNER)) + INNER
        for name in (b"Content-Length", b"Host")
    ]
    got = front.throw(sent)
    assert [data for data, answers in zip(sent, got, strict=True) if SHOP_SERVED in answers] == []
    assert [line for line in lines_of(front.origin.seen[before:]) if read_as_shop(line)] == []
    honest = front.get("/honest", "a")
    assert front.let_through([honest], HONEST_S) == [honest]


def test_bodies_streams_and_websockets_pass_for_those_inside_alone(front: Front) -> None:
    inside, outside = (
        Visitor(front.address, "full.example", {NAME: front.inside}),
        Visitor(front.address, "full.example"),
    )
    assert b'"length": 300000' in inside.get("/", "POST", body=b"x" * 300_000).body
    assert outside.get("/", "POST", body=b"x" * 300_000).waiting
    head = inside.get("/", "HEAD")
    assert (head.status, head.waiting, head.body) == (200, False, b"")
    held = outside.get("/", "HEAD")
    assert (held.waiting, held.body) == (True, b"")
    speculating = Visitor(front.address, "full.example")
    assert speculating.get("/", headers={"Sec-Purpose": "prefetch"}).waiting
    assert speculating.cookies == {}, "it takes no place"
    if (
        front.inside_application
    ):  # test_middleware_for_real.py has streams and WebSockets inside an application
        return
    front.origin.go_on.clear()
    with socket.create_connection(front.address, timeout=60) as sock:
        sock.sendall(
            front.get("/events", cookie=f"{NAME}={front.inside}", more="X-A: b\r\n").replace(
                b"text/html", b"text/event-stream"
            )
        )
        came = b""
        while b"data: one" not in came:
            came += sock.recv(65_536)
        assert b"data: two" not in came, "an event arrives when it is sent"
        front.origin.go_on.set()
        while b"data: two" not in came:
            came += sock.recv(65_536)
    url = f"ws://{front.address[0]}:{front.address[1]}/chat"
    own = {"Host": "full.example", "Cookie": f"{NAME}={front.inside}"}
    with connection(url, own) as chat:
        for text in ("hello", "again"):
            chat.send(text)
            assert chat.recv(timeout=60) == text
    with (
        pytest.raises(websockets.InvalidStatus) as refused,
        connection(url, {"Host": "full.example"}),
    ):
        pass
    assert refused.value.response.status_code in (429, 503)
    assert "Set-Cookie" not in refused.value.response.headers, "it takes no place"


OTHER_PROTOCOLS = (
    "h2c",
    "HTTP/2.0",
    "tcp",
    "websocket, h2c",
    "h2c, websocket",
    "websocket\r\nUpgrade: h2c",
    "h2c\r\nUpgrade: websocket",
    "websocket2",
    "\tx",
)


def test_an_application_is_never_asked_to_change_to_another_protocol_than_websocket(
    front: Front,
) -> None:
    if front.inside_application:  # the server decides about these
        return
    before = len(front.origin.seen)
    offers = [
        f"Upgrade: {protocol}\r\nHTTP2-Settings: AAMAAABk\r\n" for protocol in OTHER_PROTOCOLS
    ]
    connections = ("Upgrade", "upgrade, HTTP2-Settings", "keep-alive, Upgrade")
    sent = [
        front.get("/open", "a", more=offer).replace(
            b"Connection: close", f"Connection: {names}".encode()
        )
        for offer in offers
        for names in connections
    ]
    sent += [
        front.get(host="full.example", cookie=f"{NAME}={front.inside}", more=offer)
        for offer in offers
    ]
    front.throw(sent)
    passed = {value for one in front.origin.seen[before:] for value in one.header("upgrade")}
    assert passed <= {"websocket"}, (
        "behind another protocol, requests on this connection would pass every room unseen"
    )
    honest = front.get("/open", "a", more="Upgrade: h2c\r\n")
    assert front.let_through([honest], HONEST_S) == [honest], (
        "a client that only offers it gets its answer"
    )


def connection(url: str, headers: dict[str, str]) -> websockets.sync.client.ClientConnection:
    """A WebSocket; the host of its handshake is that of `headers`."""
    host = headers.pop("Host")
    _, _, place = url.partition("//")
    address = place.partition("/")[0].rpartition(":")
    sock = socket.create_connection((address[0], int(address[2])), timeout=60)
    named = url.replace(place.partition("/")[0], host)
    return websockets.sync.client.connect(
        named, sock=sock, additional_headers=headers, compression=None, open_timeout=60
    )


LOST_EARLY_ANSWER = 92
"""Of curl 7.88 with HTTP/2: an answer that comes with the end of the stream before the body has
been sent is dropped, now and then.
"""


SPINNING = ("-m", "10")
"""curl 7.88 turns round until its time is over when HAProxy has answered and takes no more of a
body.
"""


def curl(front: Front, path: str, *options: str) -> str:
    """Version, status, and whether the application answered, over HTTP/2 without TLS."""
    url = "http://{}:{}{}".format(*front.http2, path)
    command = [
        "curl",
        "-sS",
        "-m",
        "30",
        "--http2-prior-knowledge",
        "--path-as-is",
        "-o",
        "/dev/null",
        "-D",
        "-",
        *options,
        url,
    ]
    for _ in range(10):
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.stdout or answer.returncode != LOST_EARLY_ANSWER:
            break
    head = answer.stdout.lower()
    version, _, status = (head.split("\n")[0] or f"none {answer.stderr.strip()}").partition(" ")
    grpc = re.search(r"grpc-status: ([0-9]+)", head)
    return f"{version} {status.strip()} {'application' if 'x-origin' in head else f'grpc-status {grpc[1]}' if grpc else 'greenroom or proxy'}"


def test_http2_and_grpc_in_front_are_decided_about_in_the_same_way(
    front: Front, tmp_path: Path
) -> None:
    if front.inside_application:
        assert curl(front, "/").startswith("none"), "these servers speak HTTP/1.1 only"
        return
    (tmp_path / "body").write_bytes(b"x" * 100_000)
    inside, full = (
        ("-H", f"Cookie: {NAME}={front.inside}"),
        ("-H", "Host: full.example", "-H", "Accept: text/html"),
    )
    post = ("--data-binary", f"@{tmp_path / 'body'}")
    held_status = {"envoy": "429", "traefik": "503"}.get(front.name, "200")
    assert curl(front, "/", *full, *inside) == "http/2 200 application"
    assert curl(front, "/", *full, *inside, *post) == "http/2 200 application"
    before = len(front.origin.seen)
    assert curl(front, "/", *full) == f"http/2 {held_status} greenroom or proxy"
    assert not curl(front, "/", *full, *post, *SPINNING).endswith("application")
    for path in ("/shop", "/open/../shop", "//shop", "/%73hop", "/open/..%2fshop", "/shop;x"):
        assert not curl(front, path, "-H", "Host: a").endswith("application"), path
    grpc = (
        "-H",
        "Content-Type: application/grpc",
        "-H",
        "TE: trailers",
        "-H",
        "Accept:",
        "--data-binary",
        "12345",
    )
    held = curl(front, "/shop.Shop/Buy", "-H", "Host: full.example", *grpc)
    unavailable = (
        "http/2 200 grpc-status 14" if front.name == "envoy" else "http/2 503 greenroom or proxy"
    )
    assert held == unavailable  # gRPC: UNAVAILABLE
    assert len(front.origin.seen) == before
    for _ in range(5):  # HAProxy may not send the body of a request that was answered first
        curl(front, "/shop.Shop/Buy", "-H", "Host: full.example", *grpc)
        assert (
            curl(front, "/shop.Shop/Buy", "-H", "Host: full.example", *inside, *grpc)
            == "http/2 200 application"
        )
