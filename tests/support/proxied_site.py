"""A site behind a real proxy: the proxy, two greenroom processes that it asks, and the Redis that
they share; each can be killed and started.
"""

import contextlib
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from ports import free_port
from real_proxies import COMMANDS, FILES, MORE_FILES, ports
from redis_world import RedisServer
from warm_start import WarmProcess

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
READY_S = 90.0
PARTS = ("greenroom", "redis", "proxy")

_ENDPOINT = "{ endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: %d } } } }"


def nginx_with_two(text: str, one: int, two: int) -> str:
    """The example's configuration, and a second greenroom."""
    both = f"server 127.0.0.1:{one};\n        server 127.0.0.1:{two};"
    text = re.sub(rf"server 127\.0\.0\.1:{one};", both, text, count=1)
    return text.replace("# hash $request_id", "hash $request_id")


def haproxy_with_two(text: str, one: int, two: int) -> str:
    """The example's configuration, and a second greenroom in both backends."""
    text = text.replace(
        f"server greenroom 127.0.0.1:{one}",
        f"server one 127.0.0.1:{one}\n    server two 127.0.0.1:{two}",
    )
    line = f"server 127.0.0.1:{one} 127.0.0.1:{one}"
    return text.replace(line, f"{line}\n    server 127.0.0.1:{two} 127.0.0.1:{two}")


def envoy_with_two(text: str, one: int, two: int) -> str:
    """The example's configuration, and a second greenroom."""
    return text.replace(_ENDPOINT % one, f"{_ENDPOINT % one}, {_ENDPOINT % two}", 1)


WITH_TWO: dict[str, Callable[[str, int, int], str]] = {
    "nginx": nginx_with_two,
    "haproxy-spoe": haproxy_with_two,
    "envoy": envoy_with_two,
}


class ProxiedSite:
    """Everything runs in `folder`, with this room and the application on `origin`; use it in a
    `with` block.
    """

    def __init__(self, name: str, folder: Path, origin: int, room: str) -> None:
        self.name, self.folder = name, folder
        self.port, self.decide = free_port(), (free_port(), free_port())
        self.redis = RedisServer(folder / "redis", "--appendonly", "yes", "--appendfsync", "always")
        text = (EXAMPLES / name / "greenroom.toml").read_text().partition("[[rooms]]")[0]
        (folder / "greenroom.toml").write_text(
            f'{text}redis = "{self.redis.url}"\nanalytics = "off"\n{room}'
        )
        for file in (FILES[name], *MORE_FILES.get(name, ())):
            written = ports((EXAMPLES / name / file).read_text(), self.port, self.decide[0], origin)
            more = WITH_TWO[name](written, *self.decide) if file == FILES[name] else written
            assert file != FILES[name] or str(self.decide[1]) in more
            (folder / file).write_text(more)
        self._processes: dict[str, subprocess.Popen[bytes] | WarmProcess] = {}

    def __enter__(self) -> "ProxiedSite":
        """Returns when a visitor gets an answer."""
        for part in ("greenroom 0", "greenroom 1", "proxy"):
            self._start(part)
        self._until(
            lambda: all(
                (self.folder / f"greenroom {n}.log").read_text().count("\nready") for n in (0, 1)
            )
        )
        self._until(lambda: self._listens(self.port))
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
        self.redis.kill()

    def kill(self, part: str) -> None:
        """One of PARTS ends at once; of greenroom, one process of the two."""
        if part == "redis":
            self.redis.kill()
            return
        process = self._processes["greenroom 0" if part == "greenroom" else part]
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                subprocess.run(["kill", "-9", child], check=False)  # the workers of nginx
        process.send_signal(signal.SIGKILL)
        process.wait()

    def start(self, part: str) -> None:
        """The same again."""
        if part == "redis":
            self.redis.start()
        else:
            self._start("greenroom 0" if part == "greenroom" else part)

    def _start(self, part: str) -> None:
        if part == "proxy":
            command = [
                item.format(folder=self.folder, file=self.folder / FILES[self.name])
                for item in COMMANDS[self.name]
            ]
        else:
            number = int(part[-1])
            places = (
                "--listen",
                f"127.0.0.1:{self.decide[number]}",
                "--control",
                "127.0.0.1:0",
                "--data",
                str(self.folder / part),
            )
            command = [
                "decide",
                "--config",
                str(self.folder / "greenroom.toml"),
                *places,
            ]
        env = {"HOME": str(self.folder), "PATH": "/usr/bin:/bin"}
        with (self.folder / f"{part}.log").open("ab") as log:
            self._processes[part] = (
                WarmProcess(command, env, log)
                if part.startswith("greenroom")
                else subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, env=env)
            )

    def _until(self, done: Callable[[], object]) -> None:
        end = time.monotonic() + READY_S
        while not done():
            for part, process in self._processes.items():
                assert process.poll() is None, (
                    f"{part} has ended: {(self.folder / f'{part}.log').read_text()[-2000:]}"
                )
            assert time.monotonic() < end, "waited in vain for the site"
            time.sleep(0.05)  # real processes start

    @staticmethod
    def _listens(port: int) -> bool:
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", port)) == 0
