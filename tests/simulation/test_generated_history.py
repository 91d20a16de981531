"""A generated month looks like one, keeps the limits of its room, and is marked as generated
wherever it is read.
"""

from pathlib import Path
from random import Random

import pytest

from greenroom.analytics.question import Question, Wanted
from greenroom.analytics.rollup import Part
from greenroom.model.room import Room
from greenroom.runtime import demo
from greenroom.runtime.analytics import FILE, open_analytics_file
from greenroom.runtime.demo import fill_with_history
from greenroom.simulator.history import SALES, history

DAY_MS = 86_400_000
BEGIN_MS = 20_000 * DAY_MS
ROOM = Room(
    id="shop",
    name="shop",
    host="*",
    total_active_users=5,
    new_users_per_minute=10,
    session_duration=1,
)


@pytest.fixture(scope="module")
def hours() -> list[list[Part]]:
    return list(history(Random, ROOM, BEGIN_MS, BEGIN_MS + 6 * DAY_MS))


def gauge(part: Part, name: str) -> int:
    (track,) = part.rollup.tracks.values()
    return int(max(getattr(track, name)))


def test_every_minute_is_there_once_and_marked(hours: list[list[Part]]) -> None:
    parts = [part for hour in hours for part in hour]
    assert [part.minute for part in parts] == list(
        range(BEGIN_MS // 60_000, BEGIN_MS // 60_000 + 6 * 1_440)
    )
    assert all(part.rollup.generated and not part.rollup.incomplete for part in parts)


@pytest.mark.parametrize(("total", "minute"), [(5, 10), (40, 6), (3, 100)])
def test_the_limits_hold(total: int, minute: int) -> None:
    room = Room(
        id="r",
        name="r",
        host="*",
        total_active_users=total,
        new_users_per_minute=minute,
        session_duration=1,
    )
    parts = [part for hour in history(Random, room, BEGIN_MS, BEGIN_MS + DAY_MS) for part in hour]
    assert max(gauge(part, "active") for part in parts) <= total
    assert max(part.rollup.outcomes.get("admitted", 0) for part in parts) <= minute
    assert sum(part.rollup.outcomes.get("admitted", 0) for part in parts) > 500


def test_days_have_a_noon_and_a_sale_has_a_line(hours: list[list[Part]]) -> None:
    admitted = [sum(part.rollup.outcomes.get("admitted", 0) for part in hour) for hour in hours]
    for day in range(6):
        assert sum(admitted[day * 24 + 10 : day * 24 + 16]) > 2 * sum(
            admitted[day * 24 : day * 24 + 5]
        )
    queued = [max(gauge(part, "queued") for part in hour) for hour in hours]
    day, hour = SALES[0]
    assert queued.index(max(queued)) in range(day * 24 + hour, day * 24 + hour + 3)
    assert max(queued) > 50
    assert min(queued) == 0


def test_the_same_numbers_give_the_same_month(hours: list[list[Part]]) -> None:
    again = history(Random, ROOM, BEGIN_MS, BEGIN_MS + DAY_MS)
    first = list(history(Random, ROOM, BEGIN_MS, BEGIN_MS + DAY_MS))
    assert list(again) == first
    assert len(first) == 24
    assert len(hours) == 144


def test_a_store_filled_with_it_says_that_all_of_it_is_generated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "HISTORY_DAYS", 2)
    now_s = BEGIN_MS // 1_000 + 1_234
    fill_with_history(tmp_path, ROOM, now_s)
    keeper = open_analytics_file(tmp_path / FILE)
    found = keeper.answer(
        Question(
            0,
            1 << 32,
            metrics=(Wanted("sum", "newUsersPerMinute"), Wanted("sum", "minutesGenerated")),
        )
    )
    (row,) = found.rows
    end_s = now_s // 60 * 60
    newest = keeper.answer(
        Question(end_s - 60, end_s + 60, metrics=(Wanted("sum", "minutesGenerated"),))
    )
    assert newest.generated == 1, "up to the current minute"
    keeper.close()
    minutes = 2 * 1_440
    assert (found.generated, row["sum", "minutesGenerated"]) == (minutes, minutes)
    assert int(row["sum", "newUsersPerMinute"] or 0) > 1_000
