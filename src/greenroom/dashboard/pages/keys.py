"""Ticket keys: their age, and replacing one that may have been seen."""

import structlog
from starlette.responses import Response

from greenroom.dashboard.parts import TICKET_KEYS, TicketKeys
from greenroom.errors import InvalidConfig, StorageFailed
from greenroom.model.account import Role
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import action, view
from greenroom.web.refusals import ApiFault, Code, Refused

log = structlog.get_logger("greenroom.dashboard")


def table(page: PageRequest) -> Response:
    return _shown(page)


def rotate(page: PageRequest) -> Response:
    keys = _keys(page)
    if not page.field("sure"):
        return _shown(page, problems=["confirm that you want a new key"], status=400)
    try:
        made = keys.rotate()
    except (StorageFailed, InvalidConfig) as error:
        return _shown(page, problems=[str(error)], status=503)
    log.info("ticket_key_made", id=made.id, author=page.person.author)
    after = {"id": made.id, "seals_from_ms": made.seals_from_ms}
    page.config.store.note(
        "ticket_key", made.id, author=page.person.author, now_ms=page.now_ms, after=after
    )
    return page.redirect("/keys", notice="created")


def _shown(page: PageRequest, *, problems: list[str] | None = None, status: int = 200) -> Response:
    try:
        found = _keys(page).every()
    except (StorageFailed, InvalidConfig) as error:
        found, problems, status = [], [*(problems or []), str(error)], 503
    return page.render("keys.html", status, keys=found, problems=problems or [], now_ms=page.now_ms)


def _keys(page: PageRequest) -> TicketKeys:
    keys = page.part(TICKET_KEYS)
    if keys is None:
        raise Refused(ApiFault(Code.NO_OBJECT, "this process has no keys of its own"))
    return keys


PAGES = (
    view("/keys", table, Role.ADMIN),
    action("/keys", rotate, Role.ADMIN),
)
