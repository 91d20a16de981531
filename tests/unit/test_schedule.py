"""Which settings hold at which moment of a room's calendar."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.admission.schedule import Phase, effective
from greenroom.errors import InvalidConfig
from greenroom.model.event import Event, schedule_problems
from greenroom.model.room import Room

MINUTE = 60_000
ROOM = Room(
    name="r",
    host="a.example",
    total_active_users=200,
    new_users_per_minute=100,
    disable_session_renewal=True,
)


def sale(name="sale", **changes):
    times = {
        "prequeue_start_ms": 10 * MINUTE,
        "event_start_ms": 20 * MINUTE,
        "event_end_ms": 30 * MINUTE,
    }
    return Event(name=name, **{**times, **changes})


@pytest.mark.parametrize(
    ("minute", "phase", "until"),
    [
        (9, Phase.IDLE, 10),
        (10, Phase.PREQUEUE, 20),
        (19.99, Phase.PREQUEUE, 20),
        (20, Phase.RUNNING, 30),
        (29.99, Phase.RUNNING, 30),
        (30, Phase.IDLE, None),
    ],
)
def test_an_event_opens_starts_and_ends_on_the_millisecond(minute, phase, until):
    now = effective(ROOM, [sale()], int(minute * MINUTE))
    assert (now.phase, now.until_ms) == (phase, until and until * MINUTE)


def test_what_an_event_leaves_null_is_the_rooms_value_and_false_is_not_null():
    now = effective(
        ROOM, [sale(queueing_method="random", disable_session_renewal=False)], 21 * MINUTE
    ).room
    assert (now.queueing_method, now.disable_session_renewal, now.total_active_users) == (
        "random",
        False,
        200,
    )


def test_a_prequeue_holds_everybody_even_in_a_passthrough_event():
    now = effective(ROOM, [sale(queueing_method="passthrough")], 11 * MINUTE)
    assert now.ledger_room.queue_all
    assert not now.room.queue_all


def test_a_suspended_event_never_applies():
    assert effective(ROOM, [sale(suspended=True)], 21 * MINUTE).room is ROOM


def test_the_next_event_may_follow_at_once():
    closed = Event(
        name="closed",
        event_start_ms=30 * MINUTE,
        event_end_ms=40 * MINUTE,
        queueing_method="reject",
        session_duration=5,
    )
    assert schedule_problems([sale(), closed]) == []
    assert effective(ROOM, [closed, sale()], 30 * MINUTE).room.queueing_method == "reject"


def test_everything_wrong_with_an_event_is_said_at_once():
    with pytest.raises(InvalidConfig) as caught:
        sale(event_end_ms=20 * MINUTE, prequeue_start_ms=16 * MINUTE, total_active_users=5)
    assert [problem.pointer for problem in caught.value.problems] == [
        "event_end_ms",
        "prequeue_start_ms",
        "new_users_per_minute",
    ]


def test_a_shuffle_needs_a_prequeue():
    with pytest.raises(InvalidConfig, match="shuffle_at_event_start"):
        sale(prequeue_start_ms=None, shuffle_at_event_start=True)


def test_events_of_one_room_must_not_overlap_share_a_name_or_be_more_than_five():
    assert "opens before" in str(
        schedule_problems(
            [sale(), sale("other", event_start_ms=25 * MINUTE, prequeue_start_ms=None)]
        )[0]
    )
    assert "name of another" in str(
        schedule_problems(
            [
                sale(),
                sale(
                    event_start_ms=60 * MINUTE,
                    event_end_ms=70 * MINUTE,
                    prequeue_start_ms=50 * MINUTE,
                ),
            ]
        )[0]
    )
    many = [
        sale(
            f"e{n}",
            event_start_ms=n * 100 * MINUTE,
            event_end_ms=(n * 100 + 5) * MINUTE,
            prequeue_start_ms=None,
        )
        for n in range(6)
    ]
    assert "at most 5" in str(schedule_problems(many)[0])


@given(st.integers(0, 60), st.integers(0, 60))
def test_settings_stay_the_same_until_the_moment_announced(minute, later):
    now = effective(ROOM, [sale()], minute * MINUTE)
    then = effective(ROOM, [sale()], (minute + later) * MINUTE)
    if now.until_ms is None or (minute + later) * MINUTE < now.until_ms:
        assert (now.phase, now.room) == (then.phase, then.room)
