"""The preview's query parameters: every state can be asked for and is shown as a visitor would see
it; nonsense is refused.
"""

import itertools

import pytest

from greenroom.api.preview import PARAMETERS, state_of
from greenroom.model.room import LANGUAGES, METHODS, Room
from greenroom.pages import compile_page
from greenroom.pages.builtin import LAYOUTS, view_of
from greenroom.pages.preview import EVENTS, PreviewState
from greenroom.pages.variables import facts_of, published

NOW_MS = 1_700_000_000_000
PAGE = compile_page(Room(name="a", host="*", total_active_users=1, new_users_per_minute=1))


def state(**query: str) -> PreviewState:
    found = state_of(query)
    assert isinstance(found, PreviewState), found
    return found


def test_without_parameters_it_is_a_fifo_line_of_ten_minutes() -> None:
    shown = published(facts_of(state().held(NOW_MS)))
    assert (shown["waitTime"], shown["waitTimeKnown"], shown["isFIFOQueue"], shown["queueAll"]) == (
        10,
        True,
        True,
        False,
    )
    assert shown["isEventActive"] is False


@pytest.mark.parametrize(
    ("name", "variable"), [("force_queue", "queueAll"), ("queue_is_full", "queueIsFull")]
)
def test_flags_reach_the_page(name: str, variable: str) -> None:
    for text, value in (
        ("true", True),
        ("True", True),
        ("1", True),
        ("false", False),
        ("0", False),
    ):
        assert published(facts_of(state(**{name: text}).held(NOW_MS)))[variable] is value


def test_an_event_counts_down_to_its_start_and_then_to_its_end() -> None:
    before = published(
        facts_of(
            state(event="prequeueing", waitTime="25", shuffle_at_event_start="true").held(NOW_MS)
        )
    )
    assert (
        before["isEventPrequeueing"],
        before["timeUntilEventStart"],
        before["timeUntilEventEnd"],
    ) == (True, 25, 85)
    assert before["shuffleAtEventStart"] is True
    during = published(facts_of(state(event="started").held(NOW_MS)))
    assert (during["isEventActive"], during["isEventPrequeueing"], during["timeUntilEventEnd"]) == (
        True,
        False,
        60,
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("how", [{"force_queue": "true"}, {"event": "prequeueing"}])
def test_a_room_that_rejects_says_fifo_where_it_holds(how: dict[str, str], method: str) -> None:
    shown = published(facts_of(state(queueing_method=method, **how).held(NOW_MS)))
    assert shown["queueingMethod"] == ("fifo" if method == "reject" else method)
    assert (shown["isRejectQueue"], shown["refreshIntervalSeconds"]) == (False, 20)


def test_a_random_room_tells_quartiles_and_a_closed_one_does_not_refresh() -> None:
    drawn = published(facts_of(state(queueing_method="random", waitTime="60").held(NOW_MS)))
    assert (
        drawn["waitTime25Percentile"],
        drawn["waitTime50Percentile"],
        drawn["waitTime75Percentile"],
    ) == (25, 60, 120)
    assert (
        published(facts_of(state(queueing_method="reject").held(NOW_MS)))["refreshIntervalSeconds"]
        == 0
    )
    assert (
        published(facts_of(state(queueing_method="reject", force_queue="true").held(NOW_MS)))[
            "refreshIntervalSeconds"
        ]
        == 20
    )


def test_every_view_of_the_built_in_page_but_trouble_and_placing_can_be_asked_for_and_every_combination_can_be_shown() -> (
    None
):
    seen = set()
    for queue, full, method, event in itertools.product(
        ("true", "false"), ("true", "false"), METHODS, EVENTS
    ):
        for shuffle in ("false",) if event == "none" else ("true", "false"):
            asked = state(
                force_queue=queue,
                queue_is_full=full,
                queueing_method=method,
                event=event,
                shuffle_at_event_start=shuffle,
            )
            if asked.passes:
                assert (method, queue) == ("passthrough", "false")
                assert event != "prequeueing"
                continue
            held = asked.held(NOW_MS)
            seen.add(view_of(held))
            assert PAGE.html(held)
            assert PAGE.json(held)
    assert seen == set(LAYOUTS) - {"trouble", "trouble_slow", "placing", "drawn"}


def test_everything_wrong_is_said_at_once() -> None:
    wrong = state_of(
        {
            "force_queue": "maybe",
            "queueing_method": "lifo",
            "event": "soon",
            "waitTime": "-3",
            "language": "xx",
            "color": "red",
        }
    )
    assert isinstance(wrong, list)
    assert [reason.partition(":")[0] for reason in wrong] == [
        "color",
        "force_queue",
        "queueing_method",
        "event",
        "waitTime",
        "language",
    ]
    for minutes in ("0", "1.5", "", "٣", "9" * 40):
        assert isinstance(state_of({"waitTime": minutes}), list)
    assert state_of({"shuffle_at_event_start": "true"}) == [
        "shuffle_at_event_start: only together with an event"
    ]


def test_every_published_parameter_is_there() -> None:
    published_ones = {
        "force_queue",
        "queue_is_full",
        "queueing_method",
        "event",
        "shuffle_at_event_start",
        "waitTime",
    }
    assert set(PARAMETERS) == published_ones | {"language"}
    assert all(isinstance(state_of({"language": tag}), PreviewState) for tag in LANGUAGES)
