"""A status page in a frame of the dashboard, before anyone else sees it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from anyio import from_thread
from starlette.exceptions import HTTPException
from starlette.responses import Response

from greenroom.errors import StorageFailed
from greenroom.model.status_page import StatusPage
from greenroom.status_page.incident_notes import IncidentView
from greenroom.web.pages.frames import FRAME
from greenroom.web.pages.request import PagePart, PageRequest
from greenroom.web.refusals import ApiFault, Code, Refused

STATUS = "/status-page"


class StatusDraft(NamedTuple):
    id: str
    incident: str
    title: str
    text: str
    at_ms: int


class ServedStatusPage(NamedTuple):
    title: str
    where: str


class StatusPreview(Protocol):
    @property
    def has_address(self) -> bool: ...

    @property
    def is_served(self) -> bool: ...

    def refused(self) -> Mapping[str, str]:
        """Why an address of a page cannot be used, by the address."""

    def pages(self) -> Sequence[ServedStatusPage]:
        """Those of the file, then of the store; where there are none, one with everything on it."""

    async def html(self, page: int | StatusPage, draft: StatusDraft | None) -> tuple[str, str]:
        """Returns content security policy and HTML. Raises StorageFailed."""


STATUS_PREVIEW = PagePart[StatusPreview]("status page")
INCIDENTS = PagePart[IncidentView]("incidents")


def drawn(page: PageRequest, shown: int | StatusPage, draft: StatusDraft | None) -> Response:
    status = status_of(page)
    try:
        policy, body = from_thread.run(status.html, shown, draft)
    except StorageFailed as error:
        raise Refused(
            ApiFault(Code.UNAVAILABLE, f"what happened cannot be read at the moment: {error}"),
            status=503,
        ) from error
    return Response(
        body, media_type="text/html", headers=FRAME | {"Content-Security-Policy": policy}
    )


def status_of(page: PageRequest) -> StatusPreview:
    status = page.part(STATUS_PREVIEW)
    if status is None:
        raise HTTPException(404)
    return status


def unwritten(plan: Any) -> Any:
    def planned(known: Any, at: Any) -> Any:
        change = plan(known, at)
        return change._replace(answer=lambda _known: change.changes[0].record)

    return planned
