"""Real greenroom processes and visitors with cookie jars, for every test that looks from outside.

`greenroom` starts processes (and ends them afterwards), `origin` is a web application that says
what it was sent.
"""

import asyncio
import contextlib
import http.client
import http.cookies
import inspect
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import ports
import pytest
import redis
import warm_start
from redis_world import TRIAL_LIBRARY, RedisServer
from warm_start import GREENROOM, WarmProcess

COROUTINE_S = 300.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine, on a loop of its own: that of its `loop_factory` if it has one."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    with asyncio.Runner(loop_factory=pyfuncitem.funcargs.get("loop_factory")) as runner:
        runner.run(asyncio.wait_for(pyfuncitem.obj(**given), COROUTINE_S))
    return True


PATIENCE_S = 60.0
"""For what should take a moment, on a busy machine."""
START_S = 60.0
"""For the start of a process, which reads some hundred files."""


def eventually(
    happened: Callable[[], Any], what: str | Callable[[], str], within_s: float = PATIENCE_S
) -> Any:
    """The first true answer of `happened`; fails, naming `what` was awaited, when there is none in
    time.
    """
    end = time.monotonic() + within_s
    while True:
        found = happened()
        if found:
            return found
        assert time.monotonic() < end, (
            f"waited {within_s:.0f} s in vain: {what if isinstance(what, str) else what()}"
        )
        time.sleep(0.02)  # another process needs a moment


@dataclass
class Answer:
    """What a visitor got."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def waiting(self) -> bool:
        """Held by the waiting room, not answered by the origin."""
        return self.headers.get("X-Origin") is None

    @property
    def refresh_s(self) -> int:
        """Seconds until the next try, 0 when the page does not refresh."""
        return int(self.headers.get("Refresh", "0"))

    @property
    def told(self) -> dict[str, Any]:
        """The JSON that a waiting page was answered with."""
        return json.loads(self.body)["cfWaitingRoom"]


@dataclass
class Visitor:
    """A browser with a cookie jar of its own. One connection per request unless `connection` is
    kept open by a test.
    """

    address: tuple[str, int]
    host: str = "shop.example.com"
    cookies: dict[str, str] = field(default_factory=dict)

    def get(
        self,
        path: str = "/",
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        try:
            sent = {"Host": self.host, "Accept": "text/html", **(headers or {})}
            if self.cookies:
                sent["Cookie"] = "; ".join(
                    f"{name}={value}" for name, value in self.cookies.items()
                )
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
        finally:
            connection.close()
        for line in answer.headers.get_all("Set-Cookie", []):
            for name, morsel in http.cookies.SimpleCookie(line).items():
                if morsel["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = morsel.value
        return answer

    def take_place(self, path: str = "/") -> Answer:
        """Waits until the place is real: comes back once, when told to."""
        answer = self.get(path)
        assert answer.waiting
        time.sleep(answer.refresh_s)  # as the page says
        return self.get(path)

    def wait_until_in(self, path: str = "/", within_s: float = PATIENCE_S) -> Answer:
        """Comes back exactly when told until the origin answers."""
        end = time.monotonic() + within_s
        while (answer := self.get(path)).waiting:
            assert time.monotonic() < end, f"still waiting after {within_s:.0f} s"
            time.sleep(max(0.05, min(answer.refresh_s, end - time.monotonic())))  # as the page says
        return answer


class Running:
    """One greenroom process; `output` is everything it has printed."""

    def __init__(
        self, arguments: list[str], env: dict[str, str] | None = None, within: Sequence[str] = ()
    ) -> None:
        """`within` is a command that runs the command behind it in its own process (`unshare ...`)."""
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1", **(env or {})}
        self.process: subprocess.Popen[str] | WarmProcess
        elsewhere = GREENROOM != warm_start.GREENROOM  # an older one, of support/installation.py
        if within or elsewhere or "PYTHONPATH" in environment or "LD_PRELOAD" in environment:
            self.process = subprocess.Popen(
                [*within, GREENROOM, *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment,
            )
        else:
            self.process = WarmProcess(arguments, environment)
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        self._lines.extend(self.process.stdout)  # grows line by line while the process lives

    @property
    def output(self) -> str:
        return "".join(self._lines)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def cpu_s(self) -> float:
        """Seconds of CPU the process has used so far; a busy machine stretches it less than the
        time on the wall.
        """
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _address(self, name: str) -> tuple[str, int]:
        found = re.search(rf"^{name}\s+https?://(\S+):(\d+)", self.output, re.MULTILINE)
        assert found, f"no address for {name} in:\n{self.output}"
        return found[1].strip("[]"), int(found[2])

    @property
    def address(self) -> tuple[str, int]:
        """Where visitors come in."""
        return self._address("visitors")

    @property
    def control(self) -> tuple[str, int]:
        """Where the control listener is."""
        return self._address("control")

    def visitor(self, host: str = "shop.example.com") -> Visitor:
        """A new visitor with an empty cookie jar."""
        return Visitor(self.address, host)

    def ask(self, path: str, method: str = "GET") -> Answer:
        """A request to the control listener."""
        return Visitor(self.control, "127.0.0.1").get(path, method)

    def control_visitor(self) -> Visitor:
        """Someone who opens the control listener in a browser."""
        return Visitor(self.control, f"{self.control[0]}:{self.control[1]}")

    def status(self) -> dict[str, Any]:
        """What /status says."""
        return json.loads(self.ask("/status").body)

    def room(self, name: str = "main") -> dict[str, Any]:
        """What /status says of one room."""
        return next(room for room in self.status()["rooms"] if room["name"] == name)

    def metric(self, line: str) -> float:
        """The value of a metric, named as Prometheus writes it, labels included."""
        found = re.search(rf"^{re.escape(line)} (\S+)$", self.ask("/metrics").text, re.MULTILINE)
        assert found, f"no metric {line}"
        return float(found[1])

    def wait_until_ready(self) -> Self:
        """Returns when visitors are served; fails with the output when the process ends before."""

        def ready() -> bool:
            assert self.alive, f"ended with {self.process.returncode}:\n{self.output}"
            if "\nready" not in f"\n{self.output}":
                return False
            with contextlib.suppress(OSError):
                return self.ask("/readyz").status == 200
            return False

        eventually(ready, "greenroom is ready", START_S)
        return self

    def wait_until_printed(self, text: str, times: int = 1) -> Self:
        """Returns when the output holds this text, so many times."""
        eventually(
            lambda: self.output.count(text) >= times,
            lambda: f"{text!r} in the output, which is:\n{self.output}",
        )
        return self

    def send(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self.process.send_signal(number)

    def end(self, within_s: float = PATIENCE_S) -> int:
        """Waits for the end; gives the exit code."""
        code = self.process.wait(within_s)
        self._reader.join(within_s)
        return code

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        self.send(signal.SIGTERM)
        return self.end()

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.end()


@dataclass
class StartGreenroom:
    """Starts greenroom processes; see the fixture `greenroom`."""

    folder: Path
    processes: list[Running] = field(default_factory=list)

    eventually = staticmethod(eventually)

    @property
    def data(self) -> Path:
        """The data directory that every process of this test uses unless told otherwise."""
        return self.folder / "data"

    def run(
        self, *arguments: str, env: dict[str, str] | None = None, within: Sequence[str] = ()
    ) -> Running:
        """Any command, not waited for."""
        running = Running(list(arguments), env, within)
        self.processes.append(running)
        return running

    def serve(self, *options: str, ready: bool = True) -> Running:
        """`greenroom serve` on free ports with this test's data directory; later options count."""
        running = self.run(
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--control",
            "127.0.0.1:0",
            "--data",
            str(self.data),
            *options,
        )
        return running.wait_until_ready() if ready else running

    def room(self, origin: str, active: int = 100, minute: int = 100, *options: str) -> Running:
        """One room in front of `origin`, by options; a small one lets newcomers in without their
        tickets, so that few of them fill it.
        """
        if active < 10 and not any(option in options for option in ("--host", "--path")):
            return self.config(
                f'origin = "{origin}"\n[[rooms]]\nname = "main"\nhost = "*"\ntotal_active_users = {active}\n'
                f"new_users_per_minute = {minute}\nconfirm_newcomers = false\n",
                *options,
            )
        return self.serve(
            "--origin",
            origin,
            "--total-active-users",
            str(active),
            "--new-users-per-minute",
            str(minute),
            *options,
        )

    def config(self, text: str, *options: str, ready: bool = True) -> Running:
        """A configuration file, written to `greenroom.toml` in the folder of this test."""
        path = self.folder / "greenroom.toml"
        path.write_text(text)
        return self.serve("--config", str(path), *options, ready=ready)

    def edge(self, redis_url: str, text: str, name: str = "edge") -> Running:
        """A process with its ledgers in Redis, and file and data of its own; not waited for."""
        path = self.folder / f"{name}.toml"
        path.write_text(text)
        places = ("--listen", "127.0.0.1:0", "--control", "127.0.0.1:0")
        data = ("--data", str(self.folder / name))
        return self.run(
            "edge", "--config", str(path), *places, *data, env={"GREENROOM_REDIS": redis_url}
        )


@pytest.fixture(scope="session")
def visitor_class() -> type[Visitor]:
    """A browser with a cookie jar, for any address."""
    return Visitor


@pytest.fixture
def greenroom(tmp_path: Path) -> Iterator[StartGreenroom]:
    """Starts real greenroom processes: `greenroom.room(origin.url, active=1).visitor().get("/")`."""
    start = StartGreenroom(tmp_path)
    yield start
    for running in start.processes:
        if running.alive:
            running.kill()


@pytest.fixture(scope="module")
def shared_greenroom(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartGreenroom]:
    """As `greenroom`, for processes that all tests of a file share."""
    start = StartGreenroom(tmp_path_factory.mktemp("shared"))
    yield start
    for running in start.processes:
        if running.alive:
            running.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis whose functions take the time from a test."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.client().function_load(TRIAL_LIBRARY.source)
    yield server
    server.kill()


@pytest.fixture(scope="module")
def client(server: RedisServer) -> redis.Redis:
    """Of that Redis."""
    return server.client()


class Application(BaseHTTPRequestHandler):
    """Says what it was sent; `/slow?seconds` begins its answer and ends it later, or when the test
    says so; `/revoke` sends the command, `/offers` says what is left.
    """

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        taken = self.rfile.read(length)
        self.server.requests.append(f"{self.command} {self.path}")  # type: ignore[attr-defined]
        said = {
            "method": self.command,
            "path": self.path,
            "headers": self.headers.items(),
            "body": taken.decode("latin-1"),
        }
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("X-Origin", "yes")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.path.startswith("/revoke"):
            self.send_header("Cf-Waiting-Room-Command", "revoke")
        if self.path.startswith("/offers"):
            self.send_header("Greenroom-Offers", '[{"name": "Stalls", "available": 3}]')
        self.end_headers()
        if self.path.startswith("/slow?"):
            self.wfile.flush()
            self.server.ends.wait(float(self.path.partition("?")[2]))  # type: ignore[attr-defined]
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = do_OPTIONS = answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@dataclass
class Origin:
    """A web application: where it is, and every request line it was sent; `ends` ends slow answers."""

    url: str
    requests: list[str]
    ends: threading.Event

    def wait_for_request(self) -> None:
        """Returns when something has arrived."""
        eventually(lambda: self.requests, "a request at the origin")


@contextlib.contextmanager
def application() -> Iterator[Origin]:
    """A web application on a free port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Application)
    server.daemon_threads = True
    server.requests, server.ends = [], threading.Event()  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    yield Origin(url, server.requests, server.ends)  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()


@pytest.fixture
def origin() -> Iterator[Origin]:
    """A web application on a free port."""
    with application() as made:
        yield made


@pytest.fixture
def free_port() -> Callable[[], int]:
    """A port to listen on, for a server that cannot be given a socket; one that refuses connections
    has `refusing_port`.
    """
    return ports.free_port


@pytest.fixture
def refusing_port() -> Iterator[Callable[[], int]]:
    """A port that refuses connections until the end of the test: bound, so no other process gets
    it, and not listening.
    """
    with contextlib.ExitStack() as held:

        def find() -> int:
            sock = held.enter_context(socket.socket())
            sock.bind(("127.0.0.1", 0))
            return int(sock.getsockname()[1])

        yield find
