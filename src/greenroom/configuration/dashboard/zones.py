"""Zones: the domains that rooms belong to."""

from collections.abc import Iterator, Mapping
from typing import Any

from starlette.responses import Response

from greenroom.configuration import zones
from greenroom.configuration.dashboard.parts import ORIGIN_PROBLEMS
from greenroom.model.account import Role
from greenroom.model.fields import form_fields
from greenroom.model.zone import Zone
from greenroom.web.api_shapes import Json
from greenroom.web.pages.forms import (
    Faults,
    FieldView,
    document_of,
    field_view,
    flat,
    host_and_path,
    unchanged_since,
)
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import SearchResult, action, view
from greenroom.web.refusals import Refused

FORM = form_fields(Zone, "domain", "limits", "visitors", "pause")
NEW = {"limit_floor": 1, "session_ceiling": 30}


def table(page: PageRequest) -> Response:
    counts = {entry.id: len(page.known.rooms.of(entry.id)) for entry in page.known.zones.values()}
    return page.render("zones.html", zones=page.person.zones(page.known), counts=counts)


def new(page: PageRequest) -> Response:
    return _form(page, NEW, Faults())


def create(page: PageRequest) -> Response:
    document = _document(page)
    try:
        made = page.change(zones.create(document, page.parts[ORIGIN_PROBLEMS]))
    except Refused as refused:
        return _form(page, flat(document), Faults(refused.faults), status=refused.status)
    return page.redirect(f"/zones/{made['id']}/rooms/new", notice="created")


def _document(page: PageRequest) -> Json:
    """The domain of a pasted URL counts."""
    document = document_of(zones.ZONE, FORM, page.form)
    return {**document, "name": host_and_path(page.field("name"))[0].partition(":")[0]}


def edit(page: PageRequest) -> Response:
    return _form(
        page,
        flat(zones.show(page.zone)),
        Faults(),
        id=page.zone.id,
        revision=str(page.zone.revision),
    )


def save(page: PageRequest) -> Response:
    document = _document(page)
    plan = zones.edit(page.zone.id, document, page.parts[ORIGIN_PROBLEMS])
    try:
        page.change(unchanged_since("zone", page.zone.id, page.field("revision"), plan))
    except Refused as refused:
        revision = page.field("revision")
        return _form(
            page,
            flat(document),
            Faults(refused.faults),
            id=page.zone.id,
            revision=revision,
            status=refused.status,
        )
    return page.redirect("/zones", notice="saved")


def _form(
    page: PageRequest,
    values: Mapping[str, Any],
    faults: Faults,
    *,
    id: str = "",
    revision: str = "",
    status: int = 200,
) -> Response:
    fields: list[FieldView] = []
    for name in FORM:
        default = next(one.default for one in zones.ZONE.fields if one.name == name)
        value = values.get(name, default if isinstance(default, (str, int, bool)) else "")
        fields.append(field_view(zones.ZONE, name, value, faults))
    return page.render(
        "zone_form.html", status, fields=fields, id=id, revision=revision, problems=faults.general
    )


def find(page: PageRequest, text: str) -> Iterator[SearchResult]:
    for entry in page.person.zones(page.known):
        if text in entry.record.name and not entry.read_only and page.person.may(Role.OPERATOR):
            yield SearchResult("Zone", entry.record.name, f"/zones/{entry.id}/edit")


PAGES = (
    view("/zones", table, filtered=True),
    view("/zones/new", new, Role.OPERATOR),
    action("/zones/new", create),
    view("/zones/{zone_id}/edit", edit, Role.OPERATOR),
    action("/zones/{zone_id}/edit", save),
)
