"""A real redis-server of our own for a test: started on a free port or socket, killed, paused,
restarted; and a library with a clock set by hand.
"""

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import redis
from ports import free_port

from greenroom.ledgers.redis.constants import with_constants
from greenroom.ledgers.redis.library import PARTS, Library, part

ENDING_WITH_US = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
"""Runs a command that the kernel kills when the thread that started it has ended: a killed test
worker stops no server. Linux only.
"""

HAND_CLOCK = """
local function server_ms(room) return tonumber(redis.call('GET', room .. ':clock')) end
"""
UNHURRIED = ("local SWEEP = 40 ", "local SWEEP = 4000 ")


def trial_part(name: str) -> str:
    """A part without the limits on one call: in memory a sweep looks at many more at once."""
    found = HAND_CLOCK if name == "clock" else part(name)
    assert name != "ledger_state" or found.count(UNHURRIED[0]) == 1
    return found.replace(*UNHURRIED)


TRIAL_LIBRARY = Library(tuple(trial_part(name) for name in PARTS))
"""The same functions, but time is what the key `<ledger>:clock` says."""


@contextlib.contextmanager
def broken_library(client: redis.Redis, part: str, instead: str) -> Iterator[None]:
    """The trial library under its own name, with one part replaced until the block ends."""
    assert TRIAL_LIBRARY.text.count(part) == 1, f"{part!r} is not in the library once"
    broken = with_constants(TRIAL_LIBRARY.text.replace(part, instead))
    client.function_load(broken, replace=True)
    try:
        yield
    finally:
        client.function_load(TRIAL_LIBRARY.source, replace=True)


class RedisServer:
    """One server; its data is in `folder`."""

    def __init__(
        self, folder: Path, *options: str, port: int = 0, program: Sequence[str] = ("redis-server",)
    ) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._options = options
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        assert shutil.which(program[0]), (
            f"{program[0]} is not installed: scripts/setup.sh does that"
        )
        self.start()

    def start(self) -> None:
        defaults = [
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--dir",
            str(self.folder),
            "--save",
            "",
            "--appendonly",
            "no",
        ]
        command = [
            *ENDING_WITH_US,
            *self._program,
            *defaults,
            "--protected-mode",
            "no",
            "--loglevel",
            "warning",
            *self._options,
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(self.answers, lambda: f"no redis: {(self.folder / 'log').read_text()[-500:]}")

    def answers(self) -> bool:
        """Whether this server answers, and not another one that has its port."""
        assert self._process is None or self._process.poll() is None, (
            self.folder / "log"
        ).read_text()[-500:]
        try:
            return bool(self.client().ping())
        except (redis.ConnectionError, redis.TimeoutError):
            return False
        except redis.ResponseError:
            return True

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, socket_timeout=30)

    def kill(self) -> None:
        """kill -9."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextlib.contextmanager
    def silenced(self) -> Iterator[None]:
        """It keeps its connections and answers nothing; what it was asked meanwhile is answered
        afterwards.
        """
        assert self._process
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """An orderly end: it writes down what it is told to."""
        if self._process:
            self._process.terminate()
            self._process.wait()
            self._process = None


def wait_until(
    condition: Callable[[], object], otherwise: str | Callable[[], str], seconds: float = 60.0
) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, otherwise if isinstance(otherwise, str) else otherwise()
        time.sleep(0.02)  # the server is a real process
