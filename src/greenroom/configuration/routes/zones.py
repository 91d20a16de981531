"""Zones, and the settings of a zone for its waiting rooms."""

from typing import Annotated, Literal

from starlette.requests import Request
from starlette.responses import Response

from greenroom.configuration import zones
from greenroom.configuration.dependencies import Edit, Read, WithConfig
from greenroom.configuration.zones import ACCOUNT_NAME, OriginProblems, ZoneFilter
from greenroom.model.zone import ACCOUNT_ID
from greenroom.web.dependencies import Document, FilteredReader, Paged
from greenroom.web.openapi import documented
from greenroom.web.routing import Query, Router

router = Router(
    tags=["zones"],
    schemas={
        "Zone": zones.ZONE,
        "Settings": zones.SETTINGS,
    },
)

SearchText = Annotated[str | None, Query(max_length=300)]


def _origins(request: Request) -> OriginProblems:
    found: OriginProblems = request.app.state.origin_problems
    return found


@router.get("/zones", **documented("[Zone]", info="Page"))
def list_zones(  # the published filters, each one a query parameter
    caller: FilteredReader,
    config_service: WithConfig,
    page: Paged,
    name: Annotated[
        SearchText,
        Query(
            description=(
                "A name, or `starts_with:`, `ends_with:`, `contains:` or `not_equal:` followed by"
                " text."
            )
        ),
    ] = None,
    status: Annotated[Literal["initializing", "pending", "active", "moved"] | None, Query()] = None,
    account_id: Annotated[str | None, Query(alias="account.id", max_length=32)] = None,
    account_name: Annotated[
        SearchText, Query(alias="account.name", description="As `name`.")
    ] = None,
    type: Annotated[
        list[Literal["full", "partial", "secondary", "internal"]] | None,
        Query(description="Also as one list with commas."),
    ] = None,
    match: Annotated[
        Literal["any", "all"],
        Query(description="`any`: one matching filter is enough; `all`: every filter must match."),
    ] = "all",
    order: Annotated[
        Literal["name", "status", "account.id", "account.name", "plan.id"],
        Query(description="Only the names differ."),
    ] = "name",
    direction: Annotated[Literal["asc", "desc"], Query()] = "asc",
) -> Response:
    """List zones: only those that the token is valid for."""
    del order
    fits = zones.text_filter(name or "")
    filters: list[ZoneFilter] = [lambda entry: fits(entry.record.name)] if name else []
    fixed = [(status, "active"), (account_id, ACCOUNT_ID)]
    alike = [wanted == has for wanted, has in fixed if wanted is not None]
    alike += [zones.text_filter(account_name)(ACCOUNT_NAME)] if account_name is not None else []
    alike += ["full" in type] if type else []
    filters += [zones.always if same else zones.never for same in alike]
    found = config_service.look(
        lambda known: zones.selected(known, filters, match == "all", direction == "desc")
    )
    return page.answer([entry for entry in found if caller.sees(entry.id)], zones.show)


@router.post("/zones", **documented("Zone", body="ZoneCreate"))
def create_zone(edit: Edit, document: Document, request: Request) -> Response:
    """Create a zone."""
    return edit(zones.create(document, _origins(request)))


@router.get("/zones/{zone_id}", **documented("Zone", may="read"))
def get_zone(read: Read, zone_id: str) -> Response:
    """Get a zone."""
    return read(lambda known: zones.show(zones.zone_of(known, zone_id)))


@router.patch("/zones/{zone_id}", **documented("Zone", body="ZoneEdit"))
def edit_zone(edit: Edit, document: Document, request: Request, zone_id: str) -> Response:
    """Update fields of a zone."""
    return edit(zones.edit(zone_id, document, _origins(request)))


@router.delete("/zones/{zone_id}", **documented("Id", change=True))
def delete_zone(edit: Edit, zone_id: str) -> Response:
    """Delete a zone and its rooms."""
    return edit(zones.delete(zone_id))


@router.get("/zones/{zone_id}/waiting_rooms/settings", **documented("Settings", may="read"))
def get_settings(read: Read, zone_id: str) -> Response:
    """Get the settings of a zone."""
    return read(lambda known: zones.settings(zones.zone_of(known, zone_id)))


@router.put(
    "/zones/{zone_id}/waiting_rooms/settings", **documented("Settings", body="SettingsCreate")
)
def put_settings(edit: Edit, document: Document, zone_id: str) -> Response:
    """Replace the settings of a zone."""
    return edit(zones.change_settings(zone_id, document, whole=True))


@router.patch(
    "/zones/{zone_id}/waiting_rooms/settings", **documented("Settings", body="SettingsEdit")
)
def edit_settings(edit: Edit, document: Document, zone_id: str) -> Response:
    """Update settings of a zone."""
    return edit(zones.change_settings(zone_id, document, whole=False))
