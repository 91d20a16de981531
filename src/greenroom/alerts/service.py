"""The notifications of a running process: conditions are watched, messages sent, tests made."""

import asyncio
import concurrent.futures
import contextlib
import time
from collections.abc import Callable
from random import SystemRandom

from greenroom.alerts.delivery import Delivery
from greenroom.alerts.mail import Sending
from greenroom.alerts.rules.conditions import Picture
from greenroom.alerts.rules.matching import Destination
from greenroom.alerts.rules.message import Message
from greenroom.alerts.rules.outbox import Dispatch
from greenroom.alerts.sender import NotificationSender
from greenroom.alerts.store import SqlOutbox
from greenroom.alerts.view import NotificationView
from greenroom.alerts.watcher import Watcher
from greenroom.configuration.layers import LayeredStore
from greenroom.configuration.state import NotificationState
from greenroom.configuration.store import SqlStore
from greenroom.errors import StorageFailed
from greenroom.model.alert import Alert, Incident
from greenroom.model.notification import AlertPolicy, Webhook
from greenroom.outbound import Guard, read_target
from greenroom.outbound.guard import Listening
from greenroom.outbound.mail import MailServer

COUNT_S = 5.0

FIRST_ATTEMPT_S = 10.0

TEST_S = 20.0


class Notifications(NotificationView):
    def __init__(
        self,
        store: SqlStore,
        layered: LayeredStore,
        sending: Sending,
        now_ms: Callable[[], int],
        picture: Callable[[], Picture],
        listening: Listening = tuple,
        learn_listeners: Callable[[], object] = lambda: None,
    ) -> None:
        """Needs a running event loop. Nothing is sent to `listening`, greenroom's own listeners;
        `learn_listeners` blocks until the list includes processes that have just started.
        """
        self.outbox = SqlOutbox(store)
        self.outbox.layer = layered.over
        self._now_ms = now_ms
        self.state = NotificationState()
        self._picture = picture
        self._read = layered.read
        self._learn_listeners = learn_listeners
        self._loop = asyncio.get_running_loop()
        self._delivery = Delivery(Guard(sending.outbound, listening=listening), now_ms)
        self.apply(sending)

    def apply(self, sending: Sending) -> None:
        self._delivery.guard.policy = sending.outbound
        self._delivery.mail_server = sending.mail_server
        self._delivery.dashboard_url = sending.dashboard_url
        self._test_mode = sending.webhook_test

    async def run(self) -> None:
        sender = NotificationSender(
            self.outbox,
            self._read,
            self._delivery.attempt,
            self._now_ms,
            SystemRandom().random,
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(sender.run())
            tasks.create_task(Watcher(self._picture, self.outbox, self._now_ms).run())
            tasks.create_task(self._count())

    async def _count(self) -> None:
        while True:
            with contextlib.suppress(StorageFailed):
                count, oldest_ms = await asyncio.to_thread(self.outbox.backlog, self._now_ms())
                self.state = NotificationState(count, oldest_ms / 1000)
            await asyncio.sleep(COUNT_S)

    def incidents(self, since_ms: int) -> list[Incident]:
        return self.outbox.incidents(since_ms)

    @property
    def webhook_test(self) -> str:
        return self._test_mode

    @property
    def guard(self) -> Guard:
        return self._delivery.guard

    @property
    def mail_server(self) -> MailServer | None:
        return self._delivery.mail_server

    @property
    def mail_ready(self) -> bool:
        return self.mail_server is not None

    def url_problem(self, url: str) -> str:
        reason = self._delivery.guard.policy.target_problem(read_target(url))
        return f"{reason} ([outbound] of the configuration file)" if reason else ""

    def test(self, webhook: Webhook) -> str:
        self._learn_listeners()
        calling = self._delivery.call(webhook, Message(None, webhook_name=webhook.name))
        waiting = asyncio.run_coroutine_threadsafe(calling, self._loop)
        try:
            problem = waiting.result(TEST_S).problem
        except concurrent.futures.TimeoutError:
            waiting.cancel()
            problem = "the receiver did not answer in time"
        self.outbox.note(
            Destination("webhook", webhook.id).key, self._now_ms(), delivered=not problem
        )
        return problem

    def states(self) -> dict[str, tuple[int | None, int | None]]:
        return self.outbox.states()

    def waiting(self) -> int:
        return self.outbox.waiting()

    def history(
        self, since_ms: int, before_ms: int | None, skip: int, count: int, subject: str = ""
    ) -> tuple[list[Dispatch], int]:
        return self.outbox.history(since_ms, before_ms, skip, count, subject)

    def put_test(self, policy: AlertPolicy, alert: Alert) -> None:
        self.outbox.put_test(policy, alert, self._now_ms())

    def test_problems(self, correlation_id: str) -> list[tuple[str, str]]:
        end_s = time.monotonic() + FIRST_ATTEMPT_S
        while (found := self.outbox.test_problems(correlation_id)) is None:
            if time.monotonic() >= end_s:
                return [("", "no answer yet: greenroom is still trying")]
            time.sleep(0.1)
        return found
