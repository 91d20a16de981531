"""The content of a status page: what works and when it did not, but no reasons, addresses, limits
or numbers of visitors.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from greenroom.decision.room_view import RoomView
from greenroom.model.alert import Incident
from greenroom.model.status_page import StatusPage

DAYS = 90
INCIDENTS_SHOWN = 50
PUBLIC_INCIDENTS: Mapping[str, str] = {
    "health_check_status_notification": "{subject} was not working",
    "greenroom_admissions_stopped": "Entry to {subject} was paused",
}
"""Types that the public may see."""

GOOD, BUSY, BAD, UNKNOWN = "good", "busy", "bad", "unknown"


@dataclass(frozen=True, slots=True)
class CheckFacts:
    """`days`: (good, total) probes; `response_ms`: mean of the good ones."""

    id: str
    name: str
    status: str
    zone: str = ""
    days: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    response_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class RoomFacts:
    """`name` is never published."""

    id: str
    name: str
    view: RoomView
    zone: str = ""

    @property
    def public_name(self) -> str:
        room = self.view.now.room
        address = f"{room.host}{room.path.rstrip('/')}" if room.host != "*" else room.path
        return room.branding.site_name or (address if address != "/" else "Website")


@dataclass(frozen=True, slots=True)
class NoteFacts:
    id: str
    incident: str
    title: str
    text: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class StatusFacts:
    now_ms: int
    rooms: Sequence[RoomFacts] = ()
    checks: Sequence[CheckFacts] = ()
    incidents: Sequence[Incident] = ()
    notes: Sequence[NoteFacts] = ()


@dataclass(frozen=True, slots=True)
class Day:
    """`part` is None if unknown."""

    day: str
    part: float | None


@dataclass(frozen=True, slots=True)
class StatusLine:
    name: str
    state: str
    words: str
    days: tuple[Day, ...] = ()
    uptime: float | None = None
    since: str = ""  # first of `days` that is known, ISO 8601
    response_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Story:
    id: str
    title: str
    began_ms: int
    ended_ms: int | None
    open: bool
    notes: tuple[NoteFacts, ...] = ()

    @property
    def message(self) -> bool:
        return self.id.startswith("note:")

    @property
    def updated_ms(self) -> int:
        return max([self.began_ms, self.ended_ms or 0, *(note.at_ms for note in self.notes)])


@dataclass(frozen=True, slots=True)
class StatusView:
    title: str
    state: str
    words: str
    lines: tuple[StatusLine, ...]
    stories: tuple[Story, ...]
    now_ms: int


def view(settings: StatusPage, facts: StatusFacts) -> StatusView:
    rooms = [
        found for found in facts.rooms if _shown(settings.rooms, found.name, found.zone, settings)
    ]
    checks = [
        found
        for found in facts.checks
        if _shown(settings.health_checks, found.name, found.zone, settings)
    ]
    lines = (*(_check_line(found, facts.now_ms) for found in checks), *map(_room_line, rooms))
    names = {check.id: check.name for check in checks}
    names |= {room.id: room.public_name for room in rooms}
    state, words = _overall(lines)
    return StatusView(
        settings.title, state, words, lines, tuple(_stories(facts, names)), facts.now_ms
    )


def _shown(wanted: Sequence[str], name: str, zone: str, settings: StatusPage) -> bool:
    return (name in wanted or "*" in wanted) and settings.zone in ("", zone)


def _overall(lines: Iterable[StatusLine]) -> tuple[str, str]:
    states = {line.state for line in lines}
    for state, words in (
        (BAD, "Some systems are down"),
        (BUSY, "All systems operational. Expect a wait."),
        (GOOD, "All systems operational"),
    ):
        if state in states:
            return state, words
    return UNKNOWN, "Status unknown"


def moment(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms // 1000, UTC):%d %B %Y, %H:%M} UTC"


_CHECK_WORDS = {
    "healthy": (GOOD, "Working"),
    "unhealthy": (BAD, "Not working"),
    "suspended": (UNKNOWN, "Not being checked"),
    "unknown": (UNKNOWN, "No information"),
}


def _check_line(found: CheckFacts, now_ms: int) -> StatusLine:
    state, words = _CHECK_WORDS.get(found.status, _CHECK_WORDS["unknown"])
    today = datetime.fromtimestamp(now_ms // 1000, UTC).date()
    known = found.days
    days = tuple(_day(today - timedelta(days=back), known) for back in range(DAYS - 1, -1, -1))
    counted = [known[each.day] for each in days if each.day in known]
    total = sum(total for _, total in counted)
    uptime = sum(good for good, _ in counted) / total if total else None
    since = next((each.day for each in days if each.part is not None), "")
    return StatusLine(
        found.name,
        state,
        words,
        days,
        uptime,
        since,
        round(found.response_ms) if found.response_ms else None,
    )


def _day(day: date, known: Mapping[str, tuple[int, int]]) -> Day:
    good, total = known.get(day.isoformat(), (0, 0))
    return Day(day.isoformat(), good / total if total else None)


def _room_line(found: RoomFacts) -> StatusLine:
    state = found.view.state
    if state.public:
        event = found.view.now.event
        words = state.public.format(opens=moment(event.event_start_ms) if event else "the start")
        level = BAD if state.word == "storage" else GOOD if state.admits else BUSY
        return StatusLine(found.public_name, level, words)
    wait_s = found.view.wait_s
    if wait_s is None or not math.isfinite(wait_s):
        return StatusLine(found.public_name, BUSY, "Visitors are waiting")
    minutes = max(1, math.ceil(wait_s / 60))
    words = f"New visitors wait about {minutes} minute{'s' if minutes > 1 else ''}"
    return StatusLine(found.public_name, BUSY, words)


def _stories(facts: StatusFacts, names: Mapping[str, str]) -> list[Story]:
    notes: dict[str, list[NoteFacts]] = {}
    for note in sorted(facts.notes, key=lambda note: note.at_ms):
        notes.setdefault(note.incident or f"note:{note.id}", []).append(note)
    stories = []
    for incident in facts.incidents:
        start, end = incident.start, incident.end
        title = PUBLIC_INCIDENTS.get(start.type)
        if title is not None and start.subject_id in names:
            told = tuple(notes.get(start.correlation_id, ()))
            ended_ms = None if end is None else end.time_ms
            words = title.format(subject=names[start.subject_id])
            words = words if end else words.replace(" was ", " is ", 1)
            stories.append(
                Story(start.correlation_id, words, start.time_ms, ended_ms, end is None, told)
            )
    since_ms = facts.now_ms - DAYS * 86_400_000
    for key, found in notes.items():
        if key.startswith("note:") and found[0].at_ms >= since_ms:
            stories.append(
                Story(
                    key,
                    found[0].title or "Message",
                    found[0].at_ms,
                    found[0].at_ms,
                    False,
                    tuple(found),
                )
            )
    stories.sort(key=lambda story: (story.open, story.began_ms), reverse=True)
    return stories[:INCIDENTS_SHOWN]
