"""Every way of putting greenroom before an application, started with real servers: the gateway,
proxies that ask or forward, middleware.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ports import free_port
from real_proxies import (
    START_S,
    command_of,
    hasten,
    listens,
    over_socket_file,
    running_proxy,
    write_configuration,
)

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
SERVERS = {
    "uvicorn": [
        "uvicorn",
        "plain_apps:asgi",
        "--host",
        "127.0.0.1",
        "--port",
        "{port}",
        "--no-proxy-headers",
    ],
    "gunicorn": ["gunicorn", "plain_apps:wsgi", "--bind", "127.0.0.1:{port}", "--threads", "8"],
}
Address = tuple[str, int]
Change = Callable[[str], str]


@contextlib.contextmanager
def gateway(_name: str, folder: Path, greenroom: Any, origin: str, rooms: str) -> Iterator[Address]:
    """greenroom alone."""
    path = folder / "greenroom.toml"
    path.write_text(f'origin = "{origin}"\n{rooms}')
    listen = ("--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--data", str(folder / "data"))
    yield greenroom.run("serve", "--config", str(path), *listen).wait_until_ready().address


@contextlib.contextmanager
def proxy(
    name: str,
    folder: Path,
    greenroom: Any,
    origin: str,
    rooms: str,
    change: Change | None = None,
    port: int = 0,
    socket_file: Path | None = None,
    patient: bool = True,
) -> Iterator[Address]:
    """A proxy with its configuration of examples/, `change`d; `rooms` must hold every visitor of
    the path /a%5cb of full.example.

    `socket_file`: it reaches greenroom over this Unix socket. `patient`: HAProxy waits for a
    greenroom that is gone as long as in the example.
    """
    at = {
        "proxy": port or free_port(),
        "greenroom": free_port(),
        "origin": int(origin.rpartition(":")[2]),
    }
    write_configuration(
        name,
        folder,
        at,
        rooms,
        over_socket_file(socket_file, at["greenroom"]) if socket_file else change,
    )
    if not patient:
        hasten(folder)
    config = (
        "--config",
        str(folder / "greenroom.toml"),
        "--control",
        "127.0.0.1:0",
        "--data",
        str(folder / "data"),
    )
    config += ("--listen", f"unix:{socket_file}") if socket_file else ()
    running = greenroom.run(command_of(name), *config)
    with running_proxy(name, folder) as started:
        greenroom.eventually(lambda: "\nready" in running.output, lambda: running.output, START_S)
        greenroom.eventually(
            lambda: listens(started, folder, at["proxy"]),
            lambda: (folder / "proxy.log").read_text(),
        )
        greenroom.eventually(lambda: asked(at["proxy"]), "greenroom is asked: it refuses this one")
        yield "127.0.0.1", at["proxy"]


def asked(port: int) -> bool:
    """Whether the proxy finds greenroom, which refuses this path."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        sock.sendall(b"GET /a%5cb HTTP/1.1\r\nHost: full.example\r\nConnection: close\r\n\r\n")
        return sock.recv(12)[-3:] in (b"400", b"404")


@contextlib.contextmanager
def middleware(
    name: str, folder: Path, greenroom: Any, _origin: str, rooms: str
) -> Iterator[Address]:
    """A Python application with greenroom inside; it is its own origin."""
    port = free_port()
    (folder / "greenroom.toml").write_text(f'data = "data"\n{rooms}')
    command, *arguments = [part.format(port=port) for part in SERVERS[name]]
    env = {
        "PATH": os.environ["PATH"],
        "GREENROOM_CONFIG": str(folder / "greenroom.toml"),
        "PYTHONPATH": str(ROOT / "tests/support"),
    }
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [BIN / command, *arguments],
            stdout=log,
            stderr=log,
            cwd=folder,
            env=env,
            start_new_session=True,
        )

    def answers() -> bool:
        assert process.poll() is None, (folder / "log").read_text()
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", port)) == 0

    try:
        greenroom.eventually(answers, (folder / "log").read_text, START_S)
        yield "127.0.0.1", port
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


PROXIES = ("nginx", "caddy", "envoy", "haproxy", "haproxy-spoe", "apache", "traefik")
INTEGRATIONS: dict[str, Any] = {
    **dict.fromkeys(PROXIES, proxy),
    **dict.fromkeys(SERVERS, middleware),
}


def with_http2(name: str, port: int, text: str) -> str:
    """The example's configuration, which speaks HTTP/2 without TLS too: on this port, or where it
    listens anyway.
    """
    apache = "LoadModule http2_module /usr/lib/apache2/modules/mod_http2.so\nProtocols h2c http/1.1\n\nListen"
    changed = {
        "nginx": lambda: re.sub(
            r"listen (127\.0\.0\.1:\d+);",
            rf"listen \1;\n        listen 127.0.0.1:{port} http2;",
            text,
            count=1,
        ),
        "haproxy": lambda: re.sub(
            r"(bind 127\.0\.0\.1:\d+)", rf"\1\n    bind 127.0.0.1:{port} proto h2", text, count=1
        ),
        "caddy": lambda: text.replace(
            "auto_https off", "auto_https off\n\tservers {\n\t\tprotocols h1 h2c\n\t}", 1
        ),
        "envoy": lambda: text,  # finds it out by itself
        "traefik": lambda: text,  # so does Traefik
        "apache": lambda: text.replace("\nListen", f"\n{apache}", 1),
    }[name.partition("-")[0]]()
    assert changed != text or name in ("envoy", "traefik")
    return changed
