"""The configurations in examples/, with the real proxies: a visitor's whole visit, attacks, and greenroom gone."""

import base64
import contextlib
import hashlib
import hmac
import http.client
import itertools
import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from real_proxies import FILES, FORWARDING, SECRET, START_S, command_of, hasten, link_secret, listens, running_proxy, write_configuration

HELD_STATUS = {
    "nginx-native-pass": 200,
    "haproxy-native-pass": 200,
    "nginx": 200,
    "caddy": 200,
    "envoy": 429,
    "haproxy": 200,
    "haproxy-spoe": 200,
    "apache": 200,
}
"""Envoy takes every 2xx for a yes and every 5xx for a broken service, so a waiting page is a 429 there."""


@dataclass
class Chain:
    """One proxy before greenroom and the application."""

    name: str
    address: tuple[str, int]
    greenroom: Any
    origin: Any
    visitor_class: Any
    eventually: Any
    restart: Callable[[], None] = lambda: None

    def visitor(self) -> Any:
        return self.visitor_class(self.address)

    def raw(self, data: bytes) -> int:
        """The status that these bytes get."""
        with socket.create_connection(self.address, timeout=60) as sock:
            sock.sendall(data)
            answer = http.client.HTTPResponse(sock)
            answer.begin()
            return answer.status


@pytest.fixture(params=FILES)
def chain(request: Any, tmp_path: Path, greenroom: Any, origin: Any, free_port: Callable[[], int]) -> Iterator[Chain]:
    name = request.param
    at = {"proxy": free_port(), "greenroom": free_port(), "origin": int(origin.url.rpartition(":")[2])}
    write_configuration(name, tmp_path, at)
    hasten(tmp_path)
    config = ("--config", str(tmp_path / "greenroom.toml"), "--control", "127.0.0.1:0", "--data", str(tmp_path / "data"))
    running = greenroom.run(command_of(name), *config)
    with contextlib.ExitStack() as proxies:

        def start() -> None:
            proxies.close()
            proxy = proxies.enter_context(running_proxy(name, tmp_path))
            greenroom.eventually(lambda: listens(proxy, tmp_path, at["proxy"]), lambda: (tmp_path / "proxy.log").read_text())

        start()
        greenroom.eventually(lambda: "\nready" in running.output, lambda: running.output, START_S)
        found = Chain(
            name, ("127.0.0.1", at["proxy"]), running, origin, request.getfixturevalue("visitor_class"), greenroom.eventually, start
        )
        greenroom.eventually(lambda: found.raw(REFUSED) in (400, 404), "greenroom is asked: it refuses this one")
        yield found


REFUSED = b"GET /a%2fb HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n"


def seen(answer: Any) -> dict[str, str]:
    """The headers that the application was sent."""
    return {name.lower(): value for name, value in json.loads(answer.body)["headers"]}


def test_a_proxy_asks_and_forwards(chain: Chain) -> None:
    first, second = chain.visitor(), chain.visitor()
    first.cookies["own"] = "1"
    answer = first.get("/shop?a=1")
    assert (answer.status, answer.headers["X-Origin"]) == (200, "yes"), answer.text
    assert "__cfwaitingroom" in first.cookies, "the ticket goes to the visitor with the application's answer"
    held = second.get("/shop")
    assert held.waiting
    assert (held.status, b"line" in held.body) == (HELD_STATUS[chain.name], True), held.text
    assert "__cfwaitingroom" in second.cookies
    assert held.headers["Cache-Control"], "a waiting page is never cached"
    again = first.get("/shop", "POST", body=b"x" * 10_000)
    assert not again.waiting
    assert seen(again)["cookie"] == "own=1", "the application does not see the ticket"
    assert len(chain.origin.requests) == 2
    head = first.get("/shop", "HEAD")
    assert (head.status, head.waiting) == (200, False)
    del first.cookies["own"]
    assert "cookie" not in seen(first.get("/shop"))
    update = second.get("/shop", headers={"Greenroom-Update": "1", "Accept": "application/json"})
    assert update.told["inWaitingRoom"]
    posted = second.get("/shop", "POST", body=b"x" * 10_000)
    assert posted.waiting, "a body is never forwarded without a decision"
    assert chain.greenroom.room("shop")["active_users"] == 1

    for target in (b"/open/../shop", b"//shop", b"/%2e%2e/shop", b"/a%2fb", b"/a;b=c"):
        if chain.name not in FORWARDING or target == b"/a%2fb":  # the gateway itself forwards the canonical form
            status = chain.raw(b"GET %b HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n" % target)
            assert status in (400, 404), target
    assert chain.raw(b"GET / HTTP/1.1\r\nHost: shop.example\r\nHost: other.example\r\nConnection: close\r\n\r\n") == 400

    forged = {
        "X-Forwarded-Method": "OPTIONS",
        "X-Forwarded-Uri": "/open",
        "X-Original-URI": "/open",
        "X-Original-Method": "OPTIONS",
        "X-Original-Host": "other.example",
        "X-Forwarded-Host": "other.example",
        "X-Forwarded-For": "127.0.0.1",
        "Greenroom-Verdict": "forward",
        "X-HTTP-Method-Override": "OPTIONS",
    }
    assert chain.visitor().get("/shop", headers=forged).waiting
    served = len(chain.origin.requests)

    chain.greenroom.kill()
    if "native-pass" in chain.name:
        chain.eventually(lambda: first.get("/shop").status == 503, "the pass is over: it is good for at most five seconds")
        served = len(chain.origin.requests)
    closed = first.get("/shop")
    assert (closed.status, closed.waiting) == (503, True), "nothing is forwarded without a decision"
    assert (closed.headers["refresh"], "no-store" in closed.headers["cache-control"]) == ("10", True), "the visitor's page tries again"
    assert len(chain.origin.requests) == served


@pytest.mark.parametrize("chain", ["haproxy-spoe"], indirect=True)
def test_haproxy_fails_open_only_when_told_for_a_while_and_says_so(chain: Chain, tmp_path: Path) -> None:
    first, second = chain.visitor(), chain.visitor()
    second.cookies["own"] = "1"
    assert not first.get("/shop").waiting
    config, runtime = tmp_path / "haproxy.cfg", str(tmp_path / "runtime")
    config.write_text(config.read_text().replace("global\n", f"global\n    stats socket {runtime} level admin\n", 1))

    def reopened(seconds: int) -> int:
        """Opens as an operator does without a reload; until when."""
        until_s = int(time.time()) + seconds
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(runtime)
            sock.sendall(b"set map open-until.map until %d\n" % until_s)
            assert sock.recv(1_000).strip() == b""
        return until_s

    (tmp_path / "open-until.map").write_text(f"until {int(time.time()) + 600}\n")
    chain.restart()
    chain.eventually(lambda: chain.raw(REFUSED) == 400, "greenroom is asked")
    assert second.get("/shop").waiting, "greenroom decides as long as it lives"
    chain.greenroom.kill()
    chain.eventually(lambda: not second.get("/shop").waiting, "greenroom is gone, and the operator has said so")
    assert seen(second.get("/shop"))["cookie"].startswith("own=1")
    log = (tmp_path / "proxy.log").read_text()
    assert "<1>greenroom is unreachable, passed undecided: 127.0.0.1 GET /shop" in log, log  # 1 is an alert
    until_s = reopened(2)
    chain.eventually(lambda: second.get("/shop").status == 503, "closed again by itself")
    assert time.time() >= until_s - 1
    reopened(100_000)
    assert second.get("/shop").status == 503, "an hour is the most"
    reopened(600)
    assert not second.get("/shop").waiting


def jwt(secret: str = SECRET, alg: str = "HS256", **claims: Any) -> str:
    """A pass, as made by greenroom or forged."""
    whole = {"aud": "shop", "host": "shop.example.com", "path": "/", "exp": int(time.time()) + 4, **claims}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": alg, "typ": "JWT"}, whole)]
    signature = hmac.digest(secret.encode(), b".".join(parts), "sha256") if alg != "none" else b""
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()


def link(secret: str = SECRET, room: str = "shop", host: str = "shop.example.com", path: str = "/", left_s: int = 4) -> str:
    until = int(time.time()) + left_s
    digest = hashlib.md5(f"{until}{host}{link_secret(room, path, secret)}".encode()).digest()
    return f"{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()},{until}"


def shifted() -> str:
    """The pass of a host that begins with a digit, with that digit at the end of the end."""
    made = link(host="1shop.example.com")
    return f"{made[:23]}{made[23:]}1"


OTHER = "x" * 32
FORGED: dict[str, dict[str, Callable[[], str]]] = {
    "haproxy-native-pass": {
        "another secret": lambda: jwt(OTHER),
        "alg none": lambda: jwt(alg="none"),
        "alg none in other case": lambda: jwt(alg="none").replace("none", "nOnE"),
        "another algorithm than the one that is configured": lambda: jwt(alg="HS512"),
        "key confusion": lambda: jwt(alg="ES256"),
        "another room": lambda: jwt(aud="vip"),
        "another host": lambda: jwt(host="other.example.com"),
        "another path": lambda: jwt(path="/open"),
        "expired": lambda: jwt(exp=int(time.time()) - 1),
        "this very second": lambda: jwt(exp=int(time.time())),
        "without an end": lambda: jwt(exp=None),
        "changed claims": lambda: ".".join([jwt(host="x").split(".")[0], jwt(exp=9_999_999_999).split(".")[1], jwt().split(".")[2]]),
        "no signature": lambda: jwt().rpartition(".")[0] + ".",
        "garbage": lambda: "a.b.c",
        "very long": lambda: "a" * 4_000,
        "genuine, but longer than the keys of the table": lambda: jwt(more="x" * 400),
    },
    "nginx-native-pass": {
        "another secret": lambda: link(OTHER),
        "no secret": lambda: link(""),
        "another room": lambda: link(room="vip"),
        "another host": lambda: link(host="other.example.com"),
        "another path": lambda: link(path="/open"),
        "expired": lambda: link(left_s=-1),
        "a later end": lambda: link()[:23] + str(int(time.time()) + 1_000),
        "no end": lambda: link()[:22],
        "an end with a sign": lambda: link()[:23] + "+" + link()[23:],
        "a sign instead of a digit": lambda: link()[:23] + "+" + link()[24:],
        "a hash with another cookie in it": lambda: link()[:10] + "; x=" + link()[14:],
        "an end that begins in the host": lambda: shifted(),
        "a dot, as in the earlier form": lambda: link().replace(",", "."),
        "two commas": lambda: link()[:10] + "," + link()[11:],
        "garbage": lambda: "a,b",
        "very long": lambda: "a" * 4_000,
    },
}
GENUINE: dict[str, Callable[[], str]] = {"haproxy-native-pass": jwt, "nginx-native-pass": link}


@pytest.mark.parametrize("chain", GENUINE, indirect=True)
def test_only_a_genuine_pass_lets_by_and_only_where_it_is_for(chain: Chain) -> None:
    inside = chain.visitor()
    assert not inside.get("/shop").waiting
    assert "__greenroom_pass" in inside.cookies
    genuine = GENUINE[chain.name]

    def asks(value: str, path: str = "/shop", method: str = "GET", **headers: str) -> Any:
        visitor = chain.visitor()
        visitor.cookies["__greenroom_pass"] = value
        return visitor.get(path, method, headers=headers)

    by = asks(genuine(), "/shop?a=1", "POST")
    assert (by.status, by.waiting, "__cfwaitingroom" in by.text) == (200, False, False), "the proxy let it by"
    for order in set(itertools.permutations(("a=1", "b=2", "__cfwaitingroom=x", "PASS"))):
        sent = "; ".join(order).replace("PASS", f"__greenroom_pass={genuine()}")
        own = "; ".join(one for one in order if one in ("a=1", "b=2"))
        assert seen(chain.visitor().get("/shop", headers={"Cookie": sent}))["cookie"] == own, "the application sees neither ticket nor pass"
    many = "; ".join(f"a{number}=1" for number in range(100))  # each one a choice too many for a careless expression
    without = chain.visitor().get("/shop", headers={"Cookie": many})
    assert (without.status, without.waiting) == (200, True), "asked about"
    assert seen(chain.visitor().get("/shop", headers={"Cookie": f"{many}; __greenroom_pass={genuine()}"}))["cookie"] == many
    assert "cookie" not in seen(asks(genuine()))
    for name, forged in FORGED[chain.name].items():
        assert asks(forged()).waiting, name
    for path in ("/shop?greenroom=leave", "/a;b", "/a/../b", "//shop", "/%2e%2e/shop", "/shop/..", "/a%2fb", "/.hidden"):
        assert asks(genuine(), path).waiting, f"{path} is for greenroom to judge"
    assert asks(genuine(), **{"Greenroom-Update": "1"}).waiting
    for host in ("other.example.com", "shop.example.com.evil.example"):
        assert asks(genuine(), Host=host).waiting, host
    cookies = f"__greenroom_pass={FORGED[chain.name]['another secret']()}; __greenroom_pass={FORGED[chain.name]['another host']()}"
    assert chain.visitor().get("/shop", headers={"Cookie": cookies}).waiting
    for name in ("another secret", "another room", "another host", "expired"):
        overrides = {"X-HTTP-Method-Override": "OPTIONS", "X-Original-URI": "/open", "X-Forwarded-Host": "other.example.com"}
        assert asks(FORGED[chain.name][name](), **overrides).waiting, name
    before = len(chain.origin.requests)
    own = [
        f"__greenroom_pass={one}".encode() for one in (genuine(), FORGED[chain.name]["expired"](), FORGED[chain.name]["another secret"]())
    ]
    hosts = (b"Host: shop.example.com\r\nHost: other.example.com\r\n", b"Host: other.example.com\r\nHost: shop.example.com\r\n")
    doubled = [b"%bCookie: %b\r\n" % (pair, own[0]) for pair in hosts] + [
        b"Host: shop.example.com\r\nCookie: %b\r\nCookie: %b\r\n" % (own[1], own[2])
    ]
    for lines in doubled:
        chain.raw(b"GET /shop HTTP/1.1\r\n%bConnection: close\r\n\r\n" % lines)
    assert len(chain.origin.requests) == before, "doubled headers open nothing"
    for target in (b"http://other.example.com/shop", b"http://shop.example.com/shop"):
        whole = b"GET %b HTTP/1.1\r\nHost: other.example.com\r\nCookie: __greenroom_pass=%b\r\nConnection: close\r\n\r\n"
        before = len(chain.origin.requests)
        chain.raw(whole % (target, genuine().encode()))
        assert len(chain.origin.requests) == before, target


@pytest.mark.parametrize("chain", GENUINE, indirect=True)
def test_a_pass_that_has_let_by_is_worth_nothing_elsewhere_or_later(chain: Chain) -> None:
    """HAProxy remembers what it has verified."""
    assert not chain.visitor().get("/shop").waiting
    visitor = chain.visitor()
    value = visitor.cookies["__greenroom_pass"] = GENUINE[chain.name]()

    def let_by(value: str, host: str = "shop.example.com", path: str = "/shop") -> bool:
        visitor.cookies = {"__greenroom_pass": value}
        return not visitor.get(path, headers={"Host": host}).waiting

    with_port = chain.name != "nginx-native-pass"  # whose passes are for one Host header, byte for byte: a browser's is always the same
    assert [let_by(value), let_by(value), let_by(value, "shop.example.com:80"), let_by(value, "Shop.example.com")] == [True, True] + [
        with_port
    ] * 2
    changed = [
        value[:-9] + ("A" if value[-9] != "A" else "B") + value[-8:],
        value + "A",
        value[:-1],
        value + "/shop.example.com",
        "A" + value,
    ]
    assert [one for one in changed if let_by(one)] == []
    assert not let_by(value, "other.example.com")
    assert not let_by(value, path="/a/../b")
    chain.eventually(lambda: not let_by(value), "it is over after four seconds", 8)


@pytest.mark.parametrize("chain", GENUINE, indirect=True)
def test_a_visitor_with_a_pass_stays_in_and_its_pass_is_renewed(chain: Chain) -> None:
    visitor, other, passes = chain.visitor(), chain.visitor(), set()
    end = time.monotonic() + 8
    while time.monotonic() < end:
        assert not visitor.get("/shop").waiting
        passes.add(visitor.cookies.get("__greenroom_pass"))
        assert other.get("/shop").waiting
        time.sleep(0.3)  # as a visitor reads
    assert len(passes) > 1
    assert chain.greenroom.room("shop")["active_users"] == 1


def test_haproxy_verifies_es256_with_the_public_key_alone(
    tmp_path: Path, greenroom: Any, origin: Any, free_port: Callable[[], int], visitor_class: Any
) -> None:
    """And takes neither that key for a secret, nor another key, nor none."""
    key, other = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    name, at = "haproxy-native-pass", {"proxy": free_port(), "greenroom": free_port(), "origin": int(origin.url.rpartition(":")[2])}
    write_configuration(name, tmp_path, at)
    (tmp_path / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (tmp_path / "public.pem").write_bytes(public)
    for file, change in (
        ("greenroom.toml", {'secret_file = "secret"': 'key_file = "key.pem"', '"hs256"': '"es256"'}),
        (
            "haproxy.cfg",
            {"-m str HS256": "-m str ES256", "jwt_verify(HS256,${GREENROOM_PASS_SECRET})": f"jwt_verify(ES256,{tmp_path}/public.pem)"},
        ),
    ):
        text = (tmp_path / file).read_text()
        for written, instead in change.items():
            assert written in text
            text = text.replace(written, instead)
        (tmp_path / file).write_text(text)

    def signed(by: ec.EllipticCurvePrivateKey, **claims: Any) -> str:
        said = jwt(alg="ES256", **claims).rpartition(".")[0]
        r, s = decode_dss_signature(by.sign(said.encode(), ec.ECDSA(SHA256())))
        return f"{said}.{base64.urlsafe_b64encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big')).rstrip(b'=').decode()}"

    places = ("--config", str(tmp_path / "greenroom.toml"), "--control", "127.0.0.1:0", "--data", str(tmp_path / "data"))
    running = greenroom.run("serve", *places)
    with running_proxy(name, tmp_path) as proxy:
        greenroom.eventually(lambda: "\nready" in running.output, lambda: running.output, START_S)
        greenroom.eventually(lambda: listens(proxy, tmp_path, at["proxy"]), lambda: (tmp_path / "proxy.log").read_text())
        inside = visitor_class(("127.0.0.1", at["proxy"]))
        assert not inside.get("/shop").waiting
        assert inside.cookies["__greenroom_pass"].count(".") == 2

        def let_by(value: str) -> bool:
            visitor = visitor_class(("127.0.0.1", at["proxy"]), cookies={"__greenroom_pass": value})
            return not visitor.get("/shop").waiting

        assert let_by(signed(key)), "as greenroom signs it"
        forged = [
            signed(other),
            jwt(public.decode()),
            jwt(public.decode(), alg="ES256"),
            jwt(alg="none"),
            signed(key, host="other.example.com"),
        ]
        assert [one for one in forged if let_by(one)] == []
        running.kill()
        assert let_by(signed(key)), "HAProxy asks no one"
