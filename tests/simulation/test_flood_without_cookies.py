"""A flood of requests that keep no cookies and cannot wait: it fills no more than a quarter of a room, and no visitor waits for it."""

import pytest
from admission_world import HandClock, bits, small_room, ticket_id

from greenroom.model.visit import Outcome, Standing, make_key
from greenroom.stores.memory import MemoryLedger

FLOOD_PER_S = 10_000
STEP_MS = 20
SECONDS = 90


@pytest.mark.parametrize(("active", "per_minute"), [(200, 200), (40, 600), (4, 4), (1, 1)])
def test_a_flood_takes_a_quarter_at_most_and_an_honest_visitor_waits_ten_seconds_at_most(active: int, per_minute: int) -> None:
    clock = HandClock()
    ledger = MemoryLedger(small_room(total_active_users=active, new_users_per_minute=per_minute, session_duration=5), clock, bits(1))
    begun_ms, number, passed, most = clock.ms, 0, [], 0
    waits: list[int] = []
    honest: tuple[bytes, int, int] | None = None  # id, key, when it came
    due_ms = 0
    while clock.ms < begun_ms + SECONDS * 1000:
        for _ in range(FLOOD_PER_S * STEP_MS // 1000):
            number += 1
            found: list[Outcome] = []
            ledger.arrive_provisionally(ticket_id(number), 0, found.append)
            if found[0].standing is Standing.ADMITTED:
                passed.append(clock.ms)
        most = max(most, sum(1 for at_ms in passed if at_ms > clock.ms - 10_000))
        if honest is None and not waits and clock.ms > begun_ms + 20_000:  # the flood has all that it can have
            number += 1
            honest, due_ms = (ticket_id(number), make_key(clock.ms, number), clock.ms), clock.ms
        if honest is not None and clock.ms >= due_ms:
            one, key, came_ms = honest
            answers: list[Outcome] = []
            if due_ms == came_ms:
                ledger.arrive(one, key, answers.append)
            else:
                ledger.poll(one, key, answers.append)
            if answers[0].standing is Standing.ADMITTED:
                waits.append(clock.ms - came_ms)
                honest = None
            else:
                due_ms = clock.ms + max(500, answers[0].refresh_ms)
        clock.ms += STEP_MS
        ledger.tick()
        assert ledger.problems() == []
    per_60_s = max(sum(1 for at_ms in passed if start <= at_ms < start + 60_000) for start in passed)
    assert passed, "with room to spare requests pass"
    assert most <= max(1, active // 4)
    assert per_60_s <= max(1, per_minute // 4)
    if (active, per_minute) != (1, 1):
        assert waits, "the honest visitor is let in"
        assert waits[0] <= 10_000
