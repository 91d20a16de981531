"""Messages that operators write for the status page, with a preview."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from greenroom.model.account import Role
from greenroom.model.alert import INCIDENTS_KEPT_MS
from greenroom.model.configuration import Entry
from greenroom.model.notification import IncidentNote
from greenroom.status_page import incident_notes
from greenroom.status_page.dashboard.preview import (
    INCIDENTS,
    STATUS,
    STATUS_PREVIEW,
    StatusDraft,
    drawn,
    status_of,
    unwritten,
)
from greenroom.web.api_shapes import Json
from greenroom.web.pages.forms import Faults, FieldView, unchanged_since
from greenroom.web.pages.frames import problems_in_frame
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import action, view
from greenroom.web.refusals import Refused

NOTE = f"{STATUS}/messages/{{note_id}}"
NOTES_SHOWN, INCIDENTS_SHOWN = 100, 50


def show(page: PageRequest) -> Response:
    return _form(page, {}, Faults(), None)


def publish(page: PageRequest) -> Response:
    return _saved(page, incident_notes.create(_document(page)), None)


def edit(page: PageRequest) -> Response:
    entry = _note(page)
    return _form(page, incident_notes.show(entry), Faults(), entry)


def save(page: PageRequest) -> Response:
    entry = _note(page)
    plan = incident_notes.change(entry.id, _document(page))
    return _saved(
        page, unchanged_since("incident_note", entry.id, page.field("revision"), plan), entry
    )


def remove(page: PageRequest) -> Response:
    entry = _note(page)
    page.change(
        unchanged_since(
            "incident_note", entry.id, page.field("revision"), incident_notes.delete(entry.id)
        )
    )
    return page.redirect(STATUS, notice="removed")


def preview(page: PageRequest) -> Response:
    return drawn(page, _number(page, page.query("page")), None)


def preview_draft(page: PageRequest) -> Response:
    document, known = _document(page), page.known.incident_notes.get(page.field("note"))
    try:
        plan = (
            incident_notes.change(known.id, document) if known else incident_notes.create(document)
        )
        shown = page.config.trial(unwritten(plan))
    except Refused as refused:
        return problems_in_frame(page, [fault.message for fault in refused.faults])
    return drawn(
        page,
        _number(page, page.field("page")),
        StatusDraft(**{name: getattr(shown, name) for name in StatusDraft._fields}),
    )


def _number(page: PageRequest, text: str) -> int:
    count = len(status_of(page).pages())
    return (
        int(text)
        if text.isascii() and text.isdigit() and len(text) < 5 and int(text) < count
        else 0
    )


def _note(page: PageRequest) -> Entry[IncidentNote]:
    return incident_notes.note_of(page.known, page.path("note_id"))


def _document(page: PageRequest) -> Json:
    incident = page.field("incident").strip()
    return {
        "incident": incident,
        "title": "" if incident else page.field("title").strip(),
        "text": page.field("text").strip(),
    }


def _saved(page: PageRequest, plan: Any, entry: Entry[IncidentNote] | None) -> Response:
    try:
        page.change(plan)
    except Refused as refused:
        return _form(page, _document(page), Faults(refused.faults), entry, refused.status)
    return page.redirect(STATUS, notice="saved" if entry else "published")


def _form(
    page: PageRequest,
    values: Mapping[str, Any],
    faults: Faults,
    entry: Entry[IncidentNote] | None,
    status: int = 200,
) -> Response:
    status_pages = page.part(STATUS_PREVIEW)
    notes = sorted(page.known.incident_notes.values(), key=lambda note: -note.record.at_ms)
    incidents = _incidents(page)
    return page.render(
        "status_page.html",
        status,
        note=entry,
        may=page.person.may(Role.OPERATOR),
        served=status_pages.pages() if status_pages else None,
        is_served=bool(status_pages and status_pages.is_served()),
        has_address=bool(status_pages and status_pages.has_address()),
        refused=status_pages.refused() if status_pages else {},
        pages=sorted(page.known.status_pages.values(), key=lambda one: one.record.where),
        fields=_fields(values, faults, incidents),
        problems=faults.general,
        notes=notes[:NOTES_SHOWN],
        total=len(notes),
        about={one["id"]: one for one in incidents},
        revision=page.field("revision") or (str(entry.revision) if entry else ""),
    )


def _incidents(page: PageRequest) -> list[Json]:
    incidents = page.part(INCIDENTS)
    found = incidents(max(0, page.now_ms - INCIDENTS_KEPT_MS)) if incidents else []
    return [incident_notes.show_incident(one) for one in found[:INCIDENTS_SHOWN]]


def _fields(values: Mapping[str, Any], faults: Faults, incidents: list[Json]) -> list[FieldView]:
    about = [("", "General announcement")]
    about += [(one["id"], f"{one['text'][:80]} ({one['started_at'][:10]})") for one in incidents]
    incident = str(values.get("incident", ""))
    if incident and incident not in dict(about):
        about.append((incident, "An incident that is no longer kept"))
    title = "Such as “Maintenance on Sunday”. An incident has its own."
    text = "Plain text for everyone; blank lines separate paragraphs."
    return [
        FieldView(
            name="incident",
            label="About",
            kind="select",
            value=incident,
            choices=tuple(about),
            help="",
            problems=faults.take("incident"),
        ),
        FieldView(
            name="title",
            label="Title",
            kind="text",
            value=values.get("title", ""),
            help=title,
            problems=faults.take("title"),
        ),
        FieldView(
            name="text",
            label="Text",
            kind="textarea",
            value=values.get("text", ""),
            help=text,
            problems=faults.take("text"),
        ),
    ]


PAGES = (
    view(STATUS, show),
    action(STATUS, publish),
    view(f"{STATUS}/preview", preview),
    action(f"{STATUS}/preview", preview_draft),
    view(NOTE, edit, Role.OPERATOR),
    action(NOTE, save),
    action(f"{NOTE}/remove", remove),
)
