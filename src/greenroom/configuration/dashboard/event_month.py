"""Events on the days of one month, in the viewer's time zone."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

ENTRIES_MAX = 3

FIRST_YEAR, LAST_YEAR = 1971, 9998

LAST_MS = 253_370_764_800_000
"""Later times cannot be shown in every time zone."""


class MonthEvent(NamedTuple):
    """From the start of its pre-queue, in Unix ms."""

    name: str
    room: str
    path: str
    tone: str
    opens_ms: int
    end_ms: int


class MonthDay(NamedTuple):
    at: date
    in_month: bool
    today: bool
    events: Sequence[MonthEvent]
    more: int


class EventMonth(NamedTuple):
    """Whole weeks, Monday to Sunday."""

    title: str
    weeks: Sequence[Sequence[MonthDay]]
    before: str
    after: str


def event_month(text: str, events: Iterable[MonthEvent], now_ms: int, zone: str) -> EventMonth:
    """`text` is like `2030-11`; anything else is this month."""
    today = day_of(now_ms, zone)
    first = _month_of(text) or today.replace(day=1)
    days = list(_weeks(first))
    by_day: dict[date, list[MonthEvent]] = {day: [] for week in days for day in week}
    for event in sorted(events, key=lambda one: (one.opens_ms, one.name)):
        day, last = (
            max(day_of(event.opens_ms, zone), days[0][0]),
            day_of(max(event.opens_ms, event.end_ms - 1), zone),
        )
        while day <= min(last, days[-1][-1]):
            by_day[day].append(event)
            day += timedelta(days=1)
    weeks = [[_shown(day, first, today, by_day[day]) for day in week] for week in days]
    return EventMonth(f"{first:%B} {first.year}", weeks, _beside(first, -1), _beside(first, 32))


def _weeks(first: date) -> Iterator[list[date]]:
    monday = first - timedelta(days=first.weekday())
    while monday <= first or monday.month == first.month:
        yield [monday + timedelta(days=number) for number in range(7)]
        monday += timedelta(days=7)


def _shown(day: date, first: date, today: date, events: list[MonthEvent]) -> MonthDay:
    return MonthDay(
        day,
        day.month == first.month,
        day == today,
        events[:ENTRIES_MAX],
        max(0, len(events) - ENTRIES_MAX),
    )


def day_of(unix_ms: int, zone: str) -> date:
    return datetime.fromtimestamp(
        min(unix_ms, LAST_MS) / 1000, UTC if zone == "UTC" else ZoneInfo(zone)
    ).date()


def _month_of(text: str) -> date | None:
    year, _, month = text.partition("-")
    if len(text) != 7 or not (year + month).isascii() or not (year + month).isdigit():
        return None
    return (
        date(int(year), int(month), 1)
        if FIRST_YEAR <= int(year) <= LAST_YEAR and 1 <= int(month) <= 12
        else None
    )


def _beside(first: date, days: int) -> str:
    other = first + timedelta(days=days)
    return f"{other:%Y-%m}" if FIRST_YEAR <= other.year <= LAST_YEAR else ""
