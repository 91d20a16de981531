"""Incidents and the notes that operators write about them for the status page. Not Cloudflare's
calls.
"""

from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from greenroom.configuration.dependencies import WithConfig
from greenroom.model.alert import INCIDENTS_KEPT_MS
from greenroom.status_page import incident_notes
from greenroom.status_page.incident_notes import IncidentView
from greenroom.web.dependencies import Document, Editor, Paged
from greenroom.web.envelope import answered
from greenroom.web.openapi import told
from greenroom.web.routing import Depends, Router


def _view(request: Request) -> IncidentView:
    found: IncidentView = request.app.state.notifications
    return found


router = Router(tags=["status page"], prefix="/accounts/{account_id}")


@router.get("/incidents", **told("[Incident]", info="Page", may="read"))
def list_incidents(
    config_service: WithConfig, view: Annotated[IncidentView, Depends(_view)], page: Paged
) -> Response:
    """List the incidents of the last 90 days, newest first."""
    found = view.incidents(max(0, config_service.clock.now_ms() - INCIDENTS_KEPT_MS))
    shown, info = page.cut(found)
    return answered([incident_notes.show_incident(incident) for incident in shown], info)


@router.get("/incident_notes", **told("[IncidentNote]", info="Page", may="read"))
def list_notes(config_service: WithConfig, page: Paged) -> Response:
    """List the notes of the status page."""
    shown, info = page.cut(config_service.look(lambda known: list(known.incident_notes.values())))
    return answered([incident_notes.show(entry) for entry in shown], info)


@router.post("/incident_notes", **told("IncidentNote", body="IncidentNoteCreate"))
def create_note(caller: Editor, config_service: WithConfig, document: Document) -> Response:
    """Create a note; it is public on every status page that shows its incident, or on all of them
    without one.
    """
    return answered(config_service.change(caller.author, incident_notes.create(document)))


@router.get("/incident_notes/{note_id}", **told("IncidentNote", may="read"))
def get_note(config_service: WithConfig, note_id: str) -> Response:
    """Get a note."""
    return answered(
        config_service.look(
            lambda known: incident_notes.show(incident_notes.note_of(known, note_id))
        )
    )


@router.patch("/incident_notes/{note_id}", **told("IncidentNote", body="IncidentNoteEdit"))
def edit_note(
    caller: Editor, config_service: WithConfig, document: Document, note_id: str
) -> Response:
    """Change some fields of a note."""
    return answered(config_service.change(caller.author, incident_notes.change(note_id, document)))


@router.delete("/incident_notes/{note_id}", **told("Id", change=True))
def delete_note(caller: Editor, config_service: WithConfig, note_id: str) -> Response:
    """Delete a note."""
    return answered(config_service.change(caller.author, incident_notes.delete(note_id)))
