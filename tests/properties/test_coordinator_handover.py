"""A coordinator changes hands, with all its memory or with old memory or none, and the limits hold; broken builds are found."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import handover_trials as trials
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.admission.coordinator import memory
from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.coordinator.data_center import DataCenter
from greenroom.admission.coordinator.whole_line import WholeLine
from greenroom.admission.lease import Lease
from greenroom.sync import coordinator_registry
from greenroom.sync.coordinator_registry import CoordinatorRegistry

Break = Callable[[pytest.MonkeyPatch], None]


def test_nobody_is_let_in_beyond_the_limits_when_the_next_coordinator_knows_all() -> None:
    assert trials.handovers(range(100, 108), losses=False) == []


def test_nobody_is_let_in_beyond_the_limits_when_the_next_coordinator_knows_old_things_or_nothing() -> None:
    assert trials.handovers(range(200, 212)) == []


def forgets_the_last_grant(patch: pytest.MonkeyPatch) -> None:
    original = CoordinatorRegistry.rows
    patch.setattr(CoordinatorRegistry, "rows", lambda self: original(self) if len(self._touched) != 1 else {})


def believes_old_rows(patch: pytest.MonkeyPatch) -> None:
    original = CoordinatorRegistry.restore

    def restore(self: CoordinatorRegistry, rows: dict[str, bytes], now_ms: int, life: str) -> None:
        original(self, {**rows, coordinator_registry.LIFE_ROW: coordinator_registry.encode(life)}, now_ms, life)

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
    for first in range(0, 60, 6):
        try:
            if any("too few" not in problem for problem in trials.handovers(range(first, first + 6))):
                return
        except (AssertionError, ValueError, KeyError, IndexError, TypeError):  # broken so badly that the books fall apart
            return
    pytest.fail("not found in sixty trials")


Move = tuple[str, int, int]
moves = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 12), st.integers(0, 9)), max_size=40)


@settings(max_examples=150, deadline=None)
@given(moves, st.integers(0, 30), st.data())
def test_the_whole_line_is_the_sum_of_its_parts(changes: list[Move], permits: int, data: st.DataObject) -> None:
    line, seconds, covered = WholeLine(), {name: Counter[int]() for name in "abc"}, dict.fromkeys("abc", 0)
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
        assert reach.sure == sum(count for second, count in parts[name].items() if edge_s is None or second < edge_s)
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
