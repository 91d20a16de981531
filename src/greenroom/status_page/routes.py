"""Public status pages: where they are and what is on them. Not Cloudflare's calls."""

from starlette.responses import Response

from greenroom.configuration.dependencies import Edit, Read, WithConfig
from greenroom.status_page import pages as status_pages
from greenroom.web.dependencies import Document, Paged
from greenroom.web.openapi import documented
from greenroom.web.routing import Router

router = Router(
    tags=["status page"], prefix="/accounts/{account_id}", schemas={"StatusPage": status_pages.PAGE}
)


@router.get("/status_pages", **documented("[StatusPage]", info="Page", may="read"))
def list_pages(config_service: WithConfig, page: Paged) -> Response:
    """List the status pages, those of the configuration file too."""
    return page.answer(
        config_service.look(lambda known: list(known.status_pages.values())), status_pages.show
    )


@router.post("/status_pages", **documented("StatusPage", body="StatusPageCreate"))
def create_page(edit: Edit, document: Document) -> Response:
    """Create a status page; it is public on `status_listen` of every process that has one."""
    return edit(status_pages.create(document))


@router.get("/status_pages/{page_id}", **documented("StatusPage", may="read"))
def get_page(read: Read, page_id: str) -> Response:
    """Get a status page."""
    return read(lambda known: status_pages.show(status_pages.page_of(known, page_id)))


@router.patch("/status_pages/{page_id}", **documented("StatusPage", body="StatusPageEdit"))
def edit_page(edit: Edit, document: Document, page_id: str) -> Response:
    """Change some fields of a status page."""
    return edit(status_pages.change(page_id, document))


@router.delete("/status_pages/{page_id}", **documented("Id", change=True))
def delete_page(edit: Edit, page_id: str) -> Response:
    """Delete a status page."""
    return edit(status_pages.delete(page_id))
