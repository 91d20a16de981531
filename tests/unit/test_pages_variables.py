"""The published variables say what is published, in the published order, rounded as written down."""

import json
from typing import Any

import pytest

from greenroom.model.room import Room
from greenroom.model.visit import Estimate, Held
from greenroom.pages import compile_page
from greenroom.pages.variables import (
    EXTENSIONS,
    TEMPLATE_VARIABLES,
    VARIABLES,
    chance_per_try,
    facts_of,
    in_english,
    published,
)

PAGE = compile_page(Room(name="a", host="*", total_active_users=1, new_users_per_minute=1))
LAST_UPDATED_MS = 1_596_498_360_000  # 2020-08-03T23:46:00Z

FIFO_AS_PUBLISHED = """{
    "cfWaitingRoom": {
        "inWaitingRoom": true,
        "waitTimeKnown": true,
        "waitTime": 10,
        "waitTime25Percentile": 0,
        "waitTime50Percentile": 0,
        "waitTime75Percentile": 0,
        "waitTimeFormatted": "10 minutes",
        "queueIsFull": false,
        "queueAll": false,
        "lastUpdated": "2020-08-03T23:46:00.000Z",
        "refreshIntervalSeconds": 20,
        "queueingMethod": "fifo",
        "isFIFOQueue": true,
        "isRandomQueue": false
    }
}"""
RANDOM_AS_PUBLISHED = """{
    "cfWaitingRoom": {
        "inWaitingRoom": true,
        "waitTimeKnown": true,
        "waitTime": 10,
        "waitTime25Percentile": 5,
        "waitTime50Percentile": 10,
        "waitTime75Percentile": 15,
        "waitTimeFormatted": "5 minutes to 15 minutes",
        "queueIsFull": false,
        "queueAll": false,
        "lastUpdated": "2020-08-03T23:46:00.000Z",
        "refreshIntervalSeconds": 20,
        "queueingMethod": "random",
        "isFIFOQueue": false,
        "isRandomQueue": true
    }
}"""


def held(**changes: Any) -> Held:
    said: dict[str, Any] = {
        "now_ms": LAST_UPDATED_MS,
        "method": "fifo",
        "last_updated_ms": LAST_UPDATED_MS,
        "refresh_s": 20,
    }
    return Held(**{**said, **changes})


def said(**changes: Any) -> dict[str, Any]:
    answer = json.loads(PAGE.json(held(**changes)))
    found: dict[str, Any] = answer["cfWaitingRoom"]
    return found


@pytest.mark.parametrize(
    ("expected", "state"),
    [
        (FIFO_AS_PUBLISHED, held(estimate=Estimate(300, 600, 900))),
        (RANDOM_AS_PUBLISHED, held(method="random", estimate=Estimate(300, 600, 900))),
    ],
    ids=["fifo", "random"],
)
def test_json_begins_byte_for_byte_as_published(expected: str, state: Held) -> None:
    everything = json.loads(PAGE.json(state))["cfWaitingRoom"]
    first = dict(list(everything.items())[:14])
    assert json.dumps({"cfWaitingRoom": first}, indent=4) == expected


def test_json_holds_exactly_the_published_names_in_order_and_ours_beside_them() -> None:
    answer = json.loads(PAGE.json(held()))
    assert list(answer) == ["cfWaitingRoom", "greenroom"]
    assert list(answer["cfWaitingRoom"]) == [
        "inWaitingRoom",
        "waitTimeKnown",
        "waitTime",
        "waitTime25Percentile",
        "waitTime50Percentile",
        "waitTime75Percentile",
        "waitTimeFormatted",
        "queueIsFull",
        "queueAll",
        "lastUpdated",
        "refreshIntervalSeconds",
        "queueingMethod",
        "isFIFOQueue",
        "isRandomQueue",
        "isPassthroughQueue",
        "isRejectQueue",
        "isEventActive",
        "isEventPrequeueing",
        "timeUntilEventStart",
        "timeUntilEventStartFormatted",
        "timeUntilEventEnd",
        "timeUntilEventEndFormatted",
        "shuffleAtEventStart",
        "turnstile",
        "infiniteQueue",
    ]
    assert [row.name for row in VARIABLES if row.template_only] == [
        "waitTimeHours",
        "waitTimeHourMinutes",
    ]
    assert list(answer["greenroom"]) == [
        *(row.name for row in EXTENSIONS if not row.template_only),
        "words",
    ]
    assert PAGE.json(held()).startswith(
        b'{"cfWaitingRoom":{"inWaitingRoom":true,"waitTimeKnown":false,'
    )


def test_ours_can_never_be_taken_for_published_ones() -> None:
    assert all(row.template_name.startswith("greenroom") for row in EXTENSIONS)
    assert len(TEMPLATE_VARIABLES) == len(VARIABLES) + len(EXTENSIONS)


@pytest.mark.parametrize(
    ("seconds", "minutes"),
    [
        (-5.0, 0),
        (0.0, 0),
        (0.0004, 0),
        (0.001, 1),
        (59.9, 1),
        (60.0, 1),
        (60.0000001, 1),
        (60.01, 2),
        (394.7, 7),
        (1e300, 525_600),
    ],
)
def test_minutes_are_rounded_up_so_that_no_visitor_is_promised_too_little(
    seconds: float, minutes: int
) -> None:
    assert said(estimate=Estimate(seconds, seconds, seconds))["waitTime"] == minutes


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (0, "0 minutes"),
        (1, "1 minute"),
        (10, "10 minutes"),
        (59, "59 minutes"),
        (60, "1 hour"),
        (61, "1 hour and 1 minute"),
        (125, "2 hours and 5 minutes"),
        (1500, "25 hours"),
    ],
)
def test_formatted_times_are_english(minutes: int, words: str) -> None:
    assert in_english(minutes) == words


def test_a_random_wait_is_a_range_unless_both_ends_are_the_same() -> None:
    def formatted(*quartiles: float) -> str:
        return str(said(method="random", estimate=Estimate(*quartiles))["waitTimeFormatted"])

    assert formatted(30, 600, 4000) == "1 minute to 1 hour and 7 minutes"
    assert formatted(20, 30, 40) == "1 minute"


def test_the_whole_interval_is_ours_to_tell_for_every_method() -> None:
    for method in ("fifo", "random"):
        ours = json.loads(
            PAGE.json(held(method=method, estimate=Estimate(300, 600, 900, 1_200, "slower")))
        )["greenroom"]
        assert [ours[name] for name in ("waitFrom", "waitTo", "waitAtMost", "waitChange")] == [
            5,
            15,
            20,
            "slower",
        ]
    nothing = json.loads(PAGE.json(held()))["greenroom"]
    assert [nothing[name] for name in ("waitFrom", "waitTo", "waitAtMost", "waitChange")] == [
        0,
        0,
        0,
        "",
    ]


def test_hours_and_minutes_are_for_templates() -> None:
    facts = facts_of(held(estimate=Estimate(7500, 7500, 7500)))
    assert (
        TEMPLATE_VARIABLES["waitTimeHours"].read(facts),
        TEMPLATE_VARIABLES["waitTimeHourMinutes"].read(facts),
    ) == (2, 5)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"estimate": Estimate(60, 60, 60), "queue_all": True},
        {"estimate": Estimate(float("nan"), 60, 60)},
        {"estimate": Estimate(60, float("inf"), 60), "method": "random"},
    ],
    ids=["no estimate", "queue_all", "not a number", "infinite"],
)
def test_an_unknown_wait_is_said_as_unknown(changes: dict[str, Any]) -> None:
    shown = said(**changes)
    assert (shown["waitTimeKnown"], shown["waitTime"], shown["waitTimeFormatted"]) == (
        False,
        0,
        "unavailable",
    )
    assert [shown[f"waitTime{quartile}Percentile"] for quartile in (25, 50, 75)] == [0, 0, 0]


@pytest.mark.parametrize("method", ["fifo", "random", "passthrough", "reject"])
def test_exactly_one_method_is_true(method: str) -> None:
    shown = said(method=method)
    flags = {
        name
        for name in ("isFIFOQueue", "isRandomQueue", "isPassthroughQueue", "isRejectQueue")
        if shown[name]
    }
    assert {name.lower() for name in flags} == {f"is{method}queue"}
    assert shown["queueingMethod"] == method


def test_event_times_are_said_while_they_mean_something() -> None:
    times = {
        "event_start_ms": LAST_UPDATED_MS + 90_000,
        "event_end_ms": LAST_UPDATED_MS + 3_660_000,
        "shuffle_at_event_start": True,
    }
    before = said(event_active=True, event_prequeueing=True, **times)
    assert (before["timeUntilEventStart"], before["timeUntilEventStartFormatted"]) == (
        2,
        "2 minutes",
    )
    assert (before["timeUntilEventEnd"], before["timeUntilEventEndFormatted"]) == (
        61,
        "1 hour and 1 minute",
    )
    assert before["shuffleAtEventStart"] is True
    running = said(event_active=True, **times)
    assert (running["timeUntilEventStart"], running["timeUntilEventStartFormatted"]) == (
        0,
        "unavailable",
    )
    quiet = said(**times)
    assert (
        quiet["timeUntilEventEnd"],
        quiet["timeUntilEventEndFormatted"],
        quiet["shuffleAtEventStart"],
    ) == (0, "unavailable", False)


@pytest.mark.parametrize(
    ("unix_ms", "text"),
    [
        (-1, "1970-01-01T00:00:00.999Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        (1_596_498_360_007, "2020-08-03T23:46:00.007Z"),
        (10**18, "9999-12-31T23:59:59.000Z"),
    ],
)
def test_last_updated_is_iso_8601_with_milliseconds(unix_ms: int, text: str) -> None:
    assert said(last_updated_ms=unix_ms)["lastUpdated"] == text


def test_progress_is_time_waited_of_the_whole_wait_and_only_a_line_has_it() -> None:
    def progress(**changes: Any) -> int:
        now = {
            "now_ms": LAST_UPDATED_MS + 300_000,
            "joined_ms": LAST_UPDATED_MS,
            "in_line": True,
            "estimate": Estimate(900, 900, 900),
        }
        return facts_of(held(**{**now, **changes})).progress

    assert progress() == 25
    assert progress(estimate=Estimate(0, 0, 0)) == 99
    assert progress(now_ms=LAST_UPDATED_MS, estimate=Estimate(0, 0, 0)) == 99
    assert progress(now_ms=LAST_UPDATED_MS - 5) == 0
    for unknown in (
        {"joined_ms": 0},
        {"in_line": False},
        {"estimate": None},
        {"method": "random"},
        {"queue_all": True},
    ):
        assert progress(**unknown) == -1


def test_the_chance_of_a_try_follows_from_the_median() -> None:
    def chance(median_s: float, refresh_s: int = 20) -> float:
        return chance_per_try(
            held(
                method="random",
                estimate=Estimate(median_s, median_s, median_s),
                refresh_s=refresh_s,
            )
        )

    assert chance(20) == pytest.approx(0.5)
    assert chance(40) == pytest.approx(1 - 0.5**0.5)
    assert chance(0) == 1
    assert chance(20, refresh_s=0) == 0
    assert chance_per_try(held(method="random")) == 0


def test_published_never_holds_ours() -> None:
    assert not set(published(facts_of(held()))) & {row.name for row in EXTENSIONS}
