"""A room that let everybody pass is full beyond its limits: nobody is let in until it is within
them again.
"""

from dataclasses import replace

import pytest
from admission_world import START_MS, small_room, ticket_id

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.laws import coordinator_problems, problems
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.visiting import visit
from greenroom.model.visit import Standing, make_key


def test_permits_elsewhere_are_called_back_while_more_are_inside_than_there_is_room_for() -> None:
    now_ms = START_MS
    room = small_room(
        total_active_users=20,
        new_users_per_minute=600,
        queueing_method="passthrough",
        pace_admissions=False,
    )
    coordinator = Coordinator(["here", "there"], room, now_ms)
    here, there = ledgers = [Ledger(room, name, 1, now_ms) for name in ("here", "there")]

    def sync() -> None:
        for ledger in ledgers:
            ledger.apply(coordinator.sync(ledger.report(now_ms), now_ms, 0), now_ms)

    for _ in range(3):
        sync()
    assert there.lease.permits, "or this proves nothing"
    for number in range(30):
        assert here.arrive(ticket_id(number), now_ms, 0).standing is Standing.ADMITTED
    for ledger in ledgers:
        ledger.configure(replace(room, queueing_method="fifo"), now_ms)
    coordinator.configure(replace(room, queueing_method="fifo"))
    for _ in range(3):
        sync()
    assert there.lease.permits == 0
    assert there.arrive(ticket_id(100), now_ms, 0).standing is Standing.WAITING
    for number in range(11):
        here.leave(ticket_id(number), now_ms)
    for _ in range(3):
        sync()
    here.apply(coordinator.sync(here.report(now_ms, 1), now_ms, 0), now_ms)
    assert here.arrive(ticket_id(101), now_ms, 0).standing is Standing.ADMITTED
    assert sum(len(ledger.sessions.inside) for ledger in ledgers) == room.total_active_users


def test_visitors_beyond_the_limit_count_when_their_data_center_loses_its_ledger() -> None:
    now_ms = START_MS
    room = small_room(
        total_active_users=20,
        new_users_per_minute=600,
        queueing_method="passthrough",
        pace_admissions=False,
    )
    coordinator = Coordinator(["here", "there"], room, now_ms)
    here, there = (Ledger(room, name, 1, now_ms) for name in ("here", "there"))

    def sync(ledger: Ledger, want: int = 0) -> None:
        ledger.apply(coordinator.sync(ledger.report(now_ms, want), now_ms, 0), now_ms)

    for _ in range(3):
        sync(here)
        sync(there)
    for number in range(30):
        assert here.arrive(ticket_id(number), now_ms, 0).standing is Standing.ADMITTED
    sync(here)
    fifo = replace(room, queueing_method="fifo")
    coordinator.configure(fifo)
    there.configure(fifo, now_ms)
    here = Ledger(fifo, "here", 2, now_ms)
    sync(here)
    sync(there, 5)
    for _ in range(10):
        sync(here)
        sync(there, 5)
        assert there.lease.permits == here.lease.permits == 0
        assert coordinator_problems(coordinator) == []
        now_ms += 1_000
    now_ms += room.session_ms + room.renewal_age_ms
    for _ in range(3):
        sync(here)
        sync(there, 5)
    assert there.lease.permits >= 5
    assert coordinator.pool + there.lease.permits + here.lease.permits == room.total_active_users


@pytest.mark.parametrize("movers", [4, 5])
def test_a_visitor_beyond_the_limit_who_moves_takes_a_unit_of_the_room_along(movers: int) -> None:
    now_ms = START_MS
    room = small_room(
        total_active_users=2,
        new_users_per_minute=600,
        queueing_method="passthrough",
        pace_admissions=False,
    )
    coordinator = Coordinator(["here", "there"], room, now_ms)
    here, there = ledgers = [Ledger(room, name, 1, now_ms) for name in ("here", "there")]

    def sync(count: int = 3) -> None:
        for _ in range(count):
            for ledger in ledgers:
                ledger.apply(coordinator.sync(ledger.report(now_ms), now_ms, 0), now_ms)
                assert problems(coordinator, ledgers) == []

    sync()
    for number in range(5):
        assert here.arrive(ticket_id(number), now_ms, 0).standing is Standing.ADMITTED
    sync()
    for number in range(movers):
        visit(there, ticket_id(number), make_key(now_ms, number), "here", now_ms, now_ms, now_ms, 0)
    sync()
    assert len(there.sessions.inside) == movers
    ledgers[0] = Ledger(
        room, "here", 2, now_ms
    )  # it loses its ledger when others have more of its units than it ever had
    sync()
    assert coordinator.data_centers["here"].orphans >= 0
