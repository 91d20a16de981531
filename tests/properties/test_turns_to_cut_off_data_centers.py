"""Turns that go to other data centers while one of them is cut off, in both ledgers."""

from pathlib import Path

from admission_world import START_MS, small_room, ticket_id
from msgspec import msgpack
from redis_twin import HERE, Twin
from redis_world import TRIAL_LIBRARY, RedisServer

from greenroom.admission.ledger.failures import KEPT, USED, row_of
from greenroom.admission.messages.moves import CLAIMS_MAX
from greenroom.admission.messages.turns import EVERYWHERE
from greenroom.model.visit import make_key

THERE = "there"


def test_a_data_center_that_is_cut_off_does_not_stop_the_turns_of_others(tmp_path: Path) -> None:
    """It confirms nothing, and more than a message holds is told to it."""
    server = RedisServer(tmp_path)
    try:
        client = server.client()
        client.function_load(TRIAL_LIBRARY.source)
        twin = Twin(client, small_room(), 5, (HERE,))
        twin.sync()
        failed = ticket_id(CLAIMS_MAX + 1)
        for _ in range(2):
            twin.poll(failed, make_key(START_MS, 1))
        twin.fail(failed)
        since_s, stored = twin.now_ms // 1000 - 10, {}
        for number in range(CLAIMS_MAX + 1):
            to, state = (THERE, KEPT) if number == CLAIMS_MAX else (EVERYWHERE, USED)
            serial, one = twin.now_ms - 2_000 + number, ticket_id(number)
            twin.ledgers.moving_turns.leaving[one, to] = serial, row_of(since_s, 0, state)
            stored[one + to.encode()] = msgpack.encode((serial, since_s, 0, state))
        client.hset(f"{twin.place}:leaving", mapping=stored)
        for up in twin.report():
            assert up.moves
            assert up.moves.turns
            assert len(up.moves.turns.rows) == CLAIMS_MAX
            assert THERE in {to for _, to, *_ in up.moves.turns.rows}
        assert twin.found == []
    finally:
        server.kill()
