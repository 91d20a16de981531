"""The editor of the public status pages: title, address, and which rooms and health checks a page
shows, with a preview.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from greenroom.model.account import Role
from greenroom.model.configuration import Entry
from greenroom.model.fields import form_fields
from greenroom.model.status_page import StatusPage
from greenroom.status_page import pages as status_pages
from greenroom.status_page.dashboard.preview import (
    STATUS,
    STATUS_PREVIEW,
    drawn,
    unwritten,
)
from greenroom.web.api_shapes import Json
from greenroom.web.config_service import refuse_read_only
from greenroom.web.pages.forms import Faults, FieldView, field_view, host_and_path, unchanged_since
from greenroom.web.pages.frames import problems_in_frame
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import action, view
from greenroom.web.refusals import Refused

PAGES_AT = f"{STATUS}/pages"
PAGE = f"{PAGES_AT}/{{page_id}}"

TEXTS = form_fields(StatusPage, "title", "host", "address")
SHOWN = form_fields(StatusPage, "shown")
LISTEN = "0.0.0.0:8082"
FRESH = {
    "title": "Status",
    "host": "",
    "path": "/",
    "zone": "",
    "rooms": ["*"],
    "health_checks": ["*"],
}

EVERY = "*"


class NameChoice(NamedTuple):
    name: str
    heading: str
    chosen_all: bool
    names: Sequence[tuple[str, bool, bool]]
    problems: Sequence[str]


def new(page: PageRequest) -> Response:
    status = page.part(STATUS_PREVIEW)
    listen = "" if status is None or status.has_address() else LISTEN
    return _form(page, FRESH | {"listen": listen}, Faults(), None)


def create(page: PageRequest) -> Response:
    return _saved(page, status_pages.create(_document(page)), None)


def edit(page: PageRequest) -> Response:
    entry = _entry(page)
    return _form(page, status_pages.show(entry), Faults(), entry)


def save(page: PageRequest) -> Response:
    entry = _entry(page)
    return _saved(
        page,
        unchanged_since(
            "status_page",
            entry.id,
            page.field("revision"),
            status_pages.change(entry.id, _document(page)),
        ),
        entry,
    )


def remove(page: PageRequest) -> Response:
    entry = _entry(page)
    page.change(
        unchanged_since(
            "status_page", entry.id, page.field("revision"), status_pages.delete(entry.id)
        )
    )
    return page.redirect(STATUS, notice="removed")


def preview(page: PageRequest) -> Response:
    document, known = _document(page), page.known.status_pages.get(page.field("page_id"))
    try:
        plan = status_pages.change(known.id, document) if known else status_pages.create(document)
        shown: StatusPage = page.config.trial(unwritten(plan))
    except Refused as refused:
        return problems_in_frame(page, [fault.message for fault in refused.faults])
    return drawn(page, shown, None)


def _entry(page: PageRequest) -> Entry[StatusPage]:
    entry = status_pages.page_of(page.known, page.path("page_id"))
    refuse_read_only(entry, "status page")
    return entry


def _document(page: PageRequest) -> Json:
    texts = {name: page.field(name).strip() for name in (*TEXTS, "zone")}
    return (
        texts
        | {"host": host_and_path(texts["host"])[0]}
        | {name: _names(page, name) for name in ("rooms", "health_checks")}
    )


def _names(page: PageRequest, name: str) -> list[str]:
    chosen = list(dict.fromkeys(page.form.get(name, ())))
    return [EVERY] if EVERY in chosen else chosen


def _saved(page: PageRequest, plan: Any, entry: Entry[StatusPage] | None) -> Response:
    try:
        page.change(plan)
    except Refused as refused:
        return _form(page, _document(page), Faults(refused.faults), entry, refused.status)
    return page.redirect(STATUS, notice="page-saved")


def _form(
    page: PageRequest,
    values: Mapping[str, Any],
    faults: Faults,
    entry: Entry[StatusPage] | None,
    status: int = 200,
) -> Response:
    fields = [field_view(status_pages.PAGE, name, values.get(name, ""), faults) for name in TEXTS]
    choices = [
        _choice("rooms", values, faults, page.known.rooms.records()),
        _choice("health_checks", values, faults, page.known.health_checks.records()),
    ]
    return page.render(
        "status_page_form.html",
        status,
        entry=entry,
        fields=[*fields, _zone_field(page, values, faults)],
        choices=choices,
        problems=faults.general,
        previews=page.part(STATUS_PREVIEW) is not None,
        revision=page.field("revision") or (str(entry.revision) if entry else ""),
    )


def _zone_field(page: PageRequest, values: Mapping[str, Any], faults: Faults) -> FieldView:
    value = str(values.get("zone", ""))
    names = sorted(
        {entry.record.name for entry in page.known.zones.values() if not entry.read_only}
        | ({value} - {""})
    )
    choices = (("", "All zones"), *((name, name) for name in names))
    return FieldView(
        name="zone",
        label=SHOWN["zone"].label,
        kind="select",
        value=value,
        choices=choices,
        help=SHOWN["zone"].help,
        problems=faults.take("zone"),
    )


def _choice(
    name: str,
    values: Mapping[str, Any],
    faults: Faults,
    records: Iterable[Any],
) -> NameChoice:
    chosen = set(values.get(name, ()))
    there = {record.name for record in records}
    names = [(one, one in chosen, one in there) for one in sorted((there | chosen) - {EVERY})]
    return NameChoice(name, SHOWN[name].label, EVERY in chosen, names, faults.take(name))


PAGES = (
    view(f"{PAGES_AT}/new", new, Role.OPERATOR),
    action(PAGES_AT, create),
    action(f"{PAGES_AT}/preview", preview),
    view(PAGE, edit, Role.OPERATOR),
    action(PAGE, save),
    action(f"{PAGE}/remove", remove),
)
