"""The next event of a room in one line, in the viewer's time zone, and who is notified about a
room.
"""

import pytest
from config_material import event, room, zone

from greenroom.admission.schedule import Effective, Phase
from greenroom.dashboard.sale_words import coming_words, notifying, running_words
from greenroom.decision.room_view import RoomView
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.notification import AlertPolicy, Webhook

MINUTE_MS, DAY_MS = 60_000, 86_400_000
START_MS = 1_795_946_400_000  # Sunday 2026-11-29, 10:00 UTC


@pytest.mark.parametrize(
    ("now_ms", "prequeue_ms", "words"),
    [
        (
            START_MS - DAY_MS - 9 * 60 * MINUTE_MS,
            START_MS - 30 * MINUTE_MS,
            "sale starts tomorrow 11:00 (in 33 h), 1,200 at once, pre-queue from 10:30",
        ),
        (START_MS - 5 * MINUTE_MS, None, "sale starts 11:00 (in 5 minutes), 1,200 at once"),
        (
            START_MS - 3 * DAY_MS,
            START_MS - DAY_MS,
            "sale starts Sun 29 Nov 11:00 (in 3 days), 1,200 at once, pre-queue from Sat 28 Nov 11:00",
        ),
    ],
)
def test_the_next_event_is_one_line(now_ms: int, prequeue_ms: int | None, words: str) -> None:
    limits = {"total_active_users": 1200, "new_users_per_minute": 900}
    planned = event("sale", START_MS, prequeue_start_ms=prequeue_ms, **limits)
    said = coming_words(planned, room(), now_ms, "Europe/Berlin", lambda value: f"{value:,}")
    assert said == words


def test_an_event_that_is_on_says_when_it_ends() -> None:
    planned = event("sale", START_MS, prequeue_start_ms=START_MS - 30 * MINUTE_MS)
    for phase, now_ms, words in (
        (Phase.PREQUEUE, START_MS - MINUTE_MS, "Pre-queue of sale; starts 10:00 (in 60 seconds)"),
        (Phase.RUNNING, START_MS + 28 * MINUTE_MS, "sale is running until 11:00 (32 minutes left)"),
    ):
        live = RoomView(Effective(room(), phase, planned))
        assert running_words(live, now_ms, "UTC") == words
    assert running_words(RoomView(Effective(room())), 0, "UTC") == ""


@pytest.mark.parametrize(
    ("policy", "counts"),
    [
        ({"emails": ("ops@example.com",)}, True),
        ({"emails": ("ops@example.com",), "enabled": False}, False),
        ({}, False),
        ({"webhook_ids": ("w1",)}, True),
        ({"webhook_ids": ("removed",)}, False),
        ({"emails": ("o@example.com",), "filters": {"waiting_room_id": ("r1",)}}, True),
        ({"emails": ("o@example.com",), "filters": {"waiting_room_id": ("other",)}}, False),
        ({"emails": ("o@example.com",), "filters": {"zones": ("other",)}}, False),
        ({"emails": ("o@example.com",), "alert_type": "health_check_status_notification"}, False),
    ],
)
def test_only_policies_that_notify_somebody_about_the_room_count(policy, counts: bool) -> None:
    whole = {"id": "p", "name": "tell", "alert_type": "greenroom_queueing", **policy}
    hook = Webhook(id="w1", name="chat", url="https://chat.example.com/hook")
    records = [Entry(one, "", 0, 0, 1) for one in (zone("z1"), hook, AlertPolicy(**whole))]
    known = Configuration().changed(1, records)
    assert bool(notifying(known, Entry(room(), "z1", 0, 0, 1))) is counts
