"""Notifications: available alerts, destinations, policies, silences, history."""

from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from greenroom.alerts import (
    destinations as alert_destinations,
)
from greenroom.alerts import (
    history as alert_history,
)
from greenroom.alerts import (
    policies as alert_policies,
)
from greenroom.alerts import (
    silences,
)
from greenroom.alerts.rules.outbox import HISTORY_KEPT_MS
from greenroom.alerts.view import NotificationView
from greenroom.configuration.dependencies import Edit, EditCall, Read, WithConfig
from greenroom.web.config_service import ChangeContext, ConfigChange, opaque_id
from greenroom.web.dependencies import Document, Paged
from greenroom.web.envelope import answered, answered_bare
from greenroom.web.openapi import documented
from greenroom.web.routing import Depends, Query, Router


def _view(request: Request) -> NotificationView:
    found: NotificationView = request.app.state.notifications
    return found


WithView = Annotated[NotificationView, Depends(_view)]


router = Router(
    tags=["notifications"],
    prefix="/accounts/{account_id}/alerting/v3",
    schemas={
        "Webhook": alert_destinations.WEBHOOK,
        "PagerdutyService": alert_destinations.PAGERDUTY,
        "Policy": alert_policies.POLICY,
        "Silence": silences.SILENCE,
        "Dispatch": alert_history.DISPATCH,
        "AvailableAlerts": alert_policies.AVAILABLE,
        "EligibleDestinations": alert_destinations.ELIGIBLE,
    },
)

LINKING = (
    "PagerDuty is linked by the routing key of an Events API v2 integration: POST it to"
    " destinations/pagerduty"
)


@router.get("/available_alerts", **documented("AvailableAlerts", may="read"))
def list_available_alerts() -> Response:
    """List the types of alerts by category, with their filters."""
    return answered(alert_policies.available())


@router.get("/destinations/eligible", **documented("EligibleDestinations", may="read"))
def list_eligible_destinations(view: WithView) -> Response:
    """List what alerts can be sent by."""
    return answered(alert_destinations.eligible(view))


@router.get("/destinations/pagerduty", **documented("[PagerdutyService]", may="read"))
def list_pagerduty_services(read: Read) -> Response:
    """List the PagerDuty services."""
    return read(alert_destinations.services)


@router.post("/destinations/pagerduty", **documented("Id", body="PagerdutyServiceCreate"))
def create_pagerduty_service(edit: Edit, document: Document) -> Response:
    """Add a PagerDuty service by its routing key, which is never shown again. Not one of
    Cloudflare's calls.
    """
    return edit(alert_destinations.create_service(document))


@router.delete("/destinations/pagerduty", **documented("", change=True))
def delete_pagerduty_services(edit: Edit) -> Response:
    """Delete all PagerDuty services."""
    return edit.bare(alert_destinations.delete_services())


@router.post("/destinations/pagerduty/connect", **documented("Id", may="edit", change=True))
def connect_pagerduty() -> Response:
    """Get a token for linking. It links nothing by itself: greenroom is linked by a routing key
    instead.
    """
    return answered({"id": opaque_id()}, messages=[LINKING])


@router.get("/destinations/pagerduty/connect/{token_id}", **documented("Id", may="read"))
def link_pagerduty(token_id: str) -> Response:
    """Get the token back. It links nothing: greenroom is linked by a routing key instead."""
    return answered({"id": token_id[:64]}, messages=[LINKING])


@router.delete("/destinations/pagerduty/{service_id}", **documented("", change=True))
def delete_pagerduty_service(edit: Edit, service_id: str) -> Response:
    """Delete one PagerDuty service. Not one of Cloudflare's calls."""
    return edit.bare(alert_destinations.delete_services(service_id))


@router.get("/destinations/webhooks", **documented("[Webhook]", may="read"))
def list_webhooks(read: Read, view: WithView) -> Response:
    """List the webhooks."""
    states = view.states()
    return read(
        lambda known: [alert_destinations.show(entry, states) for entry in known.webhooks.values()]
    )


@router.post("/destinations/webhooks", outbound=True, **documented("Id", body="WebhookCreate"))
def create_webhook(edit: Edit, view: WithView, document: Document) -> Response:
    """Create a webhook, after it has taken a test message."""
    return _saved_webhook(edit, view, None, document)


@router.get("/destinations/webhooks/{webhook_id}", **documented("Webhook", may="read"))
def get_webhook(config_service: WithConfig, view: WithView, webhook_id: str) -> Response:
    """Get a webhook, without its secret."""
    entry = config_service.look(lambda known: alert_destinations.webhook_of(known, webhook_id))
    return answered(alert_destinations.show(entry, view.states()))


@router.put(
    "/destinations/webhooks/{webhook_id}", outbound=True, **documented("Id", body="WebhookCreate")
)
def put_webhook(edit: Edit, view: WithView, document: Document, webhook_id: str) -> Response:
    """Replace a webhook, after it has taken a test message where its URL or its secret changes."""
    return _saved_webhook(edit, view, webhook_id, document)


def _saved_webhook(
    edit: EditCall, view: NotificationView, webhook_id: str | None, document: object
) -> Response:
    result, problem = alert_destinations.keep(
        edit.service, edit.caller.author, view, webhook_id, document
    )
    return answered(result, messages=[f"webhook test failed: {problem}"] if problem else [])


@router.delete("/destinations/webhooks/{webhook_id}", **documented("", change=True))
def delete_webhook(edit: Edit, webhook_id: str) -> Response:
    """Delete a webhook."""
    return edit.bare(alert_destinations.delete(webhook_id))


@router.get("/history", **documented("[Dispatch]", info="Page", may="read"))
def list_history(
    config_service: WithConfig,
    view: WithView,
    page: Paged,
    since: Annotated[
        str | None, Query(max_length=40, description="Not before this time, RFC 3339.")
    ] = None,
    before: Annotated[
        str | None, Query(max_length=40, description="Before this time, RFC 3339.")
    ] = None,
) -> Response:
    """List what was sent in the last 30 days, newest first."""
    kept_ms = max(0, config_service.clock.now_ms() - HISTORY_KEPT_MS)
    since_ms = max(kept_ms, alert_history.bound_ms("since", since) or 0)
    skip = (page.page - 1) * page.per_page
    found, total = view.history(
        since_ms, alert_history.bound_ms("before", before), skip, page.per_page
    )
    waiting = view.waiting()
    notices = [f"messages waiting to be delivered: {waiting}"] if waiting else []
    return answered(
        [alert_history.show(entry) for entry in found], page.info(len(found), total), notices
    )


@router.get("/policies", **documented("[Policy]", may="read"))
def list_policies(read: Read) -> Response:
    """List the policies."""
    return read(
        lambda known: [alert_policies.show(entry) for entry in known.alert_policies.values()]
    )


@router.post("/policies", **documented("Id", body="PolicyCreate"))
def create_policy(edit: Edit, document: Document) -> Response:
    """Create a policy."""
    return _saved_policy(edit, alert_policies.create(document), document)


@router.get("/policies/{policy_id}", **documented("Policy", may="read"))
def get_policy(read: Read, policy_id: str) -> Response:
    """Get a policy."""
    return read(lambda known: alert_policies.show(alert_policies.policy_of(known, policy_id)))


@router.put("/policies/{policy_id}", **documented("Id", body="PolicyEdit"))
def put_policy(edit: Edit, document: Document, policy_id: str) -> Response:
    """Change a policy; fields that are left out stay."""
    return _saved_policy(edit, alert_policies.change(policy_id, document), document)


def _saved_policy(edit: EditCall, plan: ConfigChange, document: object) -> Response:
    result = edit.service.change(edit.caller.author, plan)
    warnings = edit.service.look(lambda known: alert_policies.warnings(known, document))
    return answered(result, messages=warnings)


@router.delete("/policies/{policy_id}", **documented("", change=True))
def delete_policy(edit: Edit, policy_id: str) -> Response:
    """Delete a policy."""
    return edit.bare(alert_policies.delete(policy_id))


@router.post("/policies/{policy_id}/test", **documented("", may="edit", change=True))
def test_policy(config_service: WithConfig, view: WithView, policy_id: str) -> Response:
    """Send an example to all destinations of a policy. Not one of Cloudflare's calls."""
    known = config_service.look(lambda known: known)
    alert_policies.send_test(
        known, policy_id, view, ChangeContext(config_service.clock.now_ms(), opaque_id)
    )
    return answered_bare()


@router.get("/silences", **documented("[Silence]", may="read"))
def list_silences(read: Read) -> Response:
    """List the silences."""
    return read(silences.every)


@router.post("/silences", **documented("", body="[SilenceCreate]"))
def create_silences(edit: Edit, document: Document) -> Response:
    """Create silences."""
    return edit.bare(silences.put_all(document, change=False))


@router.put("/silences", **documented("[Silence]", body="[SilenceCreate]"))
def put_silences(edit: Edit, document: Document) -> Response:
    """Change the silences whose ids are sent, and create those that are sent without one."""
    return edit(silences.put_all(document, change=True))


@router.get("/silences/{silence_id}", **documented("Silence", may="read"))
def get_silence(read: Read, silence_id: str) -> Response:
    """Get a silence."""
    return read(lambda known: silences.show(silences.silence_of(known, silence_id)))


@router.delete("/silences/{silence_id}", **documented("", change=True))
def delete_silence(edit: Edit, silence_id: str) -> Response:
    """Delete a silence."""
    return edit.bare(silences.delete(silence_id))
