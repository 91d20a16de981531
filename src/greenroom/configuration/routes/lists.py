"""Named lists for rules, and their items."""

from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from greenroom.configuration import list_items, lists
from greenroom.configuration.dependencies import Edit, Read, WithConfig
from greenroom.configuration.list_items import PER_PAGE_MAX, Catalogue, Operations
from greenroom.web.dependencies import Document, JsonItems, NamedItems
from greenroom.web.envelope import answered
from greenroom.web.openapi import documented
from greenroom.web.routing import Depends, Query, Router


def _operations(request: Request) -> Operations:
    found: Operations = request.app.state.operations
    return found


def _catalogue(request: Request) -> Catalogue:
    found: Catalogue = request.app.state.catalogue
    return found


WithOperations = Annotated[Operations, Depends(_operations)]


_OPERATION_ID = {
    "type": "object",
    "properties": {"operation_id": {"type": "string"}},
    "required": ["operation_id"],
    "additionalProperties": False,
}

router = Router(
    tags=["lists"],
    prefix="/accounts/{account_id}/rules/lists",
    schemas={
        "List": lists.LIST,
        "ListItem": list_items.ITEM,
        "ListItemDeletion": list_items.ITEM_DELETION,
        "Operation": list_items.OPERATION,
        "OperationId": _OPERATION_ID,
    },
)


@router.get("", **documented("[List]", may="read"))
def list_lists(read: Read) -> Response:
    """List all lists."""
    return read(lambda known: [lists.show(known, entry) for entry in known.lists.values()])


@router.post("", **documented("List", body="ListCreate"))
def create_list(edit: Edit, document: Document) -> Response:
    """Create a list."""
    return edit(lists.create(document))


@router.get("/bulk_operations/{operation_id}", **documented("Operation", may="read"))
def get_operation(done: WithOperations, operation_id: str) -> Response:
    """Get the state of an operation on items."""
    return answered(done.get(operation_id))


@router.get("/{list_id}", **documented("List", may="read"))
def get_list(read: Read, list_id: str) -> Response:
    """Get a list."""
    return read(lambda known: lists.show(known, lists.list_of(known, list_id)))


@router.put("/{list_id}", **documented("List", body="ListEdit"))
def put_list(edit: Edit, document: Document, list_id: str) -> Response:
    """Update the description of a list."""
    return edit(lists.edit(list_id, document))


@router.delete("/{list_id}", **documented("Id", change=True))
def delete_list(edit: Edit, list_id: str) -> Response:
    """Delete a list that no rule refers to."""
    return edit(lists.delete(list_id))


@router.get("/{list_id}/items", **documented("[ListItem]", info="Cursor", may="read"))
def get_items(
    config_service: WithConfig,
    catalogue: Annotated[Catalogue, Depends(_catalogue)],
    list_id: str,
    cursor: Annotated[
        str,
        Query(
            max_length=1_000,
            description="The cursor of the previous page; empty: start at the first item.",
        ),
    ] = "",
    per_page: Annotated[
        int, Query(ge=1, le=PER_PAGE_MAX, description="Items per page.")
    ] = PER_PAGE_MAX,
    search: Annotated[
        str,
        Query(
            max_length=300,
            description="Prefix of an address, part of a host name, or exact AS number.",
        ),
    ] = "",
) -> Response:
    """List the items of a list in order."""
    known = config_service.look(lambda known: known)
    found = catalogue.slice(known, list_id, cursor, per_page, search)
    kind = lists.list_of(known, list_id).record.kind
    cursors = {
        word: value for word, value in (("before", found.before), ("after", found.after)) if value
    }
    return answered([list_items.show(kind, entry) for entry in found.items], {"cursors": cursors})


@router.post("/{list_id}/items", **documented("OperationId", body="[ListItemCreate]"))
def add_items(edit: Edit, done: WithOperations, items: JsonItems, list_id: str) -> Response:
    """Add items to a list."""
    return edit(list_items.add(list_id, items, done, whole=False))


@router.put("/{list_id}/items", **documented("OperationId", body="[ListItemCreate]"))
def put_items(edit: Edit, done: WithOperations, items: JsonItems, list_id: str) -> Response:
    """Replace the items of a list."""
    return edit(list_items.add(list_id, items, done, whole=True))


@router.delete(
    "/{list_id}/items", **documented("OperationId", body="ListItemDeletion", bodiless=True)
)
def delete_items(edit: Edit, done: WithOperations, items: NamedItems, list_id: str) -> Response:
    """Delete items of a list."""
    return edit(list_items.remove(list_id, items, done))


@router.get("/{list_id}/items/{item_id}", **documented("ListItem", may="read"))
def get_item(read: Read, list_id: str, item_id: str) -> Response:
    """Get one item."""
    return read(lambda known: list_items.item_of(known, list_id, item_id))
