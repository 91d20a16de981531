"""Stored records that cannot be used."""

from starlette.responses import Response

from greenroom.configuration import unusable
from greenroom.configuration.dependencies import WithConfig
from greenroom.web.dependencies import Editor
from greenroom.web.envelope import answered
from greenroom.web.openapi import told
from greenroom.web.routing import Router

router = Router(tags=["unusable records"])

ALL = "/accounts/{account_id}/unusable_records"


@router.get(ALL, **told("[Unusable]", may="read"))
def list_unusable(config_service: WithConfig, account_id: str) -> Response:
    """List stored records that cannot be used."""
    del account_id  # there is one, and May has looked at it
    return answered(config_service.look(unusable.listing))


@router.delete(ALL + "/{kind}/{record_id}", **told("Id", change=True))
def delete_unusable(
    config_service: WithConfig, caller: Editor, account_id: str, kind: str, record_id: str
) -> Response:
    """Delete a stored record that cannot be used, and everything that belongs to it."""
    del account_id
    return answered(config_service.change(caller.author, unusable.remove(kind, record_id)))
