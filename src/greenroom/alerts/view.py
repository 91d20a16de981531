"""What pages and API need of running notifications."""

from greenroom.alerts.rules.outbox import Dispatch
from greenroom.model.alert import Alert, Incident
from greenroom.model.notification import AlertPolicy, Webhook
from greenroom.web.pages.request import PagePart


class NotificationView:
    """The answers where no notifications run. Methods block. Those of the store raise
    StorageFailed.
    """

    @property
    def webhook_test(self) -> str:
        """`required`, `reported` or `off`."""
        return "off"

    @property
    def mail_ready(self) -> bool:
        return False

    def url_problem(self, url: str) -> str:  # noqa: ARG002
        """Empty when allowed."""
        return ""

    def test(self, webhook: Webhook) -> str:  # noqa: ARG002
        """Records the outcome; empty when delivered."""
        return ""

    def states(self) -> dict[str, tuple[int | None, int | None]]:
        """Destination key -> (last success, last failure) in Unix ms."""
        return {}

    def waiting(self) -> int:
        return 0

    def history(
        self, since_ms: int, before_ms: int | None, skip: int, count: int, subject: str = ""
    ) -> tuple[list[Dispatch], int]:
        """Newest first, and the total."""
        del since_ms, before_ms, skip, count, subject
        return [], 0

    def incidents(self, since_ms: int) -> list[Incident]:  # noqa: ARG002
        return []

    def put_test(self, policy: AlertPolicy, alert: Alert) -> None:
        """Despite filters, interval and silences."""

    def test_problems(self, correlation_id: str) -> list[tuple[str, str]]:  # noqa: ARG002
        """Waits some seconds for the first attempt."""
        return []


NOTIFICATION_VIEW = PagePart[NotificationView]("notifications")
