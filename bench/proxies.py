"""What the waiting room costs at each proxy, in one run: the same proxy without greenroom is 1.

    python bench/proxies.py [--heads chrome] [--rounds 3] [--seconds 1] [--only nginx haproxy caddy
    traefik envoy uvicorn] [--nginx PATH]

Each proxy runs with its configuration of examples/, and once more as a plain proxy that tells the
application the same. Proxy and greenroom share CPU 0 (one worker each); the client, with 64
connections, and the origin of a page of 1 KB (or `--page` bytes) have CPU 1 and never sleep. A
visitor who is inside asks for the page, with a ticket; passes are made here with the secret of the
example and last through the run.
Rounds alternate between the contestants; medians are printed. `with ticket and pass` is the plain
proxy that is sent these cookies too. `shared connections`: the next request of a connection is
another visitor's, as behind a proxy in front.

`shared` is the ratio of the rates, so of a proxy and a greenroom that have one processor between
them. `own core` is what they reach with a processor each: the CPU time of the plain proxy for a
request, divided by that of the proxy or of greenroom, the longer of the two. It bears a busy
machine better. A `floor` is the same proxy asking the least that can answer (proxy_floors.py): no
decision service can be below it. The examples ask over TCP; "Unix socket" is the same with
greenroom, or the floor, on a Unix socket, and the rest over TCP as before. For ASGI, the difference
in CPU time per request, uvicorn with httptools and uvloop.
"""

import argparse
import base64
import contextlib
import functools
import hmac
import http.client
import json
import os
import re
import shutil
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import md5
from pathlib import Path

from awake import BETWEEN_HEADS, HEADS, Client
from gateway import cpu_seconds, running, worker_of
from plain_proxies import PLAIN, PLAIN_DYNAMIC
from proxy_floors import YES_CONF, nginx_asks

from greenroom.decision.native_pass import PassKeys

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
BIN = Path(sys.executable).parent
SECRET = "0123456789abcdef0123456789abcdef"


def free_port() -> int:
    """One that no other program uses at this moment."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


ORIGIN = free_port()
FILES = {
    "nginx": "nginx.conf", "nginx-native-pass": "nginx.conf", "haproxy-native-pass": "haproxy.cfg", "haproxy": "haproxy.cfg",
    "haproxy-spoe": "haproxy.cfg", "caddy": "Caddyfile", "envoy": "envoy.yaml", "traefik": "traefik.yaml",
}  # fmt: skip
COMMANDS = {
    "nginx": [
        shutil.which("nginx") or "nginx",
        "-p",
        "{folder}",
        "-c",
        "{file}",
        "-g",
        "daemon off;",
    ],
    "haproxy": [shutil.which("haproxy") or "haproxy", "-f", "{file}"],
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
    "traefik": [str(BIN / "traefik"), "--configfile={file}"],
}
APP = """
from greenroom.asgi import WaitingRoom
BODY = b"x" * 1024
async def plain(scope, receive, send):
    if scope["type"] == "lifespan":
        for phase in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{phase}.complete"})
        return
    headers = [(b"content-type", b"text/html"), (b"content-length", b"1024")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": BODY})
room = WaitingRoom(plain, "greenroom.toml")
full = WaitingRoom(plain, "full.toml")
"""
ROOM = (
    "total_active_users = {limit}\nnew_users_per_minute = 100000\nsession_duration ="
    " 30\npace_admissions = false\n"
)
BY_FILE = ", Unix socket"
SHARING = 50
"""Visitors who share connections."""
QUIET = '[log]\nlevel = "warning"\n[limits]\nconnections_per_address = 100000\n'


def with_ports(text: str, proxy: int, greenroom: int) -> str:
    """A file of an example, with these ports."""
    for written, real in ((8000, proxy), (8082, greenroom), (8080, greenroom), (3000, ORIGIN)):
        text = re.sub(rf"\b{written}\b", str(real), text)
    return text


def configure(name: str, folder: Path, proxy: int, greenroom: int, limit: int) -> None:
    """The example's files with these ports and this limit."""
    for file in ("greenroom.toml", FILES[name]):
        text = with_ports((EXAMPLES / name / file).read_text(), proxy, greenroom)
        text = re.sub(
            r"total_active_users = 5\nnew_users_per_minute = 10\n", ROOM.format(limit=limit), text
        )
        (folder / file).write_text(
            text.replace("[[rooms]]", QUIET + "[[rooms]]") if file == "greenroom.toml" else text
        )
    if (EXAMPLES / name / "open-until.map").exists():
        shutil.copy(EXAMPLES / name / "open-until.map", folder)
    if name == "traefik":
        (folder / "dynamic.yaml").write_text(
            with_ports((EXAMPLES / name / "dynamic.yaml").read_text(), proxy, greenroom)
        )
        (folder / FILES[name]).write_text(
            (folder / FILES[name]).read_text().replace("dynamic.yaml", f"{folder}/dynamic.yaml")
        )
    if name == "haproxy-spoe":
        shutil.copy(EXAMPLES / name / "spoe.cfg", folder)
        text = (
            (folder / FILES[name])
            .read_text()
            .replace("config spoe.cfg", f"config {folder}/spoe.cfg")
        )
        (folder / FILES[name]).write_text(
            text.replace("(open-until.map", f"({folder}/open-until.map")
        )
    (folder / "secret").write_text(SECRET)
    own = PassKeys(SECRET).link_secret("shop", "/").decode()
    (folder / "pass-secret.conf").write_text(
        f'secure_link_md5 "$secure_link_expires${{http_host}}{own}";'
    )


def over_socket_file(file: Path, port: int, path: Path) -> None:
    """The configuration of nginx or HAProxy reaches greenroom over this Unix socket instead of this
    port.
    """
    text, at = file.read_text(), f"127.0.0.1:{port}"
    text = text.replace(f"server {at} {at}", f"server {path.name} unix@{path}").replace(
        f"server {at};", f"server unix:{path};"
    )
    file.write_text(re.sub(rf"(server [a-z]+ ){at}", rf"\1unix@{path}", text))
    greenroom = file.with_name("greenroom.toml")
    if greenroom.exists():  # nginx's workers have another user
        greenroom.write_text(f'socket_mode = "0666"\n{greenroom.read_text()}')


def own_pass(name: str, host: str) -> str:
    """A pass that lasts through the run."""
    until = int(time.time()) + 3_600
    if name.startswith("nginx"):
        digest = md5(
            f"{until}{host}{PassKeys(SECRET).link_secret('shop', '/').decode()}".encode(),
            usedforsecurity=False,
        ).digest()
        return f"{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()},{until}"
    parts = [
        {"alg": "HS256", "typ": "JWT"},
        {"aud": "shop", "host": host, "path": "/", "exp": until},
    ]
    signed = b".".join(
        base64.urlsafe_b64encode(json.dumps(part, separators=(",", ":")).encode()).rstrip(b"=")
        for part in parts
    )
    return (
        signed
        + b"."
        + base64.urlsafe_b64encode(hmac.digest(SECRET.encode(), signed, "sha256")).rstrip(b"=")
    ).decode()


def ticket(port: int) -> str:
    """The Cookie header of a visitor after one visit."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/", headers={"Accept": "text/html"})
    answer = connection.getresponse()
    answer.read()
    return "Cookie: " + (answer.getheader("Set-Cookie") or "").partition(";")[0]


class Bench:
    """Servers that end with the block, and the contestants: name -> (port, header, name of what it
    is compared with).
    """

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder, self.stack = folder, stack
        self.contestants: dict[str, tuple[int, str | list[str], str]] = {}
        self.uvicorns: dict[str, int] = {}
        self.pids: dict[str, tuple[int, int]] = {}
        """The processes whose CPU time counts: proxy (or uvicorn) and greenroom; 0 is none."""

    def next_port(self) -> int:
        return free_port()

    def start(self, command: list[str], port: int) -> int:
        process = self.stack.enter_context(running(command, port, 0))
        time.sleep(0.2)  # for the worker of nginx
        return worker_of(process)

    def plain(self, kind: str) -> None:
        port, path = self.next_port(), self.folder / f"plain-{FILES[kind]}"
        path.write_text(PLAIN[kind].format(port=port, origin=ORIGIN, folder=self.folder))
        (self.folder / "plain-dynamic.yaml").write_text(PLAIN_DYNAMIC.format(origin=ORIGIN))
        pid = self.start(
            [part.format(folder=self.folder, file=path) for part in COMMANDS[kind]], port
        )
        self.pids[f"{kind}, plain"] = (pid, 0)
        self.contestants[f"{kind}, plain"] = (port, "", f"{kind}, plain")

    def example(self, name: str, told: str, *, limit: int = 100_000, by_file: bool = False) -> None:
        """`by_file`: the proxy reaches greenroom over a Unix socket."""
        kind = name.partition("-")[0]
        proxy, greenroom, control = self.next_port(), self.next_port(), self.next_port()
        folder = self.folder / f"{name}-{limit}{'-file' * by_file}"
        folder.mkdir()
        configure(name, folder, proxy, greenroom, limit)
        command = "serve" if name in ("haproxy", "haproxy-native-pass") else "decide"
        options = [
            "--config",
            str(folder / "greenroom.toml"),
            "--control",
            f"127.0.0.1:{control}",
            "--data",
            str(folder / "data"),
        ]
        if by_file:
            over_socket_file(folder / FILES[name], greenroom, folder / "decide.sock")
            options += ["--listen", f"unix:{folder}/decide.sock"]
            told += BY_FILE
        asked = self.start(
            [str(BIN / "greenroom"), command, *options], control if by_file else greenroom
        )
        asks = self.start(
            [part.format(folder=folder, file=folder / FILES[name]) for part in COMMANDS[kind]],
            proxy,
        )
        self.pids[f"{kind}, {told}"] = (asks, asked)
        header = ticket(proxy)
        if "native" in name:
            header = f"{header}; __greenroom_pass={own_pass(name, '127.0.0.1')}"
            self.others_of_passes(kind, told, header, proxy)
        self.contestants[f"{kind}, {told}"] = (
            proxy,
            header if limit > 1 else "Accept: text/html",
            f"{kind}, plain",
        )

    def others_of_passes(self, kind: str, told: str, header: str, port: int) -> None:
        """The plain proxy with the cookies of this visitor, and visitors who share connections."""
        plain = f"{kind}, plain"
        self.contestants[f"{plain}, with ticket and pass"] = (
            self.contestants[plain][0],
            header,
            plain,
        )
        self.pids[f"{plain}, with ticket and pass"] = self.pids[plain]
        shared = f"{kind}, {told}, shared connections"
        tickets = [f"{number:04}" for number in range(SHARING)]
        where = header.index("; __greenroom_pass=")
        self.contestants[shared] = (
            port,
            [header[: where - 4] + ticket + header[where:] for ticket in tickets],
            plain,
        )
        self.pids[shared] = self.pids[f"{kind}, {told}"]

    def nginx_floor(self, *, by_file: bool = False) -> None:
        told, proxy, asked = (
            f"nginx, floor of auth_request{BY_FILE * by_file}",
            self.next_port(),
            self.next_port(),
        )
        folder = self.folder / told.replace(", ", "-").replace(" ", "-")
        folder.mkdir()
        (folder / "yes.conf").write_text(YES_CONF.format(folder=folder, port=asked))
        answers = self.start([COMMANDS["nginx"][0], "-c", str(folder / "yes.conf")], asked)
        file = nginx_asks(EXAMPLES / "nginx/nginx.conf", folder, proxy, asked, ORIGIN)
        if by_file:
            over_socket_file(file, asked, folder / "yes.sock")
        self.pids[told] = (
            self.start(
                [part.format(folder=folder, file=file) for part in COMMANDS["nginx"]], proxy
            ),
            answers,
        )
        self.contestants[told] = (proxy, "", "nginx, plain")

    def haproxy_floor(self, *, by_file: bool = False) -> None:
        told, proxy, asked = (
            f"haproxy, floor of SPOE{BY_FILE * by_file}",
            self.next_port(),
            self.next_port(),
        )
        folder = self.folder / told.replace(", ", "-").replace(" ", "-")
        folder.mkdir()
        configure("haproxy-spoe", folder, proxy, asked, 1)
        agent = [
            sys.executable,
            str(Path(__file__).with_name("proxy_floors.py")),
            "spoe",
            str(asked),
            str(folder / "yes.sock"),
        ]
        answers = self.start(agent, asked)
        if by_file:
            over_socket_file(folder / "haproxy.cfg", asked, folder / "yes.sock")
        command = [
            part.format(folder=folder, file=folder / "haproxy.cfg") for part in COMMANDS["haproxy"]
        ]
        self.pids[told] = self.start(command, proxy), answers
        self.contestants[told] = (proxy, "", "haproxy, plain")

    def asgi(self, what: str) -> None:
        port = self.next_port()
        options = [
            "--app-dir",
            str(self.folder),
            "--port",
            str(port),
            "--no-access-log",
            "--log-level",
            "warning",
            "--no-proxy-headers",
        ]
        pid = self.start([str(BIN / "uvicorn"), f"bench_app:{what}", *options], port)
        told = {
            "plain": "uvicorn, application",
            "room": "uvicorn, application in a waiting room",
            "full": "uvicorn, waiting page",
        }[what]
        came = ticket(port) if what != "plain" else ""
        self.contestants[told] = (
            port,
            "Accept: text/html" if what == "full" else came,
            "uvicorn, application",
        )
        if what != "full":
            self.uvicorns[told] = pid
        self.pids[told] = (pid, 0)


def main() -> None:
    """Starts everything, lets the client go round, prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument(
        "--heads",
        choices=HEADS,
        default="bare",
        help="lines of the requests: what a GET needs, or what Chrome sends",
    )
    parser.add_argument(
        "--page", type=int, metavar="BYTES", help="how long the page behind the proxies is (1024)"
    )
    parser.add_argument("--only", nargs="+", choices=STARTS, default=list(STARTS))
    parser.add_argument(
        "--nginx", default=COMMANDS["nginx"][0], help="another nginx than the installed one"
    )
    options = parser.parse_args()
    COMMANDS["nginx"][0] = options.nginx
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        os.chdir(folder)
        os.environ["GREENROOM_PASS_SECRET"] = SECRET
        (folder / "bench_app.py").write_text(APP)
        room = '[[rooms]]\nname = "shop"\nhost = "*"\n' + ROOM.format(limit=100_000)
        for file, text in (
            ("greenroom", room),
            ("full", room.replace("users = 100000", "users = 1")),
        ):
            (folder / f"{file}.toml").write_text(
                f'data = "{folder}/asgi-{file}"\nanalytics = "off"\n{QUIET}{text}'
            )
        client = stack.enter_context(Client(ORIGIN))
        bench = Bench(folder, stack)
        for kind in options.only:
            STARTS[kind](bench)
        if options.page:
            client.long_page(options.page)
        measure(
            client,
            bench,
            options.rounds,
            options.seconds,
            functools.partial(HEADS[options.heads], "/page" if options.page else "/"),
        )


def start_nginx(bench: Bench) -> None:
    """Every way of nginx."""
    bench.plain("nginx")
    bench.example("nginx-native-pass", "native pass")
    bench.example("nginx", "auth_request")
    bench.nginx_floor()
    bench.example("nginx", "auth_request", by_file=True)
    bench.nginx_floor(by_file=True)
    bench.example("nginx", "auth_request, waiting page", limit=1)


def start_haproxy(bench: Bench) -> None:
    """Every way of HAProxy."""
    bench.plain("haproxy")
    bench.example("haproxy-native-pass", "native pass")
    bench.example("haproxy-spoe", "SPOE")
    bench.haproxy_floor()
    bench.example("haproxy-spoe", "SPOE", by_file=True)
    bench.haproxy_floor(by_file=True)
    bench.example("haproxy-spoe", "SPOE, waiting page", limit=1)
    bench.example("haproxy", "through greenroom")
    bench.example("haproxy", "through greenroom, waiting page", limit=1)


def start_caddy(bench: Bench) -> None:
    """Caddy."""
    bench.plain("caddy")
    bench.example("caddy", "forward-auth")
    bench.example("caddy", "forward-auth, waiting page", limit=1)


def start_traefik(bench: Bench) -> None:
    """Traefik."""
    bench.plain("traefik")
    bench.example("traefik", "forward-auth")
    bench.example("traefik", "forward-auth, waiting page", limit=1)


def start_envoy(bench: Bench) -> None:
    """Envoy, beside a plain Envoy."""
    bench.plain("envoy")
    bench.example("envoy", "ext_authz")
    bench.example("envoy", "ext_authz, waiting page", limit=1)


def start_uvicorn(bench: Bench) -> None:
    """An application without and with a waiting room inside."""
    bench.asgi("plain")
    bench.asgi("room")
    bench.asgi("full")


STARTS = {
    "nginx": start_nginx,
    "haproxy": start_haproxy,
    "caddy": start_caddy,
    "traefik": start_traefik,
    "envoy": start_envoy,
    "uvicorn": start_uvicorn,
}


def requests_of(folder: Path, write: Callable[[str], str], header: str | list[str]) -> Path | str:
    """The request with this header; with several, a file of the requests that take turns."""
    if isinstance(header, str):
        return write(header)
    (folder / "heads").write_bytes(BETWEEN_HEADS.join(write(one).encode() for one in header))
    return folder / "heads"


def measure(
    client: Client, bench: Bench, rounds: int, seconds: int, write: Callable[[str], str]
) -> None:
    """Lets the client go round, prints."""
    rates: dict[str, list[float]] = {what: [] for what in bench.contestants}
    cpu: dict[str, list[tuple[float, float]]] = {what: [] for what in bench.contestants}
    for _ in range(rounds):
        for what, (port, header, _) in bench.contestants.items():
            before = [cpu_seconds(pid) if pid else 0.0 for pid in bench.pids[what]]
            load = client.load(port, seconds, requests_of(bench.folder, write, header))
            after = [cpu_seconds(pid) if pid else 0.0 for pid in bench.pids[what]]
            rates[what].append(load.answered / load.seconds)
            cpu[what].append(
                (
                    (after[0] - before[0]) / load.answered * 1e6,
                    (after[1] - before[1]) / load.answered * 1e6,
                )
            )
    print(
        f"{'':42} {'req/s':>8} {'shared':>6} {'proxy us':>9} {'asked us':>9} {'own core':>8} "
        " compared with"
    )
    used = {
        what: [statistics.median(column) for column in zip(*rows, strict=True)]
        for what, rows in cpu.items()
    }
    for what, (_, _, other) in bench.contestants.items():
        shared = statistics.median(
            [mine / theirs for mine, theirs in zip(rates[what], rates[other], strict=True)]
        )
        mine, asked = used[what]
        if "native" in what and asked > mine / 4:
            sys.exit(f"{what}: greenroom was asked, so this would not measure passes")
        row = (
            f"{statistics.median(rates[what]):8.0f} {shared:6.2f} {mine:9.1f} {asked:9.1f}"
            f" {used[other][0] / max(mine, asked):8.2f}"
        )
        print(f"{what:42} {row}  {other}")
    if bench.uvicorns:
        alone, ours = (used[what][0] for what in bench.uvicorns)
        print(
            f"CPU of uvicorn for a request: {alone:.0f} us, in a waiting room {ours:.0f} us, so it"
            f" adds {ours - alone:.0f} us"
        )
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
