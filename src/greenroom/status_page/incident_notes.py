"""Incidents on the status page, and operators' notes. An extension of Cloudflare's API."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

from starlette.requests import Request
from starlette.responses import Response

from greenroom.configuration.dependencies import Edit, Read, WithConfig
from greenroom.model.alert import INCIDENTS_KEPT_MS, Incident
from greenroom.model.change import Put, Remove
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.notification import IncidentNote, record_problems
from greenroom.web.api_schema import (
    ApiSchema,
    computed,
    overlaid,
    read_as,
)
from greenroom.web.api_shapes import Json, MomentField, Shown
from greenroom.web.config_service import (
    ChangeContext,
    ConfigChange,
    PlannedChange,
    entry_of,
)
from greenroom.web.dependencies import Document, Paged
from greenroom.web.openapi import documented
from greenroom.web.refusals import ApiFault, refuse_if, too_many
from greenroom.web.routing import Depends, Router
from greenroom.web.time_format import milliseconds, plain_moment
from greenroom.web.time_format import moment as written

NOTES_MAX = 2_000

_TEXT = Shown({"type": "string"})
_TIME_OR_NULL = Shown({"type": ["string", "null"], "format": "date-time"})

INCIDENT = ApiSchema(
    (
        computed("id", "correlation id; notes name it as their `incident`", _TEXT),
        computed("alert_type", "type of the alerts that began and ended it", _TEXT),
        computed("text", "what began it", _TEXT),
        computed("subject", "name of what it is about", _TEXT),
        computed("started_at", "when it began", Shown({"type": "string", "format": "date-time"})),
        computed("ended_at", "when it ended; null while it goes on", _TIME_OR_NULL),
    )
)

NOTE = ApiSchema.of(
    IncidentNote,
    without=("at_ms",),
    more=(
        computed("time", "the time it is shown under; left out: now", MomentField(), writable=True),
    ),
)


Incidents = Callable[[int], list[Incident]]
"""Incidents since a time in Unix ms, newest first. Blocks; raises StorageFailed."""


def show_incident(incident: Incident) -> Json:
    start, end = incident.start, incident.end
    return INCIDENT.show(
        {
            "id": start.correlation_id,
            "alert_type": start.type,
            "text": start.text,
            "subject": start.subject_name,
            "started_at": written(start.time_ms),
            "ended_at": None if end is None else written(end.time_ms),
        }
    )


def show(entry: Entry[IncidentNote]) -> Json:
    record = entry.record
    values = {name: getattr(record, name) for name in ("id", "incident", "title", "text")}
    return NOTE.show(values | {"time": plain_moment(record.at_ms)})


def note_of(known: Configuration, note_id: str) -> Entry[IncidentNote]:
    return entry_of(known.incident_notes, "note", note_id)


def create(document: Any) -> ConfigChange:
    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        values, faults = _read(document)
        faults += too_many(known.incident_notes, NOTES_MAX, "notes")
        refuse_if(faults)
        return _put(IncidentNote(id=at.new_id(), **{"at_ms": at.now_ms, **values}))

    return plan


def change(note_id: str, document: Any) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        entry = note_of(known, note_id)
        values, faults = _read(overlaid(show(entry), document))
        refuse_if(faults)
        return _put(replace(entry.record, **values))

    return plan


def delete(note_id: str) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        note_of(known, note_id)
        return PlannedChange([Remove("incident_note", note_id)], lambda _after: {"id": note_id})

    return plan


def _read(document: Any) -> tuple[Json, list[ApiFault]]:
    values, faults = read_as(NOTE, document, lambda values: record_problems(IncidentNote, values))
    if "time" in values:
        time = values.pop("time")
        at_ms = milliseconds(time)
        if at_ms is not None:
            values["at_ms"] = at_ms
    return values, faults


def _put(record: IncidentNote) -> PlannedChange:
    return PlannedChange([Put(record)], lambda after: show(after.incident_notes[record.id]))


# Incidents and the notes that operators write about them for the status page. Not Cloudflare's
# calls.


def _incidents(request: Request) -> Incidents:
    found: Incidents = request.app.state.incidents
    return found


router = Router(
    tags=["status page"],
    prefix="/accounts/{account_id}",
    schemas={"Incident": INCIDENT, "IncidentNote": NOTE},
)


@router.get("/incidents", **documented("[Incident]", info="Page", may="read"))
def list_incidents(
    config_service: WithConfig, incidents: Annotated[Incidents, Depends(_incidents)], page: Paged
) -> Response:
    """List the incidents of the last 90 days, newest first."""
    found = incidents(max(0, config_service.clock.now_ms() - INCIDENTS_KEPT_MS))
    return page.answer(found, show_incident)


@router.get("/incident_notes", **documented("[IncidentNote]", info="Page", may="read"))
def list_notes(config_service: WithConfig, page: Paged) -> Response:
    """List the notes of the status page."""
    return page.answer(config_service.look(lambda known: list(known.incident_notes.values())), show)


@router.post("/incident_notes", **documented("IncidentNote", body="IncidentNoteCreate"))
def create_note(edit: Edit, document: Document) -> Response:
    """Create a note; it is public on every status page that shows its incident, or on all of them
    without one.
    """
    return edit(create(document))


@router.get("/incident_notes/{note_id}", **documented("IncidentNote", may="read"))
def get_note(read: Read, note_id: str) -> Response:
    """Get a note."""
    return read(lambda known: show(note_of(known, note_id)))


@router.patch("/incident_notes/{note_id}", **documented("IncidentNote", body="IncidentNoteEdit"))
def edit_note(edit: Edit, document: Document, note_id: str) -> Response:
    """Change some fields of a note."""
    return edit(change(note_id, document))


@router.delete("/incident_notes/{note_id}", **documented("Id", change=True))
def delete_note(edit: Edit, note_id: str) -> Response:
    """Delete a note."""
    return edit(delete(note_id))
