"""One process from start to end: configuration, data directory and lock, addresses, control
listener, keys, ledgers, and only then the public listener, so that no visitor is admitted before it
is known who is active. The end is the reverse.
"""

import asyncio
import contextlib
import gc
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version

import structlog
from starlette.routing import BaseRoute

from greenroom.alerts.picture import PictureTaker
from greenroom.alerts.rules.conditions import Picture
from greenroom.alerts.service import Notifications
from greenroom.capacity.exported import Exported
from greenroom.config_file.process_config import ProcessConfig
from greenroom.config_file.source import ConfigSource, load_stamped
from greenroom.configuration.layers import UnitFault
from greenroom.configuration.state import (
    HealthState,
    NotificationState,
    ProcessState,
)
from greenroom.decision.decision_counts import DecisionCounts
from greenroom.errors import Problem
from greenroom.model.room import Room
from greenroom.rules import Lookups
from greenroom.runtime import assemble
from greenroom.runtime.analytics import NoAnalytics, analytics_of
from greenroom.runtime.clock import ClockWatch, ahead_of_wall_ms
from greenroom.runtime.compiled import is_compiled
from greenroom.runtime.control_plane import ControlPlane
from greenroom.runtime.data_dir import CannotStart, DataDir
from greenroom.runtime.followed_config import FollowedConfig
from greenroom.runtime.front_ends import (
    MakeFrontEnd,
    drain,
)
from greenroom.runtime.health import ProcessHealth
from greenroom.runtime.ledger_store import ProcessLedgerStore
from greenroom.runtime.logs import ErrorLog, set_up_logs
from greenroom.runtime.loops import Say, beside
from greenroom.runtime.parts import EVERYTHING, Listeners, ProcessParts, announcement, claim
from greenroom.runtime.serving import Serving, Started, open_serving
from greenroom.runtime.start_ledgers import (
    open_ledgers,
    process_clock,
)
from greenroom.runtime.status_page import StatusListeners, WhatRuns
from greenroom.settings.process import Address

VERSION = version("greenroom")
COMPILED = is_compiled()

log = structlog.get_logger(__name__)


class Process:
    def __init__(
        self,
        source: ConfigSource,
        say: Say,
        routes: Sequence[BaseRoute] = (),
        *,
        one_of_many: bool = False,
        front_ends: Sequence[MakeFrontEnd] = (),
        parts: ProcessParts = EVERYTHING,
    ) -> None:
        """`say` prints a line for people. Raises InvalidConfig. `one_of_many`: other processes
        listen for visitors on the same address.
        """
        config, stamp = load_stamped(source)
        self._one_of_many = one_of_many
        self._parts = parts
        self.stopping = asyncio.Event()
        self.ready = asyncio.Event()
        self._clock = process_clock(config.shared)
        self._followed = FollowedConfig(source, config, stamp, self._clock.now_ms, self._apply)
        self._hurry = asyncio.Event()
        self._say = say
        self._routes = routes
        self._phase = "starting"
        self._started_ms = self._clock.now_ms()
        self._listen, self._control = config.listen, config.control
        self._ledgers: ProcessLedgerStore | None = None
        self._decide = config.decide
        self._make_front_ends = front_ends
        self._counts = DecisionCounts()
        self._serving: Serving | None = None
        self._on_error = ErrorLog(time.monotonic)
        self._logged_faults: tuple[Problem, ...] = ()
        self._health: ProcessHealth | None = None
        self._notifications: Notifications | None = None
        self._analytics: NoAnalytics = NoAnalytics()

    @property
    def config(self) -> ProcessConfig:
        return self._followed.config

    @property
    def listen(self) -> Address:
        return self._listen

    @property
    def control(self) -> Address:
        return self._control

    async def run(self) -> None:
        """When the journals are closed. Raises CannotStart, StorageFailed or InvalidConfig (of the
        key file).
        """
        with contextlib.ExitStack() as undo:
            data, listeners = claim(self.config, self._parts, undo, one_of_many=self._one_of_many)
            self._listen = listeners.address("visitors", self._listen)
            self._control = listeners.address("control", self._control)
            self._decide = (
                listeners.address("decide", self.config.listen) if listeners.decide else None
            )
            notifications, health = await self._begin_with_store(data, listeners, undo)
            followed = self._followed
            analytics = self._analytics = analytics_of(
                self.config, data.path, self._clock, followed.layered
            )
            status = StatusListeners(
                lambda: self.config,
                self._known,
                notifications,
                health,
                self._say,
                followed.changes,
                undo,
                shared=self._one_of_many,
            )
            control = ControlPlane(
                self,
                followed,
                data,
                self._clock,
                health.service,
                notifications,
                analytics,
                status,
                self._routes,
                listeners.control,
            )
            if self._parts.signals:
                self._take_signals()
            async with contextlib.AsyncExitStack() as ending:
                await control.start(ending)
                await self._serve(
                    Started(
                        self._parts,
                        followed,
                        data,
                        listeners,
                        self._clock,
                        self._counts,
                        self._on_error,
                        health,
                        notifications,
                        analytics,
                        control,
                    )
                )

    def _known(self) -> WhatRuns:
        return self.state(), self.config

    def _picture(self) -> Callable[[], Picture]:
        taker = PictureTaker()

        def taken() -> Picture:
            config = self.config
            file = config.tls.cert if config.tls else ""
            state = self.state(asked=False)
            return taker.take(state, config.documents, str(config.control), file)

        return taken

    async def _begin_with_store(
        self, data: DataDir, listeners: Listeners, undo: contextlib.ExitStack
    ) -> tuple[Notifications, ProcessHealth]:
        followed = self._followed
        taken = {"listen": self._listen, "control": self._control, "decide": self._decide}
        addresses = listeners.addresses(self.config.status_listen)
        await followed.open(data, addresses, taken, undo)
        published = followed.published
        notifications = self._notifications = Notifications(
            followed.store,
            followed.layered,
            self.config.sending,
            self._clock.now_ms,
            self._picture(),
            published.everywhere,
            published.everywhere_now,
        )
        health = self._health = ProcessHealth(
            lambda: self.config,
            data.path,
            notifications.outbox,
            self._clock,
            published.everywhere,
            followed.changes,
        )
        undo.callback(health.close)
        return notifications, health

    async def give_up(self, data_center: str) -> None:
        if self._ledgers:
            await self._ledgers.give_up(data_center)

    def state(self, asked: bool = True) -> ProcessState:
        """Not `asked`: rooms in Redis need not be read for it."""
        now_ms = self._clock.now_ms()
        config_state, store_state = self._followed.states()
        if asked and self._ledgers:
            self._ledgers.keep_figures_fresh()
        ledgers = self._ledgers.open if self._ledgers else {}
        serving = self._serving
        origin_of = self._health.origin_of if self._health else lambda _: ""
        rooms = [
            assemble.room_state(
                room,
                ledgers[room.id].figures(now_ms),
                self._counts.of(room.id),
                origin_of(room),
                serving.of(room.id) if serving else assemble.ServedRoom(),
            )
            for room in self.config.rooms
            if room.id in ledgers
        ]
        return ProcessState(
            version=VERSION,
            phase=self._phase,
            now_ms=now_ms,
            started_ms=self._started_ms,
            listen=str(self._listen),
            data=str(self.config.data),
            config=config_state,
            rooms=tuple(rooms),
            gateway=serving.gateway_counts() if serving else (),
            store=store_state,
            faults=self._faults(),
            sync=self._ledgers.sync_state() if self._ledgers else None,
            health=self._health.state() if self._health else HealthState(),
            analytics=self._analytics.state(),
            notifications=self._notifications.state if self._notifications else NotificationState(),
            compiled=COMPILED,
            clock_ahead_ms=ahead_of_wall_ms(now_ms),
        )

    def count_instances(self, room_id: str, instances: int) -> None:
        if self._serving:
            self._serving.capacity.count_instances(room_id, instances)

    async def push_figures(self, room: Room, found: Mapping[str, Exported]) -> None:
        if self._serving:
            await self._serving.capacity.push(room, found)

    def _faults(self) -> tuple[Problem, ...]:
        """Logs what is new: rules are compiled late."""
        names = {room.id: room.name for room in self.config.rooms}
        found = [
            *self.config.faults,
            *(
                UnitFault(f"room {names.get(room_id, room_id)}", reason)
                for room_id, reason in (self._ledgers.closed() if self._ledgers else {}).items()
            ),
            *(self._serving.faults(self.config.rooms) if self._serving else ()),
        ]
        faults = tuple(dict.fromkeys(fault.problem for fault in found))
        if faults != self._logged_faults:
            self._logged_faults = faults
            log.error("config_parts_unusable", problems=[str(problem) for problem in faults])
        return faults

    def _take_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._told_to_stop)
        loop.add_signal_handler(signal.SIGHUP, self._told_to_reload)

    def _told_to_stop(self) -> None:
        if self.stopping.is_set():
            self._hurry.set()
        self.stopping.set()

    def _told_to_reload(self) -> None:
        if self._phase == "serving":
            self._followed.reloader.request()

    async def _serve(self, started: Started) -> None:
        ledgers = self._ledgers = open_ledgers(
            lambda: self.config, started.data, self._clock, self._say, self._on_error
        )
        try:
            async with contextlib.AsyncExitStack() as ending:
                ending.push_async_callback(ledgers.close)
                ending.push_async_callback(self._analytics.close, ledgers)
                served = self._serving = await open_serving(
                    started, ledgers, self._make_front_ends, ending
                )
                if not self.stopping.is_set():
                    await self._open(served, started.control)
                    async with beside(
                        self._on_error,
                        *served.loops(self.stopping),
                        *self._followed.loops(served.unfinished),
                        started.control.run,
                        started.control.export_metrics,
                        ClockWatch(self._clock.now_ms).run,
                        started.notifications.run,
                    ):
                        await self.stopping.wait()
                        await self._drain(served)
        finally:
            if self._parts.signals:
                # Python looks through it once more at its end: DuckDB reports what is left over as
                # leaks, in forty lines
                gc.unfreeze()

    async def _open(self, served: Serving, control: ControlPlane) -> None:
        try:
            await served.start()
        except OSError as error:
            raise CannotStart(
                f"cannot listen on {self._listen} for visitors: {error.strerror or error}"
            ) from None
        self._phase = "serving"
        more = await control.sign_in_lines(self._control) if self._parts.control else []
        for line in announcement(
            self.config, self._parts, self._listen, self._decide, self._control, more
        ):
            self._say(line)
        self.ready.set()

    async def _drain(self, served: Serving) -> None:
        self._phase = "draining"
        await drain(served.front_ends, self.config.drain_seconds, self._hurry, self._say)

    async def _apply(self, config: ProcessConfig, lookups: Lookups, strict: bool) -> None:
        if self._serving is None:
            return  # no visitor is served yet
        await self._serving.apply(config, lookups, strict)
        if self._parts.logs:
            set_up_logs(config.log)
        if self._notifications is not None:
            self._notifications.apply(config.sending)
