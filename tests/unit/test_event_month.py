"""The calendar of events: whole weeks of one month, with every event on each of its days in the
viewer's time zone.
"""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.configuration.dashboard.events import ENTRIES_MAX, MonthEvent, event_month

HOUR_MS = 3_600_000


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def event(start: str, hours: float = 1, name: str = "sale") -> MonthEvent:
    return MonthEvent(name, "shop", "", "yellow", ms(start), ms(start) + round(hours * HOUR_MS))


def days_of(
    text: str, *events: MonthEvent, zone: str = "UTC", now: str = "2030-11-15"
) -> dict[str, list[str]]:
    month = event_month(text, events, ms(now), zone)
    return {
        f"{day.at}": [one.name for one in day.events]
        for week in month.weeks
        for day in week
        if day.events
    }


def test_a_month_is_shown_in_whole_weeks_with_today() -> None:
    month = event_month("", [], ms("2030-11-15"), "UTC")
    assert (month.title, month.before, month.after) == ("November 2030", "2030-10", "2030-12")
    days = [day for week in month.weeks for day in week]
    assert (days[0].at, days[-1].at) == (date(2030, 10, 28), date(2030, 12, 1))
    assert [day.at for day in days if day.today] == [date(2030, 11, 15)]
    assert [day.at.day for day in days if day.in_month] == list(range(1, 31))


def test_an_event_is_on_each_of_its_days_and_not_on_the_one_at_whose_midnight_it_ends() -> None:
    assert days_of("2030-11", event("2030-11-08T20:00", 28)) == {
        "2030-11-08": ["sale"],
        "2030-11-09": ["sale"],
    }
    assert len(days_of("2030-11", event("2029-01-01T00:00", 24 * 2000))) == 35
    assert days_of("2030-11", event("2031-01-01T00:00")) == {}


def test_days_are_those_of_the_viewer() -> None:
    assert list(days_of("2030-11", event("2030-11-08T23:30"), zone="Europe/Berlin")) == [
        "2030-11-09"
    ]
    assert list(days_of("2030-11", event("2030-11-09T02:00"), zone="America/New_York")) == [
        "2030-11-08"
    ]


def test_a_full_day_says_how_many_more_there_are() -> None:
    month = event_month(
        "2030-11", [event("2030-11-08T10:00", name=f"e{n}") for n in range(7)], 0, "UTC"
    )
    (day,) = [day for week in month.weeks for day in week if day.events]
    assert (len(day.events), day.more) == (ENTRIES_MAX, 7 - ENTRIES_MAX)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2030-13",
        "2030-00",
        "0000-01",
        "9999-01",
        "1970-12",
        "30-11",
        "2030-1",
        "x" * 7,
        "2030/11",
        "٢٠٣٠-١١",
    ],
)
def test_what_is_no_month_is_this_month(text: str) -> None:
    assert event_month(text, [], ms("2030-11-15"), "UTC").title == "November 2030"


def test_the_end_of_time_is_no_error() -> None:
    forever = MonthEvent("sale", "shop", "", "gray", 0, ms("9999-12-31T23:59"))
    month = event_month("9998-12", [forever], 0, "Pacific/Kiritimati")
    assert all(day.events for week in month.weeks for day in week if day.in_month)


def test_the_first_and_the_last_month_have_one_neighbour() -> None:
    assert event_month("1971-01", [], 0, "UTC").before == ""
    assert event_month("9998-12", [], 0, "UTC").after == ""


@given(
    st.dates(date(1971, 1, 1), date(9998, 12, 1)),
    st.integers(0, 60 * 24),
    st.sampled_from(["UTC", "Asia/Kathmandu", "Pacific/Apia"]),
)
def test_every_day_of_an_event_within_the_month_is_marked_once(
    first: date, hours: int, zone: str
) -> None:
    start = datetime.combine(first.replace(day=1), datetime.min.time(), UTC) + timedelta(
        hours=hours % 700
    )
    at_ms = round(start.timestamp() * 1000)
    one = MonthEvent("sale", "shop", "", "gray", at_ms, at_ms + hours * HOUR_MS)
    month = event_month(f"{first:%Y-%m}", [one], 0, zone)
    days = [day.at for week in month.weeks for day in week]
    marked = [day.at for week in month.weeks for day in week if day.events]
    assert len(days) % 7 == 0
    assert days == [days[0] + timedelta(days=number) for number in range(len(days))]
    assert (
        marked == [marked[0] + timedelta(days=number) for number in range(len(marked))]
        if marked
        else True
    )
