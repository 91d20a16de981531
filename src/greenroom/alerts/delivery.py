"""Delivers one message to one destination and says what went wrong and whether a retry can help."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from greenroom.alerts.mail import written
from greenroom.alerts.rules.channels import CHANNELS, GENERIC, PAGERDUTY_URL, Channel
from greenroom.alerts.rules.matching import Destination
from greenroom.alerts.rules.message import Message
from greenroom.alerts.rules.outbox import Due
from greenroom.model.configuration import Configuration
from greenroom.model.fields import is_sealed, key_of_sealed
from greenroom.model.notification import Webhook
from greenroom.outbound import (
    Guard,
    OutboundAnswer,
    OutboundFailed,
    OutboundRefused,
    Request,
    RequestLimits,
    exchange,
)
from greenroom.outbound.mail import MailRefused, MailServer, send

LIMITS = RequestLimits(total_s=15.0, connect_s=5.0, body_max=4_096)
"""No redirects: a secret is meant for the configured address."""


KEY_MISSING = (
    "its secret is sealed with the key {}, which is not in secrets.json of this machine: restore"
    " that file, or enter URL and secret again"
)


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """`problem` is empty after a delivery."""

    problem: str = ""
    permanent: bool = False
    retry_after_ms: int = 0


class Delivery:
    """`guard`, `mail_server` and `dashboard_url` may be replaced while it runs."""

    def __init__(
        self, guard: Guard, now_ms: Callable[[], int], mail_server: MailServer | None = None
    ) -> None:
        self.guard = guard
        self.mail_server = mail_server
        self.dashboard_url = ""
        self.pagerduty_url = PAGERDUTY_URL
        self._now_ms = now_ms

    async def attempt(self, due: Due, known: Configuration) -> DeliveryOutcome:
        destination = Destination.of(due.destination)
        message = Message(
            due.alert, due.policy_id, due.policy_name, dashboard_url=self.dashboard_url
        )
        if destination.mechanism == "email":
            return await self._mail(message, destination.id)
        if destination.mechanism == "pagerduty":
            service = known.pagerduty_services.get(destination.id)
            if service is None:
                return DeliveryOutcome("the PagerDuty service no longer exists", permanent=True)
            return await self._post(
                CHANNELS["pagerduty"], message, self.pagerduty_url, service.record.routing_key
            )
        webhook = known.webhooks.get(destination.id)
        if webhook is None:
            return DeliveryOutcome("the webhook no longer exists", permanent=True)
        return await self.call(webhook.record, replace(message, webhook_name=webhook.record.name))

    async def call(self, webhook: Webhook, message: Message) -> DeliveryOutcome:
        channel = CHANNELS.get(webhook.channel, CHANNELS[GENERIC])
        return await self._post(channel, message, webhook.url, webhook.secret)

    async def _mail(self, message: Message, recipient: str) -> DeliveryOutcome:
        server = self.mail_server
        if server is None:
            return DeliveryOutcome("no mail server is set (smtp_host in [notifications])")
        try:
            await send(server, written(message, server, recipient))
        except MailRefused as refused:
            return DeliveryOutcome(str(refused), refused.permanent)
        return DeliveryOutcome()

    async def _post(
        self, channel: Channel, message: Message, url: str, secret: str
    ) -> DeliveryOutcome:
        sealed = next(filter(is_sealed, (url, secret)), "")
        if sealed:
            return DeliveryOutcome(KEY_MISSING.format(key_of_sealed(sealed)))
        post = channel.write(message, url, secret, self._now_ms())
        try:
            answer = await exchange(
                self.guard, Request("POST", post.url, post.headers, post.body), LIMITS
            )
        except (OutboundRefused, OutboundFailed) as error:
            return DeliveryOutcome(str(error))
        return DeliveryOutcome(
            channel.problem(answer.status, answer.body), retry_after_ms=_retry_after_ms(answer)
        )


def _retry_after_ms(answer: OutboundAnswer) -> int:
    """Only the form in seconds: programs are not sent dates."""
    written_s = answer.headers.get("retry-after", "")
    return int(written_s) * 1000 if written_s.isdecimal() and len(written_s) < 7 else 0
