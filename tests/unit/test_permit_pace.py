"""The pace of permits while visitors wait: a permit that let no visitor in does not cost the line a
turn.
"""

from dataclasses import replace

from admission_world import START_MS, small_room, ticket_id

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.coordinator.pace import Pace
from greenroom.admission.ledger.ledger import Ledger
from greenroom.model.visit import Standing, make_key


def test_the_pace_saves_three_seconds_and_one_and_earns_unused_permits_again() -> None:
    pace = Pace(0)
    pace.earn(60, 0, 60_000)
    assert pace.permits == 4
    pace.spend(4)
    assert pace.permits == 0
    pace.return_unused(1)
    assert pace.permits == 1
    pace.return_unused(5)
    pace.earn(60, 0, 60_000)
    assert pace.permits == 4


def test_after_a_ghost_the_next_visitor_in_another_data_center_waits_no_turn() -> None:
    now_ms, room = START_MS, small_room(total_active_users=5, new_users_per_minute=2)
    coordinator = Coordinator(["here", "there"], room, now_ms)
    here, there = (Ledger(room, name, 1, now_ms) for name in ("here", "there"))

    def sync() -> None:
        for ledger in (here, there):
            ledger.sweep(now_ms)
            ledger.apply(coordinator.sync(ledger.report(now_ms), now_ms, 0), now_ms)

    sync()
    here.poll(ticket_id(1), make_key(START_MS, 1), now_ms, 0)  # and never again
    granted_ms = returned_ms = 0
    while (
        there.poll(ticket_id(2), make_key(START_MS + 5_000, 2), now_ms, 0).standing
        is Standing.WAITING
    ):
        sync()
        granted_ms = granted_ms or (now_ms if here.lease.permits else 0)
        returned_ms = returned_ms or (now_ms if granted_ms and not here.lease.permits else 0)
        now_ms += 500
        assert now_ms < START_MS + 120_000
    assert granted_ms
    assert now_ms - max(granted_ms, returned_ms) <= 2_000


def test_a_late_report_does_not_lift_the_recall_of_a_lowered_limit() -> None:
    now_ms = START_MS
    room = small_room(total_active_users=10, new_users_per_minute=60)
    coordinator = Coordinator(["here", "there"], room, now_ms)
    here, there = (Ledger(room, name, 1, now_ms) for name in ("here", "there"))
    late = here.report(now_ms)
    for _ in range(3):
        for ledger in (here, there):
            ledger.apply(coordinator.sync(ledger.report(now_ms), now_ms, 0), now_ms)
    assert here.lease.permits > 1, "or this proves nothing"
    coordinator.configure(replace(room, total_active_users=1))
    here.apply(coordinator.sync(here.report(now_ms), now_ms, 0), now_ms)
    here.apply(coordinator.sync(late, now_ms, 0), now_ms)
    here.report(now_ms)
    assert here.lease.permits <= 1
