"""The timetable of an agent, in virtual time: nothing is late, nothing overlaps itself, and ten
thousand checks fill a minute evenly.
"""

import itertools
from collections import Counter
from dataclasses import replace

from greenroom.health.runner import SOON_MAX, Timetable
from greenroom.model.health_check import HealthCheck

START_MS = 1_700_000_000_000


def checks(count: int, **fields) -> dict[str, HealthCheck]:
    return {
        f"c{number}": HealthCheck(id=f"c{number}", name="c", address="a", **fields)
        for number in range(count)
    }


def run(table: Timetable, begin_ms: int, end_ms: int, takes_ms: int = 0) -> list[tuple[int, str]]:
    """Everything that became due, each probe taking so long."""
    found, ends = [], []
    while (at := table.next_ms()) is not None and at < end_ms:
        for over_ms, key in [entry for entry in ends if entry[0] <= at]:
            table.ended(key)
            ends.remove((over_ms, key))
        for due in table.take(at, 10**6):
            found.append((due.due_ms, due.check.id))
            if takes_ms:
                ends.append((at + takes_ms, due.check.id))
            else:
                table.ended(due.check.id)
    return found


def test_ten_thousand_checks_are_probed_once_a_minute_and_never_in_a_heap() -> None:
    table = Timetable("local")
    table.plan(checks(10_000), START_MS)
    found = run(table, START_MS, START_MS + 600_000)
    of_each = Counter(key for _, key in found)
    assert set(of_each.values()) <= {9, 10, 11}, "jitter moves some over the edge"
    seconds = Counter((at - START_MS) // 1000 for at, _ in found)
    assert max(seconds.values()) < 250, "167 on average"
    assert table.skipped == 0


def test_a_check_never_overlaps_itself_and_a_slow_one_is_asked_as_often_as_it_can() -> None:
    table = Timetable("local")
    table.plan(checks(1, interval=10), START_MS)
    found = run(table, START_MS, START_MS + 600_000, takes_ms=25_000)
    times = [at for at, _ in found]
    assert all(later - earlier >= 25_000 for earlier, later in itertools.pairwise(times))
    assert 15 <= len(times) <= 21
    assert table.skipped >= len(times)


def test_a_few_new_checks_are_probed_at_once_and_many_at_their_places() -> None:
    table = Timetable("local")
    table.plan(checks(SOON_MAX), START_MS)
    assert len(run(table, START_MS, START_MS + 2_001)) == SOON_MAX
    many = Timetable("local")
    many.plan(checks(SOON_MAX + 1), START_MS)
    assert len(run(many, START_MS, START_MS + 2_001)) < 15
    assert len(run(many, START_MS, START_MS + 61_000)) > SOON_MAX


def test_a_change_begins_again_at_once_and_what_did_not_change_keeps_its_place() -> None:
    table = Timetable("local")
    known = checks(2)
    table.plan(known, START_MS)
    run(table, START_MS, START_MS + 90_000)
    table.plan({**known, "c1": replace(known["c1"], interval=30)}, START_MS + 90_000)
    assert run(table, START_MS, START_MS + 90_001) == [(START_MS + 90_000, "c1")]


def test_suspended_and_removed_checks_are_never_due() -> None:
    table = Timetable("local")
    table.plan({**checks(1, suspended=True)}, START_MS)
    assert table.next_ms() is None
    table.plan(checks(3), START_MS)
    table.plan({}, START_MS)
    assert table.next_ms() is None
    assert len(table) == 0


def test_an_agent_that_slept_probes_everything_once_and_not_for_every_turn_it_missed() -> None:
    table = Timetable("local")
    table.plan(checks(10, interval=10), START_MS)
    run(table, START_MS, START_MS + 20_000)
    hour_ms = START_MS + 3_600_000
    woken = table.take(hour_ms, 100)
    assert len(woken) == 10
    assert hour_ms < (table.next_ms() or 0) <= hour_ms + 11_000
