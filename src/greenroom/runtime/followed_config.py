"""The configuration that runs: file and store, followed while either changes."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping

from greenroom.config_file.addresses import resolved_origin_problems
from greenroom.config_file.process_config import ProcessConfig
from greenroom.config_file.served import new_faults, served
from greenroom.config_file.source import ConfigSource, Stamp
from greenroom.configuration.copy import ConfigCopy
from greenroom.configuration.layers import LayeredStore, UnitFault
from greenroom.configuration.state import ConfigState, StoreState
from greenroom.configuration.store import SqlStore, default_url
from greenroom.errors import InvalidConfig, Problem, StorageFailed
from greenroom.lookups.confirmed_names import ConfirmedNames, Resolver
from greenroom.model.configuration import Configuration
from greenroom.notifier import ChangeNotifier
from greenroom.rules import Lookups
from greenroom.runtime.assemble import lookups
from greenroom.runtime.data_dir import DataDir
from greenroom.runtime.published_listeners import PublishedListeners, places_of
from greenroom.runtime.reload import Reloader, StoreFollower
from greenroom.runtime.room_compiler import compile_faults
from greenroom.runtime.stored_secrets import keep_sealed, seals_of
from greenroom.settings.process import Address

ApplyRunning = Callable[[ProcessConfig, Lookups, bool], Awaitable[None]]
"""As a whole or not at all. The last argument: nothing new may be left out."""


class FollowedConfig:
    store: SqlStore
    layered: LayeredStore
    """`store` with what stands in the file."""
    published: PublishedListeners

    def __init__(
        self,
        source: ConfigSource,
        file: ProcessConfig,
        stamp: Stamp,
        now_ms: Callable[[], int],
        apply: ApplyRunning,
    ) -> None:
        """`file` is what `source` held when it had this `stamp`."""
        self.config = self._file = file
        self._stored = Configuration()
        self.changes = ChangeNotifier()
        self._apply = apply
        self._applying = asyncio.Lock()
        self._now_ms = now_ms
        self._names = ConfirmedNames(Resolver(), now_ms)
        self._places: Lookups | None = None
        self._taken: Mapping[str, Address | None] = {}
        self.reloader = Reloader(source, file, self._apply_file, now_ms, stamp)
        self._follower: StoreFollower | None = None

    async def open(
        self,
        data: DataDir,
        listeners: tuple[Address, ...],
        taken: Mapping[str, Address | None],
        undo: contextlib.ExitStack,
    ) -> None:
        """`listeners` of this process; `taken`: real addresses by their keys. Raises TooNew,
        StorageFailed or InvalidConfig.
        """
        self._taken = taken
        seals = seals_of(data.path)
        store = self.store = SqlStore(self._file.store or default_url(data.path), seals)
        undo.callback(store.close)
        published = self.published = PublishedListeners(
            places_of(listeners), store.sessions, self._now_ms
        )
        undo.callback(published.withdraw)
        self.layered = LayeredStore(
            store, lambda: self._file.documents, self._now_ms, self._new_faults
        )
        follower = self._follower = StoreFollower(
            store, store.name, ConfigCopy(data.config_copy, seals), self._now_ms
        )
        await follower.begin(
            self._apply_stored, may_be_new=not self._file.store and not data.config_store.exists()
        )
        if follower.state.reachable:
            with contextlib.suppress(StorageFailed):
                await asyncio.to_thread(published.publish)
                await asyncio.to_thread(published.read)

    def lookups(self) -> Lookups:
        self._places = self._places or lookups(self.config, self._names)
        return self._places

    def states(self) -> tuple[ConfigState, StoreState]:
        return self.reloader.state, self._follower.state if self._follower else StoreState()

    def origin_problems(self, pointer: str, url: str) -> list[Problem]:
        """Blocks."""
        listeners = self._file.listeners(**self._taken)
        return resolved_origin_problems(listeners, pointer, url, self.published.everywhere_now)

    def loops(self, unfinished: Callable[[], bool]) -> list[Callable[[], Awaitable[None]]]:
        """`unfinished`: applying the same revision again may do more."""

        async def follow() -> None:
            if self._follower is not None:
                await self._follower.run(self._apply_stored, unfinished)

        return [
            self.reloader.watch,
            follow,
            self.published.run,
            lambda: keep_sealed(self.store),
            self._names.run,
        ]

    def _new_faults(self, stored: Configuration, wanted: Configuration) -> list[UnitFault]:
        return new_faults(self._file, stored, wanted, compile_faults)

    async def _apply_file(self, file: ProcessConfig) -> None:
        async with self._applying:
            config, places = served(file, self._stored), lookups(file, self._names)
            if new := [fault.problem for fault in config.faults if fault not in self.config.faults]:
                raise InvalidConfig(new)
            await self._apply(config, places, True)
            self.config, self._places, self._file = config, places, file
        self.changes.notify()

    async def _apply_stored(self, stored: Configuration) -> None:
        async with self._applying:
            config, places = served(self._file, stored), self.lookups()
            await self._apply(config, places, False)
            self.config, self._stored = config, stored
        self.changes.notify()
        if self.reloader.state.problems:
            # what was wrong with the file may have been what stood in the store
            self.reloader.request()
