import asyncio
import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import structlog

from greenroom.admission.schedule import Effective
from greenroom.alerts.service import Notifications
from greenroom.config_file.process_config import ProcessConfig
from greenroom.configuration.state import ProcessState, RoomState
from greenroom.decision.room_view import RoomView
from greenroom.model.status_page import listen_parts
from greenroom.notifier import ChangeNotifier, Wake
from greenroom.runtime.assemble import process_policy
from greenroom.runtime.data_dir import CannotStart
from greenroom.runtime.health import ProcessHealth
from greenroom.runtime.listener import AppListener, bind, bound
from greenroom.settings.process import Address
from greenroom.status_page.app import status_pages
from greenroom.status_page.dashboard.preview import StatusPreview
from greenroom.status_page.view import DAYS, CheckFacts, NoteFacts, RoomFacts, StatusFacts
from greenroom.web.client_address import WithClientAddress

DAY_MS = 86_400_000
LOOK_S = 1.0
WhatRuns = tuple[ProcessState, ProcessConfig]
Look = Callable[[], WhatRuns]
log = structlog.get_logger("greenroom.status_page")


class StatusFactsSource:
    def __init__(self, look: Look, notifications: Notifications, health: ProcessHealth) -> None:
        self._look = look
        self._notifications = notifications
        self._health = health

    async def gather(self) -> StatusFacts:
        """Raises StorageFailed."""
        state, config = self._look()
        rooms = tuple(_room(found, config) for found in state.rooms)
        checks = self._checks()
        notes = tuple(
            NoteFacts(note.id, note.incident, note.title, note.text, note.at_ms)
            for note in config.documents.incident_notes.records()
        )

        def remembered() -> StatusFacts:
            incidents = self._notifications.incidents(state.now_ms - DAYS * DAY_MS)
            return StatusFacts(
                state.now_ms, rooms, self._with_days(checks, state.now_ms), incidents, notes
            )

        return await asyncio.to_thread(remembered)

    def _checks(self) -> list[CheckFacts]:
        found = []
        for placed in self._health.placed().values():
            status = self._health.shown(placed.check)
            found.append(CheckFacts(placed.check.id, placed.check.name, status, placed.zone_name))
        return found

    def _with_days(self, checks: list[CheckFacts], now_ms: int) -> list[CheckFacts]:
        since = (
            (datetime.fromtimestamp(now_ms // 1000, UTC) - timedelta(days=DAYS)).date().isoformat()
        )
        days: dict[str, dict[str, tuple[int, int]]] = {}
        newest: dict[str, float] = {}
        for uptime in self._health.uptimes([check.id for check in checks], since) if checks else ():
            days.setdefault(uptime.check_id, {})[uptime.day] = (uptime.good, uptime.total)
            newest[uptime.check_id] = uptime.rtt_ms or newest.get(uptime.check_id, 0.0)
        return [
            replace(check, days=days.get(check.id, {}), response_ms=newest.get(check.id, 0.0))
            for check in checks
        ]


def _room(state: RoomState, config: ProcessConfig) -> RoomFacts:
    room, zone = state.room, config.zone_of(state.room)
    view = RoomView(state.now or Effective(room), state.figures, room.suspended)
    return RoomFacts(room.id, room.name, view, zone.name if zone else "")


class StatusListeners:
    """Listeners of the status pages: one at the process's address, and one for each address that a
    page names.
    """

    def __init__(
        self,
        config: Callable[[], ProcessConfig],
        look: Look,
        notifications: Notifications,
        health: ProcessHealth,
        say: Callable[[str], None],
        applied: ChangeNotifier,
        undo: ExitStack,
        *,
        shared: bool,
    ) -> None:
        """Raises CannotStart. `shared`: other processes serve them on the same address."""
        self._config = config
        self._gather = StatusFactsSource(look, notifications, health).gather
        self._say = say
        self._applied = applied
        self._shared = shared
        self.fixed = self._at_own_address(undo)
        self._open: dict[str, AppListener] = {}
        self.refused: dict[str, str] = {}
        """Why, by the address."""

    async def run(self) -> None:
        wake = Wake()
        self._applied.watch(wake.set)
        try:
            while True:
                await self._follow()
                await wake.rest(LOOK_S if self.refused else None)
        finally:
            for listener in self._open.values():
                await listener.close()

    def preview(self) -> StatusPreview:
        return StatusPreview(
            lambda: self._config().status_pages,
            lambda: bool(self._config().status_listen),
            self._gather,
            lambda: self.refused,
        )

    def _at_own_address(self, undo: ExitStack) -> list[AppListener]:
        config = self._config()
        address = config.status_listen
        if address is None:
            return []
        mode = int(config.socket_mode, 8)
        listener = bind(address, "the status pages", reuse_port=self._shared, mode=mode)
        undo.callback(listener.close)
        self._say(f"status     {bound(listener).url('http')}")
        return [self._listener(listener, "", by_socket=bool(address.path))]

    def _listener(
        self, listener: socket.socket, listen: str, *, by_socket: bool = False
    ) -> AppListener:
        pages = status_pages(
            lambda: [one for one in self._config().status_pages if one.listen == listen],
            self._gather,
        )
        policy = lambda: process_policy(self._config())  # noqa: E731
        return AppListener(WithClientAddress(pages, policy, by_socket=by_socket), listener)

    async def _follow(self) -> None:
        wanted = {page.listen for page in self._config().status_pages if page.listen}
        for gone in self._open.keys() - wanted:
            await self._open.pop(gone).close()
        self.refused = {at: why for at, why in self.refused.items() if at in wanted}
        for listen in sorted(wanted - self._open.keys()):
            await self._begin(listen)

    async def _begin(self, listen: str) -> None:
        parts = listen_parts(listen)
        if parts is None:
            return
        try:
            listener = bind(Address(*parts), "a status page", reuse_port=self._shared)
        except CannotStart as error:
            if listen not in self.refused:
                log.warning("status_page_not_served", reason=str(error))
            self.refused[listen] = str(error)
            return
        self._open[listen] = self._listener(listener, listen)
        await self._open[listen].start()
        self.refused.pop(listen, None)
        self._say(f"status     {bound(listener).url('http')}")
