import asyncio
import contextlib
import socket
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path

import structlog

from greenroom.alerts.store import SqlOutbox
from greenroom.config_file.process_config import ProcessConfig
from greenroom.configuration.state import HealthState
from greenroom.decision.room_table import RoomTable
from greenroom.health.alerts import Placed
from greenroom.health.network import probe_policy, threaded_resolver
from greenroom.health.probes import Equipment, probe
from greenroom.health.rules.condition import shown_status
from greenroom.health.rules.memory import Uptime
from greenroom.health.rules.origin import (
    HOLD,
    RELEASE_MS,
    OriginChecks,
    OriginHold,
    held_after,
    origin_status,
)
from greenroom.health.service import HealthService
from greenroom.health.store import HealthStore, default_url
from greenroom.health.tls import TlsContexts
from greenroom.model.clock import Clock
from greenroom.model.configuration import Configuration
from greenroom.model.health_check import HealthCheck
from greenroom.model.room import Room
from greenroom.notifier import ChangeNotifier, Wake
from greenroom.outbound import Guard
from greenroom.outbound.guard import Listening
from greenroom.runtime.assemble import origins

LOOK_S = 0.3


log = structlog.get_logger(__name__)


class ProcessHealth:
    """Make it inside the event loop. `close` it when `run` has ended."""

    def __init__(
        self,
        running: Callable[[], ProcessConfig],
        data: Path,
        outbox: SqlOutbox,
        clock: Clock,
        listening: Listening,
        applied: ChangeNotifier,
    ) -> None:
        """`applied` notifies when `running` returns something new; `listening` gives greenroom's own listeners, which no
        check may be on.
        """
        config = running()
        self._running = running
        self._applied = applied
        self._store = HealthStore(
            config.store if config.store.startswith("postgres") else default_url(data)
        )
        self._guard = Guard(
            probe_policy(private=config.health.private_addresses),
            threaded_resolver(),
            listening,
        )
        equipment = Equipment(self._guard, TlsContexts())
        self._now_ms = clock.now_ms
        self._made_ms = clock.now_ms()
        self._checks_of_rooms: dict[str, tuple[str, ...]] | None = None
        self._holds: dict[str, OriginHold] = {}
        self.service = HealthService(
            self._store,
            lambda alerts: outbox.put(alerts, clock.now_ms()),
            clock.now_ms,
            partial(probe, equipment=equipment),
            holder=holder(config, data),
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.service.run())
            tasks.create_task(self._follow())

    def origin_of(self, room: Room) -> str:
        return origin_status(
            self._status(key) for key in (self._checks_of_rooms or {}).get(room.id, ())
        )

    def checks_of(self, room_id: str) -> tuple[str, ...]:
        """Those on its origin."""
        if self._checks_of_rooms is None:
            self._checks_of_rooms = _read(self._running())[1]
        return self._checks_of_rooms.get(room_id, ())

    def longest_interval_ms(self, check_ids: Iterable[str]) -> int:
        placed = self.service.placed
        found = (placed[key].check.interval for key in check_ids if key in placed)
        return 1_000 * max(found, default=0)

    def _status(self, check_id: str) -> str:
        condition = self.service.condition(check_id)
        return condition.status if condition else "unknown"

    def hold_rooms(self, table: RoomTable) -> None:
        now_ms = self._now_ms()
        for room_id, schedule in table.rooms.items():
            room = schedule.now.room
            wants = room.on_unhealthy_origin == HOLD
            if not wants and room_id not in self._holds:
                continue
            if wants and not self._remembers(room_id, now_ms):
                schedule.hold_for_origin(True)
                continue
            before = self._holds.get(room_id, OriginHold())
            hold = held_after(before, self.origin_of(room), now_ms) if wants else OriginHold()
            self._holds[room_id] = hold
            schedule.hold_for_origin(hold.held)
            if hold.held is not before.held:
                log.warning(
                    "room_held_for_origin" if hold.held else "room_released_for_origin",
                    room=room.name,
                )

    def _remembers(self, room_id: str, now_ms: int) -> bool:
        """A restart makes no unhealthy origin well. A store that does not answer is waited for as
        long as an origin that has become well.
        """
        if self.service.remembers.is_set() or now_ms - self._made_ms >= RELEASE_MS:
            return True
        return not self.checks_of(room_id)

    async def keep_holding(self, table: Callable[[], RoomTable]) -> None:
        remembers = self.service.remembers
        while True:
            self.hold_rooms(table())
            if remembers.is_set():
                await asyncio.sleep(LOOK_S)
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await remembers.wait()

    def state(self) -> HealthState:
        service, figures = self.service, self.service.figures
        agents = service.agents()
        return HealthState(
            checks=tuple(
                (found.check.name, found.zone_name, self.shown(found.check))
                for found in service.placed.values()
            ),
            leads=service.leads,
            agents=len(agents),
            lost=sum(lost for _, lost in agents),
            probes=figures.probes,
            running=figures.running,
            skipped=figures.skipped,
            impossible=figures.failed,
            late_ms=figures.late_ms,
        )

    def shown(self, check: HealthCheck) -> str:
        return shown_status(self.service.condition(check.id), check)

    def placed(self) -> dict[str, Placed]:
        return placed(self._running().documents)

    def uptimes(self, check_ids: Collection[str], since_day: str) -> list[Uptime]:
        return self._store.uptimes(check_ids, since_day)

    def close(self) -> None:
        self._store.close()

    async def _follow(self) -> None:
        wake = Wake()
        self._applied.watch(wake.set)
        applied: ProcessConfig | None = None
        while True:
            config = self._running()
            if config is not applied:
                applied, health = config, config.health
                found, self._checks_of_rooms = await asyncio.to_thread(
                    _read, config
                )  # 10,000 checks take a tenth of a second
                self._guard.policy = probe_policy(private=health.private_addresses)
                self.service.configure(found, health.region if health.probe else None)
            await wake.rest()


def placed(known: Configuration) -> dict[str, Placed]:
    zones = known.zones
    return {
        entry.id: Placed(entry.record, entry.parent, zones[entry.parent].record.name)
        for entry in known.health_checks.values()
    }


def _read(config: ProcessConfig) -> tuple[dict[str, Placed], dict[str, tuple[str, ...]]]:
    found = placed(config.documents)
    return found, checks_of_rooms(config, (each.check for each in found.values()))


def checks_of_rooms(
    config: ProcessConfig, checks: Iterable[HealthCheck]
) -> dict[str, tuple[str, ...]]:
    known, origin_of = OriginChecks(checks), origins(config)
    found = {}
    for room in config.rooms:
        origin = origin_of(room.host)
        found[room.id] = known.of(
            room, (origin.host, origin.port) if origin and not origin.path else None
        )
    return found


def holder(file: ProcessConfig, data: Path) -> str:
    """Unique among living processes, and the same after a restart."""
    return str(data) if file.shared is None else f"{socket.gethostname()} {data} {file.control}"
