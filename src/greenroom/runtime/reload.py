"""Reloads a changed configuration, or keeps the last good one and reports why."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import structlog

from greenroom.config.addresses import store_shown
from greenroom.config.config import Config
from greenroom.config.source import ConfigSource, Stamp, load_stamped, stamp_since
from greenroom.configuration.state import ConfigState
from greenroom.errors import InvalidConfig, Problem, StorageFailed

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
        running: Config,
        apply: Callable[[Config], Awaitable[None]],
        now_ms: Callable[[], int],
        stamp: Stamp,
    ) -> None:
        """`running` is what was loaded when the files had this `stamp`."""
        self._source = source
        self._apply = apply
        self._now_ms = now_ms
        self._stamp = stamp
        self._started_with = running
        self._asked = asyncio.Event()
        self.state = ConfigState(file=source.name, loaded_ms=now_ms())

    def ask(self) -> None:
        self._asked.set()

    async def watch(self) -> None:
        seen = self._stamp
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), LOOK_S)
            asked = self._asked.is_set()
            self._asked.clear()
            now = self._source.stamp()
            if asked or (now == seen and now != self._stamp):
                await self.reload()
            seen = now

    async def reload(self) -> None:
        """In a thread (a thousand rooms take 0.1 s). Never raises."""
        before = self._stamp = self._source.stamp()
        try:
            config, self._stamp = await asyncio.to_thread(load_stamped, self._source)
            await self._apply(config)
        except InvalidConfig as error:
            self._stamp = stamp_since(before, self._source)
            self._refuse(error.problems)
        except (StorageFailed, OSError) as error:
            self._refuse((Problem("data", str(error)),))
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

    def _accept(self, config: Config) -> None:
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

    def _pending(self, config: Config) -> tuple[str, ...]:
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
