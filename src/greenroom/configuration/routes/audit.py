"""The log of every change."""

from starlette.responses import Response

from greenroom.configuration import audit
from greenroom.configuration.dependencies import WithConfig
from greenroom.web.dependencies import Paged
from greenroom.web.envelope import answered
from greenroom.web.openapi import told
from greenroom.web.routing import Router

router = Router(tags=["audit log"])


@router.get("/accounts/{account_id}/audit_logs", **told("[AuditEntry]", may="read", info="Batch"))
def list_entries(config_service: WithConfig, page: Paged) -> Response:
    """List changes, newest first."""
    shown = audit.page(config_service.store, (page.page - 1) * page.per_page, page.per_page)
    return answered(shown, {"page": page.page, "per_page": page.per_page, "count": len(shown)})
