"""An alert refuses to be invalid, says everything that is wrong at once, and knows its own
repetition.
"""

import pytest

from greenroom.errors import InvalidConfig
from greenroom.model.alert import TEXT_MAX, Alert


def alert(**changed) -> Alert:
    return Alert(
        **{
            "type": "room_queueing",
            "time_ms": 1,
            "correlation_id": "a",
            "text": "A line forms.",
            **changed,
        }
    )


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidConfig) as caught:
        alert(
            type="",
            correlation_id="x" * 201,
            text="y" * (TEXT_MAX + 1),
            state="begin",
            time_ms=-1,
            subject_name="z" * 201,
        )
    assert [problem.pointer for problem in caught.value.problems] == [
        "type",
        "correlation_id",
        "text",
        "subject_name",
        "state",
        "time_ms",
    ]


def test_the_same_incident_told_twice_is_one_alert_and_its_end_is_another() -> None:
    first, again, end = (
        alert(state="start"),
        alert(state="start", time_ms=9, text="Still."),
        alert(state="end"),
    )
    assert first.identity == again.identity != end.identity
    assert alert(correlation_id="b", state="start").identity != first.identity
