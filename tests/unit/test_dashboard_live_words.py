"""What the live page says about limits: which one decides, and what others would change."""

from dataclasses import replace
from math import inf
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.admission.schedule import Effective, Phase
from greenroom.capacity.room_capacity import CapacityState
from greenroom.dashboard.live_action_table import ACTIONS
from greenroom.dashboard.live_words import (
    LimitPlan,
    capacity_words,
    clearing_minutes,
    effect_of,
    limit_words,
)
from greenroom.dashboard.pages.live import load
from greenroom.dashboard.room_live import wait_words
from greenroom.decision.room_view import Figures, RoomView
from greenroom.model.event import Event
from greenroom.model.room import Room
from greenroom.model.visit import Estimate

EVENT = Event(
    id="e",
    name="launch",
    event_start_ms=1_000_000_000,
    event_end_ms=2_000_000_000,
    prequeue_start_ms=500_000_000,
)


def room(**changes: Any) -> Room:
    return Room(
        **{
            "id": "r",
            "name": "sale",
            "host": "shop.example",
            "total_active_users": 100,
            "new_users_per_minute": 50,
            **changes,
        }
    )


def live(figures: Figures | None = None, **now: Any) -> RoomView:
    changes, view = (
        now.pop("room", {}),
        {name: now.pop(name) for name in ("suspended", "served") if name in now},
    )
    return RoomView(Effective(room(**changes), **now), figures or Figures(), **view)


def test_the_wait_of_a_new_visitor_is_a_sentence_also_when_it_is_not_known() -> None:
    known = Figures(waiting=5, estimate=Estimate(120.0, 300.0, 400.0))
    assert wait_words(live(known)) == "A new visitor waits about 5 minutes."
    for estimate in (None, Estimate(inf, inf, inf)):
        assert (
            wait_words(live(Figures(waiting=5, estimate=estimate)))
            == "No estimate of the wait: too few admissions to tell."
        )
    held = live(
        Figures(waiting=5, estimate=Estimate(120.0, 300.0, 400.0)), room={"queue_all": True}
    )
    assert wait_words(held) == "No estimate of the wait: new visitors are held."
    assert wait_words(live()) == ""


@pytest.mark.parametrize(
    ("found", "title"),
    [
        (live(suspended=True), "The room is suspended"),
        (live(served=False), "No gateway here serves this room"),
        (live(Figures(storage_failed=True)), "Admissions stopped: storage failed"),
        (live(phase=Phase.PREQUEUE, event=EVENT), "Pre-queue"),
        (live(room={"queue_all": True}), "You hold all new visitors"),
        (live(room={"queueing_method": "reject"}), "The room rejects new visitors"),
        (live(origin_down=True), "The origin is unhealthy"),
        (live(room={"queueing_method": "passthrough"}), "Everyone passes"),
        (live(Figures(active=100, last_minute=50)), "Both limits are reached"),
        (live(Figures(active=100, last_minute=3)), "Your site is full"),
        (live(Figures(active=143, last_minute=3)), "More are active than the limit"),
        (
            live(Figures(active=60, last_minute=50)),
            "The limit of new visitors per minute is reached",
        ),
        (live(Figures(active=60, waiting=5)), "Letting people in"),
        (live(Figures(active=60)), "No limit is reached"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_sentence_says_what_decides(found: RoomView, title: str) -> None:
    assert limit_words(found).title == title


@pytest.mark.parametrize(
    ("figures", "several", "one"),
    [
        ({"last_minute": 50}, "there are 2 free places", "there is 1 free place."),
        ({"waiting": 5}, "2 visitors can come in now", "1 visitor can come in now"),
        ({}, "2 more visitors can", "1 more visitor can"),
    ],
)
def test_one_place_is_not_called_places(figures: dict[str, int], several: str, one: str) -> None:
    assert (
        several
        in limit_words(live(Figures(active=8, **figures), room={"total_active_users": 10})).text
    )
    assert (
        one in limit_words(live(Figures(active=9, **figures), room={"total_active_users": 10})).text
    )


def test_a_limit_below_those_inside_says_how_many_sessions_have_to_end() -> None:
    said = limit_words(live(Figures(active=143)))
    assert said.text == "The next visitor is let in when 44 sessions have ended."


def test_a_held_room_never_says_that_limits_decide() -> None:
    full = Figures(active=100, last_minute=50, waiting=9)
    assert limit_words(live(full, room={"queue_all": True})).binds == "held"


FIGURES = st.builds(
    Figures,
    active=st.integers(0, 200),
    waiting=st.integers(0, 5000),
    last_minute=st.integers(0, 60),
)
PLANS = st.builds(LimitPlan, active=st.integers(1, 500), rate=st.integers(1, 500))


def _order(minutes: int | None) -> float:
    return float("inf") if minutes is None else minutes


@given(FIGURES, PLANS, st.integers(0, 300), st.integers(0, 300))
def test_higher_limits_never_empty_the_line_later(
    figures: Figures, plan: LimitPlan, more: int, faster: int
) -> None:
    found = live(figures)
    higher = LimitPlan(plan.active + more, plan.rate + faster)
    assert _order(clearing_minutes(found, higher)) <= _order(clearing_minutes(found, plan))


@given(FIGURES, PLANS)
def test_no_more_come_in_than_the_rate_allows(figures: Figures, plan: LimitPlan) -> None:
    minutes = clearing_minutes(live(figures), plan)
    assert minutes is None or minutes >= (figures.waiting - 1) / plan.rate - 1


@given(FIGURES, PLANS)
def test_the_preview_always_has_something_to_say(figures: Figures, plan: LimitPlan) -> None:
    said = effect_of(live(figures), plan)
    assert said
    assert all(text.endswith(".") and "None" not in text for text in said)


def test_the_preview_tells_how_much_sooner_the_line_is_empty() -> None:
    found = live(Figures(active=100, waiting=1000, last_minute=20))
    assert "about 50 minutes" in " ".join(effect_of(found, LimitPlan(100, 50)))
    assert (
        clearing_minutes(found, LimitPlan(200, 50)) == 24
    )  # 50 a minute at first, 40 once 200 are inside


def test_lower_limits_say_that_visitors_who_are_inside_stay() -> None:
    said = " ".join(effect_of(live(Figures(active=100)), LimitPlan(40, 40)))
    assert "Those who are inside stay" in said
    assert "your site can handle" not in said


def test_figures_without_an_estimate_do_not_break_the_words() -> None:
    assert limit_words(live(msgspec.structs.replace(Figures(), waiting=3))).binds == "room"


def test_the_smaller_limit_says_how_many_can_come_in() -> None:
    found = Figures(active=80, waiting=9, last_minute=47)
    assert limit_words(live(found)).text.startswith("3 visitors can come in now")
    found = Figures(active=80, last_minute=47)
    assert (
        "3 more visitors can come in now, before the limit per minute"
        in limit_words(live(found)).text
    )
    found = Figures(active=95, last_minute=3)
    assert "before the limit of active visitors" in limit_words(live(found)).text


def test_a_plan_that_changes_nothing_is_not_told_as_a_change() -> None:
    found = live(Figures(active=100, waiting=300, last_minute=20))
    said = " ".join(effect_of(found, LimitPlan(100, 50)))
    assert "as with the current limits" in said
    assert "instead of" not in said


def test_a_key_opens_one_action_whatever_is_offered() -> None:
    opposites: dict[str, list[str]] = {}
    for one in ACTIONS.values():
        opposites.setdefault(one.key, []).append(one.name)
    shared = sorted(names for names in opposites.values() if len(names) > 1)
    assert shared == [
        ["hold", "release"],
        ["reject", "accept"],
        ["suspend", "resume"],
        ["take-over", "follow"],
    ]
    for found in (live(), live(room={"queue_all": True}), live(suspended=True)):
        offered = [one.key for one in ACTIONS.values() if one.offered(found)]
        assert len(offered) == len(set(offered))


@pytest.mark.parametrize(
    ("value", "name"), [(0, ""), (19, ""), (20, "full"), (21, "over"), (36, "over")]
)
def test_a_bar_shows_a_limit_that_is_reached_or_passed(value: int, name: str) -> None:
    assert load(value, 20) == name


@pytest.mark.parametrize(
    ("limit", "stopped", "gradual"), [(20, False, True), (500, False, False), (20, True, False)]
)
def test_a_room_that_follows_says_that_it_fills_gradually(
    limit: int, stopped: bool, gradual: bool
) -> None:
    state = CapacityState(
        mode="follow", sessions=500, limit=limit, stopped=stopped, reason="", measured_ms=0
    )
    said = ", and fills gradually: up to 20 for now" if gradual else ""
    takes = "no one is let in until it recovers" if stopped else "it takes 500 active visitors"
    assert capacity_words(state, 1) == f"Following the origin: {takes}{said}"
    observed = capacity_words(replace(state, mode="observe"), 1)
    assert observed.endswith("would stop admissions") is stopped
