"""While the store of notifications does not answer, the log says so once, and once when it answers
again.
"""

import asyncio
from collections.abc import Sequence

from structlog.testing import capture_logs

from greenroom.alerts.rules.conditions import Picture
from greenroom.alerts.sender import NotificationSender
from greenroom.alerts.watcher import Watcher
from greenroom.errors import StorageFailed
from greenroom.model.alert import Alert
from greenroom.notifier import ChangeNotifier


class FailingStore:
    """Raises what it was given, as long as it has something."""

    def __init__(self) -> None:
        self.reason = "disk full"
        self.changes = ChangeNotifier()

    def _fail(self) -> None:
        if self.reason:
            raise StorageFailed(self.reason)

    def open_incidents(self) -> list[Alert]:
        self._fail()
        return []

    def put(self, found: Sequence[Alert], now_ms: int) -> int:
        raise AssertionError("there is nothing to alert about")

    def due(self, now_ms: int) -> list[object]:
        self._fail()
        return []


def test_the_watcher_says_once_that_alerts_wait() -> None:
    store = FailingStore()
    watcher = Watcher(lambda: Picture(0, "p"), store, lambda: 0)

    async def story() -> None:
        for reason in ("disk full", "disk full", "disk full", "gone", "", ""):
            store.reason = reason
            await watcher.look_once()

    with capture_logs() as said:
        asyncio.run(story())
    assert [(line["event"], line.get("reason")) for line in said] == [
        ("alerts_waiting", "disk full"),
        ("alerts_waiting", "gone"),
        ("alerts_resumed", None),
    ]


def test_the_sender_says_once_that_notifications_wait() -> None:
    store, tries, enough = FailingStore(), 0, 5
    due = store.due

    def counted(now_ms: int) -> list[object]:
        nonlocal tries
        tries += 1
        store.reason = "" if tries > 3 else store.reason
        store.changes.notify()  # so it is tried again at once
        return due(now_ms)

    store.due = counted
    sender = NotificationSender(store, lambda: None, None, lambda: 0, lambda: 0.5)

    async def story() -> None:
        running = asyncio.create_task(sender.run())
        async with asyncio.timeout(60):
            while tries < enough:
                await asyncio.sleep(0.01)  # it tries in a thread
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    with capture_logs() as said:
        asyncio.run(story())
    assert [line["event"] for line in said] == ["notifications_waiting", "notifications_resumed"]
