"""The interface of running notifications for the alerting API."""

from typing import Protocol

from greenroom.alerts.rules.outbox import Dispatch
from greenroom.model.alert import Alert, Incident
from greenroom.model.notification import AlertPolicy, Webhook


class NotificationView(Protocol):
    """The running side of notifications. Methods block: call them in a thread. Those of the store
    raise StorageFailed.
    """

    @property
    def webhook_test(self) -> str:
        """`required`, `reported` or `off`."""

    @property
    def mail_ready(self) -> bool:
        """Whether there is a mail server."""

    def url_problem(self, url: str) -> str:
        """Why the settings never allow this URL, for any address of its host; empty when they may."""

    def test(self, webhook: Webhook) -> str:
        """Sends the test message and notes how it went; what is wrong, empty when it was taken."""

    def states(self) -> dict[str, tuple[int | None, int | None]]:
        """Destination key -> (last success, last failure) in Unix milliseconds."""

    def waiting(self) -> int:
        """How many messages are not delivered yet."""

    def history(
        self, since_ms: int, before_ms: int | None, skip: int, count: int
    ) -> tuple[list[Dispatch], int]:
        """A page of the history, newest first, and how many rows there are."""

    def incidents(self, since_ms: int) -> list[Incident]:
        """Incidents that began since then, and those that go on, newest first."""

    def put_test(self, policy: AlertPolicy, alert: Alert) -> None:
        """Sends this alert to all destinations of the policy, regardless of its filters, interval
        and silences.
        """


class NoNotifications:
    """Where nothing is sent: for documents and tests of other things."""

    webhook_test = "off"
    mail_ready = False

    def url_problem(self, url: str) -> str:
        """None."""
        del url
        return ""

    def test(self, webhook: Webhook) -> str:
        """Not sent."""
        del webhook
        return ""

    def states(self) -> dict[str, tuple[int | None, int | None]]:
        """Nothing was ever tried."""
        return {}

    def waiting(self) -> int:
        """None."""
        return 0

    def history(
        self, since_ms: int, before_ms: int | None, skip: int, count: int
    ) -> tuple[list[Dispatch], int]:
        """Empty."""
        del since_ms, before_ms, skip, count
        return [], 0

    def incidents(self, since_ms: int) -> list[Incident]:
        """None."""
        del since_ms
        return []

    def put_test(self, policy: AlertPolicy, alert: Alert) -> None:
        """Not sent."""
        del policy, alert
