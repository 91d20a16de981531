"""Unix sockets to listen on. The file of a dead process is replaced; a refused connection tells
that it is dead, so a socket listens from the moment it has its name.
"""

import contextlib
import errno
import fcntl
import os
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from greenroom.gateway.server import BACKLOG
from greenroom.runtime.data_dir import CannotStart

MODE = 0o660

LOCK_S = 2.0
"""Only programs that may write there can make us wait."""

LOOK_S = 0.01


class SocketFile(socket.socket):
    """Removes its file when closed, unless the file is another one by now."""

    path = ""
    made: tuple[int, int] | None = None

    def close(self) -> None:
        made, self.made = self.made, None
        with contextlib.suppress(OSError):
            if made and _identity(self.path) == made:
                os.unlink(self.path)
        super().close()


def listen_on_file(path: str, what: str, mode: int = MODE) -> SocketFile:
    """Raises CannotStart, naming `what` wanted it."""
    listener = SocketFile(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)
        with _one_at_a_time(Path(path).parent):
            _make_way(path)
            os.fchmod(
                listener.fileno(), mode & 0o600
            )  # what Linux gives the file; opened to others only when it has the right group
            listener.bind(path)
            listener.path, listener.made = path, _identity(path)
            os.chmod(path, mode)
            listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotStart(
            f"cannot listen on unix:{path} for {what}: {error.strerror or error}"
        ) from None
    except BaseException:
        listener.close()
        raise
    return listener


def _identity(path: str) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def _make_way(path: str) -> None:
    """Raises OSError when there is something else."""
    try:
        kind = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise OSError(errno.EEXIST, "there is a file that is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.setblocking(False)  # one whose backlog is full is alive too
        reason = caller.connect_ex(path)
    if reason == errno.ECONNREFUSED:
        os.unlink(path)
    elif reason in (0, errno.EAGAIN):
        raise OSError(errno.EADDRINUSE, "another program is already listening there")
    elif reason != errno.ENOENT:
        raise OSError(
            reason,
            f"there is a socket that cannot be asked whether it is in use ({os.strerror(reason)})",
        )


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    # Two processes that start at once must not both find the file of a dead one: the second would
    # take it away from the first.
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        until_s = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until_s:
                    raise OSError(errno.EBUSY, f"another program has locked {folder}") from None
                time.sleep(LOOK_S)
        yield
    finally:
        os.close(lock)
