"""More time for sessions that requests do not renew: never more than the room grants, to nobody
else, and the same after a restart, on another device and in Redis.
"""

import pytest
from admission_world import START_MS, HandClock, small_room, ticket_id
from hypothesis import given
from hypothesis import strategies as st
from redis_twin import Twin
from redis_world import RedisServer, broken_library

from greenroom.admission.records import LedgerMemory, remember
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.room import Room
from greenroom.model.visit import Outcome, Standing, make_key

LIFE_MS = 300_000
PRESSES = st.lists(
    st.tuples(
        st.integers(0, LIFE_MS * 5 // 4), st.sampled_from(("press", "view", "move", "restart"))
    ),
    max_size=30,
)


def fixed_room(**changes: object) -> Room:
    given = {"total_active_users": 3, "disable_session_renewal": True, "session_duration": 5}
    return small_room(**given | changes)


class Pages:
    """The journal of a room, in memory."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    def append(self, records: bytes) -> None:
        self.payloads.append(records)


class Visit:
    """One visitor inside, among others, in a room of one process."""

    def __init__(self, times: int, **changes: object) -> None:
        self.times, self.room = times, fixed_room(**changes)
        self.clock, self.pages, self.id = HandClock(START_MS), Pages(), ticket_id(1)
        self.ledger = MemoryLedger(self.room, self.clock, lambda _: 0, self.pages)
        self.other = ticket_id(99)
        for one in (self.id, self.other):
            assert self.ledger.arrive_now(one, self.clock.now_ms()).standing is Standing.ADMITTED
        self.began_ms, self.moves = self.clock.now_ms(), 1

    def does(self, what: str) -> Outcome:
        found: list[Outcome] = []
        if what == "press":
            self.ledger.extend(self.id, self.times, found.append)
        elif what == "move":
            self.moves += 1
            self.ledger.move(self.id, ticket_id(self.moves), False, lambda _: None)
            self.id = ticket_id(self.moves)
        elif what == "restart":
            self.ledger = MemoryLedger.restore(
                self.room, self.clock, lambda _: 0, self.pages, remember(self.pages.payloads)
            )
        if not found:
            found.append(self.ledger.view_now(self.id, self.clock.now_ms()))
        return found[0]


@given(presses=PRESSES, times=st.integers(0, 12))
def test_no_row_of_presses_lasts_longer_than_the_room_grants(
    presses: list[tuple[int, str]], times: int
) -> None:
    visit, ends_ms = Visit(times), START_MS + LIFE_MS
    last_ms = visit.began_ms + (1 + times) * LIFE_MS
    for pause_ms, what in presses:
        visit.clock.ms += pause_ms
        now_ms, outcome = visit.clock.now_ms(), visit.does(what)
        alive = now_ms < ends_ms
        assert (outcome.standing is Standing.ACTIVE) is alive
        if alive:
            before_ms, ends_ms = ends_ms, outcome.expires_ms
            wanted_ms = min(now_ms + LIFE_MS, last_ms)
            counts = what == "press" and now_ms - (before_ms - LIFE_MS) > visit.room.renewal_age_ms
            assert ends_ms == (max(before_ms, wanted_ms) if counts else before_ms)
    assert visit.ledger.problems() == []
    assert visit.ledger.view_now(visit.other, max(visit.clock.ms, START_MS + LIFE_MS)).standing is (
        Standing.GONE
    ), "nobody else has more time"


def test_ten_presses_at_the_last_moment_add_ten_sessions() -> None:
    visit = Visit(10)
    for _ in range(10):
        visit.clock.ms += LIFE_MS - 1
        written = len(visit.pages.payloads)
        for _ in range(5):  # of several presses at once one is written down
            visit.does("press")
        assert len(visit.pages.payloads) == written + 1
    assert visit.does("view").expires_ms == START_MS + 11 * LIFE_MS - 10
    visit.clock.ms += LIFE_MS - 1
    assert visit.does("press").expires_ms == START_MS + 11 * LIFE_MS
    visit.clock.ms += 11
    assert visit.does("press").standing is Standing.GONE


def test_the_unit_stays_taken_as_long_as_the_session() -> None:
    visit = Visit(2, total_active_users=2)
    visit.clock.ms += LIFE_MS - 1_000
    visit.does("press")
    visit.clock.ms += 2_000  # the other one is over
    visit.ledger.tick()
    assert visit.ledger.gauges().active == 1
    arrived = [
        visit.ledger.arrive_now(ticket_id(50 + more), visit.clock.now_ms()).standing
        for more in range(3)
    ]
    assert arrived == [Standing.ADMITTED, Standing.WAITING, Standing.WAITING]
    assert visit.ledger.problems() == []


def test_a_session_that_requests_renew_is_renewed() -> None:
    renewing = Visit(1, disable_session_renewal=False)
    for _ in range(30):
        renewing.clock.ms += LIFE_MS - 1
        assert renewing.does("press").standing is Standing.ACTIVE


def test_what_was_granted_is_forgotten_with_the_session() -> None:
    visit = Visit(3)
    visit.clock.ms += LIFE_MS // 2
    visit.does("press")
    assert visit.ledger.ledger.sessions.extended
    visit.ledger.leave(visit.id)
    assert not visit.ledger.ledger.sessions.extended
    memory: LedgerMemory = remember(visit.pages.payloads)
    assert not memory.extended


# -- Redis -----------------------------------------------------------------------------------------


def asking(server: RedisServer) -> list[str]:
    """Two visitors who ask for more time in turn, leave, come again, and move."""
    twin = Twin(server.client(), fixed_room(), 1)
    twin.sync()
    for number in (1, 2):
        twin.arrive(ticket_id(number))
    holder, spare = ticket_id(1), 3
    for step in range(60):
        twin.advance((1_000, 120_000, 290_000)[step % 3])
        twin.extend(holder, 3)
        twin.extend(ticket_id(2), 1)
        if step % 7 == 3:
            twin.move(holder, ticket_id(spare), False)
            holder, spare = ticket_id(spare), spare + 1
        if step % 20 == 19:
            twin.leave(holder)
            twin.advance(400_000)
            twin.poll(holder, make_key(twin.now_ms, 1))
        twin.sync()
        twin.compare()
        if twin.found:
            break
    return twin.found


def test_redis_grants_the_same(server: RedisServer) -> None:
    assert asking(server) == []


@pytest.mark.parametrize(
    ("whole", "broken"),
    [
        ("min(now, since_ms + times * s.life_ms)", "now"),
        ("call('ZADD', k.extended, since_ms, id)", ""),
        ("call('ZADD', k.extended, since_ms, new)", ""),
        ("now - renewed_ms <= s.renewal_age_ms or s.renews", "s.renews"),
        ("if now - renewed_ms <= s.renewal_age_ms or s.renews or", "if false and"),
    ],
)
def test_a_broken_redis_is_found(server: RedisServer, whole: str, broken: str) -> None:
    client = server.client()
    with broken_library(client, whole, broken):
        renews = Twin(client, fixed_room(disable_session_renewal=False), 2)
        renews.sync()
        renews.arrive(ticket_id(1))
        for _ in range(5):
            renews.advance(2_000)
            renews.extend(ticket_id(1), 3)
            renews.compare()
        assert asking(server) or renews.found
