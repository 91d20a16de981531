"""A status page in a frame of the dashboard, before anyone else sees it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from anyio import from_thread
from starlette.exceptions import HTTPException
from starlette.responses import Response

from greenroom.errors import StorageFailed
from greenroom.model.status_page import StatusPage
from greenroom.status_page.incident_notes import Incidents
from greenroom.status_page.render import CSP, html
from greenroom.status_page.view import NoteFacts, StatusFacts, view
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


EVERYTHING = StatusPage(title="Status", rooms=("*",), health_checks=("*",))
IN_FRAME = CSP.replace("frame-ancestors 'none'", "frame-ancestors 'self'; sandbox")


class StatusPreview:
    def __init__(
        self,
        pages: Callable[[], Sequence[StatusPage]],
        has_address: Callable[[], bool],
        gather: Callable[[], Awaitable[StatusFacts]],
        refused: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """`has_address`: the process has one for pages that name none. `refused`: why an address of
        a page cannot be used, by the address.
        """
        self._pages = pages
        self.has_address = has_address
        self._gather = gather
        self.refused = refused

    def is_served(self) -> bool:
        return any(
            self.has_address() or (page.listen and page.listen not in self.refused())
            for page in self._pages()
        )

    def pages(self) -> list[ServedStatusPage]:
        """Those of the file, then of the store; where there are none, one with everything on it."""
        return [ServedStatusPage(page.title, page.where) for page in self._pages()] or [
            ServedStatusPage(EVERYTHING.title, "")
        ]

    async def html(self, page: int | StatusPage, draft: StatusDraft | None) -> tuple[str, str]:
        """Returns content security policy and HTML. Raises StorageFailed."""
        shown = page if isinstance(page, StatusPage) else (*self._pages(), EVERYTHING)[page]
        facts = await self._gather()
        if draft is not None:
            others = [note for note in facts.notes if note.id != draft.id]
            facts = replace(facts, notes=[*others, NoteFacts(*draft)])
        base = shown.path.rstrip("/")
        return IN_FRAME, html(
            view(shown, facts), f"{base}/feed.atom", f"{base}/status.json", refreshes=False
        )


STATUS_PREVIEW = PagePart[StatusPreview]("status page")
INCIDENTS = PagePart[Incidents]("incidents")


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
