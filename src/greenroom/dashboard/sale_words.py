"""The next event of a room in one line, and what is ready for it."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from greenroom.admission.schedule import Phase
from greenroom.decision.room_view import RoomView
from greenroom.model.alert_types import ALERTS
from greenroom.model.branding import Branding
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.event import Event
from greenroom.model.room import Room
from greenroom.web.pages.rendering import duration

LIMITS_DEFAULT = 500


def clock_of(at_ms: int, now_ms: int, zone: str) -> str:
    """“10:00”, “tomorrow 10:00” or “Sat 28 Nov 10:00” in the viewer's zone."""
    at, now = (
        datetime.fromtimestamp(ms / 1000, UTC).astimezone(ZoneInfo(zone)) for ms in (at_ms, now_ms)
    )
    days = (at.date() - now.date()).days
    day = {0: "", 1: "tomorrow "}.get(
        days, f"{at:%a %-d %b} " if days < 300 else f"{at:%-d %b %Y} "
    )
    return f"{day}{at:%H:%M}"


def coming_words(
    event: Event, room: Room, now_ms: int, zone: str, number: Callable[[float], str]
) -> str:
    limit = event.total_active_users or room.total_active_users
    until_s = max(0, event.event_start_ms - now_ms) / 1000
    words = (
        f"{event.name} starts {clock_of(event.event_start_ms, now_ms, zone)}"
        f" (in {duration(until_s)}), {number(limit)} at once"
    )
    if event.prequeue_start_ms is None:
        return words
    opens = clock_of(event.prequeue_start_ms, max(now_ms, event.prequeue_start_ms), zone)
    if not _same_day(event.prequeue_start_ms, event.event_start_ms, zone):
        opens = clock_of(event.prequeue_start_ms, now_ms, zone)
    return f"{words}, pre-queue from {opens}"


def running_words(live: RoomView, now_ms: int, zone: str) -> str:
    event, until_ms = live.now.event, live.now.phase_ends_ms
    if event is None or until_ms is None:
        return ""
    left = duration(max(0, until_ms - now_ms) / 1000)
    when = clock_of(until_ms, now_ms, zone)
    if live.now.phase is Phase.PREQUEUE:
        return f"Pre-queue of {event.name}; starts {when} (in {left})"
    return f"{event.name} is running until {when} ({left} left)"


def _same_day(one_ms: int, other_ms: int, zone: str) -> bool:
    one, other = (
        datetime.fromtimestamp(ms / 1000, UTC).astimezone(ZoneInfo(zone)).date()
        for ms in (one_ms, other_ms)
    )
    return one == other


class ReadinessStep(NamedTuple):
    """`path` is below the room, or `elsewhere` that of another page."""

    label: str
    done: bool
    note: str
    path: str
    query: Mapping[str, str] = {}
    elsewhere: bool = False


def notifying(known: Configuration, entry: Entry[Room]) -> list[Entry[Any]]:
    """The policies that notify somebody about the room."""
    zone = known.zones.get(entry.parent)
    about = {
        "waiting_room_id": (entry.id, entry.record.name),
        "zones": (entry.parent, zone.record.name if zone else ""),
    }
    types = {row.type for row in ALERTS.values() if "waiting_room_id" in row.filters}
    return known.notifying(types, about)


def readiness(
    known: Configuration, entry: Entry[Room], event: Event, origin: str, *, rehearsed: bool
) -> list[ReadinessStep]:
    room = entry.record
    own_limits = event.total_active_users is not None
    page = bool(event.custom_page_html or room.custom_page_html)
    branded = room.branding != Branding()
    told = [policy.record.name for policy in notifying(known, entry)]
    return [
        ReadinessStep(
            "Limits",
            own_limits or room.total_active_users != LIMITS_DEFAULT,
            "set in the event" if own_limits else f"those of the room: {room.total_active_users:,}",
            f"/events/{event.id}",
        ),
        ReadinessStep(
            "Waiting page",
            page or branded,
            "your own page" if page else "with your branding" if branded else "without your name",
            "/page",
        ),
        ReadinessStep(
            "Dry run",
            rehearsed,
            "done" if rehearsed else "none since greenroom started",
            "/dry-run",
            {"event": event.id},
        ),
        ReadinessStep(
            "Alert",
            bool(told),
            ", ".join(told[:2]) if told else "nobody is notified about this room",
            "/notifications",
            elsewhere=True,
        ),
        ReadinessStep(
            "Health check",
            origin == "healthy",
            origin or "there is none",
            "/health",
            elsewhere=True,
        ),
    ]
