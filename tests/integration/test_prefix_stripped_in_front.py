"""A real Traefik takes `/gw` off the front: the ticket comes back, and one browser has one place."""

import http.cookiejar
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from ports import free_port
from tests.conftest import eventually

TRAEFIK = Path(sys.executable).parent / "traefik"
STATIC = """
entryPoints: {{ web: {{ address: "127.0.0.1:{port}" }} }}
providers: {{ file: {{ filename: {folder}/dynamic.yaml }} }}
"""
DYNAMIC = """
http:
  routers:
    gw: {{ rule: "PathPrefix(`/gw`)", service: greenroom, middlewares: [strip] }}
  middlewares:
    strip: {{ stripPrefix: {{ prefixes: [/gw] }} }}
  services:
    greenroom: {{ loadBalancer: {{ servers: [{{ url: "http://127.0.0.1:{greenroom}" }}] }} }}
"""
CONFIG = """
origin = "{origin}"
trusted_proxies = ["127.0.0.1"]

[[rooms]]
name = "shop"
host = "*"
path = "/checkout"
total_active_users = 100
new_users_per_minute = 100
"""


def test_one_browser_below_a_stripped_prefix_has_one_place(
    greenroom: Any, origin: Any, tmp_path: Path
) -> None:
    running = greenroom.config(CONFIG.format(origin=origin.url))
    port = free_port()
    (tmp_path / "traefik.yaml").write_text(STATIC.format(port=port, folder=tmp_path))
    (tmp_path / "dynamic.yaml").write_text(DYNAMIC.format(greenroom=running.address[1]))
    proxy = subprocess.Popen(
        [TRAEFIK, f"--configfile={tmp_path / 'traefik.yaml'}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        jar = http.cookiejar.CookieJar()
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        browser.addheaders = [("Accept", "text/html")]

        def visit(path: str = "/gw/checkout") -> int:
            try:
                with browser.open(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
                    return int(answer.status)
            except OSError:
                return 0

        eventually(lambda: visit() == 200, "Traefik forwards")
        assert [visit(path) for path in ["/gw/checkout", "/gw/checkout/pay"] * 2] == [200] * 4
        assert [cookie.path for cookie in jar] == ["/gw/checkout"]
        assert running.room("shop")["active_users"] == 1
    finally:
        proxy.kill()
        proxy.wait()


def test_a_ticket_that_never_comes_back_is_noticed(
    greenroom: Any, origin: Any, visitor_class: Any
) -> None:
    full = CONFIG.replace("total_active_users = 100", "total_active_users = 1\nqueue_all = true")
    running = greenroom.config(full.format(origin=origin.url))
    for _ in range(4):
        browser = visitor_class(running.address)  # what the page asks, without its cookie
        assert browser.get("/checkout", headers={"Greenroom-Update": "1"}).waiting
    assert running.metric('greenroom_room_requests_total{result="ticket_lost",room="shop"}') == 1
    assert running.output.count("tickets_do_not_come_back") == 1
    assert "let it send X-Forwarded-Prefix" in running.output
