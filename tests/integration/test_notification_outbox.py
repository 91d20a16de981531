"""The outbox on real databases: one transaction with its cause, each alert once, one order, one
sender, pairs of start and end.
"""

from collections.abc import Iterator

import pytest
from store_with_outbox import StoreWithOutbox

from greenroom.alerts import store as outbox_module
from greenroom.alerts.rules.outbox import HISTORY_KEPT_MS, WAITING_MAX
from greenroom.model.alert import INCIDENTS_KEPT_MS, Alert
from greenroom.model.alert_types import ALERTS, make
from greenroom.model.change import Put
from greenroom.model.notification import AlertPolicy, Silence

TYPE = "greenroom_rejecting"
HOUR = 3_600_000


@pytest.fixture
def store(url: str) -> Iterator[StoreWithOutbox]:
    found = StoreWithOutbox(url)
    yield found
    found.close()


def alert(
    correlation_id: str = "one", state: str = "start", at_ms: int = 0, subject: str = "r1"
) -> Alert:
    return make(
        TYPE,
        state,
        at_ms,
        correlation_id,
        ALERTS[TYPE].example,
        subject_id=subject,
        subject_name="shop",
        zone_id="z1",
    )


def policy(id: str = "p1", **changed) -> AlertPolicy:
    return AlertPolicy(
        **{"id": id, "name": id, "alert_type": TYPE, "emails": ("a@example.com",), **changed}
    )


def having(store: StoreWithOutbox, *records) -> StoreWithOutbox:
    store.write(
        [Put(record) for record in records], expected=store.read().revision, author="me", now_ms=0
    )
    return store


def keys(store: StoreWithOutbox, now_ms: int) -> list[tuple[str, str, str]]:
    return [
        (due.destination, due.alert.correlation_id, due.alert.state)
        for due in store.outbox.due(now_ms)
    ]


def sender(store: StoreWithOutbox, name: str = "me") -> str:
    assert store.outbox.acquire(name)
    return name


def deliver_all(store: StoreWithOutbox, now_ms: int) -> list[tuple[str, str, str]]:
    """In the order in which they are handed out."""
    holder, sent = sender(store), []
    while found := store.outbox.due(now_ms):
        for due in found:
            assert store.outbox.finish(holder, due, now_ms)
            sent.append((due.destination, due.alert.correlation_id, due.alert.state))
    return sent


def test_an_alert_is_kept_once_however_often_it_is_raised(store: StoreWithOutbox) -> None:
    having(store, policy(emails=("a@example.com", "b@example.com")))
    assert store.outbox.put([alert(), alert(at_ms=5)], 10) == 1
    assert store.outbox.put([alert()], 20) == 0
    assert sorted(keys(store, 20)) == [
        ("email:a@example.com", "one", "start"),
        ("email:b@example.com", "one", "start"),
    ]
    assert store.outbox.put([alert(state="end")], 30) == 1
    assert store.outbox.backlog(1_030) == (4, 1_020)
    assert deliver_all(store, 30)[-1][2] == "end"
    assert store.outbox.backlog(1_030) == (0, 0)


def test_each_destination_has_its_own_order_and_a_failure_holds_only_its_own(
    store: StoreWithOutbox,
) -> None:
    having(store, policy(emails=("a@example.com", "b@example.com")))
    for number in range(3):
        store.outbox.put([alert(f"c{number}", at_ms=number, subject=f"r{number}")], number)
    holder = sender(store)
    first = {due.destination: due for due in store.outbox.due(10)}
    assert {due.alert.correlation_id for due in first.values()} == {"c0"}
    assert store.outbox.postpone(holder, first["email:a@example.com"], 10, 1_000)
    assert store.outbox.finish(holder, first["email:b@example.com"], 10)
    assert keys(store, 10) == [("email:b@example.com", "c1", "start")]
    assert keys(store, 1_000)[-1] == ("email:a@example.com", "c0", "start")
    assert [
        due.attempts for due in store.outbox.due(1_000) if due.destination == "email:a@example.com"
    ] == [1]
    assert [key[1] for key in deliver_all(store, 1_000) if key[0] == "email:a@example.com"] == [
        "c0",
        "c1",
        "c2",
    ]
    assert store.outbox.states()["email:a@example.com"] == (1_000, 10)


def test_only_the_holder_of_the_lease_changes_anything(store: StoreWithOutbox) -> None:
    having(store, policy())
    store.outbox.put([alert()], 0)
    (due,) = store.outbox.due(0)
    assert store.outbox.acquire("first")
    assert not store.outbox.acquire("second")
    assert store.outbox.acquire("first")
    store.outbox.release("second")
    assert not store.outbox.acquire("second")
    store.outbox.release("first")
    assert store.outbox.acquire("second")
    assert not store.outbox.acquire("first")
    assert not store.outbox.finish("first", due, 5)
    assert not store.outbox.postpone("first", due, 5, 10)
    assert keys(store, 5) == [("email:a@example.com", "one", "start")]
    assert store.outbox.finish("second", due, 5)
    assert store.outbox.history(0, None, 0, 5)[1] == 1


def test_an_incident_within_the_interval_is_told_late_or_never(store: StoreWithOutbox) -> None:
    having(store, policy(alert_interval="1h"))
    store.outbox.put([alert("c1")], 0)
    store.outbox.put([alert("c1", "end")], 1)
    assert [key[1:] for key in deliver_all(store, 1)] == [("c1", "start"), ("c1", "end")]
    store.outbox.put([alert("c2")], 2)
    store.outbox.put([alert("other", subject="r2")], 2)
    assert [key[1:] for key in deliver_all(store, 2)] == [("other", "start")]
    store.outbox.put([alert("c2", "end")], 3)
    store.outbox.put([alert("c3")], 4)
    assert keys(store, HOUR - 1) == []
    assert keys(store, HOUR) == [("email:a@example.com", "c3", "start")]
    store.outbox.put([alert("c3", "end")], HOUR + 1)
    assert [key[1:] for key in deliver_all(store, HOUR + 1)] == [("c3", "start"), ("c3", "end")]


def test_what_began_in_a_silence_is_not_ended_behind_it(store: StoreWithOutbox) -> None:
    having(store, policy(), Silence(id="s1", policy_id="p1", start_ms=0, end_ms=100))
    store.outbox.put([alert("quiet")], 50)
    store.outbox.put([alert("quiet", "end"), alert("loud", subject="r2")], 200)
    assert [key[1:] for key in deliver_all(store, 200)] == [("loud", "start")]
    assert [
        (found.start.correlation_id, found.end is not None) for found in store.outbox.incidents(0)
    ] == [
        ("loud", False),
        ("quiet", True),
    ]


def test_history_and_incidents_are_forgotten_in_their_time_and_open_ones_are_not(
    store: StoreWithOutbox,
) -> None:
    having(store, policy())
    store.outbox.put([alert("over"), alert("over", "end"), alert("open", subject="r2")], 0)
    deliver_all(store, 0)
    assert store.outbox.history(0, None, 0, 2)[1] == 3
    store.outbox.forget(HISTORY_KEPT_MS)
    assert store.outbox.history(0, None, 0, 2)[1] == 3
    store.outbox.forget(HISTORY_KEPT_MS + 1)
    assert store.outbox.history(0, None, 0, 2) == ([], 0)
    assert len(store.outbox.incidents(0)) == 2
    store.outbox.put(
        [alert("waits", at_ms=0, subject="r3"), alert("waits", "end", subject="r3")], 0
    )
    store.outbox.forget(INCIDENTS_KEPT_MS + 1)
    assert {found.start.correlation_id for found in store.outbox.incidents(0)} == {"open", "waits"}
    assert [found.correlation_id for found in store.outbox.open_incidents()] == ["open"]


def test_history_is_paged_newest_first_within_its_bounds(store: StoreWithOutbox) -> None:
    having(store, policy())
    for number in range(5):
        store.outbox.put([alert(f"c{number}", at_ms=number, subject=f"r{number}")], number)
        deliver_all(store, number * 10)
    found, total = store.outbox.history(10, 40, 1, 1)
    assert total == 3
    assert [
        (entry.correlation_id, entry.sent_ms, entry.mechanism, entry.mechanism_type)
        for entry in found
    ] == [("c2", 20, "a@example.com", "email")]
    assert found[0].alert_body == alert().text
    (about,), total = store.outbox.history(0, None, 0, 5, "z1/r3")
    assert (about.correlation_id, total) == ("c3", 1)


def test_a_destination_that_is_full_takes_no_more_and_the_history_says_so(
    store: StoreWithOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert WAITING_MAX >= 1_000
    monkeypatch.setattr(outbox_module, "WAITING_MAX", 2)
    having(store, policy())
    for number in range(3):
        store.outbox.put([alert(f"c{number}", subject=f"r{number}")], number)
    assert store.outbox.waiting() == 2
    (entry,), _ = store.outbox.history(0, None, 0, 5)
    assert entry.problem == "2 messages wait for this destination already"


def test_texts_from_outside_that_a_database_cannot_keep_are_kept_without_it(
    store: StoreWithOutbox,
) -> None:
    having(store, policy())
    odd = make(
        "greenroom_rejecting",
        "start",
        0,
        "odd",
        {**ALERTS[TYPE].example, "path": "a\0b"},
        subject_id="r1",
        subject_name="sh\0op",
    )
    store.outbox.put([odd], 0)
    deliver_all(store, 0)
    assert store.outbox.history(0, None, 0, 1)[0][0].mechanism == "a@example.com"
