"""The real proxies with the configurations of examples/, on free ports."""

import base64
import contextlib
import getpass
import hmac
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BIN = Path(sys.executable).parent
START_S = 90.0
"""Two servers start beside the other tests."""

FILES = {
    "nginx": "nginx.conf",
    "caddy": "Caddyfile",
    "envoy": "envoy.yaml",
    "haproxy": "haproxy.cfg",
}
FILES |= {"haproxy-spoe": "haproxy.cfg", "apache": "httpd.conf", "traefik": "traefik.yaml"}
MORE_FILES = {"haproxy-spoe": ("spoe.cfg", "open-until.map"), "traefik": ("dynamic.yaml",)}
MORE_FILES |= dict.fromkeys(("nginx", "nginx-native-pass", "caddy"), ("open-until.map",))
FILES |= {"nginx-native-pass": "nginx.conf", "haproxy-native-pass": "haproxy.cfg"}
SECRET = "0123456789abcdef0123456789abcdef"
COMMANDS: dict[str, list[str]] = {
    "nginx": [
        shutil.which("nginx") or "nginx",
        "-p",
        "{folder}",
        "-c",
        "{file}",
        "-g",
        "daemon off;",
    ],
    "caddy": [str(BIN / "caddy"), "run", "--config", "{file}", "--adapter", "caddyfile"],
    "envoy": [
        str(BIN / "envoy"),
        "-c",
        "{file}",
        "--concurrency",
        "1",
        "--log-level",
        "error",
        "--disable-hot-restart",
    ],
    "haproxy": [shutil.which("haproxy") or "haproxy", "-f", "{file}"],
}
COMMANDS |= {f"{name}-native-pass": COMMANDS[name] for name in ("nginx", "haproxy")}
COMMANDS |= {"haproxy-spoe": COMMANDS["haproxy"]}
COMMANDS |= {
    "apache": [
        shutil.which("apache2") or "apache2",
        "-d",
        "{folder}",
        "-f",
        "{file}",
        "-D",
        "FOREGROUND",
    ]
}
COMMANDS |= {"traefik": [str(BIN / "traefik"), "--configfile={file}"]}
FORWARDING = ("haproxy", "haproxy-native-pass", "apache")
"""These forward to greenroom; the others ask."""


def ports(text: str, proxy: int, greenroom: int, origin: int) -> str:
    for written, real in ((8000, proxy), (8082, greenroom), (8080, greenroom), (3000, origin)):
        text = re.sub(rf"\b{written}\b", str(real), text)
    return text


def write_configuration(
    name: str,
    folder: Path,
    at: dict[str, int],
    rooms: str = "",
    change: Callable[[str], str] | None = None,
) -> None:
    """The files of an example with these ports; with `rooms` instead of its own, and `change`d what
    the proxy reads.
    """
    for file in ("greenroom.toml", FILES[name], *MORE_FILES.get(name, ())):
        text = ports((EXAMPLES / name / file).read_text(), **at).replace(
            "total_active_users = 5", "total_active_users = 1"
        )
        if rooms and file == "greenroom.toml":
            text = text.partition("[[rooms]]")[0] + rooms
        if change and file == FILES[name]:
            text = change(text)
        (folder / file).write_text(text)
    (folder / "secret").write_text(SECRET)
    (folder / "pass-secret.conf").write_text(
        f'secure_link_md5 "$secure_link_expires${{http_host}}{link_secret("shop", "/")}";'
    )


def hasten(folder: Path) -> None:
    """How long HAProxy waits for a greenroom that is gone: the tests need not."""
    if (spoe := folder / "spoe.cfg").exists():
        spoe.write_text(spoe.read_text().replace("processing 5s", "processing 2s"))


def over_socket_file(path: Path, greenroom: int) -> Callable[[str], str]:
    """Changes a proxy's configuration so that it reaches greenroom over this Unix socket instead of
    this port.
    """
    at, envoy = (
        f"127.0.0.1:{greenroom}",
        f"socket_address: {{ address: 127.0.0.1, port_value: {greenroom} }}",
    )

    def change(text: str) -> str:
        assert at in text
        if envoy in text:
            return text.replace(envoy, f"pipe: {{ path: {path} }}")
        if f"reverse_proxy {at}" in text:  # Caddy
            return text.replace(f"reverse_proxy {at}", f"reverse_proxy unix/{path}")
        text = text.replace(
            f"server {at} {at}", f"server {path.name} unix@{path}"
        )  # HAProxy names the server of a page
        text = re.sub(rf"(server [a-z]+ ){at}", rf"\1unix@{path}", text)
        nginx = text.replace(f"server {at};", f"server unix:{path};")
        return (
            text if nginx == text else f"user {getpass.getuser()};\n{nginx}"
        )  # else its workers could not open our files

    return change


def link_secret(room: str, path: str, secret: str = SECRET) -> str:
    """As documented: the first characters of an HMAC in base64url."""
    made = hmac.digest(secret.encode(), f'secure_link ["{room}", "{path}"]'.encode(), "sha256")
    return base64.urlsafe_b64encode(made).decode()[:22]


def command_of(name: str) -> str:
    """How greenroom is started for this proxy."""
    return "serve" if name in FORWARDING else "decide"


@contextlib.contextmanager
def running_proxy(name: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The proxy, until the block ends; `listens` says when it does."""
    command = [part.format(folder=folder, file=folder / FILES[name]) for part in COMMANDS[name]]
    env = {
        "HOME": str(folder),
        "PATH": "/usr/bin:/bin",
        "GREENROOM_PASS_SECRET": SECRET,
        "GREENROOM_STATE": str(folder),
    }
    with open(folder / "proxy.log", "a") as log:
        proxy = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=env)
    try:
        yield proxy
    finally:
        proxy.terminate()
        proxy.wait(60)


def listens(proxy: subprocess.Popen[bytes], folder: Path, port: int) -> bool:
    assert proxy.poll() is None, (folder / "proxy.log").read_text()
    with socket.socket() as sock:
        if sock.connect_ex(("127.0.0.1", port)):
            return False
        if not (folder / FILES["traefik"]).exists():
            return True
        # Traefik listens before it has read its routes: until then it answers 404 itself.
        sock.settimeout(30)
        sock.sendall(b"GET /.well-known/greenroom/live HTTP/1.0\r\n\r\n")
        return b"404 page not found" not in b"".join(iter(lambda: sock.recv(4096), b""))
