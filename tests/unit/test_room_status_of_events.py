"""What the API says of a room with events: its phase, its event, and the draws with their
commitments.
"""

from dataclasses import replace

import pytest
from config_material import event, room, zone

from greenroom.configuration.room_status import status
from greenroom.configuration.state import DrawState, RoomState
from greenroom.configuration.status import announced
from greenroom.decision.room_view import Figures
from greenroom.model.configuration import Configuration, Entry, EntryIndex

HOUR_MS = 3_600_000
DRAW = DrawState("d" * 32, "e1", "sale", "c" * 64, HOUR_MS - 600_000, HOUR_MS)
SALE = event("e1", HOUR_MS, prequeue_start_ms=HOUR_MS - 600_000, shuffle_at_event_start=True)


def entry(record, parent=""):
    return Entry(record, parent, 0, 0, 1)


def asked(now_ms, waiting=0, **changes):
    held = entry(replace(room("r1"), **changes), "z1")
    known = Configuration(
        zones=EntryIndex({"z1": entry(zone("z1"))}),
        rooms=EntryIndex({"r1": held}),
        events=EntryIndex({"e1": entry(SALE, "r1")}),
    )
    return status(
        known, held, RoomState(held.record, Figures(waiting=waiting), {}, draws=(DRAW,)), now_ms
    )


@pytest.mark.parametrize(
    ("now_ms", "word", "event_id"),
    [
        (HOUR_MS - 600_001, "queueing", ""),
        (HOUR_MS - 600_000, "event_prequeueing", "e1"),
        (HOUR_MS - 1, "event_prequeueing", "e1"),
        (HOUR_MS, "queueing", "e1"),
        (SALE.event_end_ms, "queueing", ""),
    ],
)
def test_the_status_follows_the_calendar_on_the_millisecond(now_ms, word, event_id):
    found = asked(now_ms, waiting=3)
    assert (found["status"], found["event_id"]) == (word, event_id)


def test_a_suspended_room_has_no_event():
    found = asked(HOUR_MS, suspended=True)
    assert (found["status"], found["event_id"]) == ("suspended", "")


def test_the_commitment_is_told_before_the_pre_queue_opens():
    assert asked(0)["draws"] == [
        {"event_id": "e1", "draw": "d" * 32, "commitment": "c" * 64, "held": False}
    ]
    (told,) = announced(RoomState(room("r1"), Figures(), {}, draws=(DRAW,)))
    assert (told["commitment"], told["event_start_time"]) == ("c" * 64, "1970-01-01T01:00:00Z")
