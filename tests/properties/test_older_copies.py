"""A ledger that starts from a copy of before some visitors were answered frees no unit of theirs
too early: in memory and in Redis, from several older copies in a row, and around failures of the
origin.
"""

import itertools
from copy import deepcopy
from random import Random
from typing import Any

import msgspec
import pytest
from admission_world import START_MS, HandClock, answer_of, small_room, ticket_id
from examples import examples
from redis_twin import HERE, Twin
from redis_world import RedisServer, broken_library

from greenroom.admission.laws import coordinator_problems, ledger_problems
from greenroom.admission.lease import Lease
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.provisional import Provisional
from greenroom.admission.ledger.sessions import Sessions
from greenroom.admission.ledger.state import LedgerState
from greenroom.admission.messages.moves import Moves, MovesDown, MovesUp
from greenroom.admission.messages.sync import SyncUp
from greenroom.admission.records import LedgerMemory, stand_ins
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.visit import Outcome, Standing, make_key

GONE, WAITING = Standing.GONE, Standing.WAITING
TOTAL = 3
NEW_ARRIVALS = Moves.new_arrivals
Story = list[tuple[str, int]]
"""(what happens, to whom or for how many ms)."""

RENEWED_SINCE: Story = [
    ("come", 0), ("come", 1), ("come", 2), ("copy", 0), ("pass", 50_000), ("view", 0),
    ("start", 0), *[("pass", 4_000)] * 20,
]  # fmt: skip
OVER_AT_THE_START: Story = [
    ("come", 0), ("copy", 0), ("pass", 50_000), ("view", 0), ("pass", 20_000),
    ("start", 0), *[("pass", 4_000)] * 20,
]  # fmt: skip
FAILED: Story = [("come", 0), ("fail", 0), *RENEWED_SINCE[1:]]
AGAIN: Story = [*FAILED[:-20], ("pass", 20_000), ("come", 3), ("start", 0), *FAILED[-20:]]
"""From the same copy, in the time in which nothing is freed."""
LENGTHENED: Story = [*RENEWED_SINCE[:-20], ("last", 2), *[("pass", 9_000)] * 20]
LENGTHENED_SINCE: Story = [
    *RENEWED_SINCE[:4], ("last", 2), *RENEWED_SINCE[4:-20], *[("pass", 9_000)] * 20,
]  # fmt: skip
SENT_OUT_SINCE: Story = [
    *RENEWED_SINCE[:4], ("pass", 1_000), ("send out", 0), ("start", 0), *[("pass", 9_000)] * 9,
]  # fmt: skip
PASSED: Story = [
    ("come", 0), ("come", 1), ("ask", 2), ("copy", 0), ("pass", 3_001), ("view", 2), ("pass", 3_001),
    ("view", 2), ("start", 0), *[("pass", 4_000)] * 20,
]  # fmt: skip
SETTINGS_SINCE = (LENGTHENED_SINCE, SENT_OUT_SINCE)
STORIES = (RENEWED_SINCE, OVER_AT_THE_START, FAILED, AGAIN, LENGTHENED, PASSED, *SETTINGS_SINCE)


class Copied(Twin):
    """Forecasts and refreshes are not in a copy, so only what visitors are, and units, are compared."""

    def __init__(
        self,
        server: RedisServer,
        fixed: bool,
        seed: int = 1,
        total: int = TOTAL,
        centers: tuple[str, ...] = (HERE,),
        **changes: int,
    ) -> None:
        self.total = total
        room = small_room(total_active_users=total, disable_session_renewal=fixed, **changes)
        self.problems: list[str] = []
        super().__init__(server.client(), room, seed, centers)
        self.server = server.client()
        self.pages: dict[bytes, int] = {}
        """Until when each visitor is active, by the last page."""
        self.copy()
        self.sync()

    def _same(self, what: str, pure: Outcome, stored: Outcome) -> Outcome:
        told = [(one.standing, one.renewed_ms, one.kept_ms > 0) for one in (pure, stored)]
        if told[0] != told[1]:
            self.problems.append(f"{what} differs at {self.now_ms}:\n{pure}\n{stored}")
        return stored

    def copy(self) -> None:
        clock = f"{self.place}:clock".encode()
        keys = [key for key in self.server.keys(f"{self.place}:*") if key != clock]
        self.kept = (
            deepcopy(self.ledgers.memory(self.now_ms)),
            {key: self.server.dump(key) for key in keys},
        )

    def start(self) -> None:
        self.advance(1)
        memory, rows = self.kept
        epoch = max(self.now_ms, self.ledgers.epoch + 1)
        self.ledgers = Ledger(self.room, self.here, epoch, self.now_ms)
        self.ledgers.restore(deepcopy(memory), self.now_ms, older=True)
        for key in self.server.keys(f"{self.place}:*"):
            if not key.endswith(b":clock"):
                self.server.delete(key)
        for key, row in rows.items():
            self.server.restore(key, 0, row)
        self._call("inspect")

    def tell(self, what: str, value: int) -> None:
        one, key = ticket_id(value), make_key(START_MS, value)
        if what == "pass":
            self.advance(value)
        elif what == "last":
            self.configure(session_duration=value, queueing_method="fifo")
        elif what == "send out":
            self.end_all_sessions(0)
            self.pages.clear()
        elif what in ("copy", "start"):
            getattr(self, what)()
        elif what == "leave":
            self.leave(one)
            self.pages.pop(one, None)
        else:
            self._page(one, self._asks(what, one, key))

    def _asks(self, what: str, one: bytes, key: int) -> Outcome:
        if what == "ask":
            return self.arrive_provisionally(one)
        if what == "come":
            return self.poll(one, key)
        found = self.fail(one) if what == "fail" else self.view(one)
        return self.reenter(one, key) if found.standing is GONE and found.kept_ms else found

    def _page(self, one: bytes, found: Outcome) -> None:
        if found.standing is WAITING:
            self.leave(one)
        elif found.standing is not GONE:
            until_ms = found.expires_ms if self.fixed else self.now_ms + self.room.session_ms
            self.pages[one] = max(until_ms, self.pages.get(one, 0))

    def check(self) -> list[str]:
        self.sync()
        active = sum(until_ms > self.now_ms for until_ms in self.pages.values())
        lease, state = self.ledgers.lease, msgspec.msgpack.decode(self._call("inspect"))
        free = [
            lease.permits + lease.freed + self.coordinators[0].pool,
            state["permits"] + state["freed"] + self.coordinators[1].pool,
        ]
        self.problems += [
            f"{active} active and {one} to give in {where} at {self.now_ms - START_MS}"
            for one, where in zip(free, ("memory", "Redis"), strict=True)
            if active + max(0, one) > self.total
        ]
        units = [
            (lease.permits, lease.freed, lease.closing, len(self.ledgers.sessions.inside)),
            (state["permits"], state["freed"], state["closing"], state["inside"]),
        ]
        if units[0] != units[1]:
            self.problems.append(f"units differ at {self.now_ms}: {units}")
        self.problems += ledger_problems(self.ledgers)
        self.problems += [one for c in self.coordinators for one in coordinator_problems(c)]
        return self.problems


def told(server: RedisServer, fixed: bool, story: Story, seed: int = 1) -> list[str]:
    site = Copied(server, fixed, seed)
    for what, value in story:
        site.tell(what, value)
        if problems := site.check():
            return problems
    return []


def random_story(seed: int) -> Story:
    draw, visitors, story = Random(seed), 0, []
    for _ in range(150):
        what = draw.choice(
            ("come", "view", "view", "fail", "leave", *["pass"] * 4, "copy", "start")
        )
        if what == "come":
            visitors += 1
        value = draw.randrange(max(0, visitors - 5), visitors + 1)
        if what == "pass":
            value = draw.choice((100, 900, 5_001, 20_000, 58_000))
        story.append((what, value))
    return story


@pytest.mark.parametrize("fixed", [False, True])
def test_no_unit_is_free_before_its_visitor_has_gone(server: RedisServer, fixed: bool) -> None:
    for story in STORIES:
        assert told(server, fixed, story) == []


@pytest.mark.parametrize("fixed", [False, True])
def test_random_stories_of_older_copies(server: RedisServer, fixed: bool) -> None:
    for seed in range(examples(10)):
        assert told(server, fixed, random_story(seed), seed) == [], seed


def kept_of_requests_that_cannot_wait(server: RedisServer) -> int:
    """Units, in the time in which nothing of before the start is freed."""
    kept = 0
    for fixed in (False, True):
        site = Copied(server, fixed, total=40, new_users_per_minute=12, session_duration=5)
        site.start()
        for number in range(0, 60, 6):
            site.advance(20_001)
            site.apply(site.answered(site.report(want=3)))
            for one, wait_ms in enumerate((0, 0, 0, 9_999, 1, 300)):
                site.advance(wait_ms)
                site.arrive_provisionally(ticket_id(50 + number + one))
            site.advance(9_600)
            site.check()
        assert site.ledgers.lease.admitted > 6
        state = msgspec.msgpack.decode(site._call("inspect"))
        kept += site.ledgers.lease.closing + state["closing"] + len(site.problems)
    return kept


def test_requests_that_cannot_wait_keep_no_unit(server: RedisServer) -> None:
    assert kept_of_requests_that_cannot_wait(server) == 0


def test_units_that_they_keep_are_found(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with broken_library(server.client(), "passing = passing + 1", "passing = 0"):
        assert kept_of_requests_that_cannot_wait(server) > 0
    monkeypatch.setattr(Provisional, "since", lambda *_: False)
    assert kept_of_requests_that_cannot_wait(server) > 0


def found(server: RedisServer) -> bool:
    return any(told(server, fixed, story) for story in STORIES for fixed in (False, True))


@pytest.mark.parametrize("name", ["doubt", "lengthen", "doubts"])
def test_a_ledger_that_believes_a_copy_is_found(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(Lease, name, lambda *_: False)
    assert found(server)


@pytest.mark.parametrize(
    ("whole", "broken"),
    [
        ("state.closing_until_ms = now + s.life_ms + CLOSING_MS", ""),
        ("if doubts() then\n    state.closing, count", "if false then\n    state.closing, count"),
        ("state.closing_until_ms + max(0, s.life_ms - before.life_ms)", "state.closing_until_ms"),
        ("or 0) > state.born_ms", "or 0) > 0"),
        ("if open_ledger(room, settings) then settle() end", "open_ledger(room, settings)"),
    ],
)  # fmt: skip
def test_a_redis_that_believes_a_copy_is_found(
    server: RedisServer, whole: str, broken: str
) -> None:
    with broken_library(server.client(), whole, broken):
        assert found(server)
        if "open_ledger" in whole:
            assert all(told(server, False, story) for story in SETTINGS_SINCE)


def test_a_damaged_journal_may_have_lost_a_renewal_too() -> None:
    room, clock = small_room(total_active_users=TOTAL), HandClock()
    inside = {ticket_id(number): START_MS for number in range(TOTAL)}
    clock.ms = START_MS + 50_000
    memory = LedgerMemory(sessions=inside)
    lost = stand_ins(1, room, clock.ms, lambda: ticket_id(99))
    memory.replay(b"".join(lost))
    ledger = MemoryLedger.restore(room, clock, lambda _: 0, None, memory)
    admitted = set()
    for _ in range(30):
        clock.ms += 1_900
        ledger.tick()
        for one in map(ticket_id, range(10, 10 + TOTAL)):
            found = answer_of(ledger.poll, one, make_key(START_MS, 10))
            if found.standing is Standing.ADMITTED:
                admitted.add(one)
    assert len(admitted) == TOTAL - 1, "the one who renewed is inside"


def moved_out(server: RedisServer, **changes: bool) -> list[str]:
    """Of a copy there, that knows of no renewal; the visitor's ticket knows one."""
    site = Twin(server.client(), small_room(**changes), 1, (HERE, "there"))
    for _ in range(3):
        site.advance(20_000)
        site.hear_from_there_alive(False)
        site.sync()
    one, renewed_ms = ticket_id(1), site.now_ms - 1_000
    site.visit(one, make_key(START_MS, 1), "there", renewed_ms)
    up = SyncUp(
        "there", 1, 4, site.now_ms, 0, 0, 0, 0, 0, 0, 0, (), 0, 0, 0, (), 0.0,
        moves=MovesUp(1, ((one, HERE, 50_000),), 0),
    )  # fmt: skip
    site.hear_from_there(up)
    site.sync()
    score = server.client().zscore(f"{site.place}:inside", one) or 0
    for known_ms in (site.ledgers.sessions.renewed(one) or 0, int(score) // 2048):
        site.law(known_ms >= renewed_ms, f"over {renewed_ms - known_ms} ms before the ticket")
    return site.found


@pytest.mark.parametrize(
    "changes", [{"strong_sessions": True}, {"disable_session_renewal": True}, {}]
)
def test_a_session_that_moves_out_of_an_older_copy_lasts_as_long_as_its_ticket_says(
    server: RedisServer, changes: dict[str, bool]
) -> None:
    assert moved_out(server, **changes) == []
    with broken_library(server.client(), ", claim.served_ms, claim.renewed_ms)", ")"):
        assert moved_out(server, **changes)


def ends_too_early(server: RedisServer) -> list[str]:
    """A session that its visitor renewed after the copy, and that an older ticket claims elsewhere;
    and a unit of a ledger that lost its state, which an older ticket claims here.
    """
    site = Copied(server, False, centers=(HERE, "there"))
    one, other, problems = ticket_id(0), ticket_id(1), []

    def there(epoch: int, number: int, units: int, **moves: Any) -> None:
        up = SyncUp(
            "there", epoch, number, site.now_ms, units, 0, 0, units, 0, 0, 0, (), 0, 0, 0, (), 0.0,
            moves=MovesUp(0, (), site.arrived_there, **moves),
        )  # fmt: skip
        site.hear_from_there(up)
        site.sync()

    for number in range(1, 4):
        there(1, number, 1)
        site.advance(2_000)
    site.apply(site.answered(site.report(want=1)))
    site.tell("come", 0)
    asked_ms = site.now_ms
    for step in (("copy", 0), ("pass", 30_000), ("view", 0), ("come", 2), ("start", 0)):
        site.tell(*step)
    site.visit(other, make_key(START_MS, 1), "there", asked_ms)
    there(1, 4, 1, claims=((one, HERE, site.now_ms - asked_ms),))
    site.sync()
    for where, coordinator in zip(("memory", "Redis"), site.coordinators, strict=True):
        given_ms = [renewed_ms for _, renewed_ms, _ in coordinator.transfers.on_the_way("there")]
        if not given_ms or given_ms[0] < asked_ms + 30_000:
            problems.append(f"{where} gave {given_ms}, of {asked_ms + 30_000}")
    site.advance(20_000)
    for number in (1, 2):
        there(2, number, 0, unknown=(other,))
    score = server.client().zscore(f"{site.place}:inside", other) or 0
    for known_ms in (site.ledgers.sessions.renewed(other) or 0, int(score) // 2048):
        if known_ms < site.now_ms:
            problems.append(f"over {site.now_ms - known_ms} ms before others of the lost ledger")
    return problems


def test_a_session_lasts_until_any_is_over_that_it_may_be(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ends_too_early(server) == []
    for whole in ("renewed_ms = max(renewed_ms, state.born_ms)", "if orphan then renewed_ms = now"):
        with broken_library(server.client(), whole, whole.replace("= ", "= renewed_ms or ", 1)):
            assert len(ends_too_early(server)) == 1
    monkeypatch.setattr(Moves, "new_arrivals", named)
    assert len(ends_too_early(server)) == 1
    monkeypatch.setattr(Lease, "doubts", lambda *_: False)
    assert len(ends_too_early(server)) == 2


def named(moves: Moves, down: MovesDown) -> tuple[tuple[bytes, int, str], ...]:
    """The unit of a lost ledger as one that was given."""
    return tuple((*one[:2], one[2] or "gift") for one in NEW_ARRIVALS(moves, down))


def served_elsewhere_after_the_end(server: RedisServer) -> list[bool]:
    """Whether tickets are served on trust here whose session ended there: at first, when that is
    known, when the place that they got is gone too, and one that knows a later renewal then.
    """
    site = Twin(server.client(), small_room(session_duration=2, queue_all=True), 1, (HERE, "there"))
    one, key, renewed_ms = ticket_id(1), make_key(START_MS, 1), START_MS - 1_000
    numbers = itertools.count(1)

    def there(**moves: Any) -> None:
        up = SyncUp(
            "there", 1, next(numbers), site.now_ms, 0, 0, 0, 0, 0, 0, 0, (), 0, 0, 0, (), 0.0,
            moves=MovesUp(0, (), site.arrived_there, **moves),
        )  # fmt: skip
        site.hear_from_there(up)
        site.sync()

    def trusted(later_ms: int = 0) -> bool:
        there()
        found = site.visit(one, key, "there", renewed_ms + later_ms)
        return found.standing is Standing.ACTIVE

    for _ in range(3):
        there()
        site.advance(2_000)
    served = [trusted()]
    there()
    there(unknown=(one,))
    served.append(trusted())
    site.advance(30_000)
    served += [trusted(), trusted(20_000)]
    site.compare()
    assert site.found == []
    return served


def test_who_has_left_is_served_on_trust_elsewhere_once(server: RedisServer) -> None:
    once = [True, False, False, True]
    assert served_elsewhere_after_the_end(server) == once
    for broken in ("now", "0"):  # as if none was denied, or all tickets of the id were
        with (
            broken_library(
                server.client(), "s.strong or renewed_ms <=", f"s.strong or {broken} <="
            ),
            pytest.raises(AssertionError),
        ):
            served_elsewhere_after_the_end(server)


def served_after_the_end(server: RedisServer) -> list[str]:
    """Of sessions that ended after the start, by leaving, under another id or just now, with their
    tickets of before it. One that knows of a later renewal than the copy is served on trust.
    """
    problems = []
    for fixed, minutes in itertools.product((False, True), (4, 10)):
        for how in ("leave", "move", "renewed since", *["just over"] * (minutes == 4)):
            site = Copied(server, fixed, session_duration=minutes)
            one, key = ticket_id(0), make_key(START_MS, 0)
            site.tell("come", 0)
            begun_ms = site.ledgers.sessions.renewed(one) or 0
            tickets = [begun_ms + 900]  # by a clock that is ahead
            site.tell("pass", 30_000)
            for step in (("copy", 0), ("pass", 1_000), ("come", 1), ("start", 0)):
                site.tell(*step)
            site.sync()
            if how in ("leave", "move"):
                site.advance(0 if minutes == 4 else 360_000)
                site.leave(one) if how == "leave" else site.move(one, ticket_id(9), False)
                site.advance(1_000)
                tickets.append(begun_ms + 29_000)
            else:
                site.advance(begun_ms + site.ledgers.life_ms - site.now_ms)
            if how == "renewed since":
                site.advance(10_000)
                tickets = [begun_ms + 29_000]
            answers = [site.visit(one, key, HERE, renewed_ms).standing for renewed_ms in tickets]
            if (Standing.ACTIVE in answers) != (how == "renewed since"):
                problems.append(f"{how}, {fixed}, {minutes} minutes: {answers}")
            problems += site.problems
    return problems


def test_who_left_or_moved_after_a_start_is_not_served_by_a_ticket_of_before_it(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert served_after_the_end(server) == []
    for whole, broken in (
        (" or seen_ending(id, renewed_ms))", ")"),
        ("and renewed_ms <= until_ms - spent_ms() + RENEWAL_SLACK_MS", ""),
        ("until_ms - spent_ms() + RENEWAL_SLACK_MS", "until_ms - spent_ms()"),
        ("doubts() and max(renewed_ms, state.born_ms", "false and max(renewed_ms"),
        ("state.born_ms, state.closing_until_ms - spent_ms()", "state.born_ms"),
        ("score and read_session(tonumber(score)) + spent_ms() or tonumber(", "tonumber("),
    ):
        with broken_library(server.client(), whole, broken):
            assert served_after_the_end(server) != [], whole
    for owner, name, broken_so in (
        (LedgerState, "spend_of_copy", lambda self, *one: self.sessions.spend(*one)),
        (Sessions, "last_seen_ms", lambda *_: 0),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, broken_so)
            assert served_after_the_end(server) != [], name
