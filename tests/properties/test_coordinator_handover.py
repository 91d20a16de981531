"""A coordinator changes hands, with all its memory or with old memory or none, and the limits hold;
broken builds are found.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import handover_trials as trials
import pytest
from admission_world import START_MS, bits, small_room
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.admission.coordinator import memory
from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.coordinator.data_center import DataCenter
from greenroom.admission.coordinator.whole_line import WholeLine
from greenroom.admission.lease import Lease
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.messages.sync import SyncDown, SyncUp
from greenroom.ledgers.sync import coordinator_registry
from greenroom.ledgers.sync.coordinator_registry import CoordinatorRegistry

pytestmark = pytest.mark.slow

Break = Callable[[pytest.MonkeyPatch], None]


def test_no_visitor_is_let_in_beyond_the_limits_when_the_next_coordinator_knows_all() -> None:
    assert trials.handovers(range(100, 108), losses=False) == []


def test_no_visitor_is_let_in_beyond_the_limits_when_the_next_coordinator_knows_old_things_or_nothing() -> (
    None
):
    assert trials.handovers(range(200, 212)) == []


def test_late_messages_of_a_lost_coordinator_let_no_visitor_in_beyond_the_limits() -> None:
    assert trials.handovers(range(300, 312), late=True) == []


WANTED = 40
LATE_ROOM = small_room(total_active_users=WANTED, new_users_per_minute=100)


class TwoLedgers:
    """Two data centers, and coordinators that know nothing of each other."""

    def __init__(self) -> None:
        self.ledgers = {name: Ledger(LATE_ROOM, name, 1, START_MS) for name in ("fra", "nyc")}
        for ledger in self.ledgers.values():
            ledger.empty_ms = 0
        self.random_bits = bits(1)
        self.begin()

    def begin(self) -> None:
        """The coordinator is lost; another one begins with nothing."""
        self.coordinator = Coordinator(list(self.ledgers), LATE_ROOM, START_MS)

    def hear(self, up: SyncUp) -> SyncDown:
        return self.coordinator.sync(up, START_MS, self.random_bits(64))

    def exchange(self, want: int = 0, names: tuple[str, ...] = ("fra", "nyc")) -> None:
        for name in names:
            ledger = self.ledgers[name]
            ledger.apply(self.hear(ledger.report(START_MS, want)), START_MS)

    @property
    def permits(self) -> int:
        return sum(ledger.lease.permits for ledger in self.ledgers.values())


def permits_with_a_late_answer() -> int:
    """The last of many, of which none arrived; it comes when the next coordinator has heard every
    data center.
    """
    two = TwoLedgers()
    for _ in range(3):
        two.exchange()
    late = [two.hear(two.ledgers["fra"].report(START_MS, 20)) for _ in range(20)][-1]
    assert late.granted >= two.ledgers["fra"].lease.granted_seen + 10, "or this proves nothing"
    two.begin()
    for _ in range(3):
        two.exchange()
    two.exchange(WANTED, ("nyc",))
    two.ledgers["fra"].apply(late, START_MS)
    return two.permits


def permits_with_late_reports() -> int:
    """Whole ones, but of before the coordinator that hears them."""
    two = TwoLedgers()
    late = [ledger.report(START_MS) for ledger in two.ledgers.values()]
    assert all(up.whole and not up.granted_seen for up in late)
    for _ in range(3):
        two.exchange()
    two.exchange(20, ("fra",))
    assert two.ledgers["fra"].lease.permits >= 20, "or this proves nothing"
    two.begin()
    for up in (*late, *late):
        two.hear(up)
    two.ledgers["nyc"].apply(two.hear(two.ledgers["nyc"].report(START_MS, WANTED)), START_MS)
    return two.permits


def test_an_answer_of_a_lost_coordinator_grants_nothing_when_the_next_one_has_been_heard() -> None:
    assert permits_with_a_late_answer() <= WANTED


def test_a_whole_report_that_is_older_than_the_coordinator_says_nothing_for_certain() -> None:
    assert permits_with_late_reports() <= WANTED


def takes_answers_of_lost_coordinators(patch: pytest.MonkeyPatch) -> None:
    original = Lease.is_late

    def is_late(self: Lease, down: SyncDown) -> bool:
        if original(self, down):
            self.permits += max(0, down.granted - self.granted_seen)
            self.granted_seen = max(down.granted, self.granted_seen)
            return True
        return False

    patch.setattr(Lease, "is_late", is_late)


def counts_answers_on_from_the_newest_it_was_told(patch: pytest.MonkeyPatch) -> None:
    def count_answer(self: DataCenter, applied: int, _: int) -> None:
        self.answered = max(self.answered, applied) + 1
        self.first = self.first or self.answered

    patch.setattr(DataCenter, "count_answer", count_answer)


def believes_every_whole_report(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DataCenter, "has_heard", lambda *_: True)


@pytest.mark.needs("patching")
@pytest.mark.parametrize(
    "build",
    [
        takes_answers_of_lost_coordinators,
        counts_answers_on_from_the_newest_it_was_told,
        believes_every_whole_report,
    ],
    ids=lambda build: build.__name__,
)
def test_late_messages_find_a_build_that(build: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    build(monkeypatch)
    assert max(permits_with_a_late_answer(), permits_with_late_reports()) > WANTED


def forgets_the_last_grant(patch: pytest.MonkeyPatch) -> None:
    original = CoordinatorRegistry.rows
    patch.setattr(
        CoordinatorRegistry, "rows", lambda self: original(self) if len(self._touched) != 1 else {}
    )


def believes_old_rows(patch: pytest.MonkeyPatch) -> None:
    original = CoordinatorRegistry.restore

    def restore(self: CoordinatorRegistry, rows: dict[str, bytes], now_ms: int, life: str) -> None:
        original(
            self,
            {**rows, coordinator_registry.LIFE_ROW: coordinator_registry.encode(life)},
            now_ms,
            life,
        )

    patch.setattr(CoordinatorRegistry, "restore", restore)


def does_not_wait_for_anybody_without_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Coordinator, "doubting", False)


def forgets_the_minute_it_acknowledged(patch: pytest.MonkeyPatch) -> None:
    original = Lease.ages
    patch.setattr(Lease, "ages", lambda self, now_ms, whole: original(self, now_ms, False))


def remembers_no_minute(patch: pytest.MonkeyPatch) -> None:
    original = memory._fill

    def fill(center: DataCenter, row: Any, passed_ms: int) -> None:
        original(center, row, passed_ms)
        center.leaving.clear()
        center.minute = 0

    patch.setattr(memory, "_fill", fill)


@pytest.mark.needs("patching")
@pytest.mark.parametrize(
    "build",
    [
        forgets_the_last_grant,
        believes_old_rows,
        does_not_wait_for_anybody_without_rows,
        forgets_the_minute_it_acknowledged,
        remembers_no_minute,
    ],
    ids=lambda build: build.__name__,
)
def test_a_build_is_found_that(build: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    build(monkeypatch)
    for seed in range(60):
        try:
            if any("too few" not in problem for problem in trials.handovers(range(seed, seed + 1))):
                return
        except (
            AssertionError,
            ValueError,
            KeyError,
            IndexError,
            TypeError,
        ):  # broken so badly that the books fall apart
            return
    pytest.fail("not found in sixty trials")


Move = tuple[str, int, int]
moves = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 12), st.integers(0, 9)), max_size=40
)


@settings(max_examples=examples(150), deadline=None)
@given(moves, st.integers(0, 30), st.data())
def test_the_whole_line_is_the_sum_of_its_parts(
    changes: list[Move], permits: int, data: st.DataObject
) -> None:
    line, seconds, covered = (
        WholeLine(),
        {name: Counter[int]() for name in "abc"},
        dict.fromkeys("abc", 0),
    )
    for name in "abc":
        line.show(name, {})
    for name, second, count in changes:
        line.move(name, second, count - seconds[name][second])
        seconds[name][second] = count
        covered[name] = data.draw(st.integers(0, 12))
        line.cover(name, covered[name])
    parts = {name: uncovered(seconds[name], covered[name]) for name in "abc"}
    assert line.seconds == dict(sum(parts.values(), Counter[int]()))
    for name in "abc":
        reach = line.reach(name, permits)
        edge_s, left = edge(sum(parts.values(), Counter[int]()), permits)
        assert reach.edge_s == edge_s
        assert reach.sure == sum(
            count for second, count in parts[name].items() if edge_s is None or second < edge_s
        )
        if edge_s is not None:
            assert (reach.edge_mine, reach.edge_permits) == (parts[name][edge_s], left)
    line.hide("a")
    assert line.seconds == dict(parts["b"] + parts["c"])


def uncovered(seconds: Counter[int], permits: int) -> Counter[int]:
    """What is left when the oldest have a permit each."""
    people = sorted(seconds.elements())[permits:]
    return Counter(people)


def edge(seconds: Counter[int], permits: int) -> tuple[int | None, int]:
    """In which second so many permits run out, and how many are left for it."""
    for second in sorted(seconds):
        if seconds[second] > permits:
            return second, permits
        permits -= seconds[second]
    return None, permits
