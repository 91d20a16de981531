"""Listening sockets from the parent process, as systemd passes them (sd_listen_fds(3)): while
greenroom restarts, connections wait for the next process.
"""

import os
import socket
from collections.abc import MutableMapping

from greenroom.runtime.data_dir import CannotStart

FIRST_FD = 3
SOCKETS_MAX = 16

PURPOSES = ("visitors", "decide", "control")
"""`FileDescriptorName=`; a single socket needs none."""

_VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


def inherited_sockets(
    environ: MutableMapping[str, str], pid: int, alone: str
) -> dict[str, socket.socket]:
    """Removes the variables, so that no child takes the sockets again. Raises CannotStart."""
    given = (
        {name: environ.pop(name, "") for name in _VARIABLES}
        if environ.get("LISTEN_PID") == str(pid)
        else {}
    )
    if not given:
        return {}
    count = int(given["LISTEN_FDS"]) if given["LISTEN_FDS"].isdigit() else 0
    names = given["LISTEN_FDNAMES"].split(":") if given["LISTEN_FDNAMES"] else [""] * count
    if not 0 < count <= SOCKETS_MAX or len(names) != count:
        raise CannotStart(
            f"socket activation: LISTEN_FDS is {given['LISTEN_FDS']!r} with {len(names)} names"
        )
    if count == 1 and names[0] not in PURPOSES:
        names = [alone]
    found: dict[str, socket.socket] = {}
    for number, name in enumerate(names):
        if name not in PURPOSES or name in found:
            raise CannotStart(
                f"socket activation: the names of sockets must be {', '.join(PURPOSES)}, each once,"
                f" not {name[:40]!r}"
            )
        found[name] = _listener(FIRST_FD + number, name)
    return found


def adopt(number: int) -> None:
    """Call it first of all."""
    if number != FIRST_FD:
        os.dup2(number, FIRST_FD)
        os.close(number)
    os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="visitors")


def _listener(number: int, name: str) -> socket.socket:
    try:
        os.set_inheritable(number, False)
        found = socket.socket(fileno=number)
        listens = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        raise CannotStart(
            f"socket activation: file descriptor {number} ({name}): {error.strerror or error}"
        ) from None
    if (
        found.family not in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)
        or found.type != socket.SOCK_STREAM
        or not listens
    ):
        raise CannotStart(
            f"socket activation: file descriptor {number} ({name}) is not a TCP socket or Unix"
            " socket that listens"
        )
    if found.family == socket.AF_UNIX and not isinstance(found.getsockname(), str):
        raise CannotStart(
            f"socket activation: the Unix socket {number} ({name}) has no file, so every program"
            " could open it"
        )
    found.setblocking(False)
    return found
