"""Calls about the account: itself, the token, the audit log, records that cannot be used."""

from starlette.responses import Response

from greenroom.configuration import audit, unusable, zones
from greenroom.configuration.dependencies import Edit, Read, WithConfig
from greenroom.web.dependencies import AnyCaller, FilteredReader, Paged
from greenroom.web.envelope import answered
from greenroom.web.openapi import documented
from greenroom.web.routing import Router
from greenroom.web.time_format import plain_moment

_ACCOUNT = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in ("id", "name", "type")},
        "settings": {"type": "object"},
    },
    "required": ["id", "name", "type", "settings"],
    "additionalProperties": False,
}
_VERIFIED_TOKEN = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "status": {"type": "string", "enum": ["active"]},
        "expires_on": {"type": "string", "format": "date-time"},
    },
    "required": ["id", "status"],
    "additionalProperties": False,
}

router = Router(tags=["accounts"], schemas={"Account": _ACCOUNT, "VerifiedToken": _VERIFIED_TOKEN})
audit_router = Router(tags=["audit log"], schemas={"AuditEntry": audit.LOG})
unusable_router = Router(tags=["unusable records"], schemas={"Unusable": unusable.UNUSABLE})


@router.get("/accounts", **documented("[Account]", info="Page"))
def list_accounts(caller: FilteredReader, page: Paged) -> Response:
    """List accounts: there is one in each installation."""
    del caller
    return page.answer([zones.show_account()], lambda shown: shown)


@router.get("/accounts/{account_id}", **documented("Account"))
def get_account(caller: FilteredReader) -> Response:
    """Get the account."""
    del caller  # there is one account, and May has looked at it
    return answered(zones.show_account())


@router.get("/user/tokens/verify", **documented("VerifiedToken"))
def verify_token(caller: AnyCaller) -> Response:
    """Verify the token of this request, of any scope."""
    expires_ms = caller.token.expires_ms
    return answered(
        {"id": caller.token.id, "status": "active"}
        | ({"expires_on": plain_moment(expires_ms)} if expires_ms else {})
    )


@audit_router.get(
    "/accounts/{account_id}/audit_logs", **documented("[AuditEntry]", may="read", info="Batch")
)
def list_entries(config_service: WithConfig, page: Paged) -> Response:
    """List changes, newest first."""
    shown = audit.page(config_service.store, (page.page - 1) * page.per_page, page.per_page)
    return answered(shown, {"page": page.page, "per_page": page.per_page, "count": len(shown)})


UNUSABLE = "/accounts/{account_id}/unusable_records"


@unusable_router.get(UNUSABLE, **documented("[Unusable]", may="read"))
def list_unusable(read: Read) -> Response:
    """List stored records that cannot be used."""
    return read(unusable.listing)


@unusable_router.delete(UNUSABLE + "/{kind}/{record_id}", **documented("Id", change=True))
def delete_unusable(edit: Edit, kind: str, record_id: str) -> Response:
    """Delete a stored record that cannot be used, and everything that belongs to it."""
    return edit(unusable.remove(kind, record_id))
