"""A waiting ticket that is copied to several data centers."""

from random import Random

from admission_world import START_MS, small_room, ticket_id

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.laws import problems
from greenroom.admission.ledger.ledger import Ledger
from greenroom.model.visit import Standing, make_key

NAMES = ("fra", "nyc", "sin")
ROOM = small_room(total_active_users=6, new_users_per_minute=8)
ONE, KEY = ticket_id(1), make_key(START_MS, 1)


def entered(seed: int) -> list[str]:
    """Where the copies are let in, with a crowd behind them, for two minutes; no limit is
    exceeded.
    """
    draw, now_ms, number = Random(seed), START_MS, 10
    coordinator = Coordinator(NAMES, ROOM, now_ms)
    ledgers = [Ledger(ROOM, name, 1, now_ms) for name in NAMES]
    admitted: list[int] = []
    found: list[str] = []
    for _ in range(400):
        now_ms += 300
        number += 1
        for ledger in ledgers:
            outcomes = [
                ledger.poll(ONE, KEY, now_ms, draw.getrandbits(64)),
                ledger.poll(ticket_id(number), make_key(now_ms, number), now_ms, 1),
            ]
            standings = [outcome.standing for outcome in outcomes]
            found += [ledger.data_center] * (standings[0] is Standing.ADMITTED)
            admitted += [now_ms] * standings.count(Standing.ADMITTED)
            ledger.log.clear()
            up = ledger.report(now_ms)
            ledger.apply(coordinator.sync(up, now_ms, draw.getrandbits(64)), now_ms)
        assert problems(coordinator, ledgers) == []
        assert sum(len(one.sessions.inside) for one in ledgers) <= ROOM.total_active_users
        assert sum(now_ms - 60_000 <= one for one in admitted) <= ROOM.new_users_per_minute
    return found


def test_copies_of_a_place_enter_once_in_a_data_center_each_with_a_unit_of_its_own() -> None:
    for seed in range(5):
        places = entered(seed)
        assert places, "or this proves nothing"
        assert len(places) == len(set(places))
