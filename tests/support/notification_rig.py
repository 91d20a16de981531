"""A sender of notifications in this process, on a store with policies and their receivers."""

import asyncio
import time

import pytest
from store_with_outbox import StoreWithOutbox

from greenroom.alerts import delivery, sender
from greenroom.alerts.delivery import Delivery
from greenroom.alerts.sender import NotificationSender
from greenroom.model.alert import Alert
from greenroom.model.alert_types import ALERTS, make
from greenroom.model.change import Put
from greenroom.model.notification import AlertPolicy, Webhook
from greenroom.outbound import Guard, OutboundPolicy, RequestLimits
from greenroom.outbound.mail import MailServer

TYPE = "greenroom_rejecting"
HERE = OutboundPolicy(ports=(), allowed=("127.0.0.1",))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def alert(number: int, state: str = "start") -> Alert:
    return make(
        TYPE,
        state,
        now_ms(),
        f"c{number}",
        ALERTS[TYPE].example,
        subject_id=f"r{number}",
        subject_name=f"room {number}",
    )


def having(store: StoreWithOutbox, *records) -> None:
    store.write(
        [Put(record) for record in records],
        expected=store.read().revision,
        author="me",
        now_ms=now_ms(),
    )


def policy(**changed) -> AlertPolicy:
    return AlertPolicy(**{"id": "p1", "name": "Shop", "alert_type": TYPE, **changed})


def hook(url: str, id: str = "w1", **changed) -> Webhook:
    return Webhook(**{"id": id, "name": "Team", "url": url, "secret": "s3cret", **changed})


def made(
    store: StoreWithOutbox,
    policy: OutboundPolicy = HERE,
    mail: MailServer | None = None,
    attempt=None,
) -> NotificationSender:
    deliver = Delivery(Guard(policy), now_ms, mail)
    return NotificationSender(
        store.outbox, store.read, attempt or deliver.attempt, now_ms, lambda: 0.5
    )


def running(store: StoreWithOutbox, done, seconds: float = 60.0, **options) -> None:
    """Runs a sender until something has happened. `seconds`: when it has gone wrong, also on a busy
    machine; it takes a few.
    """

    async def story() -> None:
        task = asyncio.create_task(made(store, **options).run())
        end_s = time.monotonic() + seconds
        try:
            while not done():
                assert not task.done(), task.exception()
                assert time.monotonic() < end_s, (
                    store.outbox.waiting(),
                    store.outbox.states(),
                    store.outbox.history(0, None, 0, 50),
                )
                await asyncio.sleep(0.01)  # real receivers, in real time
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(story())


def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries and waiting for a dead sender in tenths of the usual time."""
    monkeypatch.setattr("greenroom.alerts.rules.outbox.FIRST_MS", 100)
    monkeypatch.setattr("greenroom.alerts.rules.outbox.LONGEST_MS", 1_000)
    monkeypatch.setattr(sender, "LOOK_S", 0.05)
    monkeypatch.setattr(
        delivery, "LIMITS", RequestLimits(total_s=1.0, connect_s=1.0, body_max=4_096)
    )
