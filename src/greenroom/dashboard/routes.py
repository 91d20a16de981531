"""All pages and actions of the dashboard. A new page is a row in the `PAGES` of its module, which
its slice lists in `SLICE`; a page of no slice has its module in `pages/`, listed here.
"""

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
from greenroom.dashboard.slices import SLICES

ROUTES = (
    *(page for one in SLICES for page in one.pages),
    *settings.PAGES,
    *search.PAGES,
    *room_meaning.PAGES,
    *rooms.PAGES,
    *waiting_page.PAGES,
    *live.PAGES,
    *live_actions.PAGES,
    *dry_run.PAGES,
    *processes.PAGES,
    *transfer.PAGES,
    *keys.PAGES,
    *documentation.PAGES,
)
"""Literal segments before values of the path."""
