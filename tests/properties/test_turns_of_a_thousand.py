"""An outage of the origin for all of a thousand visitors at once."""

from collections import Counter

from admission_world import START_MS, HandClock, small_room, ticket_id

from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.visit import Outcome, Standing, make_key

ADMITTED, GONE = Standing.ADMITTED, Standing.GONE


def test_admissions_of_a_ticket_are_one_and_its_turns() -> None:
    """A thousand visitors whom the origin failed re-enter at the room's pace, in their order."""
    room = small_room(total_active_users=1_000, new_users_per_minute=600, session_duration=1)
    clock = HandClock(START_MS)
    ledger = MemoryLedger(room, clock, lambda _: 0)
    people = [(ticket_id(number), make_key(START_MS, number)) for number in range(1_000)]
    inside: set[bytes] = set()
    admissions = Counter[bytes]()

    def came(one: bytes, outcome: Outcome) -> None:
        if outcome.standing is ADMITTED:
            inside.add(one)
            admissions[one] += 1

    while len(inside) < 1_000:
        for one, key in people:
            if one not in inside:
                ledger.poll(one, key, lambda outcome, one=one: came(one, outcome))  # type: ignore[misc]
            else:
                ledger.fail(one, lambda _: None)
        clock.ms += 1_000
        ledger.tick()
    for one, _ in people:
        ledger.fail(one, lambda _: None)
    clock.ms += 70_000
    ledger.tick()
    strangers = [(ticket_id(number), make_key(clock.now_ms(), 1)) for number in range(2_000, 2_300)]
    order: list[bytes] = []
    for _ in range(180):
        for one, key in strangers:
            ledger.poll(one, key, lambda _: None)
        for number, (one, key) in enumerate(people):
            if one not in order:
                found: list[Outcome] = []
                ledger.reenter(one, key, found.append)
                came(one, found[0])
                if found[0].standing is ADMITTED:
                    order.append(one)
                assert found[0].standing is not GONE, number
        assert len(ledger.ledger.sessions.inside) <= 1_000
        assert len(ledger.ledger.lease.window) <= 600
        clock.ms += 1_000
        ledger.tick()
    places = {one: place for place, (one, _) in enumerate(people)}
    assert len(order) == 1_000
    assert max(abs(places[one] - at) for at, one in enumerate(order)) <= 20
    assert set(admissions.values()) == {2}
