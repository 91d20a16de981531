"""The configurations in examples/, with the real proxies: a visitor's whole visit, attacks, and greenroom gone."""

import http.client
import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BIN = Path(sys.executable).parent
START_S = 90.0
"""Two servers start beside the other tests."""

FILES = {"nginx": "nginx.conf", "caddy": "Caddyfile", "envoy": "envoy.yaml", "haproxy": "haproxy.cfg"}
COMMANDS: dict[str, list[str]] = {
    "nginx": [shutil.which("nginx") or "nginx", "-p", "{folder}", "-c", "{file}", "-g", "daemon off;"],
    "caddy": [str(BIN / "caddy"), "run", "--config", "{file}", "--adapter", "caddyfile"],
    "envoy": [str(BIN / "envoy"), "-c", "{file}", "--concurrency", "1", "--log-level", "error", "--use-dynamic-base-id"],
    "haproxy": [shutil.which("haproxy") or "haproxy", "-f", "{file}"],
}
HELD_STATUS = {"nginx": 200, "caddy": 200, "envoy": 429, "haproxy": 200}
"""Envoy takes every 2xx for a yes and every 5xx for a broken service, so a waiting page is a 429 there."""


@dataclass
class Chain:
    """One proxy before greenroom and the application."""

    name: str
    address: tuple[str, int]
    greenroom: Any
    origin: Any
    visitor_class: Any

    def visitor(self) -> Any:
        return self.visitor_class(self.address)

    def raw(self, data: bytes) -> int:
        """The status that these bytes get."""
        with socket.create_connection(self.address, timeout=20) as sock:
            sock.sendall(data)
            answer = http.client.HTTPResponse(sock)
            answer.begin()
            return answer.status


def ports(text: str, proxy: int, greenroom: int, origin: int) -> str:
    for written, real in ((8000, proxy), (8082, greenroom), (8080, greenroom), (3000, origin)):
        text = re.sub(rf"\b{written}\b", str(real), text)
    return text


@pytest.fixture(params=FILES)
def chain(request: Any, tmp_path: Path, greenroom: Any, origin: Any, free_port: Callable[[], int]) -> Iterator[Chain]:
    name = request.param
    at = {"proxy": free_port(), "greenroom": free_port(), "origin": int(origin.url.rpartition(":")[2])}
    for file in ("greenroom.toml", FILES[name]):
        text = ports((EXAMPLES / name / file).read_text(), **at).replace("total_active_users = 5", "total_active_users = 1")
        (tmp_path / file).write_text(text)
    subprocess_command = [part.format(folder=tmp_path, file=tmp_path / FILES[name]) for part in COMMANDS[name]]
    command = "serve" if name == "haproxy" else "decide"
    config = ("--config", str(tmp_path / "greenroom.toml"), "--control", "127.0.0.1:0", "--data", str(tmp_path / "data"))
    running = greenroom.run(command, *config)
    with open(tmp_path / "proxy.log", "w") as log:
        proxy = subprocess.Popen(
            subprocess_command, stdout=log, stderr=log, cwd=tmp_path, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        )
    try:
        greenroom.eventually(lambda: "\nready" in running.output, lambda: running.output, START_S)

        def listens() -> bool:
            assert proxy.poll() is None, (tmp_path / "proxy.log").read_text()
            with socket.socket() as sock:
                return sock.connect_ex(("127.0.0.1", at["proxy"])) == 0

        greenroom.eventually(listens, lambda: (tmp_path / "proxy.log").read_text())
        yield Chain(name, ("127.0.0.1", at["proxy"]), running, origin, request.getfixturevalue("visitor_class"))
    finally:
        proxy.terminate()
        proxy.wait(20)


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
        if chain.name != "haproxy" or target == b"/a%2fb":  # the gateway itself forwards the canonical form
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
    closed = first.get("/shop")
    assert (closed.status, closed.waiting) == (503, True), "nothing is forwarded without a decision"
    assert len(chain.origin.requests) == served
