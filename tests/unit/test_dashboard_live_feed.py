"""What the feed of the live pages remembers: samples of an hour, arrivals of the last minute,
minutes of analytics before that.
"""

import itertools
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from greenroom.admission.schedule import Effective
from greenroom.analytics.question import AnalyticsAnswer, Question, SlowAnswer
from greenroom.dashboard.live_feed import (
    KEPT,
    KEPT_EVERY_MS,
    LiveFrame,
    OriginLastMinute,
    OriginTrail,
    RoomTrail,
    live_frame,
)
from greenroom.dashboard.pages.live import table_rows
from greenroom.dashboard.room_minutes import LiveMinute, last_hour
from greenroom.decision.room_view import Figures, RoomView
from greenroom.errors import StorageFailed
from greenroom.model.room import Room
from greenroom.model.visit import Estimate

NOW_MS = 1_790_000_000_000
ROOM = Room(
    id="r", name="sale", host="shop.example", total_active_users=100, new_users_per_minute=50
)
MINUTE = LiveMinute(NOW_MS // 60_000 * 60 - 60, 90, 100, 40, 50, 300, 7, 55, 61.5, 120.0, False)


def frame(at_ms: int = NOW_MS, trail: RoomTrail | None = None, **figures: Any) -> LiveFrame:
    live = RoomView(Effective(ROOM), Figures(**figures))
    return live_frame(live, None, at_ms, trail or RoomTrail())


def test_a_sample_is_kept_every_five_seconds_for_an_hour() -> None:
    trail = RoomTrail()
    for second in range(4000):
        trail.add(frame(NOW_MS + second * 1000, active=second))
    times = [sample[0] for sample in trail.samples]
    assert len(times) == KEPT
    assert {after - before for before, after in itertools.pairwise(times)} == {KEPT_EVERY_MS}
    assert times[-1] >= NOW_MS + 3_995_000


def test_arrivals_are_those_let_in_and_what_the_line_has_grown() -> None:
    trail = RoomTrail()
    for second in range(61):
        trail.add(frame(NOW_MS + second * 1000, waiting=second * 2))
    assert trail.arrivals(40, 120, NOW_MS + 60_000) == 160


def test_arrivals_are_unknown_until_a_minute_was_seen() -> None:
    trail = RoomTrail()
    trail.add(frame(NOW_MS, waiting=5))
    assert trail.arrivals(40, 120, NOW_MS + 10_000) is None


def test_analytics_tell_arrivals_before_a_minute_was_seen() -> None:
    trail = RoomTrail()
    trail.minutes = [MINUTE]
    assert trail.arrivals(40, 120, NOW_MS) == 55


def test_the_history_begins_with_analytics_and_goes_on_with_samples() -> None:
    trail = RoomTrail()
    trail.minutes = [MINUTE._replace(start_s=MINUTE.start_s - 120), MINUTE]
    trail.add(frame(NOW_MS, active=95))
    times = [point[0] for point in trail.history()]
    assert times == sorted(times)
    assert (trail.history()[0][1], trail.history()[-1][1]) == (90, 95)


def test_the_history_has_the_minutes_in_which_no_one_was_watching_and_no_more_than_an_hour() -> (
    None
):
    trail, begin_ms = RoomTrail(), MINUTE.start_s * 1000
    for minute in (-500, -50, 0):  # watched for a moment each time
        trail.add(frame(begin_ms + minute * 60_000 + 5_000, active=3))
    trail.minutes = [
        MINUTE._replace(start_s=MINUTE.start_s + minute * 60) for minute in range(-58, 1)
    ]
    found = trail.history()
    assert [point[1] for point in found] == [
        3 if minute in (-50, 0) else 90 for minute in range(-58, 1)
    ]
    assert [point[0] for point in found] == sorted(point[0] for point in found)


def test_waits_are_those_of_the_newest_minute_in_which_visitors_had_waited() -> None:
    trail = RoomTrail()
    trail.minutes = [
        MINUTE,
        MINUTE._replace(
            start_s=MINUTE.start_s + 60, waited_p50_s=None, waited_p95_s=None, abandoned=3
        ),
    ]
    found = frame(trail=trail)
    assert (found.waited_p50_s, found.waited_p95_s, found.abandoned) == (61.5, 120.0, 3)


def test_an_estimate_that_is_not_finite_is_unknown() -> None:
    found = frame(waiting=3, estimate=Estimate(1, float("inf"), float("inf"), 0))
    assert found.wait_s is None
    assert b"null" in msgspec.json.encode(found)


class FailingStore:
    """An analytics store that does not answer."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def answer(self, question: Question, timeout_s: float | None = None) -> AnalyticsAnswer:
        del question, timeout_s
        raise self.error

    def rooms_of(self, zone_id: str) -> list[str]:
        del zone_id
        return []


@pytest.mark.parametrize("error", [SlowAnswer(), StorageFailed("full")], ids=["slow", "failed"])
def test_analytics_that_do_not_answer_leave_the_live_page_alone(error: Exception) -> None:
    assert last_hour(FailingStore(error), "r", NOW_MS) == []


def test_the_table_has_one_row_for_five_minutes_newest_first() -> None:
    minutes = [
        MINUTE._replace(start_s=600 + 60 * index, active=index, abandoned=1, arrivals=10)
        for index in range(10)
    ]
    rows = table_rows(minutes)
    assert [(row.start_s, row.active, row.abandoned, row.arrivals) for row in rows] == [
        (900, 9, 5, 50),
        (600, 4, 5, 50),
    ]


def test_what_the_origin_did_is_that_of_the_last_minute() -> None:
    trail, first = (
        OriginTrail(),
        {
            "origin_2xx": 100,
            "origin_5xx": 3,
            "origin_connect_failures": 1,
            "origin_wait_seconds": 50.0,
        },
    )
    trail.add(NOW_MS, first.items())
    assert trail.last_minute() == OriginLastMinute(None, None), "nothing is known after a moment"
    for second in range(1, 121):
        now = {
            "origin_2xx": 100 + 8 * second,
            "origin_5xx": 3 + 2 * second,
            "origin_connect_failures": 1,
            "origin_wait_seconds": 50.0 + 0.2 * second,
        }
        trail.add(NOW_MS + 1_000 * second, now.items())
    assert trail.last_minute().errors == 120
    assert trail.last_minute().mean_s == pytest.approx(0.02)
    for second in range(121, 190):
        trail.add(NOW_MS + 1_000 * second, now.items())
    assert trail.last_minute() == OriginLastMinute(0, None), "without an answer there is no mean"


def test_a_room_with_other_limits_is_another_frame() -> None:
    live = RoomView(Effective(replace(ROOM, total_active_users=7)))
    assert live_frame(live, None, NOW_MS, RoomTrail()).active_limit == 7


@pytest.mark.parametrize(("active", "tone"), [(0, "green"), (36, "yellow")])
def test_a_full_room_is_not_green_while_no_one_waits_yet(active: int, tone: str) -> None:
    live = RoomView(Effective(replace(ROOM, total_active_users=20)), Figures(active=active))
    assert live_frame(live, None, 0, RoomTrail()).tone == tone
