"""Requests that get a connection to their origin before others while connections are scarce."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from admission_world import small_room
from hypothesis import given
from hypothesis import strategies as st
from rules_visit import arrival
from visitors import Browser, Site

from greenroom.decision.verdict import Forward
from greenroom.errors import InvalidConfig
from greenroom.gateway.origin.waiting import IN_ROW, WaitingRequests
from greenroom.model.route import is_below

STEPS = st.lists(st.sampled_from(("first", "other", "next", "drop", "leave")), max_size=80)


@given(STEPS)
def test_each_kind_is_served_in_its_order_and_nobody_starves(steps: list[str]) -> None:
    waiting: WaitingRequests[tuple[str, int]] = WaitingRequests()
    model: dict[str, list[int]] = {"first": [], "other": []}
    row = 0
    for number, step in enumerate(steps):
        if step in model:
            waiting.append((step, number), step == "first")
            model[step].append(number)
        elif step == "leave" and (model["first"] or model["other"]):
            kind = "other" if model["other"] else "first"
            assert waiting.discard((kind, model[kind].pop(0)))
            assert not waiting.discard((kind, -1))
        elif step == "drop" and (model["first"] or model["other"]):
            kind = "other" if len(model["other"]) * IN_ROW >= len(model["first"]) else "first"
            assert waiting.pop() == (kind, model[kind].pop()), "the one who would be last"
        elif step == "next" and (model["first"] or model["other"]):
            others_wait = bool(model["other"])
            kind, found = waiting.popleft()
            assert found == model[kind].pop(0)
            assert kind == "first" or not model["first"] or row == IN_ROW
            row = row + 1 if kind == "first" and others_wait else 0
            assert row <= IN_ROW
        assert len(waiting) == sum(map(len, model.values()))


def test_others_keep_their_share_of_a_full_queue() -> None:
    waiting: WaitingRequests[int] = WaitingRequests()
    waiting.append(0, False)
    for number in range(1, IN_ROW + 2):
        waiting.append(number, True)
    assert [waiting.pop() for _ in range(2)] == [IN_ROW + 1, 0]


@pytest.mark.parametrize(
    ("path", "top", "below"),
    [
        ("/checkout", "/checkout", True),
        ("/checkout/pay", "/checkout", True),
        ("/checkout/pay", "/checkout/", True),
        ("/checkouts", "/checkout", False),
        ("/", "/checkout", False),
        ("/anything", "/", True),
    ],
)
def test_a_priority_path_covers_whole_segments(path: str, top: str, below: bool) -> None:
    assert is_below(path, top) is below


def test_only_admitted_visitors_go_first(tmp_path: Path) -> None:
    site = Site(tmp_path, small_room(total_active_users=5, priority_paths=("/checkout",)))
    inside = Browser(site)
    forward = inside.visit("/")
    forward = inside.visit("/") if isinstance(forward, Forward) else forward
    assert isinstance(forward, Forward)

    def first(forward: Any, method: str, path: str) -> bool:
        return site.decisions.goes_first(forward, arrival(path, method=method))

    assert [
        first(forward, *one)
        for one in (("GET", "/"), ("POST", "/"), ("GET", "/checkout/pay"), ("GET", "/checkouts"))
    ] == [False, True, True, False]
    assert not first(forward, "GET", "/Checkout/pay")
    site.configure(replace(site.stage.room, case_insensitive_paths=True))
    assert first(forward, "GET", "/Checkout/pay")
    assert not first(None, "POST", "/checkout"), "a bot outside of any room"
    assert not first(Forward(room_id=forward.room_id), "POST", "/checkout"), "bypassed"


def test_a_priority_path_that_no_request_can_have_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"priority_paths\[1\]: must begin with /"):
        small_room(priority_paths=("/checkout", "pay"))
