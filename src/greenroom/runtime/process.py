"""One greenroom process from start to end. Start: configuration, data directory and its lock, both
addresses, control listener, keys, ledgers restored, and only then the public listener, so that no
visitor is admitted before it is known who is active. The end is the reverse.
"""

import asyncio
import contextlib
import gc
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import structlog
from starlette.routing import BaseRoute

from greenroom.capacity.exported import Exported
from greenroom.config.config import Config
from greenroom.config.source import ConfigSource, load_stamped
from greenroom.configuration.layers import UnitFault
from greenroom.configuration.state import (
    HealthState,
    NotificationState,
    ProcessState,
)
from greenroom.decision.decision_counts import DecisionCounts
from greenroom.decision.room_table import RoomTable
from greenroom.decision.service import DecisionService
from greenroom.errors import Problem, StorageFailed
from greenroom.gateway.documents import SeesAnswers
from greenroom.keys.ticket_keys import KeyRing
from greenroom.model.room import Room
from greenroom.outbound import Guard
from greenroom.rules import Lookups
from greenroom.runtime import assemble
from greenroom.runtime.analytics import NoAnalytics, analytics_of
from greenroom.runtime.calls import ProcessCalls
from greenroom.runtime.capacity import ProcessCapacity, WithTargets
from greenroom.runtime.clock import ClockWatch, ahead_of_wall_ms
from greenroom.runtime.compiled import is_compiled
from greenroom.runtime.control_plane import ControlPlane
from greenroom.runtime.dashboard import (
    KeyFile,
    Running,
)
from greenroom.runtime.data_dir import CannotStart, DataDir
from greenroom.runtime.explain import RunningExplain
from greenroom.runtime.followed_config import FollowedConfig
from greenroom.runtime.front_ends import (
    BuiltInFrontEnd,
    FrontEnd,
    MakeFrontEnd,
    built_in_front_ends,
    drain,
)
from greenroom.runtime.health import ProcessHealth
from greenroom.runtime.ledger_store import ProcessLedgerStore, tend
from greenroom.runtime.logs import ErrorLog, set_up_logs
from greenroom.runtime.loops import Say, beside, keep_time
from greenroom.runtime.notifications import Notifications, WhatRuns
from greenroom.runtime.origin_offers import OriginOffers
from greenroom.runtime.parts import EVERYTHING, Listeners, ProcessParts, announcement, claim
from greenroom.runtime.room_compiler import RoomCompiler
from greenroom.runtime.start_ledgers import (
    agreed_draws,
    data_center_names,
    ledger_rooms,
    open_ledgers,
    process_clock,
)
from greenroom.runtime.status_page import StatusListeners
from greenroom.settings.process import Address
from greenroom.web.config_service import ConfigService

VERSION = version("greenroom")
COMPILED = is_compiled()

BREATH_S = 0.002

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
        self._gateway: BuiltInFrontEnd | None = None
        self._decide = config.decide
        self._make_front_ends = front_ends
        self._front_ends: list[FrontEnd] = []
        self._counts = DecisionCounts()
        self._decision: DecisionService | None = None
        self._compiler: RoomCompiler | None = None
        self._on_error = ErrorLog(time.monotonic)
        self._logged_faults: tuple[Problem, ...] = ()
        self._health: ProcessHealth | None = None
        self._capacity: ProcessCapacity | None = None
        self._notifications: Notifications | None = None
        self._analytics: NoAnalytics = NoAnalytics()

    @property
    def config(self) -> Config:
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
            store, published = followed.layered, followed.published
            analytics = self._analytics = analytics_of(self.config, data.path, self._clock, store)
            config = lambda: self.config  # noqa: E731
            status = StatusListeners(
                config,
                self._known,
                notifications,
                health,
                self._say,
                followed.changes,
                undo,
                shared=self._one_of_many,
            )
            running = Running(
                self,
                RunningExplain(config, followed.lookups, self._clock.now_ms, self),
                followed.origin_problems,
                health.service,
                notifications,
                analytics.store(),
                None,
                KeyFile(data.path, self._clock),
                self,
            )
            control = self._control_plane = ControlPlane(
                running,
                store,
                followed.store.sessions,
                self._clock,
                analytics.answers(),
                status,
                config,
                self._routes,
                data.draws,
                published.everywhere,
                listeners.control,
            )
            if self._parts.signals:
                self._take_signals()
            async with contextlib.AsyncExitStack() as ending:
                await control.start(ending)
                await self._serve(data, listeners, health)

    def _known(self, asked: bool = True) -> WhatRuns:
        return self.state(asked), self.config

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
            self.config,
            self._clock.now_ms,
            lambda: self._known(asked=False),
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
            self._ledgers.asked()
        ledgers = self._ledgers.open if self._ledgers else {}
        schedules = self._decision.table.rooms if self._decision else {}
        origin_of = self._health.origin_of if self._health else lambda _: ""
        gateway = self._gateway.gateway.counts if self._gateway else None
        answers = self._answers()
        rooms = [
            assemble.room_state(
                room,
                ledgers[room.id].figures(now_ms),
                self._counts.of(room.id),
                schedules.get(room.id),
                origin_of(room),
                answers.documents.of(room.id) if answers else None,
                *(self._capacity.of(room.id) if self._capacity else (None, 0)),
            )
            for room in self.config.rooms
            if room.id in ledgers
        ]
        counts = gateway.described() if gateway else ()
        return ProcessState(
            version=VERSION,
            phase=self._phase,
            now_ms=now_ms,
            started_ms=self._started_ms,
            listen=str(self._listen),
            data=str(self.config.data),
            config=config_state,
            rooms=tuple(rooms),
            gateway=tuple((name, value) for name, _, _, value in counts),
            store=store_state,
            faults=self._faults(),
            sync=self._ledgers.sync_state() if self._ledgers else None,
            health=self._health.state() if self._health else HealthState(),
            analytics=self._analytics.state(),
            notifications=self._notifications.state if self._notifications else NotificationState(),
            compiled=COMPILED,
            clock_ahead_ms=ahead_of_wall_ms(now_ms),
        )

    def _answers(self) -> SeesAnswers | None:
        return next((one.answers for one in self._front_ends if one.answers), None)

    def count_instances(self, room_id: str, instances: int) -> None:
        if self._capacity:
            self._capacity.count_instances(room_id, instances)

    async def push_figures(self, room: Room, found: Mapping[str, Exported]) -> None:
        if self._capacity:
            await self._capacity.push(room, found)

    def _faults(self) -> tuple[Problem, ...]:
        """Logs what is new: rules are compiled late."""
        names = {room.id: room.name for room in self.config.rooms}
        found = [
            *self.config.faults,
            *(self._compiler.faults if self._compiler else ()),
            *(
                UnitFault(f"room {names.get(room_id, room_id)}", reason)
                for room_id, reason in (self._ledgers.closed() if self._ledgers else {}).items()
            ),
            *(self._capacity.faults(self.config.rooms) if self._capacity else ()),
        ]
        faults = tuple(dict.fromkeys(fault.problem for fault in found))
        if faults != self._logged_faults:
            self._logged_faults = faults
            log.error("config_parts_unusable", problems=[str(problem) for problem in faults])
        return faults

    def _made_capacity(self, ledgers: ProcessLedgerStore, health: ProcessHealth) -> ProcessCapacity:
        followed = self._followed
        found = ProcessCapacity(
            self.config.shared,
            ledgers,
            self._counts,
            followed.store,
            self._clock,
            Guard(self.config.sending.outbound, listening=followed.published.everywhere),
            health,
        )
        found.configure(self.config)
        return found

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
            self._followed.reloader.ask()

    async def _serve(self, data: DataDir, listeners: Listeners, health: ProcessHealth) -> None:
        ledgers = self._ledgers = open_ledgers(
            lambda: self.config, data, self._clock, self._say, self._on_error
        )
        ending = contextlib.AsyncExitStack()
        try:
            await ledgers.exchange_keys()
            ring = KeyRing(data.path, self._clock.now_ms())
            await ledgers.restore(ledger_rooms(self.config))
            compiler = self._compiler = RoomCompiler(
                await agreed_draws(
                    self.config.shared,
                    data.draws,
                    lambda: data_center_names(self.config),
                    ending,
                ),
                self._on_error,
                self._counts.rule_failed,
            )
            table = compiler.table(
                self.config,
                ledgers.open,
                self._clock.now_ms(),
                self._followed.lookups(),
                rules_later=True,
            )
            counting = self._analytics.observer(self._counts)
            observers = [assemble.noticing_lost_tickets(counting, self._counts)]
            decision = self._decision = assemble.decision_service(
                table, ring, self._clock, self._on_error, observers
            )
            decision.data_centers = assemble.data_centers(self.config)
            calls = self._calls(data, decision, ending)
            offers = OriginOffers(ConfigService(self._followed.store, self._clock))
            decision.offers_said = offers.said
            capacity = self._capacity = self._made_capacity(ledgers, health)
            ending.push_async_callback(capacity.close)
            self._settle(decision.table, ledgers, ledgers.open)
            built_in = built_in_front_ends(
                self.config,
                decision,
                listeners,
                self._on_error,
                self._followed.published.here,
                self._followed.published.everywhere,
            )
            self._gateway = next(iter(built_in), None)
            self._front_ends = [
                *built_in,
                *[make(self.config, decision) for make in self._make_front_ends],
            ]
            capacity.measure(self._answers())
            if not self.stopping.is_set():
                await self._open()
                async with beside(
                    self._on_error,
                    ledgers.run,
                    *self._followed.loops(self._unfinished),
                    self._control_plane.run,
                    lambda: tend(ring, ledgers, self._clock.now_ms, str(self.config.data)),
                    self._keep_time,
                    ClockWatch(self._clock.now_ms).run,
                    *([self._notifications.run] if self._notifications else []),
                    *calls,
                    self._compile_the_rest,
                    self._check_health,
                    offers.run,
                    lambda: capacity.run(lambda: decision.table),
                    lambda: self._analytics.run(WithTargets(ledgers, capacity)),
                    self._control_plane.export_metrics,
                ):
                    await self.stopping.wait()
                    await self._drain()
        finally:
            for front_end in self._front_ends:
                front_end.close()
            await ending.aclose()
            await self._analytics.close(ledgers)
            await ledgers.close()
            if self._parts.signals:
                # Python looks through it once more at its end: DuckDB reports what is left over as
                # leaks, in forty lines
                gc.unfreeze()

    def _calls(
        self, data: DataDir, decision: DecisionService, ending: contextlib.AsyncExitStack
    ) -> list[Callable[[], Awaitable[None]]]:
        if self._notifications is None:
            return []
        calls = ProcessCalls(
            self.config.shared,
            data.path,
            self._clock,
            decision,
            self._notifications,
            self._on_error,
        )
        ending.push_async_callback(calls.close)
        return [calls.run]

    async def _open(self) -> None:
        try:
            for front_end in self._front_ends:
                await front_end.start()
        except OSError as error:
            raise CannotStart(
                f"cannot listen on {self._listen} for visitors: {error.strerror or error}"
            ) from None
        self._phase = "serving"
        more = (
            await self._control_plane.sign_in_lines(
                self._control, tls=bool(self.config.control_tls)
            )
            if self._parts.control
            else []
        )
        for line in announcement(
            self.config, self._parts, self._listen, self._decide, self._control, more
        ):
            self._say(line)
        self.ready.set()

    async def _drain(self) -> None:
        self._phase = "draining"
        await drain(self._front_ends, self.config.drain_seconds, self._hurry, self._say)

    async def _apply(self, config: Config, lookups: Lookups, strict: bool) -> None:
        """All steps that can fail come before the first change. `strict`: nothing new may be left
        out. Done in small pieces: visitors are served meanwhile.
        """
        ledgers, decision, compiler = self._ledgers, self._decision, self._compiler
        if ledgers is None or decision is None or compiler is None or not self._front_ends:
            return  # no visitor is served yet
        prepared = await ledgers.prepare(ledger_rooms(config))
        try:
            new = ledgers.closed(prepared).keys() - ledgers.closed().keys()
            if strict and new:
                raise StorageFailed("; ".join(ledgers.closed(prepared)[one] for one in sorted(new)))
            await compiler.compile_ahead(config, prepared, self._clock.now_ms(), lookups)
            table = compiler.table(config, prepared, self._clock.now_ms(), lookups, strict=strict)
            self._control_plane.configure(config)
            for front_end in self._front_ends:
                front_end.configure(config)
        except BaseException:
            ledgers.discard(prepared)
            raise
        self._settle(table, ledgers, prepared)
        decision.use(table)
        decision.data_centers = assemble.data_centers(config)
        self._counts.keep(set(table.rooms))
        if answers := self._answers():
            answers.documents.keep(set(table.rooms))
        if self._parts.logs:
            set_up_logs(config.log)
        if self._notifications is not None:
            self._notifications.apply(config)
        if self._capacity:
            self._capacity.configure(config)

    def _settle(
        self, table: RoomTable, ledgers: ProcessLedgerStore, prepared: Mapping[str, Any]
    ) -> None:
        """Holds a draw that became due while the process was not running."""
        if self._health:
            self._health.hold_rooms(table)
        if self._capacity:
            self._capacity.hold_rooms(table)
        ledgers.take_over(
            [schedule.now.effective.ledger_room for schedule in table.rooms.values()], prepared
        )
        table.turn(self._clock.now_ms(), self._on_error)

    def _unfinished(self) -> bool:
        compiler, ledgers = self._compiler, self._ledgers
        return bool((compiler and compiler.unfinished) or (ledgers and ledgers.closed()))

    async def _compile_the_rest(self) -> None:
        while self._compiler is not None and self._compiler.catch_up():
            await asyncio.sleep(BREATH_S)
        if self._parts.signals:  # the process is greenroom's own
            # what is there by now stays; going through it again and again would only hold visitors
            # up
            gc.freeze()
        await self.stopping.wait()

    async def _check_health(self) -> None:
        health, decision = self._health, self._decision
        if health is not None and decision is not None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(health.run())
                tasks.create_task(health.keep_holding(lambda: decision.table))

    async def _keep_time(self) -> None:
        if self._decision is not None:
            decision = self._decision
            await keep_time(lambda: decision.table, self._clock, self._on_error)
