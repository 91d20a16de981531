import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from greenroom.runtime.app_connection import AppConnection, AppConnectionLimits, connections_most
from greenroom.runtime.data_dir import CannotStart
from greenroom.runtime.lingering import LingeringApp
from greenroom.runtime.socket_file import MODE, listen_on_file
from greenroom.settings.process import Address

CLOSING_S = 2


def bind(
    address: Address, what: str, *, reuse_port: bool = False, mode: int = MODE
) -> socket.socket:
    """Does not listen yet, except on a file. Raises CannotStart, naming `what` wanted the
    address.
    """
    if address.path:
        return listen_on_file(address.path, what, mode)
    try:
        family, _, _, _, name = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise CannotStart(
            f"cannot listen on {address} for {what}: {error.strerror or error}"
        ) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.setblocking(False)
        listener.bind(name)
    except OSError as error:
        listener.close()
        reason = (
            "another program is already listening there"
            if error.errno == errno.EADDRINUSE
            else error.strerror or str(error)
        )
        raise CannotStart(f"cannot listen on {address} for {what}: {reason}") from None
    return listener


def bound(listener: socket.socket) -> Address:
    """The real address, also when port 0 was asked for."""
    if listener.family == socket.AF_UNIX:
        return Address("", 0, listener.getsockname())
    host, port = listener.getsockname()[:2]
    return Address(host, port)


class AppListener:
    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        tls: ssl.SSLContext | None = None,
        limits: AppConnectionLimits | None = None,
    ) -> None:
        limits = limits or AppConnectionLimits(connections_most())
        config = uvicorn.Config(
            LingeringApp(app),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            http=cast(Any, partial(AppConnection, limits=limits)),
            # uvicorn would believe X-Forwarded-For of every program on this machine
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=CLOSING_S,
        )
        config.load()
        config.ssl = tls  # our own context, whose certificate can be renewed
        self._server = _Uvicorn(config)
        self._listener = listener
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        while not self._server.started and not self._task.done():
            await asyncio.sleep(0.005)

    async def close(self) -> None:
        self._server.should_exit = True
        if self._task:
            await asyncio.wait([self._task])
        self._listener.close()


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Signals are the caller's business.
        yield
