"""Real greenroom processes on Unix sockets, with real proxies in front: nothing is easier to pass
and nothing is lumped together.
"""

import contextlib
import http.client
import json
import signal
import socket
import stat
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from integrations import proxy

from greenroom.cli.show import control_connection

ROOMS = """[[rooms]]
name = "{name}"
host = "full.example"
total_active_users = 1
new_users_per_minute = 100
pace_admissions = false
"""
VISITORS = 30
START_S = 90.0
"""For what a process does while it starts or ends beside others."""


@contextlib.contextmanager
def over(path: Path) -> Iterator[http.client.HTTPConnection]:
    """A connection to this socket."""
    connection = control_connection(f"unix:{path}", START_S)
    try:
        yield connection
    finally:
        connection.close()


def asked(path: Path, target: str = "/a", **headers: str) -> http.client.HTTPResponse:
    with over(path) as connection:
        connection.request(
            "GET",
            target,
            headers={
                "Host": "full.example",
                **{name.replace("_", "-"): text for name, text in headers.items()},
            },
        )
        answer = connection.getresponse()
        answer.body = answer.read()  # type: ignore[attr-defined]
        return answer


@pytest.mark.parametrize("name", ["nginx", "haproxy-spoe", "haproxy", "caddy", "envoy"])
def test_a_proxy_reaches_greenroom_over_a_file(
    name: str, tmp_path: Path, greenroom: Any, origin: Any, visitor_class: Any
) -> None:
    path = tmp_path / "greenroom.sock"
    room = ROOMS.format(name="shop")
    with proxy(
        name, tmp_path, greenroom, origin.url, room, socket_file=path, patient=False
    ) as address:
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        inside, waiting = (
            visitor_class(address, "full.example"),
            visitor_class(address, "full.example"),
        )
        first = inside.get("/shop?a=1")
        assert not first.waiting
        sent = {key.lower(): value for key, value in json.loads(first.body)["headers"]}
        assert "__cfwaitingroom" not in sent.get("cookie", "")
        address_seen = ip_address(
            sent["x-forwarded-for"]
        )  # Envoy says the machine's own address where another proxy says 127.0.0.1
        assert address_seen.is_loopback or name == "envoy"
        held = waiting.get("/shop")
        assert (held.waiting, held.status, b"line" in held.body) == (
            True,
            429 if name == "envoy" else 200,
            True,
        ), held.text
        forged = {
            "X-Forwarded-For": "unix:",
            "X-Original-Method": "OPTIONS",
            "X-Original-URI": "/open",
            "Forwarded": "for=unix",
        }
        assert visitor_class(address, "full.example").get("/shop", headers=forged).waiting
        assert not inside.get("/shop", "POST", body=b"x" * 10_000).waiting
        running = greenroom.processes[-1]
        running.kill()
        assert path.exists(), "nothing took it away"
        before = len(origin.requests)
        assert (inside.get("/shop").status, len(origin.requests)) == (503, before), (
            "nothing is forwarded without a decision"
        )
        config = (
            "--config",
            str(tmp_path / "greenroom.toml"),
            "--control",
            "127.0.0.1:0",
            "--data",
            str(tmp_path / "data"),
        )
        again = greenroom.run(
            "serve" if name == "haproxy" else "decide", *config, "--listen", f"unix:{path}"
        ).wait_until_ready()
        greenroom.eventually(
            lambda: not inside.get("/shop").waiting,
            "the proxy finds the new file, and the place is still there",
        )
        second = greenroom.run(
            *again.process.args[1:-4], "--data", str(tmp_path / "other"), "--listen", f"unix:{path}"
        )
        assert second.end(START_S) == 2
        assert f"cannot listen on unix:{path}" in second.output
        assert "another program is already listening there" in second.output
        assert visitor_class(address, "full.example").get("/shop").waiting
        again.send(signal.SIGTERM)
        assert again.end(START_S) == 0
        assert not path.exists()


def test_visitors_of_whom_the_proxy_says_nothing_have_no_address_and_no_common_share(
    greenroom: Any, origin: Any, tmp_path: Path
) -> None:
    path = tmp_path / "greenroom.sock"
    rules = '[[rooms.rules]]\nexpression = "{}"\n'
    room = ROOMS.format(name="shop").replace(
        "total_active_users = 1", "total_active_users = 1000\nconfirm_newcomers = false"
    ) + rules.format("ip.src eq 127.0.0.1")
    greenroom.config(
        f'origin = "{origin.url}"\nlisten = "unix:{path}"\n[limits]\nconnections_per_address = 3\n{room}',
        "--listen",
        f"unix:{path}",
    )
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(over(path)) for _ in range(VISITORS)]
        for connection in connections:
            connection.request("GET", "/a", headers={"Host": "full.example", "Accept": "text/html"})
        answers = [connection.getresponse() for connection in connections]
        sent = [json.loads(answer.read())["headers"] for answer in answers]
        assert {answer.status for answer in answers} == {200}, (
            "the limit for each address counts no one twice"
        )
        assert [{key.lower(): value for key, value in one}["x-forwarded-for"] for one in sent] == [
            "unknown"
        ] * VISITORS
        assert all(answer.headers["Set-Cookie"] for answer in answers), (
            "no rule took them for 127.0.0.1"
        )
    known = asked(
        path,
        X_Forwarded_For="192.0.2.1",
        X_Forwarded_Proto="https",
        User_Agent="Mozilla/5.0 (compatible; Googlebot/2.1)",
    )
    assert ["x-forwarded-for", "192.0.2.1"] in [
        [key.lower(), value] for key, value in json.loads(known.body)["headers"]
    ]  # type: ignore[attr-defined]
    bare = b"GET /a HTTP/1.0\r\n\r\n"
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(path))
        caller.sendall(bare)
        assert b"X-Origin" in caller.recv(10_000), "without a Host it is for the only host there is"


def test_workers_share_one_file(greenroom: Any, origin: Any, tmp_path: Path) -> None:
    path, control = tmp_path / "greenroom.sock", tmp_path / "control.sock"
    room = ROOMS.format(name="shop")
    running = greenroom.config(
        f'origin = "{origin.url}"\n{room}',
        "--workers",
        "2",
        "--listen",
        f"unix:{path}",
        "--control",
        f"unix:{control}",
        ready=False,
    )
    greenroom.eventually(
        lambda: running.output.count(": ready") == 2, lambda: running.output, START_S
    )
    assert f"visitors   unix:{path}" in running.output
    for one in (control, tmp_path / "control.sock.2"):
        assert asked(one, "/readyz").status == 200
    greenroom.eventually(
        lambda: asked(path, Accept="text/html").headers["X-Origin"],
        "a worker has fetched the permit",
    )
    assert not any(asked(path, Accept="text/html").headers["X-Origin"] for _ in range(20)), (
        "one place, whichever worker is asked"
    )
    running.send(signal.SIGTERM)
    assert running.end(START_S) == 0
    assert [file.name for file in tmp_path.iterdir() if stat.S_ISSOCK(file.lstat().st_mode)] == []
    status = 'status_listen = "unix:{}"\n[[status_pages]]\n'.format(tmp_path / "status.sock")
    refused = greenroom.config(
        f'origin = "{origin.url}"\n{status}{room}', "--workers", "2", ready=False
    )
    assert (
        refused.end(START_S),
        "status_listen must be an address and port with --workers" in refused.output,
    ) == (2, True)


def test_the_control_listener_over_a_file_asks_how_the_browser_is_reached(
    greenroom: Any, tmp_path: Path
) -> None:
    path = tmp_path / "control.sock"
    running = greenroom.serve("--control", f"unix:{path}", ready=False)
    greenroom.eventually(lambda: "\nready" in running.output, lambda: running.output, START_S)
    assert "after ssh -L 8081:" in running.output
    assert asked(path, "/sign-in", Host="127.0.0.1:8081").status == 200, "a program of this machine"
    by_proxy = {"X_Forwarded_For": "192.0.2.1"}
    assert asked(path, "/sign-in", **by_proxy, X_Forwarded_Proto="http").status == 403, (
        "passwords would cross the network"
    )
    assert asked(path, "/sign-in", **by_proxy).status == 403
    assert asked(path, "/sign-in", **by_proxy, X_Forwarded_Proto="https").status == 200
    running.send(signal.SIGTERM)
    assert running.end(START_S) == 0
    assert not path.exists()


def test_systemd_keeps_the_file_while_greenroom_ends(
    greenroom: Any, origin: Any, tmp_path: Path
) -> None:
    path = tmp_path / "greenroom.sock"
    systemd = ("systemd-socket-activate", "-l", str(path), "--fdname=visitors")
    room = ("--origin", origin.url, "--total-active-users", "1", "--new-users-per-minute", "1")
    places = ("--control", "127.0.0.1:0", "--data", str(tmp_path / "data"))
    running = greenroom.run("serve", *room, *places, within=systemd)
    greenroom.eventually(path.exists, "systemd's tool listens")
    assert asked(path).headers["X-Origin"] == "yes", "the very first visitor starts greenroom"
    greenroom.eventually(
        lambda: f"visitors   unix:{path}" in running.output, lambda: running.output, START_S
    )
    running.send(signal.SIGTERM)
    assert running.end(START_S) == 0
    assert path.exists(), "it is systemd's"
