import asyncio
import contextlib
import errno
import fcntl
import os
import resource
import socket
import ssl
import stat
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from greenroom.gateway.server import BACKLOG
from greenroom.request.forwarded import network_of
from greenroom.runtime.data_dir import CannotStart
from greenroom.settings.process import Address
from greenroom.web.refusals import ApiFault, Code, Refused

# Unix sockets to listen on. The file of a dead process is replaced; a refused connection tells
# that it is dead, so a socket listens from the moment it has its name.

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


# One connection of a small application (control listener, status pages). uvicorn waits without
# end for a request, the rest of its body, and a client that does not read; each such connection
# takes a file descriptor from the visitors of the same process.

CONNECTIONS_MOST = 3_000
"""Every live page, and as many other connections."""

PART = 8


def connections_most() -> int:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return (
        CONNECTIONS_MOST
        if limit == resource.RLIM_INFINITY
        else max(1, min(CONNECTIONS_MOST, limit // PART))
    )


@dataclass(frozen=True)
class AppConnectionLimits:
    connections: int

    @property
    def stalled_per_address(self) -> int:
        return max(1, self.connections // 4)

    head_s: float = 10
    body_s: float = 300
    """The largest body (32 MB) at 1 Mbit/s."""
    body_idle_s: float = 10
    send_s: float = 60


class AppConnection(H11Protocol):
    """At the limit, a new connection closes the longest idle one, else the oldest stalled one of
    the address with most of these. An address beyond its share of stalled connections closes its
    own oldest.
    """

    def __init__(self, *, limits: AppConnectionLimits, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._limits = limits
        self._since_s = self.loop.time()
        self._reading: asyncio.TimerHandle | None = None  # of a head or a body
        self._reads_body = False
        self._body_idle: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    @property
    def under_way(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def stalled(self) -> bool:
        return self.under_way and (self.cycle.more_body or self._writing is not None)

    @property
    def address(self) -> str:
        return network_of(self.client[0]) if self.client else ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            self._make_room()
        self._expect_input()

    def _open(self) -> "list[AppConnection]":
        every = cast(Iterable[AppConnection], self.connections)
        return [one for one in every if not one.transport.is_closing()]

    def _make_room(self) -> None:
        idle = [one for one in self._open() if not one.under_way and one is not self]
        stalled = [one for one in self._open() if one.stalled]
        if idle:
            victims = idle
        elif stalled:
            most = Counter(one.address for one in stalled).most_common(1)[0][0]
            victims = [one for one in stalled if one.address == most]
        else:
            victims = [self]
        min(victims, key=lambda one: one._since_s).transport.abort()

    def _keep_to_share(self) -> None:
        mine = [one for one in self._open() if one.stalled and one.address == self.address]
        if len(mine) > self._limits.stalled_per_address:
            min(mine, key=lambda one: one._since_s).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._reading, self._body_idle, self._writing):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect_input()

    def on_response_complete(self) -> None:
        self._since_s = self.loop.time()
        self._stop_reading()
        super().on_response_complete()
        if self.under_way:  # one that had come before
            self._expect_input()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._writing = self.loop.call_later(self._limits.send_s, self.transport.abort)
        self._keep_to_share()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _expect_input(self) -> None:
        # A head or a body has its time as a whole, however slowly it trickles in.
        body = self.under_way
        if body and not self.cycle.more_body:
            self._stop_reading()
        elif self._reading is None or body is not self._reads_body:
            self._stop_reading()
            self._reads_body = body
            if body:
                self._since_s = self.loop.time()
                self._keep_to_share()
            self._reading = self.loop.call_later(
                self._limits.body_s if body else self._limits.head_s, self.transport.abort
            )
        self._expect_more_of_body()

    def _expect_more_of_body(self) -> None:
        if self._body_idle is not None:
            self._body_idle.cancel()
            self._body_idle = None
        if self._reading is not None and self._reads_body:
            self._body_idle = self.loop.call_later(self._limits.body_idle_s, self._cut_if_silent)

    def _cut_if_silent(self) -> None:
        if self.flow.read_paused:  # the application is slow, not the client
            self._expect_more_of_body()
        else:
            self.transport.abort()

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        if self._body_idle is not None:
            self._body_idle.cancel()
            self._body_idle = None


# The rest of a request that was not read to its end is discarded, within bounds, before the
# connection is closed: closing a socket with unread input destroys the answer on its way.


@dataclass(frozen=True)
class LingerLimits:
    most_bytes: int = 16 << 20
    silence_s: float = 2
    most_s: float = 60
    kept_bytes: int = 64 << 20


class LingeringApp:
    def __init__(self, app: ASGIApp, limits: LingerLimits | None = None) -> None:
        self._app = app
        self._limits = limits or LingerLimits()
        self._kept = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"]) if scope["type"] == "http" else {}
        if headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in headers:
            await self._app(scope, receive, send)
            return
        body = _Body(receive, coming=b"expect" not in headers)
        kept = 0

        async def receive_counted() -> Message:
            nonlocal kept
            message = await body.receive()
            size = len(message.get("body", b""))
            if self._kept + size > self._limits.kept_bytes:
                raise Refused(
                    ApiFault(Code.SLOW_DOWN, "too many uploads at once; try again in a minute"),
                    retry_after_s=60,
                )
            self._kept += size
            kept += size
            return message

        async def send_end_later(message: Message) -> None:
            if body.coming and message["type"] == "http.response.start":
                message = {
                    **message,
                    "headers": [*message.get("headers", ()), (b"connection", b"close")],
                }  # or it is read without end
            elif (
                body.coming
                and message["type"] == "http.response.body"
                and not message.get("more_body")
            ):
                await send({**message, "more_body": True})
                await body.discard(self._limits)
                message = {"type": "http.response.body"}
            await send(message)

        try:
            await self._app(scope, receive_counted, send_end_later)
        finally:
            self._kept -= kept


class _Body:
    """`coming` is false while the client waits to be asked for the body (Expect)."""

    def __init__(self, receive: Receive, *, coming: bool) -> None:
        self._receive = receive
        self.coming = coming

    async def receive(self) -> Message:
        message = await self._receive()
        self.coming = bool(message.get("more_body"))
        return message

    async def discard(self, limits: LingerLimits) -> None:
        now = asyncio.get_running_loop().time
        until, left = now() + limits.most_s, limits.most_bytes
        while self.coming and left > 0:
            try:
                async with asyncio.timeout_at(min(until, now() + limits.silence_s)):
                    message = await self.receive()
            except TimeoutError:
                return
            left -= len(message.get("body", b""))


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
