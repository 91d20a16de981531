"""What pages and API need of running notifications."""

from typing import Protocol

from greenroom.alerts.rules.outbox import Dispatch
from greenroom.model.alert import Alert, Incident
from greenroom.model.notification import AlertPolicy, Webhook
from greenroom.web.pages.request import PagePart


class NotificationView(Protocol):
    """Methods block. Those of the store raise StorageFailed."""

    @property
    def webhook_test(self) -> str:
        """`required`, `reported` or `off`."""

    @property
    def mail_ready(self) -> bool: ...

    def url_problem(self, url: str) -> str:
        """Empty when allowed."""

    def test(self, webhook: Webhook) -> str:
        """Records the outcome; empty when delivered."""

    def states(self) -> dict[str, tuple[int | None, int | None]]:
        """Destination key -> (last success, last failure) in Unix ms."""

    def waiting(self) -> int: ...

    def history(
        self, since_ms: int, before_ms: int | None, skip: int, count: int, subject: str = ""
    ) -> tuple[list[Dispatch], int]:
        """Newest first, and the total."""

    def incidents(self, since_ms: int) -> list[Incident]: ...

    def put_test(self, policy: AlertPolicy, alert: Alert) -> None:
        """Despite filters, interval and silences."""

    def test_problems(self, correlation_id: str) -> list[tuple[str, str]]:
        """Waits some seconds for the first attempt."""


NOTIFICATION_VIEW = PagePart[NotificationView]("notifications")


class NoNotifications:
    webhook_test = "off"
    mail_ready = False

    def url_problem(self, url: str) -> str:
        del url
        return ""

    def test(self, webhook: Webhook) -> str:
        del webhook
        return ""

    def states(self) -> dict[str, tuple[int | None, int | None]]:
        return {}

    def waiting(self) -> int:
        return 0

    def history(
        self, since_ms: int, before_ms: int | None, skip: int, count: int, subject: str = ""
    ) -> tuple[list[Dispatch], int]:
        del since_ms, before_ms, skip, count, subject
        return [], 0

    def incidents(self, since_ms: int) -> list[Incident]:
        del since_ms
        return []

    def put_test(self, policy: AlertPolicy, alert: Alert) -> None:
        del policy, alert

    def test_problems(self, correlation_id: str) -> list[tuple[str, str]]:
        del correlation_id
        return []
