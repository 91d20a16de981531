"""Waiting rooms of a zone and of the whole account, and how they are doing."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from greenroom.configuration import capacity_status, operations, room_status, rooms
from greenroom.configuration.dependencies import WithConfig
from greenroom.configuration.state import Observed
from greenroom.configuration.zones import zone_of
from greenroom.model.operation import TAKE_OVER
from greenroom.web.dependencies import Document, Editor, FilteredReader, Paged
from greenroom.web.envelope import answered
from greenroom.web.openapi import told
from greenroom.web.routing import Router

router = Router(tags=["waiting rooms"])

ROOM = "/zones/{zone_id}/waiting_rooms/{waiting_room_id}"


@router.get("/zones/{zone_id}/waiting_rooms", **told("[Room]", info="Page", may="read"))
def list_zone_rooms(config_service: WithConfig, page: Paged, zone_id: str) -> Response:
    """List the waiting rooms of a zone."""
    known = config_service.look(lambda known: known)
    zone_of(known, zone_id)
    shown, info = page.cut(known.rooms.of(zone_id))
    return answered(
        [rooms.show(known, entry, config_service.clock.now_ms()) for entry in shown], info
    )


@router.get("/accounts/{account_id}/waiting_rooms", **told("[Room]", info="Page"))
def list_account_rooms(
    caller: FilteredReader, config_service: WithConfig, page: Paged, account_id: str
) -> Response:
    """List the waiting rooms of all zones that the token is valid for."""
    del account_id  # there is one, and May has looked at it
    known = config_service.look(lambda known: known)
    shown, info = page.cut([entry for entry in known.rooms.values() if caller.sees(entry.parent)])
    return answered(
        [rooms.show(known, entry, config_service.clock.now_ms()) for entry in shown], info
    )


@router.post("/zones/{zone_id}/waiting_rooms", **told("Room", body="RoomCreate"))
def create_room(
    caller: Editor, config_service: WithConfig, document: Document, zone_id: str
) -> Response:
    """Create a waiting room."""
    return answered(
        config_service.change(caller.author, rooms.create(zone_id, document, caller.sees))
    )


@router.get(ROOM, **told("Room", may="read"))
def get_room(config_service: WithConfig, zone_id: str, waiting_room_id: str) -> Response:
    """Get a waiting room."""
    known = config_service.look(lambda known: known)
    return answered(
        rooms.show(
            known, rooms.room_of(known, zone_id, waiting_room_id), config_service.clock.now_ms()
        )
    )


@router.put(ROOM, **told("Room", body="RoomCreate"))
def put_room(
    caller: Editor,
    config_service: WithConfig,
    document: Document,
    zone_id: str,
    waiting_room_id: str,
) -> Response:
    """Replace a waiting room."""
    return answered(
        config_service.change(
            caller.author,
            rooms.change(zone_id, waiting_room_id, document, whole=True, sees=caller.sees),
        )
    )


@router.patch(ROOM, **told("Room", body="RoomEdit"))
def edit_room(
    caller: Editor,
    config_service: WithConfig,
    document: Document,
    zone_id: str,
    waiting_room_id: str,
) -> Response:
    """Update fields of a waiting room."""
    return answered(
        config_service.change(
            caller.author,
            rooms.change(zone_id, waiting_room_id, document, whole=False, sees=caller.sees),
        )
    )


@router.delete(ROOM, **told("Id", change=True))
def delete_room(
    caller: Editor, config_service: WithConfig, zone_id: str, waiting_room_id: str
) -> Response:
    """Delete a waiting room with its events and rules."""
    return answered(config_service.change(caller.author, rooms.delete(zone_id, waiting_room_id)))


@router.post(f"{ROOM}/end_sessions", **told("Room", change=True))
def end_sessions(
    caller: Editor, config_service: WithConfig, zone_id: str, waiting_room_id: str
) -> Response:
    """End all sessions of a waiting room, an extension: visitors who are inside come as new ones."""
    return answered(
        config_service.change(
            caller.author,
            operations.end_sessions(zone_id, waiting_room_id, caller.author),
        )
    )


@router.get(f"{ROOM}/operations", **told("[RoomOperation]", may="read"))
def list_operations(config_service: WithConfig, zone_id: str, waiting_room_id: str) -> Response:
    """List the live operations on a waiting room, an extension."""
    known = config_service.look(lambda known: known)
    rooms.room_of(known, zone_id, waiting_room_id)
    return answered(operations.show(known, waiting_room_id))


@router.put(
    f"{ROOM}/operations/{{operation}}", **told("[RoomOperation]", body="RoomOperationCreate")
)
def begin_operation(
    caller: Editor,
    config_service: WithConfig,
    document: Document,
    zone_id: str,
    waiting_room_id: str,
    operation: str,
) -> Response:
    """Hold new visitors, admit more of them, post a message, end all sessions, or take over the
    limit of a room that follows its origin: also in a room of a configuration file.
    """
    if operation == TAKE_OVER and isinstance(document, dict) and "count" not in document:
        current = operations.noted_capacity(config_service.store, waiting_room_id)
        document = document | ({"count": current} if current else {})
    return answered(
        config_service.change(
            caller.author,
            operations.begin_as_sent(zone_id, waiting_room_id, operation, caller.author, document),
        )
    )


@router.delete(f"{ROOM}/operations/{{operation}}", **told("[RoomOperation]", change=True))
def end_operation(
    caller: Editor, config_service: WithConfig, zone_id: str, waiting_room_id: str, operation: str
) -> Response:
    """End an operation: the settings count again."""
    return answered(
        config_service.change(caller.author, operations.end(zone_id, waiting_room_id, operation))
    )


@router.get(f"{ROOM}/status", **told("Status", may="read"))
async def get_status(
    config_service: WithConfig, request: Request, zone_id: str, waiting_room_id: str
) -> Response:
    """Get the status of a waiting room."""
    known = await run_in_threadpool(lambda: config_service.look(lambda known: known))
    entry = rooms.room_of(known, zone_id, waiting_room_id)
    observed: Observed = request.app.state.observed
    state = observed.state()  # in the event loop, where the ledgers are
    room = next((room for room in state.rooms if room.room.id == waiting_room_id), None)
    return answered(room_status.status(known, entry, room, state.now_ms))


@router.get(f"{ROOM}/capacity", **told("RoomCapacity", may="read"))
async def get_capacity(
    config_service: WithConfig, request: Request, zone_id: str, waiting_room_id: str
) -> Response:
    """Get how many visitors the origin of a waiting room takes, an extension: for autoscalers."""
    return await _capacity(config_service, request, zone_id, waiting_room_id)


@router.put(f"{ROOM}/capacity", **told("RoomCapacity", body="RoomCapacityCreate"))
async def count_instances(
    caller: Editor,
    config_service: WithConfig,
    request: Request,
    document: Document,
    zone_id: str,
    waiting_room_id: str,
) -> Response:
    """Count the instances of the origin, an extension: while they change, the capacity of the room
    does not grow.
    """
    del caller
    number = capacity_status.instances_as_sent(document)
    known = await run_in_threadpool(lambda: config_service.look(lambda known: known))
    rooms.room_of(known, zone_id, waiting_room_id)
    observed: Observed = request.app.state.observed
    observed.count_instances(waiting_room_id, number)
    return await _capacity(config_service, request, zone_id, waiting_room_id)


async def _capacity(
    config_service: WithConfig, request: Request, zone_id: str, waiting_room_id: str
) -> Response:
    known = await run_in_threadpool(lambda: config_service.look(lambda known: known))
    entry = rooms.room_of(known, zone_id, waiting_room_id)
    observed: Observed = request.app.state.observed
    state = observed.state()  # in the event loop, where the ledgers are
    room = next((room for room in state.rooms if room.room.id == waiting_room_id), None)
    instances = room.instances if room else 0
    return answered(capacity_status.show(known, entry, room, state.now_ms, instances))
