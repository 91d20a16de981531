"""One table says what a room's visitors meet, and every place that tells it agrees."""

import itertools

import pytest

from greenroom.admission.schedule import Effective, Phase
from greenroom.dashboard.live_words import limit_words
from greenroom.decision.explain import Seats, _arrives
from greenroom.decision.observer import Decided, DecisionEvent
from greenroom.decision.room_view import ROOM_STATES, Figures, RoomView
from greenroom.model.event import Event
from greenroom.model.room import Room
from greenroom.model.visit import Outcome, Standing
from greenroom.status_page.view import RoomFacts, _room_line

EVENT = Event(
    id="e1", name="sale", event_start_ms=600_000, event_end_ms=900_000, prequeue_start_ms=0
)
CASES = [
    RoomView(
        Effective(
            Room(
                id="r",
                name="shop",
                host="shop.example",
                total_active_users=10,
                new_users_per_minute=10,
                queueing_method=method,
                queue_all=queue_all,
            ),
            phase,
            EVENT if phase else None,
            origin_down=origin_down,
            origin_slow=origin_slow,
        ),
        Figures(waiting=waiting, storage_failed=failed),
    )
    for method, queue_all, phase, origin_down, origin_slow, waiting, failed in itertools.product(
        ("fifo", "random", "passthrough", "reject"),
        (False, True),
        Phase,
        (False, True),
        (False, True),
        (0, 3),
        (False, True),
    )
]


@pytest.mark.parametrize("view", CASES, ids=lambda view: view.word)
def test_every_place_agrees(view: RoomView) -> None:
    state, figures = view.state, view.figures
    seats = Seats(0, figures.waiting, storage_failed=figures.storage_failed)
    result, word, reason = _arrives(view.now, seats)
    held = DecisionEvent(
        0,
        Decided.HELD,
        view.now,
        outcome=Outcome(Standing.WAITING, storage_failed=figures.storage_failed),
    )
    assert (result == "waiting") == (not state.admits or state.word == "queueing")
    assert "{" not in reason + limit_words(view).text + _room_line(RoomFacts("r", "r", view)).words
    assert held.reason == state.reason
    if not state.admits:
        assert word == state.reason
        assert limit_words(view).binds == "held"
        assert _room_line(RoomFacts("r", "r", view)).state != "good"


@pytest.mark.parametrize("view", CASES, ids=lambda view: view.word)
def test_a_room_admits_only_where_its_ledger_does(view: RoomView) -> None:
    ledger = view.now.ledger_room
    closed = ledger.queue_all or ledger.queueing_method == "reject" or view.figures.storage_failed
    assert view.state.admits == (not closed)


def test_every_state_is_reached_and_queue_all_outlasts_a_prequeue() -> None:
    assert {view.word for view in CASES} == {row.word for row in ROOM_STATES} - {"suspended"}
    both = Effective(
        Room(
            id="r",
            name="r",
            host="a",
            total_active_users=1,
            new_users_per_minute=1,
            queue_all=True,
        ),
        Phase.PREQUEUE,
        EVENT,
    )
    assert RoomView(both).word == "holding"
