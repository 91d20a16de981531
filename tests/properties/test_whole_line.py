"""Laws of a place in a line of several data centers: once the reports are in, places are 1 to n in
order of arrival, nobody is told a place further back, and what is not known is called about.
"""

from itertools import pairwise

import msgspec
from admission_world import START_MS, small_room, ticket_id
from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.coordinator.summaries import (
    EXACT_SECONDS,
    FINER,
    NAMED_MAX,
    ahead_elsewhere,
)
from greenroom.admission.ledger.barred_places import held
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.messages.room_summary import Elsewhere, RoomSummary, period_ms
from greenroom.admission.messages.sync import SyncDown
from greenroom.decision.holding import _as_told, _never_further_back
from greenroom.model.visit import HOME_BYTES, NO_HOME, Outcome, Standing, Ticket, make_key

SETTLED_MS = 6_000
Key = tuple[int, int, int]
"""Data center, arrival after the start in milliseconds, tie-break."""


class Centers:
    """A room in which everybody is held, in several data centers, in virtual time."""

    def __init__(self, count: int, **changes: object) -> None:
        self.now_ms = START_MS
        room = small_room(**{"queue_all": True, **changes})
        self.names = [f"dc{number}" for number in range(count)]
        self.coordinator = Coordinator(self.names, room, START_MS)
        self.ledgers = [Ledger(room, name, START_MS, START_MS) for name in self.names]
        self.sync()
        self.sync()

    def sync(self, *silent: int) -> None:
        """All twice, so that each knows what the others reported."""
        for number in 2 * [number for number in range(len(self.ledgers)) if number not in silent]:
            self.sync_one(number)

    def sync_one(self, number: int, lost: str = "") -> None:
        ledger = self.ledgers[number]
        up = ledger.report(self.now_ms)
        if lost != "report":
            down = self.coordinator.sync(up, self.now_ms, 7)
            if lost != "answer":
                ledger.apply(down, self.now_ms)
        self.now_ms += 60 * len(self.ledgers)

    def poll(self, one: int, key: Key) -> Outcome:
        at, ms, tie = key
        return self.ledgers[at].poll(ticket_id(one), make_key(START_MS + ms, tie), self.now_ms, 7)

    def peek(self, one: int, key: Key) -> Outcome:
        at, ms, tie = key
        return self.ledgers[at].peek(ticket_id(one), make_key(START_MS + ms, tie), self.now_ms, 7)


def keys(centers: int) -> st.SearchStrategy[list[Key]]:
    one = st.tuples(
        st.integers(0, centers - 1), st.integers(0, 9_000), st.integers(0, (1 << 12) - 1)
    )
    return st.lists(one, min_size=1, max_size=40, unique_by=lambda key: key[1:])


@settings(max_examples=examples(100), deadline=None)
@given(st.data(), st.integers(2, 4))
def test_places_of_all_data_centers_are_one_to_n_in_order_of_arrival(
    data: st.DataObject, count: int
) -> None:
    line, world = data.draw(keys(count)), Centers(count)
    world.now_ms += 9_000
    for one, key in enumerate(line):
        world.poll(one, key)
    world.now_ms += SETTLED_MS
    world.sync()
    told = [(world.peek(one, key), key) for one, key in enumerate(line)]
    assert sorted(outcome.position for outcome, _ in told) == list(range(1, len(line) + 1))
    for outcome, _ in told:
        assert (outcome.ahead, outcome.waiting) == (outcome.position - 1, len(line))
        assert outcome.about is False
    by_place = [key[1] // 1000 for _, key in sorted(told, key=lambda one: one[0].position)]
    assert all(before <= after for before, after in pairwise(by_place))


STEPS = st.one_of(
    st.tuples(st.just("comes"), st.integers(0, 2)),
    st.tuples(st.sampled_from(["syncs", "report", "answer"]), st.integers(0, 2)),
    st.tuples(st.just("passes"), st.integers(100, 7_000)),
    st.tuples(st.just("new coordinator"), st.just(0)),
)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(STEPS, max_size=40))
@example(
    [("comes", 0), ("comes", 1), ("passes", 7_000), ("syncs", 0), ("syncs", 1), ("syncs", 2),
     ("new coordinator", 0), ("syncs", 0), ("syncs", 1), ("syncs", 2), ("syncs", 1)]
)  # fmt: skip
def test_a_place_that_is_not_about_has_everybody_before_it_who_came_earlier(
    steps: list[tuple[str, int]],
) -> None:
    """Also when a message is lost, and when a coordinator begins that was told of changes only."""
    world, came = Centers(3), list[Key]()
    for step, value in steps:
        if step == "comes":
            came.append((value, world.now_ms - START_MS, len(came)))
            world.poll(len(came) - 1, came[-1])
            world.now_ms += 1_000  # places within a second are by data center
        elif step in ("syncs", "report", "answer"):
            world.sync_one(value, lost=step)
        elif step == "passes":
            world.now_ms += value
        else:
            world.coordinator = Coordinator(world.names, small_room(queue_all=True), world.now_ms)
        for one, key in enumerate(came):
            told = world.peek(one, key)
            assert told.about or told.position == one + 1


@settings(max_examples=examples(200), deadline=None)
@given(
    st.dictionaries(
        st.sampled_from("abcd"),
        st.dictionaries(st.integers(1_000, 1_400), st.integers(1, 50), max_size=200),
        min_size=2,
    )
)
def test_people_ahead_elsewhere_are_exact_in_short_lines_and_close_in_long_ones(
    lines: dict[str, dict[int, int]],
) -> None:
    found = ahead_elsewhere(lines)
    exact = len({second for line in lines.values() for second in line}) <= EXACT_SECONDS
    for name in lines:
        others = [line for other, line in lines.items() if other != name]
        read = Elsewhere(RoomSummary(0, (), found.get(name, ()), 0))
        before = -1
        for second in range(995, 1_405):
            told = read.ahead(make_key(second * 1000 + 500, 0))
            assert told >= before
            before = told
            earlier = sum(n for line in others for at, n in line.items() if at < second)
            until = earlier + sum(line.get(second, 0) for line in others)
            if exact:
                assert earlier <= told <= until
            else:
                everybody = sum(
                    n for line in lines.values() for at, n in line.items() if at <= second
                )
                most = max(n for line in lines.values() for n in line.values()) * len(lines)
                assert abs(told - until) <= 1 + everybody / FINER + 2 * most


@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=20))
def test_no_visitor_is_told_a_place_further_back(found: list[tuple[int, bool]]) -> None:
    ticket, best = Ticket(bytes(12), make_key(START_MS, 1), 0, START_MS, 2_000), None
    for place, about in found:
        outcome = Outcome(Standing.WAITING, position=place, ahead=place - 1, waiting=9, about=about)
        ticket, told = _never_further_back(ticket, ticket.home, outcome)
        assert told.ahead == told.position - 1 <= place - 1
        assert best is None or told.position <= best
        best = best if about else told.position
    assert (ticket.home == NO_HOME) == (best is None)


def test_a_visitor_who_is_held_while_the_place_may_move_is_told_the_same_place() -> None:
    ticket, told = Ticket(bytes(12), make_key(START_MS, 1), 0, START_MS, 2_000), 5
    shown, outcome = _as_told(ticket, told.to_bytes(HOME_BYTES), held(9, START_MS))
    assert (outcome.position, outcome.ahead) == (told, told - 1)
    later = Outcome(Standing.WAITING, position=7, ahead=6, waiting=9, about=False)
    assert _never_further_back(ticket, shown.home, later)[1].position == told
    assert _as_told(ticket, NO_HOME, held(9, START_MS))[1].position == 1


def test_a_data_center_that_is_cut_off_is_shown_with_its_last_figures_and_places_are_about_so() -> (
    None
):
    world = Centers(2)
    line: list[Key] = [(number % 2, number * 1_000, 0) for number in range(6)]
    world.now_ms += 6_000
    for one, key in enumerate(line):
        world.poll(one, key)
    world.now_ms += SETTLED_MS
    world.sync()
    for _ in range(10):  # five seconds
        world.now_ms += 500
        world.sync(1)
    outcome = world.peek(4, line[4])
    assert (outcome.position, outcome.waiting, outcome.about) == (5, 6, True)
    elsewhere = world.ledgers[0].elsewhere
    assert elsewhere is not None
    (row,) = elsewhere.summary.others
    assert (row.name, row.waiting, row.silent) == ("dc1", 3, True)
    assert 4_000 < elsewhere.summary.made_ms - row.heard_ms < 12_000
    assert world.peek(5, line[5]).about is True, "it knows itself that nobody answers"
    world.sync()
    assert [world.peek(one, key).position for one, key in enumerate(line)] == [1, 2, 3, 4, 5, 6]
    assert not any(world.peek(one, key).about for one, key in enumerate(line))


def test_figures_of_the_others_are_those_of_their_ledgers() -> None:
    world = Centers(3, queue_all=False, total_active_users=60, new_users_per_minute=30)
    world.sync()
    for one in range(20):
        ledger = world.ledgers[one % 3]
        if ledger.arrive(ticket_id(one), world.now_ms, 7).standing is Standing.WAITING:
            ledger.poll(ticket_id(one), make_key(world.now_ms, one), world.now_ms, 7)
        world.now_ms += 300
    world.sync()
    assert sum(len(ledger.sessions.inside) for ledger in world.ledgers) > 5
    for ledger in world.ledgers:
        assert ledger.elsewhere is not None
        for row in ledger.elsewhere.summary.others:
            other = world.ledgers[world.names.index(row.name)]
            assert (row.active, row.waiting, row.last_minute) == (
                len(other.sessions.inside),
                len(other.line),
                len(other.lease.window),
            )


def test_a_room_with_one_data_center_exchanges_no_summary() -> None:
    world = Centers(1)
    down = world.coordinator.sync(world.ledgers[0].report(world.now_ms), world.now_ms, 7)
    assert (down.summary, world.ledgers[0].elsewhere) == (None, None)
    world.poll(1, (0, 0, 0))
    assert world.peek(1, (0, 0, 0)).about is None


def test_older_and_newer_peers_understand_each_other() -> None:
    whole = SyncDown(1, 2, 3, 4, 5, 6, 7, 8, True, 9, summary=RoomSummary(1, ()))
    fields = msgspec.msgpack.decode(msgspec.msgpack.encode(whole))
    before = fields[: SyncDown.__struct_fields__.index("summary")]
    older = msgspec.msgpack.decode(msgspec.msgpack.encode(before), type=SyncDown)
    assert older == msgspec.structs.replace(whole, summary=None)
    newer = msgspec.msgpack.decode(msgspec.msgpack.encode([*fields, "more"]), type=SyncDown)
    assert newer == whole


def test_of_many_data_centers_the_last_are_told_as_one_sum() -> None:
    world = Centers(NAMED_MAX + 5)
    world.now_ms += 1_000
    for one in range(3 * len(world.ledgers)):
        world.poll(one, (one % len(world.ledgers), one * 10, 0))
    for _ in range(2):
        world.now_ms += period_ms(len(world.ledgers))
        world.sync()
    for ledger in (world.ledgers[0], world.ledgers[-1]):
        assert ledger.elsewhere is not None
        *named, rest = ledger.elsewhere.summary.others
        assert len(named) <= NAMED_MAX
        assert all(row.name for row in named)
        assert (rest.name, sum(row.waiting for row in (*named, rest))) == (
            "",
            3 * len(world.ledgers) - 3,
        )
