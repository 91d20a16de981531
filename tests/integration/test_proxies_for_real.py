"""The configurations in examples/, with the real proxies: a visitor's whole visit, attacks, and
greenroom gone.
"""

import json
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from proxy_chain import REFUSED, Chain, seen
from real_proxies import FORWARDING

from greenroom.cli.open_until import PROXIES

HELD_STATUS = {
    "nginx-native-pass": 200,
    "haproxy-native-pass": 200,
    "nginx": 200,
    "caddy": 200,
    "envoy": 429,
    "haproxy": 200,
    "haproxy-spoe": 200,
    "apache": 200,
    "traefik": 429,
}
"""Envoy takes every 2xx for a yes and every 5xx for a broken service, so a waiting page is a 429
there.
"""

UNREADABLE = (b"X-Odd: a\x01b\r\n", b"".join(b"X-%d: 1\r\n" % line for line in range(200)))
"""Header lines that some proxies pass on and greenroom reads in no request."""

RESOLVED = {"traefik": (b"/open/../shop", b"//shop", b"/%2e%2e/shop")}
"""What a proxy resolves itself, asks about as resolved, and would forward so."""


def test_a_proxy_asks_and_forwards(chain: Chain) -> None:
    first, second = chain.visitor(), chain.visitor()
    first.cookies["own"] = "1"
    answer = first.get("/shop?a=1")
    assert (answer.status, answer.headers["X-Origin"]) == (200, "yes"), answer.text
    assert "__cfwaitingroom" in first.cookies, (
        "the ticket goes to the visitor with the application's answer"
    )
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
    first.cookies["own"] = "1" * 7_000
    assert seen(first.get("/shop"))["cookie"] == f"own={'1' * 7_000}", (
        "nginx needs larger buffers for the answer than it has by default"
    )
    del first.cookies["own"]
    assert "cookie" not in seen(first.get("/shop"))
    update = second.get("/shop", headers={"Greenroom-Update": "1", "Accept": "application/json"})
    assert update.told["inWaitingRoom"]
    posted = second.get("/shop", "POST", body=b"x" * 10_000)
    assert posted.waiting, "a body is never forwarded without a decision"
    assert chain.greenroom.room("shop")["active_users"] == 1

    for target in (b"/open/../shop", b"/%2e%2e/shop", b"/a%5cb"):
        if (
            chain.name not in FORWARDING or target == b"/a%5cb"
        ):  # the gateway itself forwards the canonical form
            status = chain.raw(
                b"GET %b HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n" % target
            )
            resolved = target in RESOLVED.get(chain.name, ())
            assert status in ((HELD_STATUS[chain.name],) if resolved else (400, 404)), target
    assert (
        chain.raw(
            b"GET / HTTP/1.1\r\nHost: shop.example\r\nHost: other.example\r\nConnection: close\r\n\r\n"
        )
        == 400
    )

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

    with ThreadPoolExecutor(1) as pool:
        chain.greenroom.process.send_signal(signal.SIGSTOP)
        in_flight = pool.submit(second.get, "/shop")
        time.sleep(0.3)  # until the proxy has sent it on, which nothing shows
        chain.greenroom.kill()
        cut_off = in_flight.result()
    if chain.name != "traefik":
        assert cut_off.status in (502, 503, 504), cut_off.text
        assert cut_off.headers["refresh"] == "10", "the page tries again, also in mid-request"
    if "native-pass" in chain.name:
        chain.eventually(
            lambda: first.get("/shop").status == 503,
            "the pass is over: it is good for at most five seconds",
        )
        served = len(chain.origin.requests)
    closed = first.get("/shop")
    assert len(chain.origin.requests) == served, "nothing is forwarded without a decision"
    if chain.name == "traefik":  # has no page of its own for this
        assert (closed.status, closed.body) == (500, b"")
        return
    assert (closed.status, closed.waiting) == (503, True)
    assert (closed.headers["refresh"], "no-store" in closed.headers["cache-control"]) == (
        "10",
        True,
    ), "the visitor's page tries again"
    if chain.name == "haproxy-spoe":
        took_s = []
        while len(took_s) < 5 and min(took_s, default=9) > 1.5:  # a machine may stand still
            start_s = time.monotonic()
            assert first.get("/shop").status == 503
            took_s.append(time.monotonic() - start_s)
        assert min(took_s) < 1.5, "no request waits for what is known to be gone"


@pytest.mark.parametrize("chain", ["haproxy-spoe"], indirect=True)
def test_haproxy_fails_open_only_when_told_for_a_while_and_says_so(
    chain: Chain, tmp_path: Path
) -> None:
    first, second = chain.visitor(), chain.visitor()
    second.cookies["own"] = "1"
    assert not first.get("/shop").waiting
    config, runtime = tmp_path / "haproxy.cfg", str(tmp_path / "runtime")
    config.write_text(
        config.read_text().replace(
            "global\n", f"global\n    stats socket {runtime} level admin\n", 1
        )
    )

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
    chain.eventually(
        lambda: not second.get("/shop").waiting, "greenroom is gone, and the operator has said so"
    )
    assert seen(second.get("/shop"))["cookie"].startswith("own=1")
    log = (tmp_path / "proxy.log").read_text()
    assert "<1>greenroom is unreachable, passed undecided: 127.0.0.1 GET /shop" in log, (
        log
    )  # 1 is an alert
    until_s = reopened(2)
    chain.eventually(lambda: second.get("/shop").status == 503, "closed again by itself")
    assert time.time() >= until_s - 1
    reopened(100_000)
    assert second.get("/shop").status == 503, "an hour is the most"
    reopened(600)
    assert not second.get("/shop").waiting


@pytest.mark.parametrize("chain", ["nginx", "nginx-native-pass"], indirect=True)
def test_how_large_a_body_may_be_is_said_where_it_goes(chain: Chain, tmp_path: Path) -> None:
    config, body = tmp_path / "nginx.conf", b"x" * 2_000_000
    config.write_text(
        config.read_text().replace(
            "location / {", "location / {\n            client_max_body_size 3m;", 1
        )
    )
    chain.restart()
    first, second = chain.visitor(), chain.visitor()
    chain.eventually(lambda: first.get("/shop").status == 200, "greenroom is asked again")
    first.cookies.pop("__greenroom_pass", None)
    assert len(json.loads(first.get("/shop", "POST", body=body).body)["body"]) == len(body)
    held = second.get("/shop", "POST", body=body)
    assert (held.waiting, held.status, b"line" in held.body) == (True, 200, True)


def undecided(name: str, folder: Path) -> str:
    """What the proxy has logged about visitors who went on without a decision."""
    log = folder / ("proxy.log" if name == "caddy" else "undecided.log")
    return "\n".join(
        line
        for line in log.read_text().splitlines()
        if "greenroom is unreachable, passed undecided" in line
    )


@pytest.mark.parametrize("chain", ["nginx", "nginx-native-pass", "caddy"], indirect=True)
def test_a_proxy_fails_open_only_when_told_for_a_while_and_says_so(
    chain: Chain, tmp_path: Path
) -> None:
    proxy = chain.name.partition("-")[0]

    def opened(seconds: int) -> int:
        """Opens as an operator does; until when. nginx counts in steps of ten seconds, and is
        started again to read the file.
        """
        now_s = int(time.time())
        (tmp_path / "open-until.map").write_text(PROXIES[proxy](now_s, now_s + seconds) + "\n")
        if proxy == "nginx":
            chain.restart()
        return now_s + seconds

    first, second = chain.visitor(), chain.visitor()
    second.cookies["own"] = "1"
    assert not first.get("/shop").waiting
    opened(600)
    chain.eventually(lambda: chain.raw(REFUSED) == 400, "greenroom is asked")
    assert second.get("/shop").waiting, "greenroom decides as long as it lives"
    served = len(chain.origin.requests)
    for odd in UNREADABLE:
        assert (
            chain.raw(
                b"GET /shop HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n%b\r\n" % odd
            )
            >= 400
        )
    assert len(chain.origin.requests) == served, (
        "a request that greenroom refuses to read is not one that it cannot be asked about"
    )
    opened(0)
    chain.greenroom.kill()
    chain.eventually(lambda: second.get("/shop").status == 503, "closed unless told otherwise")
    assert undecided(chain.name, tmp_path) == ""
    opened(600)
    chain.eventually(
        lambda: not second.get("/shop").waiting, "greenroom is gone, and the operator has said so"
    )
    assert seen(second.get("/shop"))["cookie"].startswith("own=1")
    served = len(chain.origin.requests)
    assert not second.get("/a/b?c=d", "POST", body=b"x" * 10_000).waiting
    assert chain.origin.requests[served:] == ["POST /a/b?c=d"], "as it came"
    told = ("127.0.0.1", "POST", "/a/b?c=d")
    chain.eventually(
        lambda: all(part in undecided(chain.name, tmp_path) for part in told),
        "written after the answer",
    )
    until_s = opened(13 if proxy == "nginx" else 4)
    chain.eventually(lambda: second.get("/shop").status == 503, "closed again by itself")
    assert until_s - 10 <= time.time()
    if proxy == "caddy":
        opened(4_000)
        assert second.get("/shop").status == 503, "an hour is the most"
