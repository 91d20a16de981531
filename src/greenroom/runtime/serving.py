"""The visitor side of one process: room table, decisions, front ends, measurements and calls. Made
after the ledgers are restored.
"""

import asyncio
import contextlib
import gc
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from greenroom.alerts.service import Notifications
from greenroom.analytics.collector.sampler import WithTargets
from greenroom.config_file.process_config import ProcessConfig
from greenroom.configuration.layers import UnitFault
from greenroom.decision.decision_counts import DecisionCounts
from greenroom.decision.room_table import RoomTable
from greenroom.errors import StorageFailed
from greenroom.gateway.documents import SeesAnswers
from greenroom.keys.ticket_keys import KeyRing
from greenroom.model.clock import Clock
from greenroom.model.room import Room
from greenroom.offers.from_origins import OriginOffers
from greenroom.outbound import Guard
from greenroom.rules import Lookups
from greenroom.runtime import assemble
from greenroom.runtime.analytics import NoAnalytics
from greenroom.runtime.assemble import ServedRoom
from greenroom.runtime.calls import ProcessCalls
from greenroom.runtime.capacity import ProcessCapacity
from greenroom.runtime.control_plane import ControlPlane
from greenroom.runtime.data_dir import DataDir
from greenroom.runtime.followed_config import FollowedConfig
from greenroom.runtime.front_ends import (
    BuiltInFrontEnd,
    FrontEnd,
    MakeFrontEnd,
    built_in_front_ends,
)
from greenroom.runtime.health import ProcessHealth
from greenroom.runtime.ledger_store import ProcessLedgerStore, tend
from greenroom.runtime.loops import OnError, keep_time
from greenroom.runtime.parts import Listeners, ProcessParts
from greenroom.runtime.room_compiler import Compilation, RoomCompiler
from greenroom.runtime.start_ledgers import agreed_draws, data_center_names, ledger_rooms
from greenroom.web.config_service import ConfigService

BREATH_S = 0.002


class Started(NamedTuple):
    """What a process has before it serves visitors."""

    parts: ProcessParts
    followed: FollowedConfig
    data: DataDir
    listeners: Listeners
    clock: Clock
    counts: DecisionCounts
    on_error: OnError
    health: ProcessHealth
    notifications: Notifications
    analytics: NoAnalytics
    control: ControlPlane


async def open_serving(
    process: Started,
    ledgers: ProcessLedgerStore,
    make_front_ends: Sequence[MakeFrontEnd],
    ending: contextlib.AsyncExitStack,
) -> "Serving":
    """Restores the ledgers. Raises StorageFailed, or InvalidConfig of the key file."""
    followed, data = process.followed, process.data
    await ledgers.exchange_keys()
    ring = KeyRing(data.path, process.clock.now_ms())
    await ledgers.restore(ledger_rooms(followed.config))
    draws = await agreed_draws(
        followed.config.shared, data.draws, lambda: data_center_names(followed.config), ending
    )
    compiler = RoomCompiler(draws, process.on_error, process.counts.rule_failed)
    return Serving(process, ledgers, ring, compiler, make_front_ends, ending)


class Serving:
    def __init__(
        self,
        process: Started,
        ledgers: ProcessLedgerStore,
        ring: KeyRing,
        compiler: RoomCompiler,
        make_front_ends: Sequence[MakeFrontEnd],
        ending: contextlib.AsyncExitStack,
    ) -> None:
        """Make it inside the event loop. `ending` closes it."""
        followed, clock, on_error = process.followed, process.clock, process.on_error
        config, published = followed.config, followed.published
        self._process = process
        self._ledgers = ledgers
        self._ring = ring
        self._compiler = compiler
        table = compiler.table(
            Compilation(config, ledgers.open, clock.now_ms(), followed.lookups(), rules_later=True)
        )
        counting = process.analytics.observer(process.counts)
        observers = [assemble.noticing_lost_tickets(counting, process.counts)]
        decision = self._decision = assemble.decision_service(
            table, ring, clock, on_error, observers
        )
        decision.data_centers = assemble.data_centers(config)
        self._calls = ProcessCalls(
            config.shared, process.data.path, clock, decision, process.notifications, on_error
        )
        ending.push_async_callback(self._calls.close)
        self._offers = OriginOffers(ConfigService(followed.store, clock))
        decision.offers_received = self._offers.said
        self.capacity = ProcessCapacity(
            config.shared,
            ledgers,
            process.counts,
            followed.store,
            clock,
            Guard(config.sending.outbound, listening=published.everywhere),
            process.health,
        )
        self.capacity.configure(config)
        ending.push_async_callback(self.capacity.close)
        self._settle(table, ledgers.open)
        self.front_ends: list[FrontEnd] = []
        ending.callback(self._close_front_ends)
        self._gateway: BuiltInFrontEnd | None = None
        for built_in in built_in_front_ends(
            config,
            decision,
            process.listeners,
            on_error,
            published.here,
            published.everywhere,
        ):
            self._gateway = self._gateway or built_in
            self.front_ends.append(built_in)  # one after the other: all are closed if one fails
        for make in make_front_ends:
            self.front_ends.append(make(config, decision))
        self._answers: SeesAnswers | None = next(
            (one.answers for one in self.front_ends if one.answers), None
        )
        self.capacity.measure(self._answers)

    async def start(self) -> None:
        """Raises OSError."""
        for front_end in self.front_ends:
            await front_end.start()

    def loops(self, stopping: asyncio.Event) -> list[Callable[[], Awaitable[None]]]:
        process, ledgers, table = self._process, self._ledgers, lambda: self._decision.table
        clock, data = process.clock, str(process.followed.config.data)
        return [
            ledgers.run,
            lambda: tend(self._ring, ledgers, clock.now_ms, data),
            lambda: keep_time(table, clock, process.on_error),
            self._calls.run,
            lambda: self._compile_the_rest(stopping),
            process.health.run,
            lambda: process.health.keep_holding(table),
            self._offers.run,
            lambda: self.capacity.run(table),
            lambda: process.analytics.run(WithTargets(ledgers, self.capacity.of)),
        ]

    async def apply(self, config: ProcessConfig, lookups: Lookups, strict: bool) -> None:
        """Everything that can fail comes before the first change. `strict`: nothing new may be left
        out. Works in small pieces: visitors are served meanwhile.
        """
        ledgers, compiler, now_ms = self._ledgers, self._compiler, self._process.clock.now_ms
        prepared = await ledgers.prepare(ledger_rooms(config))
        try:
            new = ledgers.closed(prepared).keys() - ledgers.closed().keys()
            if strict and new:
                raise StorageFailed("; ".join(ledgers.closed(prepared)[one] for one in sorted(new)))
            await compiler.compile_ahead(Compilation(config, prepared, now_ms(), lookups))
            work = Compilation(config, prepared, now_ms(), lookups)
            table = compiler.table(work, strict=strict)
            self._process.control.configure(config)
            for front_end in self.front_ends:
                front_end.configure(config)
        except BaseException:
            ledgers.discard(prepared)
            raise
        self._settle(table, prepared)
        self._decision.use(table)
        self._decision.data_centers = assemble.data_centers(config)
        self._process.counts.keep(set(table.rooms))
        if self._answers:
            self._answers.documents.keep(set(table.rooms))
        self.capacity.configure(config)

    # -- what there is to report -------------------------------------------------------------------

    def of(self, room_id: str) -> ServedRoom:
        documents = self._answers.documents.of(room_id) if self._answers else None
        schedule = self._decision.table.rooms.get(room_id)
        return ServedRoom(schedule, documents, *self.capacity.of(room_id))

    def faults(self, rooms: tuple[Room, ...]) -> list[UnitFault]:
        return [*self._compiler.faults, *self.capacity.faults(rooms)]

    def unfinished(self) -> bool:
        return bool(self._compiler.unfinished or self._ledgers.closed())

    def gateway_counts(self) -> tuple[tuple[str, float], ...]:
        if self._gateway is None:
            return ()
        counts = self._gateway.gateway.counts.described()
        return tuple((name, value) for name, _, _, value in counts)

    # -- inside ------------------------------------------------------------------------------------

    def _settle(self, table: RoomTable, prepared: Mapping[str, Any]) -> None:
        """Also holds draws that became due while the process was down."""
        self._process.health.hold_rooms(table)
        self.capacity.apply_limits(table)
        rooms = [schedule.now.effective.ledger_room for schedule in table.rooms.values()]
        self._ledgers.take_over(rooms, prepared)
        table.turn(self._process.clock.now_ms(), self._process.on_error)

    async def _compile_the_rest(self, stopping: asyncio.Event) -> None:
        while self._compiler.catch_up():
            await asyncio.sleep(BREATH_S)
        if self._process.parts.signals:  # the process is greenroom's own
            # what is there by now stays; going through it again and again would only hold visitors
            # up
            gc.freeze()
        await stopping.wait()

    def _close_front_ends(self) -> None:
        for front_end in self.front_ends:
            front_end.close()
