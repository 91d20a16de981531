"""The middleware under the real uvicorn and gunicorn: visits, bodies, WebSockets, attacks, kills,
ends, workers, and the examples.
"""

import asyncio
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import websockets
from integrations import SERVERS as PLAIN

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
START_S = 90.0
"""A server, an application and greenroom start beside the other tests."""

SERVERS = {
    **PLAIN,
    "uvicorn h11": [
        *PLAIN["uvicorn"][:-1],
        "--http",
        "h11",
        "--loop",
        "asyncio",
        "--lifespan",
        "off",
    ],
    "gunicorn": [*PLAIN["gunicorn"], "--preload"],
}
CONFIG = 'data = "data"\n{more}[[rooms]]\nname = "main"\nhost = "*"\ntotal_active_users = {active}\nnew_users_per_minute = 100\n{room}'


@dataclass
class Server:
    """One server process with the application and greenroom inside."""

    process: subprocess.Popen[bytes]
    address: tuple[str, int]
    log: Path
    visitor_class: Any

    def visitor(self) -> Any:
        return self.visitor_class(self.address)

    def raw(self, data: bytes) -> int:
        """The status that these bytes get, never from the application; 0 when the connection ends
        without one.
        """
        with socket.create_connection(self.address, timeout=60) as sock:
            sock.sendall(data)
            answer = http.client.HTTPResponse(sock)
            with contextlib.suppress(http.client.BadStatusLine, ConnectionError):
                answer.begin()
                assert answer.headers.get("X-Origin") is None, data
                return answer.status
        return 0

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


Start = Callable[..., Server]


@pytest.fixture
def start(
    tmp_path: Path, greenroom: Any, free_port: Callable[[], int], visitor_class: Any
) -> Iterator[Start]:
    """Starts a server of SERVERS and waits until it listens."""
    processes: list[subprocess.Popen[bytes]] = []

    def started(
        name: str, *options: str, active: int = 1, more: str = "", room: str = ""
    ) -> Server:
        port = free_port()
        (tmp_path / "greenroom.toml").write_text(CONFIG.format(active=active, more=more, room=room))
        command, *arguments = [part.format(port=port) for part in SERVERS[name]]
        env = {
            "PATH": os.environ["PATH"],
            "GREENROOM_CONFIG": str(tmp_path / "greenroom.toml"),
            "PYTHONPATH": str(ROOT / "tests/support"),
        }
        log = tmp_path / f"server-{len(processes)}.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [BIN / command, *arguments, *options],
                stdout=file,
                stderr=file,
                cwd=tmp_path,
                env=env,
                start_new_session=True,
            )
        processes.append(process)

        def listens() -> bool:
            assert process.poll() is None, log.read_text()
            with socket.socket() as sock:
                return sock.connect_ex(("127.0.0.1", port)) == 0

        greenroom.eventually(listens, log.read_text, START_S)
        return Server(process, ("127.0.0.1", port), log, visitor_class)

    yield started
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)


def seen(answer: Any) -> dict[str, str]:
    """The headers that the application was sent."""
    return dict(json.loads(answer.body)["headers"])


async def talk(server: Server, inside: Any) -> None:
    """Over a WebSocket, which only the visitor who is inside gets."""
    url, cookie = (
        "ws://{}:{}/chat".format(*server.address),
        f"__cfwaitingroom={inside.cookies['__cfwaitingroom']}",
    )
    async with websockets.connect(url, additional_headers={"Cookie": cookie}) as socket:
        for text in ("hello", "x" * 100_000):
            await socket.send(text)
            assert await socket.recv() == text
    with pytest.raises(websockets.InvalidStatus) as refused:
        await websockets.connect(url)
    assert refused.value.response.status_code == 503
    assert b"waiting room" in refused.value.response.body


@pytest.mark.parametrize("name", SERVERS)
def test_a_whole_visit_under_a_real_server(name: str, start: Start, greenroom: Any) -> None:
    room = 'enabled_origin_commands = ["revoke"]\n'
    server = start(name, room=room)
    first, second = server.visitor(), server.visitor()
    first.cookies["own"] = "1"
    answer = first.get("/shop?a=1")
    assert (answer.status, answer.headers["X-Origin"]) == (200, "yes"), (
        answer.text + server.log.read_text()
    )
    assert "__cfwaitingroom" in first.cookies
    held = second.get("/shop")
    assert (held.status, held.waiting, b"line" in held.body) == (200, True, True)
    assert held.headers["Cache-Control"]
    posted = first.get("/shop", "POST", body=b"x" * 300_000)
    assert (json.loads(posted.body)["length"], seen(posted)["cookie"]) == (300_000, "own=1"), (
        "the body arrives whole, the ticket does not"
    )
    assert second.get("/shop", "POST", body=b"x" * 300_000).waiting
    assert first.get("/shop", "HEAD").status == 200
    assert second.get("/shop", headers={"Greenroom-Update": "1"}).told["inWaitingRoom"]
    forged = {
        "X-Forwarded-Method": "OPTIONS",
        "X-Original-URI": "/open",
        "Greenroom-Verdict": "forward",
        "X-HTTP-Method-Override": "OPTIONS",
    }
    assert server.visitor().get("/shop", headers=forged).waiting
    for target in (b"/open/../shop", b"/%2e%2e/shop", b"/a%5cb"):
        assert server.raw(
            b"GET %b HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n" % target
        ) in (0, 400), target
    whole = (
        b"GET http://other.example/shop HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n"
    )
    assert server.raw(whole) in (200, 400), (
        "servers that read whole URLs serve the path of the Host, and that is what is decided"
    )
    assert (
        server.raw(
            b"GET / HTTP/1.1\r\nHost: shop.example\r\nHost: other.example\r\nConnection: close\r\n\r\n"
        )
        == 400
    )
    if name == "uvicorn":
        asyncio.run(talk(server, first))
    server.end(signal.SIGKILL)

    again = start(name, room=room)
    visitor = again.visitor()
    visitor.cookies = dict(first.cookies)
    # gunicorn's workers outlive its main process by about a second and keep the data directory for
    # so long: visitors are held meanwhile
    greenroom.eventually(lambda: not visitor.get("/shop").waiting, again.log.read_text)
    held = again.visitor().get("/shop")
    assert (held.status, held.waiting) == (200, True), (
        "the session outlives a kill: it is in the journal"
    )
    ended = visitor.get("/revoke")
    assert (ended.status, ended.headers["Cf-Waiting-Room-Command"]) == (200, None)
    assert "__cfwaitingroom" not in visitor.cookies
    assert not again.visitor().get("/").waiting, "the application has ended the session"
    assert again.end() in (0, -signal.SIGTERM), (
        "uvicorn ends as the signal says, after it has closed everything"
    )
    if name == "uvicorn":
        assert "the application ends" in again.log.read_text()


def test_several_workers_need_redis(start: Start, server: Any, greenroom: Any) -> None:
    alone = start("uvicorn", "--workers", "2")
    greenroom.eventually(
        lambda: "is in use by process" in alone.log.read_text(), alone.log.read_text, START_S
    )
    assert "several processes with the same limits need redis" in alone.log.read_text()
    alone.end(signal.SIGKILL)
    os.killpg(alone.process.pid, signal.SIGKILL)
    for name in ("uvicorn", "gunicorn"):
        shared = start(name, "--workers", "2", more=f'redis = "{server.url}"\n')
        inside = shared.visitor()
        greenroom.eventually(
            lambda inside=inside: not inside.get("/").waiting, shared.log.read_text, START_S
        )
        assert all(shared.visitor().get("/").waiting for _ in range(12)), (
            "both processes share one limit"
        )
        for _ in range(6):  # in either process
            posted = inside.get("/shop", "POST", body=b"x" * 300_000)
            assert (json.loads(posted.body)["length"], "cookie" in seen(posted)) == (
                300_000,
                False,
            ), shared.log.read_text()
        if name == "uvicorn":
            asyncio.run(talk(shared, inside))
        server.kill()
        assert all(one.get("/").waiting for one in (inside, shared.visitor(), inside)), (
            "the application gets nothing without a decision"
        )
        server.start()
        assert shared.end() in (0, -signal.SIGTERM)
        server.client().flushall()


def test_a_greenroom_that_cannot_start_holds_every_visitor(start: Start, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the directory should be")
    for name in ("uvicorn h11", "gunicorn"):
        server = start(name)
        held = server.visitor().get("/")
        assert (held.status, held.waiting) == (503, True)
        assert "every visitor is held" in server.log.read_text()


EXAMPLES = {"fastapi": "app.py", "flask": "app.py", "django": "wsgi.py"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(
    name: str, tmp_path: Path, greenroom: Any, free_port: Callable[[], int], visitor_class: Any
) -> None:
    port, folder = free_port(), tmp_path / name
    shutil.copytree(ROOT / "examples" / name, folder)
    for path in folder.iterdir():
        text = re.sub(r"\b8000\b", str(port), path.read_text())
        path.write_text(text.replace("total_active_users = 5", "total_active_users = 1"))
    env = {"PATH": f"{BIN}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [folder / "run"], cwd=tmp_path, stdout=log, stderr=log, env=env, start_new_session=True
        )
    try:
        visitors = visitor_class(("127.0.0.1", port)), visitor_class(("127.0.0.1", port))

        def answers() -> bool:
            assert process.poll() is None, (tmp_path / "log").read_text()
            with contextlib.suppress(OSError):
                return "Welcome to the shop" in visitors[0].get("/").text
            return False

        greenroom.eventually(answers, (tmp_path / "log").read_text, START_S)
        assert "Welcome" not in visitors[1].get("/").text
        assert "Welcome" in visitors[0].get("/").text
        if name == "fastapi":
            assert "data: 2" in visitors[0].get("/news").text
            assert "data:" not in visitors[1].get("/news").text.replace("data:image", "")
        process.terminate()
        assert process.wait(60) in (0, 143)
        assert not [
            bad
            for bad in ("Traceback", "SIGABRT", "leaked")
            if bad in (tmp_path / "log").read_text()
        ], "greenroom ended in order"
        assert not [path for path in tmp_path.iterdir() if path.name.startswith("tmp.")], (
            "what it made is gone"
        )
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_the_control_listener_can_be_opened(
    start: Start, free_port: Callable[[], int], tmp_path: Path
) -> None:
    """As an application does with WaitingRoom(..., control=True)."""
    port = free_port()
    (tmp_path / "main.py").write_text(
        "from greenroom.asgi import WaitingRoom\nfrom plain_apps import app\n"
        f'asgi = WaitingRoom(app, {{"data": "data", "control": "127.0.0.1:{port}", "rooms": []}}, control=True)\n'
    )
    SERVERS["control"] = ["uvicorn", "main:asgi", "--app-dir", ".", "--port", "{port}"]
    try:
        start("control")
    finally:
        del SERVERS["control"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
        assert answer.status == 200
