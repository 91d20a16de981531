"""Reloads a changed configuration, or keeps the last good one and reports why."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from greenroom.config_file.addresses import store_shown
from greenroom.config_file.process_config import ProcessConfig
from greenroom.config_file.source import ConfigSource, Stamp, load_stamped, stamp_since
from greenroom.configuration.copy import ConfigCopy
from greenroom.configuration.state import ConfigState, StoreState
from greenroom.errors import InvalidConfig, Problem, StorageFailed, TooNew
from greenroom.model.configuration import Configuration
from greenroom.notifier import Wake, in_loop
from greenroom.web.stores import ConfigStore

LOOK_S = 0.5
"""A change counts when two looks agree, so a file is not read while it is being written."""

NEEDS_RESTART = {
    "listen": "public listen address",
    "control": "control listen address",
    "status_listen": "status listen address",
    "decide": "listen address for other proxies",
    "socket_mode": "permissions of Unix sockets",
    "data": "data directory",
    "store": "configuration store",
    "shared": "Redis servers and data center",
    "analytics": "place of the analytics",
    "analytics_retention": "retention of the analytics",
}

log = structlog.get_logger(__name__)


class Reloader:
    """`apply` applies a configuration as a whole or not at all."""

    def __init__(
        self,
        source: ConfigSource,
        running: ProcessConfig,
        apply: Callable[[ProcessConfig], Awaitable[None]],
        now_ms: Callable[[], int],
        stamp: Stamp,
    ) -> None:
        """`running` is what was loaded when the files had this `stamp`."""
        self._source = source
        self._apply = apply
        self._now_ms = now_ms
        self._stamp = stamp
        self._started_with = running
        self._asked = Wake()
        self.state = ConfigState(file=source.name, loaded_ms=now_ms())

    def request(self) -> None:
        self._asked.set()

    async def watch(self) -> None:
        seen = self._stamp
        while True:
            asked = await self._asked.rest(LOOK_S)
            now = self._source.stamp()
            if asked or (now == seen and now != self._stamp):
                await self.reload()
            seen = now

    async def reload(self) -> None:
        """In a thread (a thousand rooms take 0.1 s). Raises only what no file should cause."""
        before = self._stamp = self._source.stamp()
        try:
            config, self._stamp = await asyncio.to_thread(load_stamped, self._source)
            await self._apply(config)
        except InvalidConfig as error:
            self._stamp = stamp_since(before, self._source)
            self._refuse(error.problems)
        except (StorageFailed, OSError) as error:
            self._refuse((Problem("data", str(error)),))
        except Exception as error:
            self._refuse((_fault("file", error),))
            raise
        else:
            self._accept(config)

    def _refuse(self, problems: tuple[Problem, ...]) -> None:
        before = self.state
        self.state = ConfigState(
            before.file,
            before.loaded_ms,
            before.reloads,
            before.failures + 1,
            problems,
            before.pending,
        )
        log.error(
            "config_refused", file=before.file, problems=[str(problem) for problem in problems]
        )

    def _accept(self, config: ProcessConfig) -> None:
        before = self.state
        self.state = ConfigState(
            before.file,
            self._now_ms(),
            before.reloads + 1,
            before.failures,
            (),
            self._pending(config),
        )
        log.info("config_loaded", file=before.file, rooms=len(config.rooms))
        for change in self.state.pending:
            log.warning("config_restart_required", change=change)

    def _pending(self, config: ProcessConfig) -> tuple[str, ...]:
        started = self._started_with
        changed = [
            f"{key} ({what}) stays {store_shown(str(getattr(started, key)))}; the file says"
            f" {store_shown(str(getattr(config, key)))}"
            for key, what in NEEDS_RESTART.items()
            if getattr(config, key) != getattr(started, key)
        ]
        for name in ("tls", "control_tls"):
            before = getattr(started, name)
            if (getattr(config, name) is None) != (before is None):
                changed.append(f"{name} stays {'on' if before else 'off'}")
        return tuple(changed)


# Follows the configuration store: reads the revision every POLL_S, and at once after a write
# through this process. Leaves out or holds what cannot be used. A copy in the data directory
# serves a start without the store.

POLL_S = 0.4

RETRY_S = 5.0

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
        self._wake = Wake()
        self._next_try_s = 0.0
        self.state = StoreState(name=name)

    async def begin(self, apply: Apply, may_be_new: bool) -> None:
        """Begins with the store, else the copy, else (only if `may_be_new`) empty. Raises TooNew,
        StorageFailed or InvalidConfig: an edge without its rooms would let everybody by.
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
        self._store.changes.watch(in_loop(self._wake.set))
        while True:
            await self._look(apply, asyncio.get_running_loop().time, unfinished)
            await self._wake.rest(POLL_S)

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
            except Exception as error:
                self._refuse(found.revision, InvalidConfig([_fault("data", error)]))
                raise
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


def _fault(pointer: str, error: Exception) -> Problem:
    reason = f"cannot be used ({type(error).__name__}): this is a fault of greenroom"
    return Problem(pointer, reason)
