"""All pages and actions of the dashboard. A new page is a row in the `PAGES` of its slice, or of a
module in `pages/`, listed here.
"""

from greenroom.accounts import dashboard as accounts
from greenroom.alerts import dashboard as alerts
from greenroom.analytics import dashboard as analytics
from greenroom.dashboard.pages import (
    about,
    audit,
    documentation,
    dry_run,
    events,
    explain,
    keys,
    lists,
    live,
    live_actions,
    processes,
    room_meaning,
    rooms,
    rules,
    search,
    settings,
    transfer,
    undo,
    waiting_page,
    zones,
)
from greenroom.health import dashboard as health
from greenroom.status_page import dashboard as status_page

ROUTES = (
    *accounts.PAGES,
    *settings.PAGES,
    *search.PAGES,
    *undo.PAGES,
    *room_meaning.PAGES,
    *rooms.PAGES,
    *waiting_page.PAGES,
    *rules.PAGES,
    *health.PAGES,
    *alerts.PAGES,
    *status_page.PAGES,
    *live.PAGES,
    *live_actions.PAGES,
    *analytics.PAGES,
    *events.PAGES,
    *dry_run.PAGES,
    *lists.PAGES,
    *zones.PAGES,
    *audit.PAGES,
    *explain.PAGES,
    *processes.PAGES,
    *transfer.PAGES,
    *keys.PAGES,
    *documentation.PAGES,
    *about.PAGES,
)
"""Literal segments before values of the path."""
