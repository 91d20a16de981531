from starlette.responses import Response

from greenroom.dashboard.undo import GONE, last_change
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import action
from greenroom.web.refusals import ApiFault, Code, Refused


def undo(page: PageRequest) -> Response:
    """Refused unless it still is this person's last change and nothing was changed since."""
    found = last_change(page.config, page.known, page.person)
    if found is None or found.number != page.field("number"):
        raise Refused(ApiFault(Code.CHANGED_MEANWHILE, GONE))
    page.change(found.plan)
    return page.redirect(found.path, notice="undone")


PAGES = (action("/undo", undo, filtered=True),)
