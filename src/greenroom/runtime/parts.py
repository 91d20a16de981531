"""The parts of greenroom in a process, and their listening sockets."""

import contextlib
import os
import socket
from collections.abc import Iterable, Mapping, MutableMapping
from typing import NamedTuple

from greenroom.config_file.addresses import exposure_notes
from greenroom.config_file.process_config import ProcessConfig
from greenroom.runtime.data_dir import CannotStart, DataDir
from greenroom.runtime.listener import bind, bound
from greenroom.settings.process import Address

# Listening sockets from the parent process, as systemd passes them (sd_listen_fds(3)): while
# greenroom restarts, connections wait for the next process.

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


HANDOVER_S = 15.0
"""Beyond the time to drain: for a process that is being replaced to close its journals."""


class ProcessParts(NamedTuple):
    gateway: bool = True
    control: bool = True
    signals: bool = True
    logs: bool = True


EVERYTHING = ProcessParts()
ONLY_DECISIONS = ProcessParts(gateway=False)
EMBEDDED = ProcessParts(gateway=False, control=False, signals=False, logs=False)


class Listeners(NamedTuple):
    visitors: socket.socket | None
    control: socket.socket | None
    decide: socket.socket | None

    def address(self, name: str, written: Address) -> Address:
        """The real address, also for port 0; `written` when there is no such listener."""
        listener: socket.socket | None = getattr(self, name)
        return bound(listener) if listener else written

    def addresses(self, status: Address | None) -> tuple[Address, ...]:
        return (*(bound(one) for one in self if one), *([status] if status else []))


def claim(
    config: ProcessConfig, parts: ProcessParts, undo: contextlib.ExitStack, *, one_of_many: bool
) -> tuple[DataDir, Listeners]:
    """Comes first. Raises CannotStart. With inherited sockets it waits for the data directory of a
    draining predecessor.
    """
    alone = "visitors" if parts.gateway else "decide"
    inherited = inherited_sockets(os.environ, os.getpid(), alone) if parts.signals else {}
    wait_s = config.drain_seconds + HANDOVER_S if inherited else 0.0
    data = DataDir(config.data, shared=config.shared is not None, wait_s=wait_s)
    undo.callback(data.release)
    return data, take_addresses(config, parts, undo, one_of_many=one_of_many, inherited=inherited)


def take_addresses(
    config: ProcessConfig,
    parts: ProcessParts,
    undo: contextlib.ExitStack,
    *,
    one_of_many: bool,
    inherited: Mapping[str, socket.socket],
) -> Listeners:
    """An `inherited` socket counts more than the settings. Raises CannotStart."""
    mode = int(config.socket_mode, 8)

    def taken(
        name: str, address: Address | None, purpose: str, *, shared: bool = False
    ) -> socket.socket | None:
        if address is None and name not in inherited:
            return None
        listener = (
            inherited[name]
            if name in inherited or address is None
            else bind(address, purpose, reuse_port=shared, mode=mode)
        )
        undo.callback(listener.close)
        return listener

    return Listeners(
        taken("visitors", config.listen if parts.gateway else None, "visitors", shared=one_of_many),
        taken("control", config.control if parts.control else None, "the control listener"),
        taken("decide", config.decide, "other proxies"),
    )


def announcement(
    config: ProcessConfig,
    parts: ProcessParts,
    listen: Address,
    decide: Address | None,
    control: Address,
    more: Iterable[str],
) -> list[str]:
    origin = config.origin.url if config.origin else "set by each zone"
    secure = "https" if config.control_tls else "http"
    lines = [
        (parts.gateway, f"visitors   {listen.url('https' if config.tls else 'http')}"),
        (
            decide is not None,
            f"decide     {decide.url('http') if decide else ''}  (other proxies ask here)",
        ),
        (
            parts.control,
            f"control    {control.url(secure)}  (dashboard, /status /metrics /healthz /readyz)",
        ),
        *((True, line) for line in more),
        *(
            (parts.control, f"note       {note}")
            for note in exposure_notes(
                config.control, private=bool(config.control_tls or config.trusted_proxies)
            )
        ),
        (True, f"data       {config.data}"),
        (parts.gateway, f"origin     {origin}"),
        (True, "ready"),
    ]
    return [line for wanted, line in lines if wanted]
