"""A turn that is kept when the origin fails: given once, within the limits, only to whose session's
time was over, and never more than its bounds in an hour, whatever is asked and in both ledgers.
"""

from collections.abc import Callable

import pytest
from admission_world import START_MS, HandClock, small_room, ticket_id
from hypothesis import given
from hypothesis import strategies as st
from redis_twin import HERE, Twin
from redis_world import RedisServer, broken_library

from greenroom.admission.ledger import failures
from greenroom.admission.ledger.failures import (
    FAILING,
    KEPT,
    STILL_MS,
    TURN_KEPT_MS,
    USED,
    WINDOW_MS,
    Failures,
)
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.messages.moves import MovesUp
from greenroom.admission.messages.sync import SyncUp
from greenroom.admission.messages.turns import TurnsUp
from greenroom.admission.records import remember
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.visit import Outcome, Standing, make_key

VISITORS = 4
ADMITTED, ACTIVE = Standing.ADMITTED, Standing.ACTIVE
WAITING, GONE = Standing.WAITING, Standing.GONE
MINUTE_MS = 60_000
STEPS = st.lists(
    st.tuples(
        st.sampled_from((0, 1, 900, 10_000, 10_000, 59_000, 61_000, 400_000, 899_000, 901_000)),
        st.sampled_from(
            ("fail", "fail", "reenter", "reenter", "view", "come", "leave", "move", "end all",
             "restart")
        ),
        st.integers(0, VISITORS - 1),
    ),
    max_size=60,
)  # fmt: skip


class Pages:
    """The journal of a room, in memory."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    def append(self, records: bytes) -> None:
        self.payloads.append(records)


class Visitors:
    """A few visitors of a room, who keep all of their old tickets; and what each was given."""

    def __init__(self, **changes: object) -> None:
        self.room = small_room(
            **{"total_active_users": 2, "new_users_per_minute": 3, "session_duration": 5} | changes
        )
        self.clock, self.pages = HandClock(START_MS), Pages()
        self.ledger = MemoryLedger(self.room, self.clock, lambda _: 0, self.pages)
        self.ids = {number: ticket_id(number) for number in range(VISITORS)}
        self.keys = {number: make_key(START_MS, number) for number in range(VISITORS)}
        self.spare = VISITORS
        self.entered: list[int] = []
        """When a visitor was admitted."""
        self.failed: dict[bytes, int] = {}
        """The newest failure of a living session."""
        self.ended: dict[bytes, int] = {}
        """When the session's time is over, as was said last."""
        self.lost: set[bytes] = set()
        """Ended before their time."""
        self.given: dict[bytes, list[int]] = {}
        """When a kept turn was taken."""

    def do(self, what: str, number: int) -> Outcome:
        found: list[Outcome] = []
        one, key, now_ms = self.ids[number], self.keys[number], self.clock.now_ms()
        ledger, held = self.ledger, one in self.ledger.ledger.line.slots
        if what == "fail":
            ledger.fail(one, found.append)
            if found[0].standing is ACTIVE:
                self.failed[one] = now_ms
        elif what == "reenter":
            ledger.reenter(one, key, found.append)
            if found[0].standing in (WAITING, ADMITTED) and not held:
                self._given(one, now_ms)
        elif what == "view":
            ledger.view(one, found.append)
        elif what == "come":
            ledger.poll(one, key, found.append)
        elif what == "leave":
            ledger.leave(one, 0, found.append)
            if found[0].standing is ACTIVE:
                self.lost.add(one)
        elif what == "move":
            new = ticket_id(self.spare)
            self.spare += 1
            ledger.move(one, new, False, found.append)
            if found[0].standing in (ACTIVE, WAITING):
                if found[0].standing is WAITING and not held:  # the other device waits by it
                    self._given(one, now_ms)
                self.lost.add(one)
                self.ids[number] = new
                for facts in (self.failed, self.ended, self.given):
                    if one in facts:
                        facts[new] = facts[one]  # type: ignore[index]
        elif what == "end all":
            self.lost |= set(ledger.ledger.sessions.inside)
            self.lost |= set(ledger.ledger.failures.rows)
            self.room = small_room(
                total_active_users=2, new_users_per_minute=3, session_duration=5,
                disable_session_renewal=self.room.disable_session_renewal,
                sessions_ended_ms=now_ms,
            )  # fmt: skip
            ledger.configure(self.room)
        elif what == "restart":
            self.ledger = MemoryLedger.restore(
                self.room, self.clock, lambda _: 0, self.pages, remember(self.pages.payloads)
            )
        outcome = found[0] if found else Outcome(GONE)
        if outcome.standing is ADMITTED:
            self.entered.append(now_ms)
        if outcome.standing in (ADMITTED, ACTIVE) and outcome.expires_ms:
            self.ended[self.ids[number]] = outcome.expires_ms
        return outcome

    def _given(self, one: bytes, now_ms: int) -> None:
        ended_ms, failed_ms = self.ended[one], self.failed[one]
        assert one not in self.lost, "the session was ended before its time"
        assert now_ms >= ended_ms
        assert ended_ms <= failed_ms + TURN_KEPT_MS + 1_000, "too long after the failure"
        assert now_ms <= ended_ms + TURN_KEPT_MS + 1_000, "too late"
        before = self.given.get(one, [])
        assert not [at_ms for at_ms in before if now_ms - at_ms < WINDOW_MS - 2 * TURN_KEPT_MS], (
            "twice"
        )
        self.given[one] = [*before, now_ms]

    def check(self) -> None:
        now_ms, ledger = self.clock.now_ms(), self.ledger.ledger
        assert self.ledger.problems() == []
        assert len(ledger.sessions.inside) <= 2
        assert len([at_ms for at_ms in self.entered if now_ms - at_ms < MINUTE_MS]) <= 3
        assert ledger.memory(now_ms).failures == ledger.failures.rows
        replayed = remember(self.pages.payloads).failures
        assert {
            one: row for one, row in ledger.failures.rows.items() if row & 3 == failures.KEPT
        } == {
            one: row
            for one, row in replayed.items()
            if row & 3 == failures.KEPT and one in ledger.failures.rows
        }


def lived(steps: list[tuple[int, str, int]], fixed: bool) -> Visitors:
    visitors = Visitors(disable_session_renewal=fixed)
    for pause_ms, what, number in steps:
        visitors.clock.ms += pause_ms
        visitors.ledger.tick()
        visitors.do(what, number)
        visitors.check()
    return visitors


@given(steps=STEPS, fixed=st.booleans())
def test_a_turn_is_given_once_to_whose_time_was_over_and_within_the_limits(
    steps: list[tuple[int, str, int]], fixed: bool
) -> None:
    lived([(0, "come", 0), (0, "come", 1), *steps], fixed)


OUTAGE = [(10_000, "fail", 0)] * 3 + [(400_000, "view", 1)]
"""The origin fails visitor 0, whose session of five minutes then ends."""


def test_a_failed_visitor_is_in_again_before_those_who_wait() -> None:
    site = Visitors()
    for number in range(VISITORS):
        site.do("come", number)
    site.clock.ms += 10_000
    assert site.do("fail", 0).kept_ms == TURN_KEPT_MS
    for _ in range(30):  # the others wait
        site.clock.ms += 20_000
        site.ledger.tick()
        for number in (2, 3):
            site.do("come", number)
    assert site.do("view", 0).kept_ms
    late = [ticket_id(50), ticket_id(51)]
    for one in late:
        site.ledger.poll(one, make_key(site.clock.now_ms(), 1), lambda _: None)
    outcome = site.do("reenter", 0)
    assert outcome.standing in (ADMITTED, WAITING)
    if outcome.standing is WAITING:
        assert outcome.position == 1, "at the head of the line"
    site.check()


def test_the_second_session_keeps_no_turn_within_the_hour() -> None:
    site = Visitors()
    site.do("come", 0)
    given = 0
    for _ in range(12):  # two hours
        for _ in range(3):
            site.clock.ms += 10_000
            site.do("fail", 0)
        site.clock.ms += 570_000
        site.ledger.tick()
        given += site.do("reenter", 0).standing is ADMITTED
    assert given == 1, "the ticket of a session whose turn was used is over"


@pytest.mark.parametrize("how", ["leave", "move", "end all"])
def test_who_goes_before_the_time_keeps_no_turn(how: str) -> None:
    site = Visitors()
    site.do("come", 0)
    old, key = site.ids[0], site.keys[0]
    site.do("fail", 0)
    site.do(how, 0)
    site.clock.ms += 2_000
    if how == "move":
        site.do("leave", 0)
    for _ in range(30):
        site.clock.ms += 61_000
        site.ledger.tick()
        found: list[Outcome] = []
        site.ledger.view(old, found.append)
        site.ledger.reenter(old, key, found.append)
        assert found == [Outcome(GONE), Outcome(GONE)]


def test_the_clock_stands_still_for_half_an_hour_in_an_hour() -> None:
    site = Visitors(disable_session_renewal=True)
    ends_ms = site.do("come", 0).expires_ms
    began_ms = site.clock.now_ms()
    while (outcome := site.do("fail", 0)).standing is ACTIVE:
        site.clock.ms += 10_000
        ends_ms = outcome.expires_ms
    lasted_ms = ends_ms - began_ms
    assert STILL_MS <= lasted_ms - site.room.session_ms <= STILL_MS + 1_000


def test_a_hundred_failures_in_a_second_are_written_once() -> None:
    site = Visitors()
    site.do("come", 0)
    written = len(site.pages.payloads)
    for _ in range(100):
        site.do("fail", 0)
    assert len(site.pages.payloads) == written + 1


def test_failures_far_apart_do_not_stop_the_clock() -> None:
    site = Visitors(disable_session_renewal=True)
    ends_ms = site.do("come", 0).expires_ms
    site.do("fail", 0)
    site.clock.ms += 61_000
    assert site.do("fail", 0).expires_ms == ends_ms
    site.clock.ms += 59_000
    assert site.do("fail", 0).expires_ms == ends_ms + 59_000


def test_a_lost_answer_costs_nothing() -> None:
    """The place is taken, and the old ticket comes again."""
    site = Visitors(total_active_users=1)
    site.do("come", 0)
    site.do("fail", 0)
    site.clock.ms += 310_000
    site.ledger.tick()
    assert site.do("come", 1).standing is ADMITTED
    assert site.do("reenter", 0).standing is WAITING
    assert site.do("view", 0).kept_ms
    assert site.do("reenter", 0).position == 1
    site.clock.ms += 1_000
    site.do("leave", 1)
    again = site.do("reenter", 0)
    assert again.standing is ADMITTED
    assert again.kept_ms, "a class of its own"
    assert site.do("view", 0).standing is ACTIVE


def test_nothing_is_remembered_longer_than_its_window() -> None:
    site = Visitors()
    for number in range(2):
        site.do("come", number)
        site.do("fail", number)
    assert len(site.ledger.ledger.failures.rows) == 2
    for _ in range(2):
        site.clock.ms += WINDOW_MS // 2 + 1_000
        site.ledger.tick()
    assert not site.ledger.ledger.failures.rows


# -- laws that are broken on purpose ---------------------------------------------------------------


def broken_take(self: Failures, one: bytes, now_ms: int) -> bool:
    return self.is_kept(one, now_ms)


def broken_end(self: Failures, one: bytes, ended_ms: int) -> list[bytes]:
    """However long after the failure."""
    if row := self.rows.get(one, 0):
        since_s = row >> failures.SINCE_BITS
        until_s = min(4_000, (ended_ms + TURN_KEPT_MS) // 1000 - since_s)
        self.rows[one] = failures.row_of(since_s, until_s, failures.KEPT)
    return []


STORIES = [
    [(0, "come", 0), *OUTAGE, (0, "reenter", 0), (400_000, "view", 0), (0, "reenter", 0)],
    [(0, "come", 0), (0, "fail", 0), (310_000, "come", 1), (0, "come", 2), (0, "reenter", 0),
     (0, "leave", 0), (0, "reenter", 0)],
    [(0, "come", 0), (0, "fail", 0), *[(200_000, "view", 0)] * 7, (400_000, "reenter", 0)],
    [(0, "come", 0), (0, "fail", 0), (0, "end all", 0), (400_000, "reenter", 0)],
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "broken"), [("take", broken_take), ("end", broken_end), ("is_kept", lambda *_: True)]
)
def test_a_broken_law_is_found(
    monkeypatch: pytest.MonkeyPatch, name: str, broken: Callable[..., object]
) -> None:
    for story in STORIES:
        lived(story, False)
    monkeypatch.setattr(Failures, name, broken)
    with pytest.raises((AssertionError, KeyError)):
        for story in STORIES:
            lived(story, False)


# -- Redis -----------------------------------------------------------------------------------------


def outages(server: RedisServer, fixed: bool) -> list[str]:
    """Visitors whom the origin fails, who come again, leave, move and are sent out."""
    room = small_room(
        total_active_users=2, new_users_per_minute=6, session_duration=1,
        disable_session_renewal=fixed,
    )  # fmt: skip
    twin = Twin(server.client(), room, 1)
    twin.sync()
    people = {number: ticket_id(number) for number in range(4)}
    keys = {number: make_key(START_MS, number) for number in people}
    spare = 10
    for step in range(240):
        number = step % 4
        one, key = people[number], keys[number]
        twin.advance((300, 1_000, 9_000, 30_000)[step // 4 % 4] if step % 60 else 880_000)
        twin.poll(one, key)
        twin.fail(one)
        if step % 11 < 3:
            twin.advance(62_000)
        found = twin.view(one)
        if found.kept_ms and step % 3 == 0:  # the turn moves
            twin.move(one, ticket_id(spare), False)
            people[number], spare = ticket_id(spare), spare + 1
            twin.reenter(one, key)
            twin.poll(people[number], key)
        elif found.standing is GONE and (found.kept_ms or step % 5 == 0):
            twin.reenter(one, key)
            twin.reenter(one, key)
        if step % 17 == 16:
            twin.leave(one)
            twin.reenter(one, key)
        if step % 13 == 12 and twin.move(one, ticket_id(spare), False) is not GONE:
            twin.reenter(one, key)
            people[number], spare = ticket_id(spare), spare + 1
        if step % 23 == 22:
            people[number], keys[number] = ticket_id(spare), make_key(twin.now_ms, number)
            spare += 1
        if step % 97 == 96:
            twin.end_all_sessions(0)
        if step % 71 == 70:
            twin.configure(session_duration=1 + step // 71 % 2)
        twin.sync()
        twin.compare()
        if twin.found:
            return twin.found
    twin.arrive(ticket_id(1_000))
    for _ in range(42):  # longer than the clock stands still
        twin.advance(50_000)
        twin.fail(ticket_id(1_000))
    return twin.found


@pytest.mark.parametrize("fixed", [False, True])
def test_redis_keeps_the_same_turns(server: RedisServer, fixed: bool) -> None:
    assert outages(server, fixed) == []


@pytest.mark.parametrize(
    ("whole", "broken"),
    [
        ("failures.write(id, since_s, max(1, floor(now / 1000) - since_s), TURN_USED)", ""),
        ("what == TURN_KEPT and floor(now / 1000) < since_s + offset_s", "what == TURN_KEPT"),
        ("or passed_s > FAILURE_STILL_MS / 1000 then return nil", "then return nil"),
        ("call('UNLINK', k.seen, k.unshown, k.failures)", "call('UNLINK', k.seen, k.unshown)"),
        ("    failures.drop(id)\n    free(1)", "    free(1)"),
        ("failures.absorb(new, since_s, offset_s, what)", ""),
        ("if taken then failures.leave(id, '') end", ""),
        ("    failures.use(new)\n", ""),
        ("not failures.is_kept(old) and (age or", "(age or"),
    ],
)  # fmt: skip
def test_a_broken_redis_is_found(server: RedisServer, whole: str, broken: str) -> None:
    client = server.client()
    with broken_library(client, whole, broken):
        assert outages(server, False) or outages(server, True)


THERE = "there"


class TwoDataCenters:
    """This one, in both ledgers, and another that says what a story wants."""

    def __init__(self, server: RedisServer, fixed: bool) -> None:
        room = small_room(
            total_active_users=4, new_users_per_minute=60, session_duration=1,
            disable_session_renewal=fixed,
        )  # fmt: skip
        self.twin = Twin(server.client(), room, 3, (HERE, THERE))
        self.ids: dict[int, bytes] = {}
        self.given = 0

    def there(self, turns: TurnsUp, *, claims: bool = False, gifts: tuple[bytes, ...] = ()) -> None:
        """The other data center reports, and both hear the coordinator."""
        self.given += len(gifts)
        self.twin._reports_there += 1
        moves = MovesUp(
            self.given,
            tuple([(one, HERE, 1_000) for one in gifts]),
            self.twin.arrived_there,
            tuple([(one, HERE, 1_000) for one in self.ids.values()] if claims else ()),
            turns=turns,
        )
        self.twin.hear_from_there(
            SyncUp(
                THERE, 1, self.twin._reports_there, self.twin.now_ms, 0, 0, 0, 0, 0, 0, 0, (), 0, 0, 0, (),
                0.0, moves=moves,
            )
        )  # fmt: skip
        self.twin.sync()
        self.twin.compare()


def moving_turns(server: RedisServer, fixed: bool) -> list[str]:
    """Visitors whom the origin fails here and there, and who come where their turn is not kept."""
    both = TwoDataCenters(server, fixed)
    twin, ids, there = both.twin, both.ids, both.there

    def row(one: bytes, state: int, serial: int, to: str = HERE, end_s: int = 900) -> TurnsUp:
        return TurnsUp(True, ((one, to, serial, 1_000, end_s, state),))

    ids.update({number: ticket_id(number) for number in range(4)})
    keys = {number: make_key(START_MS, number) for number in ids}
    there(TurnsUp(True))
    renewed = {}
    for number, one in ids.items():
        twin.poll(one, keys[number])
        twin.poll(one, keys[number])
        twin.advance(1_500)
        renewed[number] = twin.fail(one).renewed_ms
        there(TurnsUp(True))
    there(TurnsUp(), claims=True)  # living sessions go with their rows
    there(TurnsUp(), claims=True)
    for number in (0, 1):  # and come back
        there(row(ids[number], (FAILING, USED)[number], 7 + number), gifts=(ids[number],))
        twin.view(ids[number])
        twin.fail(ids[number])
    twin.advance(70_000)
    there(TurnsUp(True))
    for number, one in ids.items():
        twin.view(one)
        twin.reenter(one, keys[number])
        twin.visit(one, keys[number], THERE, renewed[number])  # its turn is sought
    there(row(ids[2], KEPT, 20))
    for _ in range(3):  # the same once more, also after it was taken
        twin.visit(ids[2], keys[2], THERE, renewed[2])
        twin.reenter(ids[2], keys[2])
        there(row(ids[2], KEPT, 20))
        twin.advance(4_000)
    there(TurnsUp(True, seeks=((ids[3], 0), (ids[2], 10), (ids[0], 60_000))))
    twin.visit(ids[3], keys[3], THERE, renewed[3])
    there(row(ids[3], KEPT, 22))
    there(TurnsUp(True, seeks=((ids[3], 9_000),)))  # it asked here last
    twin.law(twin.view(ids[3]).kept_ms > 0, "a turn went to where its visitor is not")
    twin.advance(1_000)
    there(TurnsUp(True, seeks=((ids[3], 0),)))
    there(row(ids[3], KEPT, 22))  # a message that comes late
    there(TurnsUp(True))
    twin.visit(ids[3], keys[3], HERE, renewed[3])
    up = twin.report()[0].moves
    rows = up.turns.rows if up and up.turns else ()
    there(TurnsUp(False, got=tuple([(one, HERE, serial) for one, _, serial, *_ in rows])))
    there(TurnsUp(False))
    ids[4], keys[4] = ticket_id(4), make_key(START_MS, 4)
    twin.poll(ids[4], keys[4])
    there(TurnsUp(True), claims=True)  # it goes, re-enters there, and comes back waiting
    there(row(ids[4], USED, 30))
    twin.poll(ids[4], keys[4])
    twin.move(ids[2], ticket_id(40), True)
    for number, one in ids.items():
        twin.poll(one, keys[number])
        twin.advance(20_000)
        twin.visit(one, keys[number], THERE, twin.now_ms - 61_500, twin.now_ms - 50_000)
        there(TurnsUp(True))
    twin.advance(WINDOW_MS)
    return twin.found


def permits_instead_of_sessions(server: RedisServer, fixed: bool) -> list[str]:
    """Whom the origin never failed has a row then, but no turn."""
    both = TwoDataCenters(server, fixed)
    twin, there = both.twin, both.there
    for _ in range(3):  # until there are permits here
        there(TurnsUp(True))
        twin.advance(1_000)
    one, key, came_ms = ticket_id(1), make_key(START_MS, 1), twin.now_ms
    twin.visit(one, key, THERE, came_ms)
    twin.advance(5_000)  # cut off
    spent = twin.visit(one, key, THERE, came_ms)
    twin.law(spent.standing is ADMITTED, "no permit for a session that cannot be reached")
    twin.advance(2_000)
    twin.fail(one)
    both.ids[1] = one
    there(TurnsUp(True), claims=True)
    there(TurnsUp(True), claims=True)
    twin.law(twin.poll(one, key).standing is GONE, "a second place of one ticket")
    other, key = ticket_id(2), make_key(START_MS, 2)
    for serial, age_ms in ((40, 9_000), (41, 1_000)):  # two permits are no turn either
        there(TurnsUp(True, ((other, HERE, serial, age_ms, 0, USED),)))
    for _ in range(2):
        told = twin.poll(other, key)
        twin.law(told.kept_ms == 0, "a turn of whom the origin never failed")
        twin.advance(1_000)
        there(TurnsUp(True))
    return twin.found


def sought_while_the_coordinator_is_away(server: RedisServer, fixed: bool) -> list[str]:
    """For six seconds: a turn that is sought already is sought on."""
    both = TwoDataCenters(server, fixed)
    twin, there, one, key = both.twin, both.there, ticket_id(1), make_key(START_MS, 1)
    over_ms = twin.now_ms - 70_000
    there(TurnsUp(True))
    for _ in range(6):
        twin.law(twin.visit(one, key, THERE, over_ms).searching, "a search ends behind a cut")
        twin.advance(1_000)
    late = twin.visit(ticket_id(2), key, THERE, over_ms)
    twin.law(late.standing is GONE, f"a search begins behind a cut: {late}")
    there(TurnsUp(True, ((one, HERE, 7, 80_000, 900, KEPT),)))
    twin.law(twin.visit(one, key, THERE, over_ms).kept_ms > 0, "the turn that was sought is lost")
    return twin.found


@pytest.mark.parametrize("fixed", [False, True])
def test_redis_moves_the_same_turns(server: RedisServer, fixed: bool) -> None:
    assert moving_turns(server, fixed) == []
    assert sought_while_the_coordinator_is_away(server, fixed) == []
    assert permits_instead_of_sessions(server, fixed) == []


@pytest.mark.parametrize(
    ("whole", "broken"),
    [
        ("if not raw or serial > cmsgpack.unpack(raw)[1] then", "if true then"),
        ("    failures.drop(id)\n    call('ZADD', k.turns_left", "    call('ZADD', k.turns_left"),
        ("if now - age_ms > (raw and cmsgpack.unpack(raw)[2] or 0) and", "if"),
        ("    call('RPUSH', k.gifts, cmsgpack.pack({id, to, renewed_ms}))\n    failures.leave(id, to)", "    call('RPUSH', k.gifts, cmsgpack.pack({id, to, renewed_ms}))"),
        ("if taken then failures.leave(id, '') end", ""),
        ("failures.is_taken(id) then failures.revive(id) end", "failures.is_taken(id) then end"),
        ("  if what ~= TURN_USED or offset_s > 0 then failures.revive(id) end", "  failures.revive(id)"),
        ("TURN_USED and offset_s > 0 and", "TURN_USED and"),
        ("(connected() or call('HEXISTS', k.seeks, id) == 1)", "connected()"),
        ("  if what == TURN_USED and offset_s == 0 then return nil end -- ", "  -- "),
        ("(what ~= TURN_USED or taken) and min(OFFSET_MOST_S, end_s - since_s) or 0", "min(OFFSET_MOST_S, end_s - since_s)"),
    ],
)  # fmt: skip
def test_a_redis_that_moves_turns_badly_is_found(
    server: RedisServer, whole: str, broken: str
) -> None:
    client = server.client()
    with broken_library(client, whole, broken):
        stories = (moving_turns, permits_instead_of_sessions, sought_while_the_coordinator_is_away)
        assert any(story(server, fixed) for story in stories for fixed in (False, True))


def test_a_ledger_is_what_it_was_without_failures() -> None:
    ledger = Ledger(small_room(), "here", 1, START_MS)
    assert not ledger.failures.rows
    ledger.arrive(ticket_id(1), START_MS, 0)
    assert ledger.view(ticket_id(1), START_MS + 10**7) is ledger.view(ticket_id(2), START_MS)
