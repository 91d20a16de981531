"""Native passes as greenroom makes them, and as an attacker would."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

from real_proxies import SECRET, link_secret


def jwt(secret: str = SECRET, alg: str = "HS256", **claims: Any) -> str:
    """A pass, as made by greenroom or forged."""
    whole = {
        "aud": "shop",
        "host": "shop.example.com",
        "path": "/",
        "exp": int(time.time()) + 4,
        **claims,
    }
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
        for part in ({"alg": alg, "typ": "JWT"}, whole)
    ]
    signature = hmac.digest(secret.encode(), b".".join(parts), "sha256") if alg != "none" else b""
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()


def link(
    secret: str = SECRET,
    room: str = "shop",
    host: str = "shop.example.com",
    path: str = "/",
    left_s: int = 4,
) -> str:
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
        "changed claims": lambda: ".".join(
            [jwt(host="x").split(".")[0], jwt(exp=9_999_999_999).split(".")[1], jwt().split(".")[2]]
        ),
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


def until(name: str, left_s: int, host: str = "shop.example.com") -> str:
    """A genuine pass for this proxy that is good for so many seconds."""
    return (
        jwt(host=host, exp=int(time.time()) + left_s)
        if name.startswith("haproxy")
        else link(host=host, left_s=left_s)
    )
