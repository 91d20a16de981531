"""Several workers on one machine share an address, a data directory, and ledgers in Redis: the
configured one, or a private redis-server on a socket file. Each has a listening socket of its own
(SO_REUSEPORT) that this process keeps, so connections wait while a worker is replaced.
"""

import ctypes
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType

from redis import Redis, RedisError

from greenroom.config_file.process_config import ProcessConfig
from greenroom.gateway.server import BACKLOG
from greenroom.ledgers.redis.library import LEDGER_LIBRARY
from greenroom.runtime.data_dir import CannotStart
from greenroom.runtime.listener import bind, bound
from greenroom.runtime.loops import Say
from greenroom.runtime.parts import HANDOVER_S, inherited_sockets
from greenroom.settings.process import Address

LOOK_S = 0.1
LIVED_S = 20.0
REST_S = 2.0
REDIS_START_S = 30.0
"""Reading millions of visitors."""

SOCKET_PATH_MAX = 100
"""A path has at most 108 bytes on Linux."""

REDIS_OPTIONS = {
    "port": "0",
    "unixsocketperm": "700",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "save": "",
    "maxmemory-policy": "noeviction",
    "loglevel": "warning",
    "daemonize": "no",
}
STOPPED = "greenroom:stopped"
"""The run id of a server stopped after its last writer."""

_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class PrivateRedis:
    def __init__(self, data: Path, wait_s: float = 0.0) -> None:
        """Raises CannotStart when it is not installed, or still runs for another greenroom after
        `wait_s`.
        """
        program = shutil.which("redis-server")
        if program is None:
            raise CannotStart(
                "several workers share their ledgers in Redis, and redis-server is not installed: install it "
                "(apt-get install redis-server), or name one with --redis"
            )
        folder = data / "redis"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            until = time.monotonic() + wait_s
            while not _locked(self._lock) and time.monotonic() < until:
                time.sleep(LOOK_S)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotStart(
                f"the data directory {data} is in use by another greenroom; choose another with --data"
            ) from None
        except OSError as error:
            raise CannotStart(f"cannot use {folder}: {error.strerror or error}") from None
        self._path = folder / "socket"
        if len(os.fsencode(self._path)) > SOCKET_PATH_MAX:
            self._path = Path(tempfile.mkdtemp(prefix="greenroom-")) / "socket"
        self._command = [program, "--dir", str(folder), "--unixsocket", str(self._path)]
        for name, value in REDIS_OPTIONS.items():
            self._command += [f"--{name}", value]
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._rest_until_s = 0.0
        self.url = f"unix://{self._path}"

    def __str__(self) -> str:
        return "redis-server"

    def start(self) -> None:
        """Raises CannotStart."""
        try:
            process = self._process = self._begun()
        except OSError as error:
            raise CannotStart(f"redis-server did not start: {error.strerror or error}") from None
        until = time.monotonic() + REDIS_START_S
        while not self._answers():
            if process.poll() is not None or time.monotonic() > until:
                self.stop()
                raise CannotStart(f"redis-server did not start: see {self._log}")
            time.sleep(LOOK_S / 2)

        self._go_on()

    def seal(self) -> None:
        """After all workers have ended: marks the stored data as complete, so that the next start
        continues from it (docs/explanation/redis-ledger.md).
        """
        with suppress(RedisError), self._client() as client:
            client.set(STOPPED, client.info("server")["run_id"])

    def _go_on(self) -> None:
        """Raises CannotStart."""
        try:
            with self._client() as client:
                before = client.get(STOPPED)
                if before is None:
                    return
                # the mark must not come back when the last second is lost later
                client.config_set("appendfsync", "always")
                client.function_load(LEDGER_LIBRARY.source, replace=True)
                for state in client.scan_iter("greenroom:*:state"):
                    place = state.removesuffix(b":state")
                    client.fcall(LEDGER_LIBRARY.function("go_on").decode(), 1, place, before)
                client.delete(STOPPED)
                client.config_set("appendfsync", REDIS_OPTIONS["appendfsync"])
        except RedisError as error:
            self.stop()
            raise CannotStart(f"redis-server did not start: {error}") from None

    def _client(self) -> Redis:
        return Redis(unix_socket_path=str(self._path))

    def keep(self, say: Say) -> None:
        """Raises OSError when the machine does not let it start; call it again then."""
        if (
            self._process is None
            or self._process.poll() is None
            or time.monotonic() < self._rest_until_s
        ):
            return
        code, self._rest_until_s = self._process.returncode, time.monotonic() + REST_S
        self._process = self._begun()
        say(f"redis-server ended ({code}: see {self._log}) and has been restarted")

    def _begun(self) -> subprocess.Popen[bytes]:
        self._log.touch(0o600)
        with self._log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own program
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_as_child,
            )

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
                one.settimeout(1.0)
                one.connect(str(self._path))
                one.sendall(b"PING\r\n")
                return one.recv(16).startswith(b"+PONG")
        except OSError:
            return False


def _locked(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Worker:
    def __init__(self, number: int, command: Sequence[str], listener: int) -> None:
        """`listener`: the file descriptor that `command` adopts."""
        self.number = number
        self._command = command
        self._listener = listener
        self._began_s = 0.0
        self._rest_until_s = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._told_to_stop = False

    def __str__(self) -> str:
        return f"worker {self.number}"

    def start(self) -> None:
        """Returns when it answers. Raises CannotStart when it does not."""
        self._began_s = time.monotonic()
        self._told_to_stop = False
        kept = (self._listener,)
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            self._command, stdin=subprocess.DEVNULL, preexec_fn=_as_child, pass_fds=kept
        )

    def signal(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            self._told_to_stop = self._told_to_stop or number == signal.SIGTERM
            self._process.send_signal(number)

    def stop(self) -> None:
        """Only once: a second signal would cut off requests in progress."""
        if not self._told_to_stop:
            self.signal(signal.SIGTERM)

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def refused(self) -> int:
        code = None if self._process is None else self._process.poll()
        return (
            code
            if code is not None and code > 0 and time.monotonic() - self._began_s < LIVED_S
            else 0
        )

    def keep(self, say: Say) -> None:
        """After a rest when it did not live long. Raises OSError; call it again then."""
        if self.alive:
            return
        if self._process is not None:
            code, self._process = self._process.returncode, None
            say(f"worker {self.number} ended ({code}) and has been restarted")
            lived_s = time.monotonic() - self._began_s
            self._rest_until_s = time.monotonic() + (REST_S if lived_s < LIVED_S else 0.0)
        if time.monotonic() >= self._rest_until_s:
            self._rest_until_s = time.monotonic() + REST_S
            self.start()


def serve_with_workers(
    config: ProcessConfig, count: int, arguments: Sequence[str], say: Say
) -> int:
    """Returns the exit code. Raises CannotStart."""
    if config.status_listen and config.status_listen.path:
        raise CannotStart(
            "status_listen must be an address and port with --workers: only one process can have a Unix socket"
        )
    with ExitStack() as undo:
        given = inherited_sockets(os.environ, os.getpid(), "visitors")
        sockets = _sockets(config.listen, count, given, int(config.socket_mode, 8))
        for one in sockets:
            undo.callback(one.close)
        place = sockets[0]
        private = (
            PrivateRedis(config.data, config.drain_seconds + HANDOVER_S if given else 0.0)
            if config.shared is None
            else None
        )
        if private:
            private.start()
            undo.callback(private.stop)
        workers = [
            Worker(number, _command(arguments, number, one, config.control, private), one.fileno())
            for number, one in enumerate(sockets, 1)
        ]
        say(f"visitors   {bound(place).url('https' if config.tls else 'http')}")
        say(
            f"workers    {count}, ledgers in {private.url if private else config.shared and config.shared.redis}"
        )
        code = Foreman(workers, private, say).run()
        if private:
            private.seal()
        return code


def _sockets(
    listen: Address, count: int, given: Mapping[str, socket.socket], mode: int
) -> list[socket.socket]:
    if given.keys() - {"visitors"}:
        raise CannotStart(
            "socket activation: several workers can be passed a socket for visitors only"
        )
    if given:
        return [given["visitors"]] * count
    if listen.path:
        return [bind(listen, "visitors", mode=mode)] * count
    sockets = [bind(listen, "visitors", reuse_port=True)]
    while len(sockets) < count:
        sockets.append(bind(bound(sockets[0]), "visitors", reuse_port=True))
    for one in sockets:
        one.listen(BACKLOG)
    return sockets


def _command(
    arguments: Sequence[str],
    number: int,
    listener: socket.socket,
    control: Address,
    redis: PrivateRedis | None,
) -> list[str]:
    own = Address(control.host, control.port + number - 1 if control.port else 0)
    if control.path:
        own = Address("", 0, control.path + (f".{number}" if number > 1 else ""))
    more = ["--worker", str(number), "--listen", str(bound(listener)), "--control", str(own)]
    if redis:
        more += ["--redis", redis.url]
    main = f"from greenroom.runtime.parts import adopt; adopt({listener.fileno()}); from greenroom.cli import main; main()"
    return [sys.executable, "-c", main, *arguments, *more]


class Foreman:
    def __init__(self, workers: Sequence[Worker], redis: PrivateRedis | None, say: Say) -> None:
        self._workers = workers
        self._redis = redis
        self._say = say
        self._stopping = False

    def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._pass_on)
        for worker in self._workers:
            worker.start()
        began_s = time.monotonic()
        while not self._stopping:
            time.sleep(LOOK_S)
            refused = (
                max(worker.refused for worker in self._workers)
                if time.monotonic() - began_s < LIVED_S
                else 0
            )
            if (
                refused and not self._stopping
            ):  # what is wrong for one is wrong for all, and has been said
                self._end()
                return refused
            self._look()
        self._end()
        return 0

    def _look(self) -> None:
        if self._stopping:
            return
        children: list[PrivateRedis | Worker] = [
            *([self._redis] if self._redis else []),
            *self._workers,
        ]
        for child in children:
            try:
                child.keep(self._say)
            except OSError as error:  # no memory, no process or no space is left, for a moment
                self._say(f"cannot start {child} again: {error.strerror or error}")

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        self._stopping = self._stopping or number != signal.SIGHUP
        for worker in self._workers:
            worker.signal(number if number == signal.SIGHUP else signal.SIGTERM)

    def _end(self) -> None:
        if not self._stopping:
            self._pass_on(signal.SIGTERM, None)
        while any(worker.alive for worker in self._workers):
            for worker in self._workers:  # the signal may have come while one was being started
                worker.stop()
            time.sleep(LOOK_S)


def _as_child() -> None:
    # Away from the terminal's signals, which the parent passes on, and never alive without it.
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGTERM)
