"""A room that let everybody pass is full beyond its limits: nobody is let in until it is within them again."""

from dataclasses import replace

from admission_world import START_MS, small_room, ticket_id

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.ledger.ledger import Ledger
from greenroom.model.visit import Standing


def test_permits_elsewhere_are_called_back_while_more_are_inside_than_there_is_room_for() -> None:
    now_ms = START_MS
    room = small_room(total_active_users=20, new_users_per_minute=600, queueing_method="passthrough", pace_admissions=False)
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
