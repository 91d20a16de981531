"""The configuration in the dashboard: zones, events, rules, lists, audit log, and undo.

Rooms have their pages in `greenroom.dashboard`, beside the live ones.
"""

from greenroom.configuration.dashboard import audit, events, explain, lists, rules, undo, zones
from greenroom.web.pages.routing import DashboardSlice

SLICE = DashboardSlice(
    __name__,
    (
        *undo.PAGES,
        *rules.PAGES,
        *events.PAGES,
        *lists.PAGES,
        *zones.PAGES,
        *audit.PAGES,
        *explain.PAGES,
    ),
    (events.find, rules.find, zones.find, lists.find),
)
