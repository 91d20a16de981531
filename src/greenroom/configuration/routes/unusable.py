"""Stored records that cannot be used."""

from starlette.responses import Response

from greenroom.configuration import unusable
from greenroom.configuration.dependencies import Edit, Read
from greenroom.web.openapi import told
from greenroom.web.routing import Router

router = Router(tags=["unusable records"])

ALL = "/accounts/{account_id}/unusable_records"


@router.get(ALL, **told("[Unusable]", may="read"))
def list_unusable(read: Read) -> Response:
    """List stored records that cannot be used."""
    return read(unusable.listing)


@router.delete(ALL + "/{kind}/{record_id}", **told("Id", change=True))
def delete_unusable(edit: Edit, kind: str, record_id: str) -> Response:
    """Delete a stored record that cannot be used, and everything that belongs to it."""
    return edit(unusable.remove(kind, record_id))
