"""Messages reach real receivers that fail, hang, refuse and come back: all of them, in order, over
kill -9, doubled only with their id.
"""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from notification_rig import HERE, alert, having, hook, in_a_hurry, made, now_ms, policy, running
from receivers import WebReceiver, until
from store_with_outbox import StoreWithOutbox

from greenroom.alerts import delivery, sender
from greenroom.alerts.delivery import Delivery, DeliveryOutcome
from greenroom.alerts.rules.outbox import Due
from greenroom.alerts.sender import NotificationSender
from greenroom.configuration.store import default_url
from greenroom.model.notification import PagerdutyService
from greenroom.outbound import Guard, OutboundPolicy, RequestLimits


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreWithOutbox]:
    found = StoreWithOutbox(default_url(tmp_path))
    yield found
    found.close()


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_hurry(monkeypatch)


async def test_a_webhook_gets_the_alert_and_its_secret_at_once(
    store: StoreWithOutbox, web: WebReceiver, monkeypatch
) -> None:
    monkeypatch.setattr(
        sender, "LOOK_S", 120
    )  # so it is told, and does not find it when it looks again
    having(store, hook(f"{web.url}/hook"), policy(webhook_ids=("w1",)))
    took: list[float] = []
    task = asyncio.create_task(made(store).run())
    await asyncio.sleep(0.7)  # the sender has looked, and waits
    begun = time.monotonic()
    await asyncio.to_thread(store.outbox.put, [alert(1)], now_ms())
    while not web.taken:
        await asyncio.sleep(0.005)  # a real receiver
    took.append(time.monotonic() - begun)
    until_written = time.monotonic() + 60
    while store.outbox.waiting() and time.monotonic() < until_written:
        await asyncio.sleep(0.01)  # for the history
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    path, headers, body = web.requests[0]
    assert (
        path,
        headers["cf-webhook-auth"],
        body["alert_correlation_id"],
        body["webhook_name"],
    ) == ("/hook", "s3cret", "c1", "Team")
    assert took[0] < 60
    assert store.outbox.history(0, None, 0, 1)[0][0].problem == ""
    assert store.outbox.acquire("the next")


def test_a_receiver_that_fails_hangs_and_closes_gets_everything_in_order(
    store: StoreWithOutbox, web: WebReceiver, hurry
) -> None:
    answers = [500, "hang", "close", 429, 302, 200]
    web.behave = lambda number: answers[number] if number < len(answers) else 200
    having(store, hook(web.url), policy(webhook_ids=("w1",)))
    for number in range(4):
        store.outbox.put([alert(number)], now_ms())
        store.outbox.put([alert(number, "end")], now_ms())
    running(store, lambda: len(web.taken) == 8 and store.outbox.waiting() == 0)
    wanted = [
        (f"c{number}", f"ALERT_STATE_EVENT_{state}")
        for number in range(4)
        for state in ("START", "END")
    ]
    assert [found for found, _ in itertools.groupby(web.correlations())] == wanted, (
        "a second one only behind the first"
    )
    assert {body["alert_correlation_id"] for _, _, body in web.requests[:6]} == {"c0"}
    entries, total = store.outbox.history(0, None, 0, 20)
    assert total == 8
    assert entries[-1].attempts >= 6 > entries[0].attempts, (
        "on a busy machine an attempt may end before it arrives"
    )


class SlowLook:
    """An outbox whose `due`, once a delivery is under way, gives its rows only after that delivery
    has ended: a busy machine.
    """

    def __init__(self, store: StoreWithOutbox) -> None:
        self._outbox = store.outbox
        self.sender: NotificationSender | None = None
        self.under_way = threading.Event()
        self.read = threading.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._outbox, name)

    def due(self, at_ms: int) -> list[Due]:
        found = self._outbox.due(at_ms)
        if self.under_way.is_set() and not self.read.is_set():
            self.read.set()
            until(lambda: self.sender is not None and not self.sender._busy)
        return found


async def test_a_message_that_is_delivered_while_the_outbox_is_read_is_not_sent_again(
    store: StoreWithOutbox,
) -> None:
    having(store, policy(emails=("ann@example.com",)))
    store.outbox.put([alert(1)], now_ms())
    store.outbox.put([alert(2)], now_ms())
    slow, sent = SlowLook(store), []

    async def attempt(due: Due, _known: object) -> DeliveryOutcome:
        sent.append(due.alert.correlation_id)
        slow.under_way.set()
        await asyncio.to_thread(slow.read.wait, 30)
        return DeliveryOutcome()

    slow.sender = NotificationSender(slow, store.read, attempt, now_ms, lambda: 0.5)
    task = asyncio.create_task(slow.sender.run())
    await asyncio.to_thread(
        until, lambda: store.outbox.waiting() == 0 and not slow.sender._busy, 30
    )
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert sent == ["c1", "c2"]


def test_a_receiver_that_is_gone_for_a_while_gets_what_it_missed(
    store: StoreWithOutbox, hurry
) -> None:
    web = WebReceiver()
    port = web.port
    web.close()
    having(store, hook(f"http://127.0.0.1:{port}"), policy(webhook_ids=("w1",)))
    store.outbox.put([alert(1)], now_ms())
    running(store, lambda: store.outbox.states().get("webhook:w1", (None, None))[1] is not None)
    back = WebReceiver(port=port)
    try:
        store.outbox.put([alert(2)], now_ms())
        running(store, lambda: len(back.taken) == 2)
        assert [each[0] for each in back.correlations()] == ["c1", "c2"]
    finally:
        back.close()


def test_one_receiver_that_hangs_keeps_no_other_waiting(
    store: StoreWithOutbox, web: WebReceiver, hurry, monkeypatch
) -> None:
    long = RequestLimits(total_s=120.0, connect_s=120.0, body_max=4_096)
    monkeypatch.setattr(delivery, "LIMITS", long)
    stuck = WebReceiver(lambda _n: "hang")
    try:
        having(store, hook(web.url), hook(stuck.url, "w2"), policy(webhook_ids=("w1", "w2")))
        for number in range(5):
            store.outbox.put([alert(number)], now_ms())
        running(store, lambda: len(web.taken) == 5)
        assert len(stuck.requests) >= 1
    finally:
        stuck.close()


def test_a_fault_of_greenroom_is_a_failed_attempt_and_spins_for_no_one(
    store: StoreWithOutbox, hurry
) -> None:
    tries = []

    async def faulty(due: Due, _known: object) -> DeliveryOutcome:
        tries.append(due.alert.correlation_id)
        if len(tries) < 4:
            raise ValueError("a header with a line break")
        return DeliveryOutcome()

    having(store, policy(emails=("ann@example.com",)))
    store.outbox.put([alert(1)], now_ms())
    running(store, lambda: store.outbox.waiting() == 0, attempt=faulty)
    assert tries == ["c1"] * 4
    assert store.outbox.history(0, None, 0, 1)[0][0].attempts == 4


def test_what_no_longer_exists_is_given_up(store: StoreWithOutbox) -> None:
    having(store, policy(webhook_ids=("gone",), pagerduty_ids=("gone",)))
    store.outbox.put([alert(1)], now_ms())
    running(store, lambda: store.outbox.waiting() == 0)
    assert sorted(entry.problem for entry in store.outbox.history(0, None, 0, 5)[0]) == [
        "the PagerDuty service no longer exists",
        "the webhook no longer exists",
    ]


def test_an_address_that_the_settings_do_not_allow_is_never_called(
    store: StoreWithOutbox, web: WebReceiver
) -> None:
    having(store, hook(web.url), policy(webhook_ids=("w1",)))
    store.outbox.put([alert(1)], now_ms())
    running(
        store,
        lambda: store.outbox.states().get("webhook:w1") is not None,
        policy=OutboundPolicy(ports=()),
    )
    assert web.requests == []
    assert store.outbox.waiting() == 1


def test_pagerduty_is_triggered_and_resolved(store: StoreWithOutbox, web: WebReceiver) -> None:
    having(
        store,
        PagerdutyService(id="d1", name="on call", routing_key="R0"),
        policy(pagerduty_ids=("d1",)),
    )
    store.outbox.put([alert(1), alert(1, "end")], now_ms())
    deliver = Delivery(Guard(HERE), now_ms)
    deliver.pagerduty_url = web.url
    running(store, lambda: len(web.taken) == 2, attempt=deliver.attempt)
    assert [
        (body["event_action"], body["dedup_key"], body["routing_key"]) for body in web.taken
    ] == [
        ("trigger", "c1", "R0"),
        ("resolve", "c1", "R0"),
    ]


SENDING = """
import asyncio, sys, time
from greenroom.alerts.delivery import Delivery
from greenroom.alerts.sender import NotificationSender
from greenroom.outbound import Guard, OutboundPolicy, RequestLimits
from greenroom.alerts.store import SqlOutbox
from greenroom.configuration.store import SqlStore
store = SqlStore(sys.argv[1])
now_ms = lambda: time.time_ns() // 1_000_000
guard = Guard(OutboundPolicy(ports=(), allowed=("127.0.0.1",)))
asyncio.run(NotificationSender(SqlOutbox(store), store.read, Delivery(guard, now_ms).attempt, now_ms, lambda: 0.5).run())
"""


def start(store_url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SENDING, store_url])


def test_of_two_processes_one_sends_and_the_other_takes_over_within_seconds_when_it_is_killed(
    tmp_path: Path, web: WebReceiver
) -> None:
    """Killed in the middle of a request, so what was sent but not written down comes again, with
    the same id.
    """
    url = default_url(tmp_path)
    store = StoreWithOutbox(url)
    having(store, hook(web.url), policy(webhook_ids=("w1",)))
    web.behave = lambda number: "hang" if number == 20 else 200
    processes = {}
    try:
        for number in range(40):
            store.outbox.put([alert(number)], now_ms())
        for _ in range(2):
            process = start(url)
            processes[process.pid] = process
        until(lambda: len(web.requests) == 21, 90)
        time.sleep(0.3)  # both are in the middle of what they do
        before = list(web.correlations())
        killed_s = time.monotonic()
        for victim in list(
            processes.values()
        ):  # whichever sends: both are killed one after the other, the second is replaced first
            os.kill(victim.pid, signal.SIGKILL)
            victim.wait()
            del processes[victim.pid]
            process = start(url)
            processes[process.pid] = process
        until(lambda: len(web.taken) >= 40 and store.outbox.waiting() == 0, 90)
        took_s = time.monotonic() - killed_s
        ids = [each[0] for each in web.correlations()]
        assert list(dict.fromkeys(ids)) == [f"c{number}" for number in range(40)]
        assert len(ids) - len(before) <= 21
        assert took_s < 60  # a few seconds on a machine that does nothing else
        assert store.outbox.history(0, None, 0, 50)[1] == 40
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
        store.close()


def test_a_sender_that_was_away_too_long_changes_nothing_when_it_returns(
    store: StoreWithOutbox, web: WebReceiver, monkeypatch
) -> None:
    """Its attempt takes longer than the other waits for a sign of life, which it cannot give (as if
    it had been stopped).
    """
    monkeypatch.setattr(sender, "LOOK_S", 0.02)
    monkeypatch.setattr("greenroom.alerts.store.TERM_MS", 200)
    having(store, hook(web.url), policy(webhook_ids=("w1",)))
    store.outbox.put([alert(1)], now_ms())
    (due,) = store.outbox.due(now_ms())
    assert store.outbox.acquire("frozen")
    running(store, lambda: len(web.taken) == 1 and store.outbox.waiting() == 0)
    store.outbox.finish("frozen", due, now_ms())
    assert store.outbox.history(0, None, 0, 5)[1] == 1
