"""Events of a waiting room."""

from starlette.responses import Response

from greenroom.configuration import events
from greenroom.configuration.dependencies import Edit, Read, RoomPath, WithConfig
from greenroom.configuration.rooms import room_of
from greenroom.web.dependencies import Document, Paged
from greenroom.web.openapi import documented
from greenroom.web.routing import Router

router = Router(
    tags=["events"],
    prefix="/zones/{zone_id}/waiting_rooms/{waiting_room_id}/events",
    schemas={
        "Event": events.EVENT,
        "EventDetails": events.DETAILS,
    },
)


@router.get("", **documented("[Event]", info="Page", may="read"))
def list_events(config_service: WithConfig, page: Paged, room: RoomPath) -> Response:
    """List the events of a waiting room."""
    known = config_service.look(lambda known: known)
    return page.answer(known.events.of(room_of(known, *room).id), events.show)


@router.post("", **documented("Event", body="EventCreate"))
def create_event(edit: Edit, document: Document, room: RoomPath) -> Response:
    """Create an event."""
    return edit(events.create(*room, document))


@router.get("/{event_id}", **documented("Event", may="read"))
def get_event(read: Read, room: RoomPath, event_id: str) -> Response:
    """Get an event."""
    return read(lambda known: events.show(events.event_of(known, *room, event_id)))


@router.put("/{event_id}", **documented("Event", body="EventCreate"))
def put_event(edit: Edit, document: Document, room: RoomPath, event_id: str) -> Response:
    """Replace an event."""
    return edit(events.change(*room, event_id, document, whole=True))


@router.patch("/{event_id}", **documented("Event", body="EventEdit"))
def edit_event(edit: Edit, document: Document, room: RoomPath, event_id: str) -> Response:
    """Update fields of an event."""
    return edit(events.change(*room, event_id, document, whole=False))


@router.delete("/{event_id}", **documented("Id", change=True))
def delete_event(edit: Edit, room: RoomPath, event_id: str) -> Response:
    """Delete an event."""
    return edit(events.delete(*room, event_id))


@router.get("/{event_id}/details", **documented("EventDetails", may="read"))
def get_details(read: Read, room: RoomPath, event_id: str) -> Response:
    """Get an event with the settings it inherits from its room."""
    return read(lambda known: events.details(known, events.event_of(known, *room, event_id)))
