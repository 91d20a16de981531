"""greenroom beside an application without an event loop: its own loop and thread, called from the
application's threads.
"""

import asyncio
import atexit
import os
import threading
import time
import weakref
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TimedOut
from concurrent.futures import thread as _executors  # noqa: F401 - registers its hook first, see the end of this file

from greenroom.config.source import ConfigSource
from greenroom.decision.render import OUTAGE
from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer
from greenroom.runtime.embedded import (
    ANSWER_S,
    RETRY_S,
    AppRequest,
    AppRequests,
    Embedded,
    report_failed_start,
)
from greenroom.runtime.serve import loop_factory

CLOSING_S = 10.0


class EmbeddedThread:
    """Thread-safe. Starts with the first call after a fork, so that every worker has its own."""

    def __init__(self, source: ConfigSource, *, control: bool = False) -> None:
        """Raises InvalidConfig."""
        source.load()
        self._source = source
        self._control = control
        self._starting = threading.Lock()
        self._owner = 0
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._embedded: Embedded | None = None
        self._thread: threading.Thread | None = None
        self._failed_in = 0
        self._not_before_s = float("-inf")

    @property
    def requests(self) -> AppRequests | None:
        """None while greenroom does not run in this process."""
        return (
            self._embedded.requests
            if self._embedded is not None and self._owner == os.getpid()
            else None
        )

    @property
    def own_requests(self) -> AppRequests:
        if self._embedded is None:
            raise RuntimeError("greenroom has decided nothing yet")
        return self._embedded.own_requests

    def start(self) -> None:
        """Idempotent. Raises InvalidConfig, CannotStart, StorageFailed or OSError."""
        with self._starting:
            if self.requests is None and not self._closed:
                started: Future[None] = Future()
                self._thread = threading.Thread(
                    target=self._run, args=(started,), name="greenroom", daemon=True
                )
                self._thread.start()
                started.result()
                self._owner = os.getpid()
                _running.add(self)

    def close(self) -> None:
        """After CLOSING_S at most; from then on every visitor is held."""
        self._closed = True
        if self._owner != os.getpid():
            return
        loop, embedded, thread = self._loop, self._embedded, self._thread
        if loop is not None and embedded is not None and thread is not None and thread.is_alive():
            loop.call_soon_threadsafe(embedded.end)
            thread.join(CLOSING_S)

    def decide(self, request: AppRequest) -> Forward | Answer:
        """Holds the visitor while greenroom cannot start or answer."""
        requests = self.requests or self._started()
        found: Future[Forward | Answer] = Future()
        if requests is None or self._loop is None:
            return OUTAGE
        try:
            self._loop.call_soon_threadsafe(requests.receive, request, found.set_result)
            return found.result(ANSWER_S)
        except (RuntimeError, TimedOut):  # the loop was closed meanwhile
            return OUTAGE

    def obey(self, forward: Forward, command: bytes) -> bytes:
        requests, found = self.requests, Future[bytes]()
        if requests is None or self._loop is None:
            return b""
        try:
            self._loop.call_soon_threadsafe(
                lambda: found.set_result(requests.obey(forward, command))
            )
            return found.result(ANSWER_S)
        except (RuntimeError, TimedOut):
            return b""

    def _started(self) -> AppRequests | None:
        if time.monotonic() >= self._not_before_s or self._failed_in != os.getpid():
            try:
                self.start()
            except Exception as error:  # of any kind: the visitor is held
                self._failed_in = os.getpid()
                self._not_before_s = time.monotonic() + RETRY_S
                report_failed_start(error)
        return self.requests

    def _run(self, started: "Future[None]") -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(self._main(started))
        except Exception as error:
            if started.done():
                raise
            started.set_exception(error)  # there is no event loop: too many open files, for example

    async def _main(self, started: "Future[None]") -> None:
        try:
            embedded = Embedded(self._source, control=self._control)
            await embedded.start()
        except BaseException as error:
            started.set_exception(error)
            return
        self._loop, self._embedded = asyncio.get_running_loop(), embedded
        started.set_result(None)
        await embedded.ended()


_running: "weakref.WeakSet[EmbeddedThread]" = weakref.WeakSet()


def _close_all() -> None:
    for running in list(_running):
        running.close()


# When Python calls the functions of `atexit`, it has already ended the threads of every executor.
# greenroom needs them to write its last minute of analytics and to close its journals, so it uses
# the interpreter's own hook, which comes before.
getattr(threading, "_register_atexit", atexit.register)(_close_all)
