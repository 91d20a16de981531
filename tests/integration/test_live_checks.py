"""`/.well-known/greenroom/live`: the gateway's own answer to health checks of a proxy in front,
whatever the rooms do.
"""

import contextlib
import csv
import io
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ports import free_port
from tests.conftest import eventually

LIVE = "/.well-known/greenroom/live"
FULL = """
origin = "{origin}"
{top}
[[rooms]]
name = "shop"
host = "shop.example.com"
cookie_suffix = "shop"
additional_routes = [{{ host = "www.example.com" }}]
total_active_users = 1
new_users_per_minute = 1
queue_all = true
"""
HAPROXY = """
global
    stats socket {folder}/stats level admin
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
    timeout check 30s
frontend visitors
    bind 127.0.0.1:{port}
    default_backend greenroom
backend greenroom
    option httpchk{check}
    server greenroom 127.0.0.1:{greenroom} check inter 100ms fall 2 rise 1
"""


def asked(running: Any, raw: bytes) -> bytes:
    with socket.create_connection(running.address, 30) as sock:
        sock.sendall(raw)
        parts = []
        while part := sock.recv(65_536):
            parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PURGE"])
@pytest.mark.parametrize(
    "version_and_host",
    [
        "HTTP/1.0\r\n",
        "HTTP/1.1\r\nHost: shop.example.com\r\n",
        "HTTP/1.1\r\nHost: 10.0.0.7:8080\r\n",
    ],
)
def test_every_method_version_and_host(rooms_full: Any, method: str, version_and_host: str) -> None:
    raw = f"{method} {LIVE} {version_and_host}Connection: close\r\n\r\n".encode()
    head, _, body = asked(rooms_full, raw).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    assert body == (b"" if method == "HEAD" else b"live\n")
    assert b"no-store" in head
    assert b"Set-Cookie" not in head


@pytest.fixture(scope="module")
def rooms_full(shared_greenroom: Any) -> Any:
    return shared_greenroom.config(FULL.format(origin="http://127.0.0.1:9", top=""))


@pytest.mark.parametrize("target", [f"{LIVE}?a=1", f"{LIVE}/", f"{LIVE}/x", f"{LIVE};x"])
def test_nothing_else_is_answered(rooms_full: Any, target: str) -> None:
    raw = f"GET {target} HTTP/1.1\r\nHost: shop.example.com\r\nConnection: close\r\n\r\n".encode()
    assert b"live\n" not in asked(rooms_full, raw)


def test_a_thousand_pipelined_checks_and_one_visitor_in_order(rooms_full: Any) -> None:
    check = f"GET {LIVE} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
    visitor = b"GET / HTTP/1.1\r\nHost: shop.example.com\r\nConnection: close\r\n\r\n"
    sent = asked(rooms_full, check * 1_000 + visitor)
    assert sent.count(b"\r\n\r\nlive\n") == 1_000
    assert b"waiting" in sent.rpartition(b"live\n")[2].lower()


def test_it_takes_no_place_and_reaches_no_origin(rooms_full: Any) -> None:
    before = rooms_full.room("shop")
    for _ in range(20):
        assert rooms_full.visitor().get(LIVE).status == 200
    assert rooms_full.room("shop") == before


def test_it_can_be_switched_off(greenroom: Any, origin: Any) -> None:
    running = greenroom.config(FULL.format(origin=origin.url, top="answer_live_checks = false"))
    assert running.visitor().get(LIVE).refresh_s, "the waiting page"


@contextlib.contextmanager
def haproxy(folder: Path, greenroom: int, check: str) -> Iterator[int]:
    port = free_port()
    file = folder / "haproxy.cfg"
    file.write_text(HAPROXY.format(folder=folder, port=port, greenroom=greenroom, check=check))
    process = subprocess.Popen(["haproxy", "-f", str(file)], stderr=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.kill()
        process.wait()


def state(folder: Path) -> dict[str, str]:
    """What HAProxy knows of the server; empty while it starts."""
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(folder / "stats"))
            sock.sendall(b"show stat\n")
            text = b"".join(iter(lambda: sock.recv(65_536), b"")).decode()
    except OSError:
        return {}
    rows = csv.DictReader(io.StringIO(text.removeprefix("# ")))
    return next(
        row for row in rows if row["svname"] == "greenroom" and row["pxname"] == "greenroom"
    )


def checked(folder: Path) -> dict[str, str]:
    """After HAProxy has judged the server by a finished check."""
    return eventually(
        lambda: (row := state(folder)).get("check_status", "INI").startswith("L7") and row,
        "HAProxy checks",
    )


def test_haproxy_keeps_a_full_greenroom_up(
    rooms_full: Any, tmp_path: Path, visitor_class: Any
) -> None:
    with haproxy(tmp_path, rooms_full.address[1], f" OPTIONS {LIVE}") as port:
        row = checked(tmp_path)
        assert (row["status"], row["check_code"]) == ("UP", "200")
        page = visitor_class(("127.0.0.1", port)).get("/")
        assert (page.status, page.refresh_s > 0) == (200, True), "the waiting page, not HAProxy's"


def test_haproxy_with_its_usual_check_does_not(rooms_full: Any, tmp_path: Path) -> None:
    """Why the path is there."""
    with haproxy(tmp_path, rooms_full.address[1], ""):
        checked(tmp_path)
        eventually(lambda: state(tmp_path)["status"] == "DOWN", "HAProxy takes it for down")
