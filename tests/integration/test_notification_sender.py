"""Messages reach real receivers that fail, hang, refuse and come back: all of them, in order, over kill -9, doubled only with their id."""

import asyncio
import itertools
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from aiosmtpd.smtp import AuthResult, LoginPassword
from receivers import MailReceiver, WebReceiver, until

from greenroom.alerting.alert_types import ALERTS, make
from greenroom.alerting.outbox import Due
from greenroom.model.alert import Alert
from greenroom.model.change import Put
from greenroom.model.notification import AlertPolicy, PagerdutyService, Webhook
from greenroom.notify import delivery, sender
from greenroom.notify.delivery import Delivery, DeliveryOutcome
from greenroom.notify.mail import MailServer
from greenroom.notify.sender import NotificationSender
from greenroom.outbound import Guard, OutboundPolicy, RequestLimits
from greenroom.stores.sql import SqlStore, default_url

TYPE = "greenroom_rejecting"
HERE = OutboundPolicy(ports=(), allowed=("127.0.0.1",))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    found = SqlStore(default_url(tmp_path))
    yield found
    found.close()


@pytest.fixture
def web() -> Iterator[WebReceiver]:
    found = WebReceiver()
    yield found
    found.close()


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries and waiting for a dead sender in tenths of the usual time."""
    monkeypatch.setattr("greenroom.alerting.retries.FIRST_MS", 100)
    monkeypatch.setattr("greenroom.alerting.retries.LONGEST_MS", 1_000)
    monkeypatch.setattr(sender, "LOOK_S", 0.05)
    monkeypatch.setattr(delivery, "LIMITS", RequestLimits(total_s=1.0, connect_s=1.0, body_max=4_096))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def alert(number: int, state: str = "start") -> Alert:
    return make(TYPE, state, now_ms(), f"c{number}", ALERTS[TYPE].example, subject_id=f"r{number}", subject_name=f"room {number}")


def having(store: SqlStore, *records) -> None:
    store.write([Put(record) for record in records], expected=store.read().revision, author="me", now_ms=now_ms())


def policy(**changed) -> AlertPolicy:
    return AlertPolicy(**{"id": "p1", "name": "Shop", "alert_type": TYPE, **changed})


def hook(url: str, id: str = "w1", **changed) -> Webhook:
    return Webhook(**{"id": id, "name": "Team", "url": url, "secret": "s3cret", **changed})


def made(store: SqlStore, policy: OutboundPolicy = HERE, mail: MailServer | None = None, attempt=None) -> NotificationSender:
    deliver = Delivery(Guard(policy), now_ms, mail)
    return NotificationSender(store.outbox, store.read, attempt or deliver.attempt, now_ms, lambda: 0.5)


def running(store: SqlStore, done, seconds: float = 60.0, **options) -> None:
    """Runs a sender until something has happened. `seconds`: when it has gone wrong, also on a busy machine; it takes a few."""

    async def story() -> None:
        task = asyncio.create_task(made(store, **options).run())
        end_s = time.monotonic() + seconds
        try:
            while not done():
                assert not task.done(), task.exception()
                assert time.monotonic() < end_s, (store.outbox.waiting(), store.outbox.states(), store.outbox.history(0, None, 0, 50))
                await asyncio.sleep(0.01)  # real receivers, in real time
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(story())


def test_a_webhook_gets_the_alert_and_its_secret_at_once(store: SqlStore, web: WebReceiver) -> None:
    having(store, hook(f"{web.url}/hook"), policy(webhook_ids=("w1",)))
    took: list[float] = []

    async def story() -> None:
        task = asyncio.create_task(made(store).run())
        await asyncio.sleep(0.7)  # the sender has looked, and waits
        begun = time.monotonic()
        await asyncio.to_thread(store.outbox.put, [alert(1)], now_ms())
        while not web.taken:
            await asyncio.sleep(0.005)  # a real receiver
        took.append(time.monotonic() - begun)
        until_written = time.monotonic() + 5
        while store.outbox.waiting() and time.monotonic() < until_written:
            await asyncio.sleep(0.01)  # for the history
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(story())
    path, headers, body = web.requests[0]
    assert (path, headers["cf-webhook-auth"], body["alert_correlation_id"], body["webhook_name"]) == ("/hook", "s3cret", "c1", "Team")
    assert took[0] < 1
    assert store.outbox.history(0, None, 0, 1)[0][0].problem == ""
    assert store.outbox.lease()[0] == ""


def test_a_receiver_that_fails_hangs_and_closes_gets_everything_in_order(store: SqlStore, web: WebReceiver, hurry) -> None:
    answers = [500, "hang", "close", 429, 302, 200]
    web.behave = lambda number: answers[number] if number < len(answers) else 200
    having(store, hook(web.url), policy(webhook_ids=("w1",)))
    for number in range(4):
        store.outbox.put([alert(number)], now_ms())
        store.outbox.put([alert(number, "end")], now_ms())
    running(store, lambda: len(web.taken) == 8 and store.outbox.waiting() == 0)
    wanted = [(f"c{number}", f"ALERT_STATE_EVENT_{state}") for number in range(4) for state in ("START", "END")]
    assert [found for found, _ in itertools.groupby(web.correlations())] == wanted, "a second one only behind the first"
    assert {body["alert_correlation_id"] for _, _, body in web.requests[:6]} == {"c0"}
    entries, total = store.outbox.history(0, None, 0, 20)
    assert total == 8
    assert entries[-1].attempts >= 6 > entries[0].attempts, "on a busy machine an attempt may end before it arrives"


class SlowLook:
    """An outbox whose `due`, once a delivery is under way, gives its rows only after that delivery has ended: a busy machine."""

    def __init__(self, store: SqlStore) -> None:
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


def test_a_message_that_is_delivered_while_the_outbox_is_read_is_not_sent_again(store: SqlStore) -> None:
    having(store, policy(emails=("ann@example.com",)))
    store.outbox.put([alert(1)], now_ms())
    store.outbox.put([alert(2)], now_ms())
    slow, sent = SlowLook(store), []

    async def attempt(due: Due, _known: object) -> DeliveryOutcome:
        sent.append(due.alert.correlation_id)
        slow.under_way.set()
        await asyncio.to_thread(slow.read.wait, 30)
        return DeliveryOutcome()

    async def story() -> None:
        slow.sender = NotificationSender(slow, store.read, attempt, now_ms, lambda: 0.5)
        task = asyncio.create_task(slow.sender.run())
        await asyncio.to_thread(until, lambda: store.outbox.waiting() == 0 and not slow.sender._busy, 30)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(story())
    assert sent == ["c1", "c2"]


def test_a_receiver_that_is_gone_for_a_while_gets_what_it_missed(store: SqlStore, hurry) -> None:
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


def test_one_receiver_that_hangs_keeps_no_other_waiting(store: SqlStore, web: WebReceiver, hurry) -> None:
    stuck = WebReceiver(lambda _n: "hang")
    try:
        having(store, hook(web.url), hook(stuck.url, "w2"), policy(webhook_ids=("w1", "w2")))
        for number in range(5):
            store.outbox.put([alert(number)], now_ms())
        running(store, lambda: len(web.taken) == 5, 8)
        assert len(stuck.requests) >= 1
    finally:
        stuck.close()


def test_mail_is_handed_in_and_a_busy_mail_server_is_tried_again(store: SqlStore, hurry) -> None:
    mail = MailReceiver(lambda number: "451 busy" if number == 0 else "250 OK")
    try:
        having(store, policy(emails=("ann@example.com", "bob@example.com")))
        store.outbox.put([alert(7)], now_ms())
        server = MailServer("127.0.0.1", mail.port, "none", sender="alerts@shop.example")
        running(store, lambda: len(mail.messages) == 2 and store.outbox.waiting() == 0, mail=server)
        found = {to[0]: message for to, message in mail.messages}
        assert set(found) == {"ann@example.com", "bob@example.com"}
        message = found["ann@example.com"]
        assert message["subject"] == "[greenroom] All new visitors are turned away: room 7"
        assert "room 7 turns all new visitors away" in message.get_body(("plain",)).get_content()
        assert "<strong>" in message.get_body(("html",)).get_content()
        assert message["auto-submitted"] == "auto-generated"
        assert message["message-id"] != found["bob@example.com"]["message-id"]
    finally:
        mail.close()


def test_an_address_that_the_mail_server_refuses_for_good_is_given_up_and_holds_no_one(store: SqlStore, hurry) -> None:
    mail = MailReceiver(lambda _n: "rcpt 550 no such user")
    try:
        having(store, policy(emails=("gone@example.com",)))
        store.outbox.put([alert(1)], now_ms())
        running(store, lambda: store.outbox.waiting() == 0, mail=MailServer("127.0.0.1", mail.port, "none"))
        (entry,), _ = store.outbox.history(0, None, 0, 5)
        assert "550" in entry.problem
        assert "no such user" in entry.problem
        assert mail.tries == 1
    finally:
        mail.close()


def test_mail_without_a_mail_server_waits_and_says_why(store: SqlStore, caplog) -> None:
    async def story() -> DeliveryOutcome:
        due = Due(1, alert(1), "p1", "Shop", "", "email:a@example.com", 0, 0)
        return await Delivery(Guard(HERE), now_ms).attempt(due, store.read())

    outcome = asyncio.run(story())
    assert "smtp_host" in outcome.problem
    assert not outcome.permanent


def test_a_fault_of_greenroom_is_a_failed_attempt_and_spins_for_no_one(store: SqlStore, hurry) -> None:
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


@pytest.mark.filterwarnings("ignore:Requiring AUTH")  # where TLS is there from the first byte, the receiver does not see it
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_mail_goes_over_tls_with_a_login_and_not_with_a_wrong_one(
    store: SqlStore, tmp_path: Path, monkeypatch, security: str, hurry
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setattr("greenroom.notify.mail.TOTAL_S", 3.0)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    def check(_server: object, _session: object, _envelope: object, _mechanism: str, given: LoginPassword) -> AuthResult:
        return AuthResult(success=(given.login, given.password) == (b"me", b"pass word"), handled=False)

    secured = {"tls_context": context, "require_starttls": True} if security == "starttls" else {"ssl_context": context}
    mail = MailReceiver(authenticator=check, auth_required=True, auth_require_tls=security == "starttls", **secured)
    try:
        server = MailServer("127.0.0.1", mail.port, security, "me", "pass word", "alerts@shop.example")
        due = Due(1, alert(1), "p1", "Shop", "", "email:ann@example.com", 0, 0)

        def tried(**changed) -> str:
            deliver = Delivery(Guard(HERE), now_ms, replace(server, **changed))
            return asyncio.run(deliver.attempt(due, store.read())).problem

        assert "refused the login: 535" in tried(password="wrong")
        assert tried() == ""
        assert "cannot be used" in tried(security="tls" if security == "starttls" else "starttls")
        monkeypatch.delenv("SSL_CERT_FILE")
        assert "certificate" in tried().lower()
        assert [to for to, _ in mail.messages] == [["ann@example.com"]]
    finally:
        mail.close()


def test_what_no_longer_exists_is_given_up(store: SqlStore) -> None:
    having(store, policy(webhook_ids=("gone",), pagerduty_ids=("gone",)))
    store.outbox.put([alert(1)], now_ms())
    running(store, lambda: store.outbox.waiting() == 0)
    assert sorted(entry.problem for entry in store.outbox.history(0, None, 0, 5)[0]) == [
        "the PagerDuty service no longer exists",
        "the webhook no longer exists",
    ]


def test_an_address_that_the_settings_do_not_allow_is_never_called(store: SqlStore, web: WebReceiver) -> None:
    having(store, hook(web.url), policy(webhook_ids=("w1",)))
    store.outbox.put([alert(1)], now_ms())
    running(store, lambda: store.outbox.states().get("webhook:w1") is not None, policy=OutboundPolicy(ports=()))
    assert web.requests == []
    assert store.outbox.waiting() == 1


def test_pagerduty_is_triggered_and_resolved(store: SqlStore, web: WebReceiver) -> None:
    having(store, PagerdutyService(id="d1", name="on call", routing_key="R0"), policy(pagerduty_ids=("d1",)))
    store.outbox.put([alert(1), alert(1, "end")], now_ms())
    deliver = Delivery(Guard(HERE), now_ms)
    deliver.pagerduty_url = web.url
    running(store, lambda: len(web.taken) == 2, attempt=deliver.attempt)
    assert [(body["event_action"], body["dedup_key"], body["routing_key"]) for body in web.taken] == [
        ("trigger", "c1", "R0"),
        ("resolve", "c1", "R0"),
    ]


SENDING = """
import asyncio, sys, time
from greenroom.notify.delivery import Delivery
from greenroom.notify.sender import NotificationSender
from greenroom.outbound import Guard, OutboundPolicy
from greenroom.stores.sql import SqlStore
store = SqlStore(sys.argv[1])
now_ms = lambda: time.time_ns() // 1_000_000
guard = Guard(OutboundPolicy(ports=(), allowed=("127.0.0.1",)))
asyncio.run(NotificationSender(store.outbox, store.read, Delivery(guard, now_ms).attempt, now_ms, lambda: 0.5).run())
"""


def start(store_url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SENDING, store_url])


def test_of_two_processes_one_sends_and_the_other_takes_over_within_seconds_when_it_is_killed(tmp_path: Path, web: WebReceiver) -> None:
    """Killed in the middle of a request, so what was sent but not written down comes again, with the same id."""
    url = default_url(tmp_path)
    store = SqlStore(url)
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
        for victim in list(processes.values()):  # whichever sends: both are killed one after the other, the second is replaced first
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


def test_a_sender_that_was_away_too_long_changes_nothing_when_it_returns(store: SqlStore, web: WebReceiver, monkeypatch) -> None:
    """Its attempt takes longer than the other waits for a sign of life, which it cannot give (as if it had been stopped)."""
    monkeypatch.setattr(sender, "LOOK_S", 0.02)
    monkeypatch.setattr(sender, "STALE_S", 0.2)
    having(store, hook(web.url), policy(webhook_ids=("w1",)))
    store.outbox.put([alert(1)], now_ms())
    (due,) = store.outbox.due(now_ms())
    assert store.outbox.take("frozen", store.outbox.lease())
    running(store, lambda: len(web.taken) == 1 and store.outbox.waiting() == 0)
    assert not store.outbox.finish("frozen", due, now_ms())
    assert store.outbox.history(0, None, 0, 5)[1] == 1
