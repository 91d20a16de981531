"""All pages and actions of the dashboard. A new page is a row in the `PAGES` of its slice, or of a
module in `pages/`, listed here.
"""

from greenroom.accounts import dashboard as accounts
from greenroom.alerts import dashboard as alerts
from greenroom.analytics import dashboard as analytics
from greenroom.configuration import dashboard as configuration
from greenroom.dashboard.pages import (
    documentation,
    dry_run,
    keys,
    live,
    live_actions,
    processes,
    room_meaning,
    rooms,
    search,
    settings,
    transfer,
    waiting_page,
)
from greenroom.health import dashboard as health
from greenroom.offers import dashboard as offers
from greenroom.status_page import dashboard as status_page

ROUTES = (
    *accounts.PAGES,
    *settings.PAGES,
    *search.PAGES,
    *configuration.PAGES,
    *room_meaning.PAGES,
    *rooms.PAGES,
    *waiting_page.PAGES,
    *offers.PAGES,
    *health.PAGES,
    *alerts.PAGES,
    *status_page.PAGES,
    *live.PAGES,
    *live_actions.PAGES,
    *analytics.PAGES,
    *dry_run.PAGES,
    *processes.PAGES,
    *transfer.PAGES,
    *keys.PAGES,
    *documentation.PAGES,
)
"""Literal segments before values of the path."""
