"""Native passes with the real nginx and HAProxy: what lets by, what does not, and that nothing
leaks from one visitor to another.
"""

import base64
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from pass_forgery import FORGED, GENUINE, jwt
from proxy_chain import Chain, seen
from real_proxies import START_S, listens, running_proxy, write_configuration


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
    assert (by.status, by.waiting, "__cfwaitingroom" in by.text) == (200, False, False), (
        "the proxy let it by"
    )
    among = [
        ("a=1", "PASS", "b=2", "__cfwaitingroom=x", "c=3"),
        ("a=1", "__cfwaitingroom=x", "b=2", "PASS", "c=3", "d=4"),
    ]
    for order in {
        *itertools.permutations(("a=1", "b=2", "__cfwaitingroom=x", "PASS")),
        *among,
        ("PASS", "a=1", "__cfwaitingroom=x"),
    }:
        sent = "; ".join(order).replace("PASS", f"__greenroom_pass={genuine()}")
        own = "; ".join(one for one in order if one not in ("__cfwaitingroom=x", "PASS"))
        assert seen(chain.visitor().get("/shop", headers={"Cookie": sent}))["cookie"] == own, (
            "the application sees neither ticket nor pass"
        )
    many = "; ".join(
        f"a{number}=1" for number in range(100)
    )  # each one a choice too many for a careless expression
    without = chain.visitor().get("/shop", headers={"Cookie": many})
    assert (without.status, without.waiting) == (200, True), "asked about"
    assert (
        seen(
            chain.visitor().get(
                "/shop", headers={"Cookie": f"{many}; __greenroom_pass={genuine()}"}
            )
        )["cookie"]
        == many
    )
    assert "cookie" not in seen(asks(genuine()))
    for name, forged in FORGED[chain.name].items():
        assert asks(forged()).waiting, name
    for path in (
        "/shop?greenroom=leave",
        "/a;b",
        "/a/../b",
        "//shop",
        "/%2e%2e/shop",
        "/shop/..",
        "/a%2fb",
        "/.hidden",
    ):
        assert asks(genuine(), path).waiting, f"{path} is for greenroom to judge"
    assert asks(genuine(), **{"Greenroom-Update": "1"}).waiting
    offered = asks(
        genuine(),
        **{"Upgrade": "h2c", "Connection": "Upgrade, HTTP2-Settings", "HTTP2-Settings": "AAMAAABk"},
    )
    assert offered.waiting or "upgrade" not in seen(offered), (
        "on a connection with another protocol, no pass would be looked at"
    )
    for host in ("other.example.com", "shop.example.com.evil.example"):
        assert asks(genuine(), Host=host).waiting, host
    cookies = f"__greenroom_pass={FORGED[chain.name]['another secret']()}; __greenroom_pass={FORGED[chain.name]['another host']()}"
    assert chain.visitor().get("/shop", headers={"Cookie": cookies}).waiting
    for name in ("another secret", "another room", "another host", "expired"):
        overrides = {
            "X-HTTP-Method-Override": "OPTIONS",
            "X-Original-URI": "/open",
            "X-Forwarded-Host": "other.example.com",
        }
        assert asks(FORGED[chain.name][name](), **overrides).waiting, name
    before = len(chain.origin.requests)
    own = [
        f"__greenroom_pass={one}".encode()
        for one in (
            genuine(),
            FORGED[chain.name]["expired"](),
            FORGED[chain.name]["another secret"](),
        )
    ]
    hosts = (
        b"Host: shop.example.com\r\nHost: other.example.com\r\n",
        b"Host: other.example.com\r\nHost: shop.example.com\r\n",
    )
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

    def let_by(value: str, host: str = "shop.example.com", path: str = "/shop") -> bool:
        visitor.cookies = {"__greenroom_pass": value}
        return not visitor.get(path, headers={"Host": host}).waiting

    with_port = (
        chain.name != "nginx-native-pass"
    )  # whose passes are for one Host header, byte for byte: a browser's is always the same
    for _ in range(10):
        value, made = GENUINE[chain.name](), time.monotonic()
        found = [
            let_by(value),
            let_by(value),
            let_by(value, "shop.example.com:80"),
            let_by(value, "Shop.example.com"),
        ]
        if time.monotonic() - made < 2:
            break  # else the machine stood still, and the pass may have ended meanwhile
    assert found == [True, True] + [with_port] * 2
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
    chain.eventually(lambda: not let_by(value), "it is over after four seconds")


@pytest.mark.parametrize("chain", GENUINE, indirect=True)
def test_a_visitor_with_a_pass_stays_in_and_its_pass_is_renewed(chain: Chain) -> None:
    visitor, other, passes = chain.visitor(), chain.visitor(), set()
    end = time.monotonic() + 8
    while time.monotonic() < end or len(passes) < 2:
        assert time.monotonic() < end + 60, "the pass is not renewed"
        assert not visitor.get("/shop").waiting
        passes.add(visitor.cookies.get("__greenroom_pass"))
        assert other.get("/shop").waiting
        time.sleep(0.3)  # as a visitor reads
    assert chain.greenroom.room("shop")["active_users"] == 1


def test_haproxy_verifies_es256_with_the_public_key_alone(
    tmp_path: Path, greenroom: Any, origin: Any, free_port: Callable[[], int], visitor_class: Any
) -> None:
    """And takes neither that key for a secret, nor another key, nor none."""
    key, other = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    name, at = (
        "haproxy-native-pass",
        {
            "proxy": free_port(),
            "greenroom": free_port(),
            "origin": int(origin.url.rpartition(":")[2]),
        },
    )
    write_configuration(name, tmp_path, at)
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    (tmp_path / "public.pem").write_bytes(public)
    for file, change in (
        (
            "greenroom.toml",
            {'secret_file = "secret"': 'key_file = "key.pem"', '"hs256"': '"es256"'},
        ),
        (
            "haproxy.cfg",
            {
                "-m str HS256": "-m str ES256",
                "jwt_verify(HS256,${GREENROOM_PASS_SECRET})": f"jwt_verify(ES256,{tmp_path}/public.pem)",
            },
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

    places = (
        "--config",
        str(tmp_path / "greenroom.toml"),
        "--control",
        "127.0.0.1:0",
        "--data",
        str(tmp_path / "data"),
    )
    running = greenroom.run("serve", *places)
    with running_proxy(name, tmp_path) as proxy:
        greenroom.eventually(lambda: "\nready" in running.output, lambda: running.output, START_S)
        greenroom.eventually(
            lambda: listens(proxy, tmp_path, at["proxy"]),
            lambda: (tmp_path / "proxy.log").read_text(),
        )
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
