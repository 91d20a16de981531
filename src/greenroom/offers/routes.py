"""What is left of a room's offers. Not Cloudflare's calls."""

from typing import Annotated

from starlette.responses import Response

from greenroom.configuration.dependencies import WithConfig
from greenroom.configuration.rooms import room_of
from greenroom.offers import changes
from greenroom.web.dependencies import Document, Editor
from greenroom.web.envelope import answered
from greenroom.web.openapi import told
from greenroom.web.routing import Query, Router

LOG_MAX = 1_000
"""Entries in one answer."""

router = Router(tags=["offers"], prefix="/zones/{zone_id}/waiting_rooms/{waiting_room_id}/offers")


@router.get("", **told("[Offer]", may="read"))
def list_offers(config_service: WithConfig, zone_id: str, waiting_room_id: str) -> Response:
    """List the offers of a waiting room."""
    return answered(
        config_service.look(
            lambda known: changes.show(changes.offers_of(known, zone_id, waiting_room_id))
        )
    )


@router.put("", **told("[Offer]", body="[OfferCreate]"))
def put_offers(
    caller: Editor,
    config_service: WithConfig,
    document: Document,
    zone_id: str,
    waiting_room_id: str,
) -> Response:
    """Replace the offers of a waiting room: names, prices and what is left. Its page shows them."""
    return answered(
        config_service.change(
            caller.author, changes.replace_all(zone_id, waiting_room_id, document)
        )
    )


@router.get("/log", **told("[OfferLogEntry]", may="read"))
def list_log(
    config_service: WithConfig,
    zone_id: str,
    waiting_room_id: str,
    limit: Annotated[int, Query(ge=1, le=LOG_MAX, description="Most entries to list.")] = 100,
) -> Response:
    """List what visitors of a waiting room were told and when, newest first."""
    config_service.look(lambda known: room_of(known, zone_id, waiting_room_id))
    entries = changes.log(config_service.store, waiting_room_id, limit)
    return answered([changes.show_entry(entry) for entry in entries])
