"""greenroom inside an application's process, on its event loop: no listener for visitors, no
signals. The application does not see the ticket cookie.
"""

import asyncio
import atexit
import contextlib
import logging
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TimedOut
from concurrent.futures import thread as _executors  # noqa: F401 - registers its hook first, see the end of this file
from pathlib import Path
from typing import Any, NamedTuple

from greenroom.capacity.histogram import Histogram
from greenroom.config_file.process_config import ProcessConfig
from greenroom.config_file.source import ConfigSource, FileSource, OptionSource
from greenroom.decision.cookies import without_cookies
from greenroom.decision.kept_turn import FAILURES
from greenroom.decision.render import OUTAGE, render
from greenroom.decision.service import DecisionService
from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.errors import GreenroomError
from greenroom.gateway.documents import Documents, ages_of, is_document
from greenroom.gateway.wire.answer_head import COMMAND, OFFERS, is_for_caches, private_caching
from greenroom.model.answer import Answer
from greenroom.model.visit import Arrival
from greenroom.proxies.dialect import forwarded_as_sent
from greenroom.proxies.service import refusal_answer
from greenroom.request.arrival import (
    USUAL_LIMITS,
    ArrivalLimits,
    CheckedLines,
    Sender,
    arrival_from,
    arrival_of,
    checked_lines,
)
from greenroom.request.canonical import Refusal
from greenroom.request.forwarded import ForwardedPolicy
from greenroom.request.header_cache import HeaderCache, kind_of_pairs
from greenroom.runtime import assemble
from greenroom.runtime.data_dir import CannotStart
from greenroom.runtime.front_ends import Progress, arrival_limits
from greenroom.runtime.logs import ErrorLog, leave_logs_to_logging
from greenroom.runtime.loops import OnError
from greenroom.runtime.parts import EMBEDDED
from greenroom.runtime.process import Process
from greenroom.runtime.serve import loop_factory

SENDERS_CACHED = 4_096
"""About 1 MB."""

ANSWER_S = 12.0

RETRY_S = 1.0

AppHeaders = Iterable[tuple[bytes, bytes]]
log = logging.getLogger("greenroom")


class AppRequest(NamedTuple):
    """`target`: a path with query, percent-encoded."""

    method: str
    target: bytes
    headers: Sequence[tuple[bytes, bytes]]
    address: str
    tls: bool
    version: str = "HTTP/1.1"
    server: tuple[str, int] = ("", 0)
    prefix: str | None = None
    """Before `target` in the visitor's address; None: what a trusted proxy says."""


class Passed:
    """A request for the application. For documents of admitted visitors the middleware calls
    `AppRequests.answered` once.
    """

    __slots__ = ("__weakref__", "arrival", "began_s", "cut_off", "document", "forward", "waits_s")

    def __init__(self, forward: Forward, arrival: Arrival) -> None:
        self.forward = forward
        self.arrival = arrival
        self.document = is_document(forward, arrival)
        self.began_s = time.monotonic()
        self.waits_s = 0.0
        """Since when the application waits for the body; 0: it does not."""
        self.cut_off = False
        """The visitor ended the connection before the body was whole."""

    def waits(self) -> None:
        """Excludes the time the visitor takes to send a body."""
        self.waits_s = time.monotonic()

    def received(self, *, cut_off: bool) -> None:
        self.began_s += time.monotonic() - self.waits_s
        self.waits_s, self.cut_off = 0.0, cut_off


class AppRequests:
    """`policy` and `limits` may be replaced at any time."""

    def __init__(
        self,
        decisions: DecisionService,
        policy: ForwardedPolicy,
        on_error: OnError,
        limits: ArrivalLimits = USUAL_LIMITS,
    ) -> None:
        self._decisions = decisions
        self._policy = policy
        self._limits = limits
        self._on_error = on_error
        self._senders: OrderedDict[tuple[str, bool, tuple[str, int]], Sender] = OrderedDict()
        self._known = HeaderCache()
        self.closed = False
        self.documents = Documents()
        self._pending: weakref.WeakSet[Passed] = weakref.WeakSet()
        """Documents; weak, because nobody reports what came too late to be passed on."""

    @property
    def answers(self) -> "AppRequests":
        return self

    async def start(self) -> None:
        """Returns once it decides. Raises InvalidConfig, CannotStart or StorageFailed."""

    def configure(self, config: ProcessConfig) -> None:
        self._policy, self._limits = assemble.forwarded_policy(config), arrival_limits(config)
        self._senders.clear()

    async def drain(self, seconds: float, progress: Progress) -> int:  # noqa: ARG002 - the application's server has waited already
        progress(0)
        return 0

    def close(self) -> None:
        self.closed = True

    def receive(self, request: AppRequest, done: Callable[[Passed | Answer], None]) -> None:
        """Calls `done` exactly once, now or later. Never raises; after any error the visitor is
        held.
        """
        try:
            arrival = self._arrival(request)
            if isinstance(arrival, Refusal):
                done(refusal_answer(arrival))
                return
        except Exception as error:
            self._on_error(error)
            done(OUTAGE)
            return

        def decided(verdict: Verdict) -> None:
            try:
                if isinstance(verdict, Forward):
                    found: Passed | Answer = self._pass(verdict, arrival)
                else:
                    found = render(verdict, arrival) if isinstance(verdict, Hold) else verdict
            except Exception as error:
                self._on_error(error)
                found = OUTAGE
            done(found)

        self._decisions.receive(arrival, decided)

    def answered(self, passed: Passed, status: int, began_s: float) -> bytes:
        """Returns the ticket cookie to send. `began_s`: time.monotonic() when the answer began;
        `status` is 500 of an application that raised instead. Only the first call for a document
        counts. Call it in greenroom's event loop.
        """
        if passed not in self._pending:
            return passed.forward.set_cookie
        self._pending.discard(passed)
        if passed.cut_off:
            return passed.forward.set_cookie
        seconds = max(0.0, began_s - passed.began_s)
        self.documents.answered(passed.forward, passed.arrival, status, seconds)
        if status not in FAILURES or self.closed:
            return passed.forward.set_cookie
        try:
            return self._decisions.failed_document(passed.forward).report()
        except Exception as error:
            self._on_error(error)
            return passed.forward.set_cookie

    def pending_documents(self) -> dict[str, Histogram]:
        now_s = time.monotonic()
        return ages_of(
            (passed.forward, now_s - passed.began_s)
            for passed in list(self._pending)
            if not (passed.waits_s or passed.cut_off)
        )

    def bound_in_flight(self, objectives: Mapping[str, int]) -> None:
        """Nothing waits here: the application has every request at once."""

    def _pass(self, forward: Forward, arrival: Arrival) -> Passed:
        passed = Passed(forward, arrival)
        if passed.document:
            self._pending.add(passed)
        return passed

    async def decide(self, request: AppRequest) -> Passed | Answer:
        """Holds the visitor when there is no verdict within ANSWER_S."""
        if self.closed:
            return OUTAGE
        found: list[Passed | Answer] = []
        later: asyncio.Future[None] | None = None

        def done(verdict: Passed | Answer) -> None:
            found.append(verdict)
            if later is not None and not later.done():
                later.set_result(None)

        self.receive(request, done)
        if not found:
            later = asyncio.get_running_loop().create_future()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_S):
                    await later
        return found[0] if found else OUTAGE

    def obey(self, forward: Forward, command: bytes) -> bytes:
        """Returns the Set-Cookie value to send instead of the ticket, or nothing."""
        try:
            return b"" if self.closed else self._decisions.obey(forward, command)
        except Exception as error:
            self._on_error(error)
            return b""

    def application_cookies(self, value: bytes) -> bytes:
        return without_cookies(value, self._decisions.own_cookies)

    def visitor_headers(
        self, headers: AppHeaders, cookie: bytes
    ) -> tuple[list[tuple[bytes, bytes]], bytes]:
        """Also returns the application's command. The application can never set the ticket cookie;
        an answer with a ticket is not for shared caches.
        """
        kept: list[tuple[bytes, bytes]] = []
        caching: list[tuple[bytes, bytes]] = []
        command, own = b"", self._decisions.own_cookies
        for pair in headers:
            name = pair[0].lower()
            if name == b"set-cookie":
                if pair[1].partition(b"=")[0].strip(b" \t") not in own:
                    kept.append(pair)
            elif name == COMMAND:
                command = command + b"," + pair[1] if command else pair[1]
            elif name == OFFERS:
                pass  # for the built-in gateway alone; no visitor gets it
            elif cookie and is_for_caches(name):
                caching.append((name, pair[1]))
            else:
                kept.append(pair)
        if cookie:
            kept.append(
                (
                    b"cache-control",
                    private_caching(tuple(caching)).partition(b": ")[2].rstrip(b"\r\n"),
                )
            )
        return kept, command

    def _arrival(self, request: AppRequest) -> Arrival | Refusal:
        sender, lines = self._sender(request), self._lines(request.headers)
        if isinstance(lines, CheckedLines):
            found = arrival_of(
                request.method,
                request.target,
                lines,
                sender,
                self._limits,
                request.version,
                request.prefix,
            )
        else:
            found = arrival_from(
                request.method,
                request.target,
                request.headers,
                sender,
                self._limits,
                request.version,
                request.prefix,
            )
        return found if isinstance(found, Refusal) else forwarded_as_sent(found)

    def _lines(self, headers: Sequence[tuple[bytes, bytes]]) -> CheckedLines | Refusal:
        try:
            kind, values = kind_of_pairs(headers)
            known = self._known.filled(kind, values, self._limits)
        except TypeError:  # a server that gives lists instead of tuples
            return checked_lines(headers, self._limits)
        if known is None:
            known = checked_lines(headers, self._limits)
            if isinstance(known, CheckedLines):
                self._known.learn(kind, values, known, headers)
        return known

    def _sender(self, request: AppRequest) -> Sender:
        key = (request.address, request.tls, request.server)
        sender = self._senders.get(key)
        if sender is None:
            sender = Sender(request.address, request.tls, self._policy, request.server)
            if len(self._senders) >= SENDERS_CACHED:
                self._senders.popitem(last=False)
            self._senders[key] = sender
        return sender


def source_of(config: str | os.PathLike[str] | Mapping[str, Any]) -> ConfigSource:
    if isinstance(config, Mapping):
        return OptionSource(config, {}, needs_origin=False)
    return FileSource(Path(config).absolute(), needs_origin=False)


class Embedded:
    """Everything but the constructor is called inside one event loop."""

    def __init__(self, source: ConfigSource, *, control: bool = False) -> None:
        """Raises InvalidConfig."""
        source.load()
        self._source = source
        self._parts = EMBEDDED._replace(control=control)
        self._process: Process | None = None
        self._running: asyncio.Task[None] | None = None
        self.last_requests: AppRequests | None = None
        self._starting: asyncio.Task[None] | None = None
        self._not_before_s = float("-inf")

    @property
    def requests(self) -> AppRequests | None:
        requests = self.last_requests
        return None if requests is None or requests.closed else requests

    async def start(self) -> None:
        """Raises InvalidConfig, CannotStart or StorageFailed."""
        leave_logs_to_logging()
        process = self._process = Process(
            self._source, log.info, front_ends=[self._front_end], parts=self._parts
        )
        running = self._running = asyncio.create_task(process.run())
        ready = asyncio.create_task(process.ready.wait())
        try:
            await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if running.done():
            await running
            raise CannotStart("greenroom was stopped while it started")
        running.add_done_callback(_report_end)

    @property
    def own_requests(self) -> AppRequests:
        """As `requests`, also after greenroom has ended. Raises RuntimeError before the first
        start.
        """
        if self.last_requests is None:
            raise RuntimeError("greenroom has decided nothing yet")
        return self.last_requests

    async def decide(self, request: AppRequest) -> Passed | Answer:
        """Starts greenroom first when needed; holds the visitor when it cannot start."""
        requests = self.requests or await self._started()
        return OUTAGE if requests is None else await requests.decide(request)

    async def _started(self) -> AppRequests | None:
        if self.requests is None and (
            self._starting is not None or time.monotonic() >= self._not_before_s
        ):
            if (
                self._starting is None
                or self._starting.get_loop() is not asyncio.get_running_loop()
            ):
                self._starting = asyncio.create_task(self._start_or_report())
            await asyncio.shield(self._starting)
        return self.requests

    def end(self) -> None:
        if self._process is not None:
            self._process.stopping.set()

    async def ended(self) -> None:
        if self._running is not None:
            with contextlib.suppress(Exception):  # reported when it happened
                await self._running

    async def stop(self) -> None:
        """When every journal is closed. Idempotent."""
        self.end()
        await self.ended()

    def _front_end(self, config: ProcessConfig, decisions: DecisionService) -> AppRequests:
        policy, limits = assemble.forwarded_policy(config), arrival_limits(config)
        self.last_requests = AppRequests(decisions, policy, ErrorLog(time.monotonic), limits)
        return self.last_requests

    async def _start_or_report(self) -> None:
        try:
            await self.start()
        except Exception as error:  # of any kind: the visitor is held
            report_failed_start(error)
        finally:
            self._starting = None
            self._not_before_s = time.monotonic() + RETRY_S


def report_failed_start(error: Exception) -> None:
    expected = isinstance(error, (GreenroomError, OSError))
    log.error(
        "greenroom cannot start, every visitor is held: %s",
        error,
        exc_info=None if expected else error,
    )


def _report_end(running: asyncio.Task[None]) -> None:
    if not running.cancelled() and running.exception() is not None:
        log.error("greenroom ended, every visitor is held", exc_info=running.exception())


# greenroom beside an application without an event loop: its own loop and thread, called from the
# application's threads.

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

    def decide(self, request: AppRequest) -> Passed | Answer:
        """Holds the visitor while greenroom cannot start or answer."""
        requests = self.requests or self._started()
        found: Future[Passed | Answer] = Future()
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

    def answered(self, passed: Passed, status: int, began_s: float) -> bytes:
        """As `AppRequests.answered`, from any thread. Waits for failures only."""
        requests, found = self.requests, Future[bytes]()
        if passed.document and requests is not None and self._loop is not None:
            with contextlib.suppress(RuntimeError, TimedOut):  # the loop was closed meanwhile
                self._loop.call_soon_threadsafe(
                    lambda: found.set_result(requests.answered(passed, status, began_s))
                )
                if status in FAILURES:
                    return found.result(ANSWER_S)
        return passed.forward.set_cookie

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
