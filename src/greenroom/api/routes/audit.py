"""The log of every change."""

from starlette.responses import Response

from greenroom.api.dependencies import Paged, WithConfig
from greenroom.api.envelope import answered
from greenroom.api.openapi import told
from greenroom.api.routing import Router
from greenroom.control import audit

router = Router(tags=["audit log"])


@router.get("/accounts/{account_id}/audit_logs", **told("[AuditEntry]", may="read", info="Batch"))
def list_entries(config_service: WithConfig, page: Paged, account_id: str) -> Response:
    """List changes, newest first."""
    del account_id  # there is one, and May has looked at it
    shown = audit.page(config_service.store, (page.page - 1) * page.per_page, page.per_page)
    return answered(shown, {"page": page.page, "per_page": page.per_page, "count": len(shown)})
