"""What a ledger counts for the forecast."""

from admission_world import START_MS, small_room, ticket_id

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.messages.line_counts import AGE_CELLS
from greenroom.model.visit import Standing, make_key


class Room:
    """Three inside, permits at once; time is set by hand."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self.room = small_room(total_active_users=3, new_users_per_minute=100)
        self.ledger = Ledger(self.room, "here", 1, self.now_ms)
        self.coordinator = Coordinator(["here"], self.room, self.now_ms)
        self.sync()

    def sync(self, lost: bool = False) -> dict[int, int]:
        self.ledger.sweep(self.now_ms)
        up = self.ledger.report(self.now_ms)
        if not lost:
            self.ledger.apply(self.coordinator.sync(up, self.now_ms, 0), self.now_ms)
        return dict(up.ended)

    def fill(self) -> None:
        for number in range(3):
            assert (
                self.ledger.arrive(ticket_id(number), self.now_ms, 0).standing is Standing.ADMITTED
            )

    def poll(self, number: int, arrived_ms: int) -> Standing:
        return self.ledger.poll(
            ticket_id(number), make_key(arrived_ms, number), self.now_ms, 0
        ).standing


def test_the_age_of_every_ended_session_is_told_until_it_is_acknowledged() -> None:
    room = Room()
    room.fill()
    room.now_ms += 22_000
    room.ledger.leave(ticket_id(0), room.now_ms)
    assert list(room.sync(lost=True).values()) == [1]
    room.ledger.leave(ticket_id(1), room.now_ms)
    told = room.sync()
    assert list(told.values()) == [2]
    assert all(15_000 <= cell * 5_000 <= 25_000 for cell in told)
    assert room.sync() == {}


def test_ages_beyond_two_hours_are_one_step() -> None:
    room = Room()
    room.fill()
    room.ledger.sessions.life_ms = 1 << 40
    room.now_ms += 5 * 3600_000
    room.ledger.leave(ticket_id(0), room.now_ms)
    assert room.sync() == {AGE_CELLS - 1: 1}


def test_a_session_that_never_was_or_began_no_one_knows_when_has_no_age() -> None:
    room = Room()
    room.fill()
    room.ledger.undo(room.now_ms, 0)
    room.ledger.sessions.resume(ticket_id(9), room.now_ms)
    room.now_ms += 10_000
    room.ledger.leave(ticket_id(9), room.now_ms)
    assert room.sync() == {}


def test_lost_places_are_told_from_strays_and_from_those_that_come_back() -> None:
    room = Room()
    room.fill()
    line_counts = room.ledger.line_counts
    arrived_ms = room.now_ms
    room.now_ms += 2_000
    for number in (10, 11, 12):
        assert room.poll(number, arrived_ms) is Standing.WAITING
    assert (line_counts.joined, line_counts.lost, line_counts.strays) == (3, 0, 0)
    for _ in range(8):
        room.now_ms += 2_000
        room.poll(10, arrived_ms)
        room.sync()
    assert (line_counts.joined, line_counts.lost, line_counts.strays) == (3, 2, 2)
    room.poll(11, arrived_ms)
    assert (line_counts.joined, line_counts.lost, line_counts.strays) == (3, 1, 2)
    room.ledger.leave(ticket_id(10), room.now_ms)
    assert (line_counts.joined, line_counts.lost, line_counts.strays) == (3, 2, 2)


def test_the_front_is_the_arrival_of_the_one_who_got_in_last_from_the_line() -> None:
    room = Room()
    room.fill()
    arrived_ms = room.now_ms
    room.now_ms += 2_000
    room.poll(10, arrived_ms)
    assert room.ledger.report(room.now_ms).front_s == 0
    room.ledger.leave(ticket_id(0), room.now_ms)
    room.sync()
    room.sync()
    assert room.poll(10, arrived_ms) is Standing.ADMITTED
    assert room.ledger.report(room.now_ms).front_s == arrived_ms // 1000
