"""Which policy tells whom: filters, intervals, silences, and the pairing of start and end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.alerts.rules.matching import (
    Destination,
    Told,
    bounds,
    filter_problems,
    verdicts,
)
from greenroom.alerts.rules.outbox import (
    FIRST_MS,
    GIVE_UP_MS,
    LONGEST_MS,
    RETRY_AFTER_MAX_MS,
    next_try_ms,
)
from greenroom.errors import InvalidConfig
from greenroom.model.alert import Alert
from greenroom.model.notification import AlertPolicy, Silence

TYPE = "greenroom_rejecting"
HOUR = 3_600_000
NOTHING = Told()


def alert(state: str = "start", **changed) -> Alert:
    return Alert(
        **{
            "type": TYPE,
            "state": state,
            "time_ms": 0,
            "correlation_id": "one",
            "text": "t",
            "subject_id": "r1",
            "zone_id": "z1",
        }
        | changed
    )


def policy(**changed) -> AlertPolicy:
    return AlertPolicy(
        **{"id": "p1", "name": "p", "alert_type": TYPE, "emails": ("a@example.com",), **changed}
    )


def decided(
    found: Alert,
    *policies: AlertPolicy,
    told: Told = NOTHING,
    silences: tuple = (),
    now_ms: int = 0,
) -> list[tuple]:
    made = verdicts(found, policies, silences, lambda _policy: told, now_ms)
    return [
        (verdict.action, verdict.not_before_ms, [each.key for each in verdict.destinations])
        for verdict in made
    ]


SENT = ("send", 0, ["email:a@example.com"])


@pytest.mark.parametrize(
    ("changed", "taken"),
    [
        ({}, True),
        ({"enabled": False}, False),
        ({"alert_type": "greenroom_event"}, False),
        ({"filters": {"waiting_room_id": ("r1", "r2")}}, True),
        ({"filters": {"waiting_room_id": ("r2",)}}, False),
        ({"filters": {"waiting_room_id": ("r1",), "zones": ("z2",)}}, False),
        ({"filters": {"waiting_room_id": ()}}, True),
    ],
)
def test_filters(changed: dict, taken: bool) -> None:
    assert decided(alert(), policy(**changed)) == ([SENT] if taken else [])


def test_every_destination_is_told_once() -> None:
    wide = policy(
        emails=("a@example.com", "b@example.com", "a@example.com"),
        webhook_ids=("w",),
        pagerduty_ids=("d",),
    )
    ((_, _, keys),) = decided(alert(), wide)
    assert keys == ["email:a@example.com", "email:b@example.com", "webhook:w", "pagerduty:d"]
    assert [Destination.of(key).key for key in keys] == keys


def test_a_silence_stops_the_start_and_the_end_of_what_began_in_it() -> None:
    silence = Silence(policy_id="p1", start_ms=0, end_ms=10)
    assert decided(alert(), policy(), silences=(silence,)) == [("silence", 0, [])]
    assert decided(alert("end"), policy(), told=Told(start="silenced"), now_ms=20) == []
    assert (
        decided(alert("end"), policy(), told=Told(start="told"), silences=(silence,), now_ms=5)
        == []
    )
    assert decided(alert(), policy(id="p2"), silences=(silence,)) == [SENT]
    assert decided(alert(), policy(), silences=(Silence(start_ms=0, end_ms=10),)) == [
        ("silence", 0, [])
    ]
    assert decided(alert(), policy(), silences=(silence,), now_ms=10)[0][0] == "send"


def test_an_incident_within_the_interval_is_told_when_it_is_over_and_not_at_all_when_it_has_ended_by_then() -> (
    None
):
    spaced = policy(alert_interval="1h")
    assert decided(alert(), spaced) == [SENT]
    assert decided(alert(), spaced, told=Told(last_start_ms=0), now_ms=HOUR // 2) == [
        ("send", HOUR, ["email:a@example.com"])
    ]
    assert decided(
        alert("end"), spaced, told=Told(postponed=True, last_start_ms=0), now_ms=HOUR // 2
    ) == [("cancel", 0, [])]
    assert decided(alert(), spaced, told=Told(last_start_ms=0), now_ms=2 * HOUR)[0][1] == 2 * HOUR
    assert decided(alert(), policy(), told=Told(last_start_ms=0), now_ms=1)[0][1] == 1


def test_the_end_is_told_with_or_without_a_known_start() -> None:
    assert (
        decided(alert("end"), policy(), told=Told(start="told", last_start_ms=0), now_ms=5)[0][0]
        == "send"
    )
    assert decided(alert("end"), policy())[0][0] == "send"


def test_bounds_are_those_of_the_policies() -> None:
    wait = "greenroom_wait_time"
    policies = [
        policy(alert_type=wait, filters={"limit": ("30",)}),
        policy(alert_type=wait),
        policy(alert_type=wait, enabled=False, filters={"limit": ("7",)}),
        policy(alert_type=wait, filters={"limit": ("x",)}),
        policy(filters={"limit": ("3",)}),
    ]
    assert bounds(policies, wait) == (10, 30)
    assert bounds([], wait) == ()
    assert bounds([], "greenroom_origin_errors") == (5,), "the log has it without a policy"


@pytest.mark.parametrize(
    ("alert_type", "filters", "wrong"),
    [
        ("greenroom_wait_time", {"limit": ("10",)}, []),
        ("greenroom_wait_time", {"limit": ("0",)}, ["limit"]),
        ("greenroom_wait_time", {"limit": ("5", "6")}, ["limit"]),
        ("greenroom_wait_time", {"limit": ("ten",), "pool_id": ("x",)}, ["limit", "pool_id"]),
        ("health_check_status_notification", {"status": ("Healthy", "Ill")}, ["status"]),
        ("bgp_hijack_notification", {"anything": ("x",)}, []),
    ],
)
def test_filters_are_checked_against_the_row_of_their_type(
    alert_type: str, filters: dict, wrong: list
) -> None:
    assert [name for name, _ in filter_problems(alert_type, filters)] == wrong


def test_a_policy_that_cannot_be_kept_says_everything_wrong() -> None:
    with pytest.raises(InvalidConfig) as caught:
        policy(
            name="",
            alert_interval="2 weeks",
            emails=("a@example.com", "Ann <a@example.com>"),
            webhook_ids=("../x",),
            filters={"zones": ("z",) * 201, "status": (1,)},
        )
    assert [problem.pointer for problem in caught.value.problems] == [
        "name",
        "alert_interval",
        "emails[1]",
        "webhook_ids[0]",
        "filters.zones",
        "filters.status",
    ]
    with pytest.raises(InvalidConfig):
        policy(alert_interval="200h")
    with pytest.raises(InvalidConfig):
        Silence(start_ms=5, end_ms=5)
    assert policy(alert_interval="1h30m").interval_ms == 90 * 60_000


@given(st.integers(1, 200), st.integers(0, GIVE_UP_MS * 2), st.floats(0, 1), st.integers(0, 10**12))
def test_a_message_is_tried_again_within_bounds_and_never_after_a_day(
    attempts: int, age_ms: int, random: float, asked_ms: int
) -> None:
    due_ms = next_try_ms(attempts, 0, age_ms, random, asked_ms)
    if due_ms is None:
        assert age_ms + max(LONGEST_MS, RETRY_AFTER_MAX_MS) >= GIVE_UP_MS
    else:
        assert due_ms < GIVE_UP_MS
        assert FIRST_MS // 2 <= due_ms - age_ms <= max(LONGEST_MS, RETRY_AFTER_MAX_MS)
        assert due_ms - age_ms >= min(asked_ms, RETRY_AFTER_MAX_MS)
