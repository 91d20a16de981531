"""Events of a waiting room."""

from starlette.responses import Response

from greenroom.configuration import events
from greenroom.configuration.dependencies import WithConfig
from greenroom.configuration.rooms import room_of
from greenroom.web.dependencies import Document, Editor, Paged
from greenroom.web.envelope import answered
from greenroom.web.openapi import told
from greenroom.web.routing import Router

router = Router(tags=["events"], prefix="/zones/{zone_id}/waiting_rooms/{waiting_room_id}/events")


@router.get("", **told("[Event]", info="Page", may="read"))
def list_events(
    config_service: WithConfig, page: Paged, zone_id: str, waiting_room_id: str
) -> Response:
    """List the events of a waiting room."""
    known = config_service.look(lambda known: known)
    room_of(known, zone_id, waiting_room_id)
    shown, info = page.cut(known.events.of(waiting_room_id))
    return answered([events.show(entry) for entry in shown], info)


@router.post("", **told("Event", body="EventCreate"))
def create_event(
    caller: Editor,
    config_service: WithConfig,
    document: Document,
    zone_id: str,
    waiting_room_id: str,
) -> Response:
    """Create an event."""
    return answered(
        config_service.change(caller.author, events.create(zone_id, waiting_room_id, document))
    )


@router.get("/{event_id}", **told("Event", may="read"))
def get_event(
    config_service: WithConfig, zone_id: str, waiting_room_id: str, event_id: str
) -> Response:
    """Get an event."""
    return answered(
        config_service.look(
            lambda known: events.show(events.event_of(known, zone_id, waiting_room_id, event_id))
        )
    )


@router.put("/{event_id}", **told("Event", body="EventCreate"))
def put_event(
    caller: Editor,
    config_service: WithConfig,
    document: Document,
    zone_id: str,
    waiting_room_id: str,
    event_id: str,
) -> Response:
    """Replace an event."""
    return answered(
        config_service.change(
            caller.author, events.change(zone_id, waiting_room_id, event_id, document, whole=True)
        )
    )


@router.patch("/{event_id}", **told("Event", body="EventEdit"))
def edit_event(
    caller: Editor,
    config_service: WithConfig,
    document: Document,
    zone_id: str,
    waiting_room_id: str,
    event_id: str,
) -> Response:
    """Update fields of an event."""
    return answered(
        config_service.change(
            caller.author, events.change(zone_id, waiting_room_id, event_id, document, whole=False)
        )
    )


@router.delete("/{event_id}", **told("Id", change=True))
def delete_event(
    caller: Editor, config_service: WithConfig, zone_id: str, waiting_room_id: str, event_id: str
) -> Response:
    """Delete an event."""
    return answered(
        config_service.change(caller.author, events.delete(zone_id, waiting_room_id, event_id))
    )


@router.get("/{event_id}/details", **told("EventDetails", may="read"))
def get_details(
    config_service: WithConfig, zone_id: str, waiting_room_id: str, event_id: str
) -> Response:
    """Get an event with the settings it inherits from its room."""
    return answered(
        config_service.look(
            lambda known: events.details(
                known, events.event_of(known, zone_id, waiting_room_id, event_id)
            )
        )
    )
