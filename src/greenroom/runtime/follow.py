"""Follows the configuration store: reads the revision every POLL_S, and at once after a write
through this process. Leaves out or holds what cannot be used. A copy in the data directory serves a
start without the store.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from greenroom.configuration.copy import ConfigCopy
from greenroom.configuration.state import StoreState
from greenroom.errors import InvalidConfig, Problem, StorageFailed, TooNew
from greenroom.model.configuration import Configuration
from greenroom.web.stores import ConfigStore

POLL_S = 0.4

RETRY_S = 5.0

log = structlog.get_logger(__name__)
Apply = Callable[[Configuration], Awaitable[None]]


class StoreFollower:
    """Reads `store` in threads; `apply` applies a configuration as a whole or not at all, in the
    event loop.
    """

    def __init__(
        self, store: ConfigStore, name: str, copy: ConfigCopy, now_ms: Callable[[], int]
    ) -> None:
        self._store = store
        self._copy = copy
        self._now_ms = now_ms
        self._running = Configuration()
        self._copied: Configuration | None = None
        self._wake = asyncio.Event()
        self._next_try_s = 0.0
        self.state = StoreState(name=name)

    async def begin(self, apply: Apply, may_be_new: bool) -> None:
        """The store's, else the copy, else (only where `may_be_new`) the empty one. Raises TooNew,
        or StorageFailed or InvalidConfig: without its rooms an edge would let everybody by.
        """
        try:
            found = await asyncio.to_thread(self._store.read)
            await apply(found)
        except TooNew:
            raise
        except (StorageFailed, InvalidConfig) as error:
            self._report_failure(error)
            copied = await asyncio.to_thread(self._copy.load)
            if copied is None and not (may_be_new and isinstance(error, StorageFailed)):
                raise
            await apply(copied or Configuration())
            self._running = self._copied = copied or Configuration()
            self.state = self.state.of_revision(
                self._running.revision, self._now_ms(), from_copy=copied is not None
            )
            log.warning("config_store_copy_used", revision=self._running.revision)
        else:
            self._took_over(found)
            await self._keep_copy()

    async def run(self, apply: Apply, unfinished: Callable[[], bool] = lambda: False) -> None:
        """`unfinished`: applying the same revision again may do more."""
        loop = asyncio.get_running_loop()

        def wake() -> None:
            loop.call_soon_threadsafe(self._wake.set)

        self._store.watch(wake)
        while True:
            await self._look(apply, loop.time, unfinished)
            try:
                async with asyncio.timeout(POLL_S):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()

    async def _look(
        self, apply: Apply, time_s: Callable[[], float], unfinished: Callable[[], bool]
    ) -> None:
        try:
            found = await asyncio.to_thread(self._store.read)
        except (StorageFailed, InvalidConfig) as error:
            self._report_failure(error)
            return
        if not self.state.reachable:
            log.info("config_store_reachable", store=self.state.name)
            self.state = self.state.reached()
        again = bool(self.state.problems) or unfinished()
        if found is self._running and not again and self._copied is found:
            return
        if found.revision == self.state.tried and time_s() < self._next_try_s:
            return
        self._next_try_s = time_s() + RETRY_S
        if found is not self._running or again:
            try:
                await apply(found)
            except (InvalidConfig, StorageFailed) as error:
                self._refuse(found.revision, error)
                return
            if found is not self._running or self.state.problems:
                self._took_over(found)
        if self._copied is not found:
            await self._keep_copy()

    async def _keep_copy(self) -> None:
        kept = self._running
        try:
            await asyncio.to_thread(self._copy.save, kept)
        except StorageFailed as error:
            log.warning("config_store_copy_failed", reason=str(error))
        else:
            self._copied = kept

    def _took_over(self, found: Configuration) -> None:
        first = self.state.revision < 0
        self._running = found
        self.state = self.state.of_revision(found.revision, self._now_ms())
        if not first:
            log.info(
                "config_store_revision_loaded", revision=found.revision, rooms=len(found.rooms)
            )

    def _refuse(self, revision: int, error: InvalidConfig | StorageFailed) -> None:
        problems = problems_of(error)
        if problems != self.state.problems or revision != self.state.tried:
            log.error(
                "config_store_revision_refused",
                revision=revision,
                problems=[str(problem) for problem in problems],
            )
        self.state = self.state.refused(revision, problems)

    def _report_failure(self, error: InvalidConfig | StorageFailed) -> None:
        if isinstance(error, InvalidConfig):
            self._refuse(self.state.tried, error)
            return
        if self.state.reachable:
            log.error("config_store_unreachable", reason=str(error))
        self.state = self.state.lost()


def problems_of(error: InvalidConfig | StorageFailed) -> tuple[Problem, ...]:
    return error.problems if isinstance(error, InvalidConfig) else (Problem("data", str(error)),)
