"""The interface of running notifications for the alerting API."""

from typing import Protocol

from greenroom.alerts.rules.outbox import Dispatch
from greenroom.model.alert import Alert, Incident
from greenroom.model.notification import AlertPolicy, Webhook
from greenroom.web.pages.parts import PagePart


class NotificationView(Protocol):
    """Methods block: call them in a thread. Those of the store raise StorageFailed."""

    @property
    def webhook_test(self) -> str:
        """`required`, `reported` or `off`."""

    @property
    def mail_ready(self) -> bool:
        """Whether there is a mail server."""

    def url_problem(self, url: str) -> str:
        """Why the settings forbid this URL for any address of its host, or empty."""

    def test(self, webhook: Webhook) -> str:
        """Sends the test message and notes the outcome; what went wrong, or empty."""

    def states(self) -> dict[str, tuple[int | None, int | None]]:
        """Destination key -> (last success, last failure) in Unix milliseconds."""

    def waiting(self) -> int:
        """The number of undelivered messages."""

    def history(
        self, since_ms: int, before_ms: int | None, skip: int, count: int
    ) -> tuple[list[Dispatch], int]:
        """A page of the history, newest first, and the total."""

    def incidents(self, since_ms: int) -> list[Incident]:
        """Incidents that are open or began since then, newest first."""

    def put_test(self, policy: AlertPolicy, alert: Alert) -> None:
        """Sends an alert to all destinations, despite filters, interval and silences."""

    def test_problems(self, correlation_id: str) -> list[tuple[str, str]]:
        """(id of the destination, what went wrong at the first attempt) of a test; waits for it,
        some seconds at most.
        """


NOTIFICATION_VIEW = PagePart[NotificationView]("notifications")


class NoNotifications:
    """Sends nothing: for documents and tests."""

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
        self, since_ms: int, before_ms: int | None, skip: int, count: int
    ) -> tuple[list[Dispatch], int]:
        del since_ms, before_ms, skip, count
        return [], 0

    def incidents(self, since_ms: int) -> list[Incident]:
        del since_ms
        return []

    def put_test(self, policy: AlertPolicy, alert: Alert) -> None:
        del policy, alert

    def test_problems(self, correlation_id: str) -> list[tuple[str, str]]:
        del correlation_id
        return []
