import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from greenroom.admission.schedule import Effective
from greenroom.config.config import Config
from greenroom.configuration.state import RoomState
from greenroom.decision.room_view import RoomView
from greenroom.model.status_page import StatusPage
from greenroom.runtime.assemble import process_policy
from greenroom.runtime.health import ProcessHealth
from greenroom.runtime.listener import AppListener, bind, bound
from greenroom.runtime.notifications import Look, Notifications
from greenroom.status_page import CheckFacts, NoteFacts, RoomFacts, StatusFacts, status_pages
from greenroom.status_page.dashboard.preview import ServedStatusPage, StatusDraft
from greenroom.status_page.render import CSP, html
from greenroom.status_page.view import DAYS, view
from greenroom.web.client_address import WithClientAddress

DAY_MS = 86_400_000


class StatusFactsSource:
    def __init__(self, look: Look, notifications: Notifications, health: ProcessHealth) -> None:
        self._look = look
        self._notifications = notifications
        self._health = health

    async def gather(self) -> StatusFacts:
        """Raises StorageFailed."""
        state, config, stored = self._look()
        rooms = tuple(_room(found, config) for found in state.rooms)
        checks = self._checks()
        notes = tuple(
            NoteFacts(note.id, note.incident, note.title, note.text, note.at_ms)
            for note in stored.incident_notes.records()
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
            condition = self._health.service.condition(placed.check.id)
            status = (
                "suspended"
                if placed.check.suspended
                else condition.status
                if condition
                else "unknown"
            )
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


class ShownStatusPages:
    def __init__(
        self, config: Callable[[], Config], gather: Callable[[], Awaitable[StatusFacts]]
    ) -> None:
        self._config = config
        self._gather = gather

    @property
    def has_address(self) -> bool:
        return bool(self._config().status_listen)

    @property
    def is_served(self) -> bool:
        config = self._config()
        return bool(config.status_listen and config.status_pages)

    def pages(self) -> list[ServedStatusPage]:
        served = self._config().status_pages
        return [ServedStatusPage(page.title, page.where) for page in served] or [
            ServedStatusPage(EVERYTHING.title, "")
        ]

    async def html(self, page: int | StatusPage, draft: StatusDraft | None) -> tuple[str, str]:
        shown = (
            page
            if isinstance(page, StatusPage)
            else (*self._config().status_pages, EVERYTHING)[page]
        )
        facts = await self._gather()
        if draft is not None:
            others = [note for note in facts.notes if note.id != draft.id]
            facts = replace(facts, notes=[*others, NoteFacts(*draft)])
        base = shown.path.rstrip("/")
        return IN_FRAME, html(
            view(shown, facts), f"{base}/feed.atom", f"{base}/status.json", refreshes=False
        )


EVERYTHING = StatusPage(title="Status", rooms=("*",), health_checks=("*",))
IN_FRAME = CSP.replace("frame-ancestors 'none'", "frame-ancestors 'self'; sandbox")


def status_preview(
    config: Callable[[], Config],
    look: Look,
    notifications: Notifications | None,
    health: ProcessHealth | None,
) -> ShownStatusPages | None:
    """None in a process that cannot know what is on the pages."""
    if notifications is None or health is None:
        return None
    return ShownStatusPages(config, StatusFactsSource(look, notifications, health).gather)


def _room(state: RoomState, config: Config) -> RoomFacts:
    room, zone = state.room, config.zones.get(state.room.id)
    view = RoomView(state.now or Effective(room), state.figures, room.suspended)
    return RoomFacts(room.id, room.name, view, zone.name if zone else "")


def open_status_pages(
    look: Look,
    notifications: Notifications | None,
    health: ProcessHealth | None,
    say: Callable[[str], None],
    undo: ExitStack,
    *,
    shared: bool,
) -> list[AppListener]:
    """Does not start it; none without an address. Raises CannotStart. `shared`: other processes
    serve them on the same address.
    """
    address = look()[1].status_listen
    if address is None or notifications is None or health is None:
        return []
    listener = bind(
        address, "the status pages", reuse_port=shared, mode=int(look()[1].socket_mode, 8)
    )
    undo.callback(listener.close)
    say(f"status     {bound(listener).url('http')}")
    pages = status_pages(
        lambda: look()[1].status_pages, StatusFactsSource(look, notifications, health).gather
    )
    return [
        AppListener(
            WithClientAddress(
                pages, lambda: process_policy(look()[1]), by_socket=bool(address.path)
            ),
            listener,
        )
    ]
