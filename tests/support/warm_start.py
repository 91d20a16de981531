"""Starts of the `greenroom` command whose imports are done: a second of processor time less each.

A server imports once what every start imports, and forks for each start: a new process with its own
arguments, environment and standard output, that then runs the command's own `main`.
"""

import atexit
import contextlib
import functools
import gc
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import BinaryIO

GREENROOM = str(Path(sys.executable).with_name("greenroom"))


class WarmProcess:
    """What a test uses of `subprocess.Popen`."""

    def __init__(
        self,
        arguments: list[str],
        env: dict[str, str],
        log: BinaryIO | None = None,
        errors: BinaryIO | None = None,
        stdin: BinaryIO | None = None,
        third: int | None = None,
    ) -> None:
        """What it prints goes to `log`, or to `stdout` here; its errors as well, or to `errors`.
        `third` becomes descriptor 3, and LISTEN_PID says so: the part of systemd.
        """
        self.args = [GREENROOM, *arguments]
        self.returncode: int | None = None
        out, write_out = os.pipe()
        if log:
            os.dup2(log.fileno(), write_out)
        self._status, write_status = os.pipe()
        order = json.dumps([self.args, env, os.getcwd(), bool(third)]).encode()
        with _BY_TURNS:
            server = _server()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(
                server.orders,
                [order],
                [
                    write_out,
                    errors.fileno() if errors else write_out,
                    write_status,
                    *([third] if third else []),
                    *([stdin.fileno()] if stdin else []),
                ],
            )
        os.close(write_out)
        os.close(write_status)
        self._ending = threading.Lock()
        self.stdout = open(out, encoding="utf-8")  # noqa: SIM115
        pid = os.read(self._status, 4)
        assert pid, f"the server of starts has ended: {server.output()}"
        (self.pid,) = struct.unpack("i", pid)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        ended = select.poll()
        ended.register(self._status, select.POLLIN)
        # Without the lock: several threads may wait at once, and each may look.
        if self.returncode is None and not ended.poll(None if timeout is None else timeout * 1000):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        with self._ending:
            if self.returncode is None:
                code = os.read(self._status, 4)
                assert code, f"who waits for {self.args} has been killed"
                (self.returncode,) = struct.unpack("i", code)
        return self.returncode

    def __del__(self) -> None:
        os.close(self._status)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def finished(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The command when it has ended, with what it printed."""
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as typed:
        typed.write(stdin.encode())
        typed.seek(0)
        process = WarmProcess(list(arguments), dict(os.environ), errors=errors, stdin=typed)
        with process.stdout as stdout:
            output = stdout.read()
        code = process.wait()
        errors.seek(0)
        return subprocess.CompletedProcess(process.args, code, output, errors.read().decode())


def output_of(*arguments: str, stdin: str = "") -> str:
    """What the command prints; raises CalledProcessError."""
    ended = finished(*arguments, stdin=stdin)
    ended.check_returncode()
    return ended.stdout


_BY_TURNS = threading.Lock()
"""Two threads that start the first processes at once start one server."""


class _Server:
    """The server of this process, which ends with it."""

    def __init__(self) -> None:
        # Each order is one packet: threads that start processes at once cannot mix theirs.
        self.orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        theirs.close()
        atexit.register(self._end)

    def output(self) -> str:
        """What it printed, and how it ended."""
        code = self._process.wait()
        self._log.seek(0)
        return f"exit code {code}\n{self._log.read().decode(errors='replace')}"

    def _end(self) -> None:
        self.orders.close()
        self._process.wait()


_server = functools.cache(_Server)


def _fork_for_each(orders: socket.socket) -> None:
    """Returns in each child, as what it was ordered to be; does not return in the server."""
    while True:
        order, fds, flags, _ = socket.recv_fds(orders, 1 << 20, 5)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not order:
            os._exit(0)
        assert not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC)
        args, env, folder, listens = json.loads(order)
        out, err, status, *stdin = fds
        third = stdin.pop(0) if listens else None
        assert os.listdir("/proc/self/task") == [str(os.getpid())]  # a fork copies no threads
        if not os.fork():
            orders.close()
            if child := os.fork():  # this one waits for it
                os.write(status, struct.pack("i", child))
                for fd in fds[:2] + fds[3:]:
                    os.close(fd)
                ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                os.write(status, struct.pack("i", ended))
                os._exit(0)
            os.close(status)
            os.dup2(out, 1)
            os.dup2(err, 2)
            os.close(out)
            os.close(err)
            for typed in stdin:
                os.dup2(typed, 0)
                os.close(typed)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(env)
            if third is not None:
                os.dup2(third, 3)
                os.environ["LISTEN_PID"] = str(os.getpid())
            time.tzset()
            sys.argv = args
            return
        for fd in fds:
            os.close(fd)


def _end(code: str | int | None) -> None:
    """As the interpreter ends, without freeing each object: that would copy all the shared memory,
    which takes more than a start.
    """
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    # Also what a start imports and compiles on its way: typer's types of options, routes. Not DuckDB,
    # which reports what is frozen as leaks when a process ends.
    import typer._adapters  # noqa: F401
    import uvicorn.lifespan.off  # noqa: F401
    import uvloop  # noqa: F401
    from starlette.routing import compile_path

    import greenroom.runtime.serve  # noqa: F401
    from greenroom.cli import main
    from greenroom.dashboard.routes import ROUTES

    for row in ROUTES:
        compile_path(row.path)  # in the cache of `re`

    gc.collect()
    gc.freeze()  # the children share it
    _fork_for_each(socket.socket(fileno=int(sys.argv[1])))
    try:
        main()
    except SystemExit as ended:
        _end(ended.code)
