"""A flood of requests that cannot wait, or a crowd in one moment, at a ledger in memory and at the
same one in Redis, in virtual time.
"""

import msgspec
import redis
from admission_world import START_MS, small_room, ticket_id
from redis_twin import Twin

from greenroom.admission.pacing import SAVED_VISITORS
from greenroom.model.visit import Standing, make_key


def flooded_provisionally(
    server: redis.Redis, active: int, per_minute: int, per_s: int, seconds: int = 16
) -> tuple[list[str], int, int]:
    """Requests that cannot wait, from an empty room on, and a visitor in the middle: what differed,
    how many passed, and how long the wait was.
    """
    twin = Twin(
        server,
        small_room(total_active_users=active, new_users_per_minute=per_minute, session_duration=5),
        active,
    )
    passed, number, step_ms = 0, 0, 20
    visitor, key, due_ms, wait_ms = ticket_id(1 << 40), 0, START_MS + 5_000, -1
    for step in range(seconds * 1000 // step_ms):
        twin.advance(step_ms)
        if step % 12 == 0:
            twin.sync()
            twin.compare()
        ids = [ticket_id(number + one) for one in range(per_s * step_ms // 1000)]
        number += len(ids)
        passed += twin.arrive_provisionally_together(ids)
        if wait_ms < 0 and twin.now_ms >= due_ms:
            outcome = twin.poll(visitor, key) if key else twin.arrive(visitor)
            key = key or make_key(twin.now_ms, 1)
            due_ms = twin.now_ms + max(500, outcome.refresh_ms)
            if outcome.standing is Standing.ADMITTED:
                wait_ms = twin.now_ms - START_MS - 5_000
        if twin.found:
            break
    twin.law(wait_ms >= 0, "the visitor is still waiting")
    return twin.found, passed, wait_ms


def crowded_at_once(server: redis.Redis, gap_us: int) -> list[str]:
    """Requests that cannot wait, twelve visitors and such requests again in one moment, in an empty
    room for 200; and three seconds later.
    """
    twin = Twin(server, small_room(total_active_users=200, new_users_per_minute=200), 1)
    visitors = max(SAVED_VISITORS, 1_000_000 // gap_us)
    twin.sync()
    for number in (1_000, 2_000):
        twin.sync()
        twin.apply(msgspec.structs.replace(twin.answered(twin.report()), gap_us=gap_us))
        passed = twin.arrive_provisionally_together([ticket_id(number + one) for one in range(30)])
        let_in = [twin.arrive(ticket_id(number + 100 + one)).standing for one in range(12)].count(
            Standing.ADMITTED
        )
        passed += twin.arrive_provisionally_together(
            [ticket_id(number + one) for one in range(30, 60)]
        )
        twin.law(
            passed == (50 if number == 1_000 else 0),
            f"{passed} of 60 requests that cannot wait passed",
        )
        twin.law(let_in == visitors, f"{let_in} of 12 visitors were let in, not {visitors}")
        twin.compare()
        twin.advance(3_000)
    return twin.found


def crowd_in_line(server: redis.Redis) -> list[str]:
    """250 visitors in one moment, in an empty room for 600 in two data centers: some have a permit
    that the pace holds back, some none.
    """
    twin = Twin(
        server, small_room(total_active_users=600, new_users_per_minute=1_200), 1, ("here", "there")
    )
    twin.hear_from_there_alive(False)
    twin.sync()
    twin.apply(msgspec.structs.replace(twin.answered(twin.report()), granted=120, gap_us=50_000))
    told = [
        twin.poll(ticket_id(number), make_key(twin.now_ms, number)).estimate
        for number in range(250)
    ]
    waits = [
        estimate.p50_s for estimate in told if estimate and estimate.p50_s > 2.6
    ]  # what is less is the time until the next try
    twin.law(
        len(waits) >= 10 and waits == sorted(waits),
        f"the pace is not in what they are told: {waits}",
    )
    return twin.found
