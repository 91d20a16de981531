"""A data center that cannot reach the coordinator goes on letting its line in with the units of its
own sessions that end.
"""

from admission_world import START_MS, small_room, ticket_id

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.lease import CUT_OFF_MS, Lease
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.waits import Waits
from greenroom.model.visit import Standing, make_key


def test_a_freed_unit_goes_to_the_first_in_line_however_slowly_the_line_moves() -> None:
    now_ms = START_MS
    room = small_room(total_active_users=8, new_users_per_minute=100)
    coordinator = Coordinator(["here", "there"], room, now_ms)
    here, there = (Ledger(room, name, 1, now_ms) for name in ("here", "there"))

    def sync() -> None:
        for ledger in (here, there):
            ledger.sweep(now_ms)
            ledger.apply(coordinator.sync(ledger.report(now_ms), now_ms, 0), now_ms)

    def poll(number: int) -> Standing:
        return here.poll(ticket_id(number), make_key(START_MS, number), now_ms, 0).standing

    inside = []
    for number in range(100, 130):
        sync()
        if here.arrive(ticket_id(number), now_ms, 0).standing is Standing.ADMITTED:
            inside.append(number)
        now_ms += 500
    assert inside
    assert [poll(1), poll(2)] == [Standing.WAITING] * 2
    sync()
    cut_off_ms = now_ms
    while poll(1) is Standing.WAITING:  # no one answers any more
        assert poll(2) is Standing.WAITING
        now_ms += 1_000
        assert now_ms - cut_off_ms < CUT_OFF_MS + 2 * room.session_ms
    assert now_ms - cut_off_ms >= CUT_OFF_MS
    assert here.lease.permits == 0


def test_the_first_line_of_a_random_room_moves_behind_a_cut() -> None:
    now_ms = START_MS
    room = small_room(total_active_users=8, new_users_per_minute=100, queueing_method="random")
    coordinator = Coordinator(["here", "there"], room, now_ms)
    here, there = (Ledger(room, name, 1, now_ms) for name in ("here", "there"))
    for number in range(100, 130):  # let in at once: there has been no line yet
        for ledger in (here, there):
            ledger.sweep(now_ms)
            ledger.apply(coordinator.sync(ledger.report(now_ms), now_ms, 0), now_ms)
        here.arrive(ticket_id(number), now_ms, 0)
        now_ms += 500
    assert here.sessions.inside
    cut_off_ms = now_ms
    while here.poll(ticket_id(1), make_key(cut_off_ms, 1), now_ms, 0).standing is Standing.WAITING:
        here.poll(ticket_id(2), make_key(cut_off_ms, 2), now_ms, 1 << 40)
        now_ms += 1_000
        assert now_ms - cut_off_ms < CUT_OFF_MS + 2 * room.session_ms
    assert here.lease.permits == 0


def test_a_line_behind_a_cut_does_not_wait_for_an_older_line_elsewhere() -> None:
    now_ms = START_MS
    room = small_room(total_active_users=8, new_users_per_minute=100)
    coordinator = Coordinator(["here", "there"], room, now_ms)
    here, there = (Ledger(room, name, 1, now_ms) for name in ("here", "there"))
    for number in range(100, 160):
        for ledger in (here, there):
            ledger.sweep(now_ms)
            ledger.apply(coordinator.sync(ledger.report(now_ms), now_ms, 0), now_ms)
        here.arrive(ticket_id(number), now_ms, 0)
        for place in range(
            4 * (number > 120)
        ):  # places of ten minutes ago, whose visitors were away
            there.poll(ticket_id(place), make_key(START_MS - 600_000, place), now_ms, 0)
        if number > 130:
            here.poll(ticket_id(10), make_key(START_MS, 10), now_ms, 0)
        now_ms += 500
    assert here.lease.horizon_ms
    assert here.lease.horizon_ms < now_ms - 500_000
    cut_off_ms = now_ms
    while here.poll(ticket_id(10), make_key(START_MS, 10), now_ms, 0).standing is Standing.WAITING:
        now_ms += 1_000
        assert now_ms - cut_off_ms < CUT_OFF_MS + 2 * room.session_ms


def test_what_may_be_let_in_behind_a_cut_follows_the_limit_when_that_is_lowered() -> None:
    wide, narrow = (
        small_room(total_active_users=800, new_users_per_minute=limit, pace_admissions=False)
        for limit in (600, 60)
    )
    coordinator = Coordinator(["here", "there"], wide, START_MS)
    ledgers = [Ledger(wide, name, 1, START_MS) for name in ("here", "there")]

    def sync() -> None:
        for ledger in ledgers:
            ledger.apply(coordinator.sync(ledger.report(START_MS, 100), START_MS, 0), START_MS)

    for number in range(400):
        sync()
        ledgers[number % 2].arrive(ticket_id(number), START_MS, 0)
    coordinator.configure(narrow)
    assert sum(ledger.lease.disconnected_rate for ledger in ledgers) > 60, "or this proves nothing"
    for _ in range(3):
        sync()
    assert 40 < sum(ledger.lease.disconnected_rate for ledger in ledgers) <= 60


def test_behind_a_cut_the_wait_follows_from_what_this_data_center_let_in_by_itself() -> None:
    waits, lease = (
        Waits(small_room(total_active_users=100, new_users_per_minute=600), START_MS),
        Lease(),
    )
    assert waits.estimate(lease, 20, 20, START_MS, START_MS) is None
    lease.disconnected_rate = 30
    lease.window.extend(range(START_MS - 90_000, START_MS, 2_000))
    told = waits.estimate(lease, 20, 20, START_MS, START_MS)
    assert told
    assert told.p50_s == 20 * 60 / 30
    assert 0 < told.p25_s < told.p50_s < told.p75_s < told.most_s
    assert told.change == "stale"
    lease.answered_ms = START_MS
    assert waits.estimate(lease, 20, 20, START_MS, START_MS) is None
