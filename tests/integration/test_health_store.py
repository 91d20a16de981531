"""What health checks remember, in both databases: it comes back as it was written, adds up, and
does not grow for ever.
"""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from greenroom.errors import StorageFailed
from greenroom.health import store as health
from greenroom.health.rules.condition import Condition
from greenroom.health.rules.memory import (
    EventQuestion,
    HealthBatch,
    HourQuestion,
    HourSum,
    hour_sums,
)
from greenroom.health.rules.roster import Agent
from greenroom.health.store import HealthStore, default_url
from greenroom.model.alert import Alert
from greenroom.model.probe import CheckEvent, ProbeResult, Reason

DAY_MS = 86_400_000
NOW_MS = 20_000 * DAY_MS


@pytest.fixture
def open_store(url: str) -> Iterator[Callable[[], HealthStore]]:
    """Opens one database again and again."""
    opened: list[HealthStore] = []

    def another() -> HealthStore:
        opened.append(HealthStore(url))
        return opened[-1]

    yield another
    for store in opened:
        store.close()


def event(at_ms: int = NOW_MS, **fields) -> CheckEvent:
    result = (
        ProbeResult(Reason.CODE, 503, "192.0.2.1", 1.5, 2.5, 3.5, 4.5, 2)
        if not fields.get("healthy", True)
        else ProbeResult(rtt_ms=10.0)
    )
    known = {
        "check_id": "c1",
        "zone_id": "z1",
        "name": "shop",
        "fqdn": "a.example.com",
        "healthy": True,
        "region": "Global",
        "scope": "overall",
    }
    return CheckEvent(at_ms=at_ms, result=result, **{**known, **fields})


def alert(number: int) -> Alert:
    return Alert(
        type="health_check_status_notification",
        time_ms=number,
        correlation_id=f"i{number}",
        text="down",
        data={"reason": "é", "code": 3},
    )


def test_everything_comes_back_as_it_was_written(open_store) -> None:
    condition = Condition(
        "unhealthy", 5, "TCP Timeout", 0, "incident", 7, ("WEU", "OC"), "unhealthy"
    )
    agents = [Agent("a", "WEU", 1, 5_000), Agent("b", "OC", 2, 5_000)]
    found = [
        event(NOW_MS - 2),
        event(
            NOW_MS - 1,
            healthy=False,
            changed=True,
            expected="200,3xx",
            agent="a",
            region="WEU",
            scope="agent",
        ),
    ]
    open_store().save(
        HealthBatch({"c1": condition, "c2": Condition()}, found, [alert(1), alert(2)], agents),
        NOW_MS,
    )
    store = open_store()
    memory = store.load()
    assert memory.conditions == {"c1": condition, "c2": Condition()}
    assert sorted(memory.agents, key=lambda agent: agent.name) == agents
    assert store.events(EventQuestion(0, NOW_MS)) == found[::-1]
    assert [kept for _, kept in store.alerts()] == [alert(1), alert(2)]
    store.handed_on([store.alerts()[0][0]])
    assert [kept for _, kept in store.alerts()] == [alert(2)]
    store.save(HealthBatch({"c1": None, "c2": condition}, agents=[]), NOW_MS)
    assert (store.load().conditions, store.load().agents) == ({"c2": condition}, [])


def test_questions_are_answered_newest_first_and_no_further_than_they_ask(open_store) -> None:
    store = open_store()
    found = [
        event(
            NOW_MS + number,
            check_id=f"c{number % 3}",
            region=("WEU", "OC")[number % 2],
            changed=number == 7,
        )
        for number in range(12)
    ]
    store.save(HealthBatch(events=found), NOW_MS)
    whole = EventQuestion(NOW_MS, NOW_MS + 12)
    assert store.events(whole) == found[::-1]
    assert store.events(EventQuestion(NOW_MS + 3, NOW_MS + 5)) == [found[4], found[3]]
    assert len(store.events(EventQuestion(NOW_MS, NOW_MS + 12, limit=5))) == 5
    assert {
        one.check_id
        for one in store.events(EventQuestion(NOW_MS, NOW_MS + 12, check_ids=["c1", "c2"]))
    } == {"c1", "c2"}
    assert {
        one.region for one in store.events(EventQuestion(NOW_MS, NOW_MS + 12, region="OC"))
    } == {"OC"}
    assert store.events(EventQuestion(NOW_MS, NOW_MS + 12, only_changes=True)) == [found[7]]
    assert store.events(EventQuestion(NOW_MS, NOW_MS + 12, zone_id="elsewhere")) == []


def test_days_add_up_over_many_writes_and_count_the_whole_origin_only(open_store) -> None:
    store = open_store()
    for number in range(6):
        good = number % 3 > 0
        store.save(
            HealthBatch(
                events=[
                    event(NOW_MS + number, healthy=good),
                    event(NOW_MS, scope="agent", region="WEU"),
                ]
            ),
            NOW_MS,
        )
    store.save(HealthBatch(events=[event(NOW_MS + DAY_MS)]), NOW_MS)
    first, second = store.uptimes(["c1", "c2"], "2000-01-01")
    assert (first.day, first.good, first.total, first.rtt_ms) == ("2024-10-04", 4, 6, 10.0)
    assert (second.day, second.good, second.total) == ("2024-10-05", 1, 1)
    assert store.uptimes(["c1"], "2024-10-05") == [second]


def hours(store: HealthStore, **fields) -> list[HourSum]:
    return sorted(
        store.hours(HourQuestion(0, NOW_MS * 2, **fields)),
        key=lambda one: (one.check_id, one.hour_ms, one.region, one.reason),
    )


def test_hourly_sums_are_those_of_the_events(open_store) -> None:
    store = open_store()
    found = [
        event(
            NOW_MS + number * 7 * 60_000,
            check_id=f"c{number % 2}",
            healthy=number % 5 > 0,
            region=("WEU", "Global")[number % 3 > 0],
            scope=("agent", "overall")[number % 3 > 0],
            agent=("a", "")[number % 3 > 0],
            changed=number == 10,
        )
        for number in range(40)
    ]
    for at in range(0, 40, 9):
        store.save(HealthBatch(events=found[at : at + 9]), NOW_MS)
    expected = sorted(
        hour_sums(found).values(),
        key=lambda one: (one.check_id, one.hour_ms, one.region, one.reason),
    )
    assert hours(store) == expected
    assert sum(one.count for one in hours(store, check_ids=["c1"])) == 20
    assert sum(one.count for one in hours(store, probes=True)) == 14
    counts = store.hour_counts(HourQuestion(0, NOW_MS * 2, ["c0"]))
    assert sum(one.number for one in counts if one.reason) == 4
    steps = store.step_counts(EventQuestion(0, NOW_MS * 2, ["c0"]), 3_600_000)
    assert sorted(steps) == sorted(counts)
    overall = [one for one in found if one.scope == "overall" and one.check_id == "c1"]
    assert store.availability(NOW_MS, NOW_MS * 2)["c1"] == (
        sum(one.healthy for one in overall),
        len(overall),
    )
    store.save(HealthBatch(events=[event(NOW_MS + 33 * DAY_MS)]), NOW_MS + 33 * DAY_MS)
    for _ in range(health.PRUNE_EVERY):
        store.save(HealthBatch({"c1": Condition()}), NOW_MS + 33 * DAY_MS)
    assert {one.check_id for one in hours(store)} == {"c1"}
    assert len(hours(store)) == 1


def test_events_of_an_older_version_get_hourly_sums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "OLDER_AT_ONCE", 3)
    store = HealthStore(default_url(tmp_path))
    found = [event(NOW_MS + number) for number in range(10)]
    store.save(HealthBatch(events=found), NOW_MS)
    store.close()
    with sqlite3.connect(tmp_path / "health.db") as connection:
        for table in ("health_hours", "health_rollup"):
            connection.execute(f"DROP TABLE {table}")
        for column in ("dns_ms", "request_ms"):
            connection.execute(f"ALTER TABLE health_events DROP COLUMN {column}")
    store = HealthStore(default_url(tmp_path))
    assert store.events(EventQuestion(0, NOW_MS * 2)) == found[::-1]
    for number in range(10, 16):
        store.save(HealthBatch(events=[event(NOW_MS + number)]), NOW_MS)
    assert [one.count for one in hours(store)] == [16]
    store.close()


def test_a_page_of_the_log_follows_the_one_before(open_store) -> None:
    store = open_store()
    found = [event(NOW_MS + number // 3, agent=("", "a")[number % 2]) for number in range(12)]
    store.save(HealthBatch(events=found), NOW_MS)
    question, read = EventQuestion(0, NOW_MS * 2, limit=5), []
    while page := store.log(question):
        read += page
        question = msgspec.structs.replace(question, before=(page[-1].event.at_ms, page[-1].number))
    assert [kept.event for kept in read] == found[::-1]
    assert store.event(read[0].number) == found[-1]
    assert store.event(10**9) is None
    assert len(store.events(EventQuestion(0, NOW_MS * 2, probes=True))) == 6
    assert store.count(EventQuestion(0, NOW_MS * 2, probes=False), 4) == 4
    assert store.oldest_ms() == NOW_MS


def test_old_events_and_days_go_by_themselves(open_store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "EVENTS_KEPT", 10)
    monkeypatch.setattr(health, "PRUNE_EVERY", 2)
    store = open_store()
    for number in range(9):
        store.save(HealthBatch(events=[event(NOW_MS + number) for _ in range(3)]), NOW_MS)
    assert len(store.events(EventQuestion(0, NOW_MS * 2))) <= 10 + 3
    store.save(HealthBatch(events=[event(NOW_MS + 401 * DAY_MS)]), NOW_MS + 401 * DAY_MS)
    store.save(HealthBatch(events=[event(NOW_MS + 401 * DAY_MS)]), NOW_MS + 401 * DAY_MS)
    assert [kept.at_ms for kept in store.events(EventQuestion(0, NOW_MS * 2))] == [
        NOW_MS + 401 * DAY_MS
    ] * 2
    assert [day.day for day in store.uptimes(["c1"], "2000-01-01")] == ["2025-11-09"]


def test_one_leads_until_its_term_is_over(open_store) -> None:
    first, second = open_store(), open_store()
    assert first.acquire("a", 60_000)
    assert not second.acquire("b", 60_000)
    assert first.acquire("a", 60_000), "it prolongs its own"
    first.release("a")
    assert second.acquire("b", 60_000)
    first.release("a")
    assert not first.acquire("a", 60_000)


def test_a_term_that_would_end_after_any_that_begins_now_is_over(open_store) -> None:
    """The clock of the database was set back, and the holder is gone."""
    store = open_store()
    assert store.acquire("a", 3_600_000)
    assert store.acquire("b", 60_000)


def test_a_batch_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    store = HealthStore(default_url(tmp_path))
    store.save(HealthBatch({"c1": Condition()}), NOW_MS)
    with sqlite3.connect(tmp_path / "health.db") as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON health_alerts BEGIN SELECT RAISE(FAIL, 'disk full'); END"
        )
    with pytest.raises(StorageFailed, match="disk full"):
        store.save(HealthBatch({"c2": Condition()}, [event()], [alert(1)]), NOW_MS)
    assert set(store.load().conditions) == {"c1"}
    assert store.events(EventQuestion(0, NOW_MS * 2)) == []
    store.close()
