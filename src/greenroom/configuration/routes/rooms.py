"""Waiting rooms of a zone and of the whole account, and how they are doing."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from greenroom.configuration import capacity_status, operations, room_status, rooms
from greenroom.configuration.dependencies import Edit, Read, RoomIds, RoomPath, WithConfig
from greenroom.configuration.state import Observed, ProcessState, RoomState
from greenroom.configuration.zones import zone_of
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.operation import TAKE_OVER
from greenroom.model.room import Room
from greenroom.web.config_service import ConfigService
from greenroom.web.dependencies import Document, FilteredReader, Paged
from greenroom.web.envelope import answered
from greenroom.web.openapi import documented
from greenroom.web.routing import Router

router = Router(
    tags=["waiting rooms"],
    schemas={
        "Room": rooms.ROOM,
        "RoomOperation": operations.ROOM_OPERATION,
        "Status": room_status.STATUS,
        "RoomCapacity": capacity_status.ROOM_CAPACITY,
    },
)

ROOM = "/zones/{zone_id}/waiting_rooms/{waiting_room_id}"


@router.get("/zones/{zone_id}/waiting_rooms", **documented("[Room]", info="Page", may="read"))
def list_zone_rooms(config_service: WithConfig, page: Paged, zone_id: str) -> Response:
    """List the waiting rooms of a zone."""
    known, now_ms = config_service.look(lambda known: known), config_service.clock.now_ms()
    found = known.rooms.of(zone_of(known, zone_id).id)
    return page.answer(found, lambda entry: rooms.show(known, entry, now_ms))


@router.get("/accounts/{account_id}/waiting_rooms", **documented("[Room]", info="Page"))
def list_account_rooms(caller: FilteredReader, config_service: WithConfig, page: Paged) -> Response:
    """List the waiting rooms of all zones that the token is valid for."""
    known, now_ms = config_service.look(lambda known: known), config_service.clock.now_ms()
    found = [entry for entry in known.rooms.values() if caller.sees(entry.parent)]
    return page.answer(found, lambda entry: rooms.show(known, entry, now_ms))


@router.post("/zones/{zone_id}/waiting_rooms", **documented("Room", body="RoomCreate"))
def create_room(edit: Edit, document: Document, zone_id: str) -> Response:
    """Create a waiting room."""
    return edit(rooms.create(zone_id, document, edit.caller.sees))


@router.get(ROOM, **documented("Room", may="read"))
def get_room(config_service: WithConfig, room: RoomPath) -> Response:
    """Get a waiting room."""
    known = config_service.look(lambda known: known)
    return answered(rooms.show(known, rooms.room_of(known, *room), config_service.clock.now_ms()))


@router.put(ROOM, **documented("Room", body="RoomCreate"))
def put_room(edit: Edit, document: Document, room: RoomPath) -> Response:
    """Replace a waiting room."""
    return edit(rooms.change(*room, document, whole=True, sees=edit.caller.sees))


@router.patch(ROOM, **documented("Room", body="RoomEdit"))
def edit_room(edit: Edit, document: Document, room: RoomPath) -> Response:
    """Update fields of a waiting room."""
    return edit(rooms.change(*room, document, whole=False, sees=edit.caller.sees))


@router.delete(ROOM, **documented("Id", change=True))
def delete_room(edit: Edit, room: RoomPath) -> Response:
    """Delete a waiting room with its events and rules."""
    return edit(rooms.delete(*room))


@router.post(f"{ROOM}/end_sessions", **documented("Room", change=True))
def end_sessions(edit: Edit, room: RoomPath) -> Response:
    """End all sessions of a waiting room, an extension: visitors who are inside come as new ones."""
    return edit(operations.end_sessions(*room, edit.caller.author))


@router.get(f"{ROOM}/operations", **documented("[RoomOperation]", may="read"))
def list_operations(read: Read, room: RoomPath) -> Response:
    """List the live operations on a waiting room, an extension."""
    return read(lambda known: operations.show(known, rooms.room_of(known, *room).id))


@router.put(
    f"{ROOM}/operations/{{operation}}", **documented("[RoomOperation]", body="RoomOperationCreate")
)
def begin_operation(edit: Edit, document: Document, room: RoomPath, operation: str) -> Response:
    """Hold new visitors, admit more of them, post a message, end all sessions, or take over the
    limit of a room that follows its origin: also in a room of a configuration file.
    """
    if operation == TAKE_OVER and isinstance(document, dict) and "count" not in document:
        current = operations.noted_capacity(edit.service.store, room.waiting_room_id)
        document = document | ({"count": current} if current else {})
    return edit(operations.begin_as_sent(*room, operation, edit.caller.author, document))


@router.delete(f"{ROOM}/operations/{{operation}}", **documented("[RoomOperation]", change=True))
def end_operation(edit: Edit, room: RoomPath, operation: str) -> Response:
    """End an operation: the settings count again."""
    return edit(operations.end(*room, operation))


@router.get(f"{ROOM}/status", **documented("Status", may="read"))
async def get_status(config_service: WithConfig, request: Request, ids: RoomPath) -> Response:
    """Get the status of a waiting room."""
    known, entry = await _room(config_service, ids)
    state, room = _live(request, entry.id)
    return answered(room_status.status(known, entry, room, state.now_ms))


@router.get(f"{ROOM}/capacity", **documented("RoomCapacity", may="read"))
async def get_capacity(config_service: WithConfig, request: Request, ids: RoomPath) -> Response:
    """Get how many visitors the origin of a waiting room takes, an extension: for autoscalers."""
    known, entry = await _room(config_service, ids)
    state, room = _live(request, entry.id)
    instances = room.instances if room else 0
    return answered(capacity_status.show(known, entry, room, state.now_ms, instances))


@router.put(f"{ROOM}/capacity", **documented("RoomCapacity", body="RoomCapacityCreate"))
async def count_instances(
    edit: Edit, request: Request, document: Document, ids: RoomPath
) -> Response:
    """Count the instances of the origin, an extension: while they change, the capacity of the room
    does not grow.
    """
    number = capacity_status.instances_as_sent(document)
    _, entry = await _room(edit.service, ids)
    observed: Observed = request.app.state.observed
    observed.count_instances(entry.id, number)
    return await get_capacity(edit.service, request, ids)


async def _room(config_service: ConfigService, ids: RoomIds) -> tuple[Configuration, Entry[Room]]:
    known = await run_in_threadpool(lambda: config_service.look(lambda known: known))
    return known, rooms.room_of(known, *ids)


def _live(request: Request, room_id: str) -> tuple[ProcessState, RoomState | None]:
    """Runs in the event loop, where the ledgers are."""
    observed: Observed = request.app.state.observed
    state = observed.state()
    return state, next((room for room in state.rooms if room.room.id == room_id), None)
