"""One thread that owns the analytics store. The event loop only puts closed minutes into a bounded
queue, so a failing store never stops admissions: the oldest minutes are dropped, and a metric and
the log report it.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

import structlog

from greenroom.analytics.question import AnalyticsAnswer, Question
from greenroom.analytics.recorder import MINUTES_KEPT
from greenroom.analytics.rollup import MINUTE_MS, Part
from greenroom.analytics.store.keeper import Keeper
from greenroom.configuration.state import AnalyticsState
from greenroom.errors import StorageFailed

RETRY_S = 5.0

TEND_S = 15.0

STOP_S = 5.0

log = structlog.get_logger(__name__)


class Batch(Protocol):
    @property
    def minute(self) -> int:
        """Minutes since 1970."""

    def parts(self) -> Iterable[Part]: ...

    def written(self) -> None:
        """Called in the writer's thread."""


class Writer:
    """`offer` is for the event loop; `answer` and `rooms_of` for any thread."""

    def __init__(
        self,
        open_store: Callable[[], Keeper],
        now_ms: Callable[[], int],
        *,
        records_here: bool = True,
    ) -> None:
        """`open_store` is called in the thread, and again after StorageFailed. `records_here`:
        killing this process loses a minute.
        """
        self._records_here = records_here
        self._open_store = open_store
        self._now_ms = now_ms
        self._began_minute = now_ms() // MINUTE_MS
        self._queue: deque[Batch] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._store: Keeper | None = None
        self._tended_s = float("-inf")
        self._dropped = self._written = self._failures = 0
        self._written_s = 0.0
        self._report_failure = ""
        self._thread = threading.Thread(target=self._run, name="analytics", daemon=True)

    # -- for the event loop ------------------------------------------------------------------------

    def start(self) -> None:
        if not self._thread.is_alive() and not self._stopping:
            self._thread.start()

    def offer(self, batches: Sequence[Batch]) -> None:
        """Drops the oldest when the queue is full."""
        if not batches:
            return
        with self._changed:
            self._queue.extend(batches)
            while len(self._queue) > MINUTES_KEPT:
                self._queue.popleft()
                self._dropped += 1
            self._changed.notify()

    def state(self) -> AnalyticsState:
        with self._changed:
            return AnalyticsState(
                len(self._queue),
                self._dropped,
                self._written,
                self._failures,
                self._written_s,
                self._report_failure,
            )

    def stop(self) -> None:
        """Writes what waits, within STOP_S. Blocks."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(STOP_S)

    # -- the AnalyticsStore of analytics.question

    def answer(self, question: Question, timeout_s: float | None = None) -> AnalyticsAnswer:
        return self._opened().answer(question, timeout_s)

    def rooms_of(self, zone_id: str) -> Collection[str]:
        return self._opened().rooms_of(zone_id)

    def _opened(self) -> Keeper:
        store = self._store
        if store is None:
            raise StorageFailed(self._report_failure or "the analytics store is not open yet")
        return store

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            pause_s = self._step()
            with self._changed:
                if self._stopping and (pause_s or not self._queue):
                    break
                if pause_s:
                    self._changed.wait_for(lambda: self._stopping, pause_s)
                elif not self._queue:
                    self._changed.wait_for(lambda: self._stopping or bool(self._queue), 1.0)
        self._close()

    def _step(self) -> float:
        """Returns seconds until a retry, or 0."""
        try:
            store = self._store or self._open()
            self._write(store)
            if time.monotonic() - self._tended_s > TEND_S and not self._stopping:
                store.tend(self._now_ms() // 1_000)
                self._tended_s = time.monotonic()
        except Exception as error:  # after any error the thread continues
            self._failed(error)
            return RETRY_S
        self._recovered()
        return 0.0

    def _open(self) -> Keeper:
        store = self._open_store()
        try:
            incomplete = store.begin(self._began_minute) if self._records_here else 0
        except BaseException:
            store.close()
            raise
        if incomplete:
            log.warning(
                "analytics_minute_incomplete",
                reason="the process before this one was killed",
                rooms=incomplete,
            )
        self._store = store
        return store

    def _write(self, store: Keeper) -> None:
        while True:
            with self._changed:
                if not self._queue:
                    return
                batch = self._queue[0]
            begun = time.monotonic()
            parts = list(batch.parts())
            store.write(parts, self._now_ms() // 1_000)
            with self._changed:
                self._written += len(parts)
                self._written_s += time.monotonic() - begun
                if self._queue and self._queue[0] is batch:
                    self._queue.popleft()
            batch.written()

    def _failed(self, error: Exception) -> None:
        with self._changed:
            self._failures += 1
            known, self._report_failure = self._report_failure, str(error) or type(error).__name__
        if self._report_failure != known:
            log.error(
                "analytics_not_written",
                reason=self._report_failure,
                exc_info=not isinstance(error, StorageFailed),
            )

    def _recovered(self) -> None:
        with self._changed:
            known, self._report_failure = self._report_failure, ""
        if known:
            log.info("analytics_write_recovered")

    def _close(self) -> None:
        store, self._store = self._store, None
        if store is None:
            return
        try:
            if not self._queue and self._records_here:
                store.end()
        except Exception as error:  # the process ends all the same
            self._failed(error)
        finally:
            store.close()
