"""Analytics in the dashboard: the charts of a room, and the GraphQL explorer."""

from greenroom.analytics.dashboard import explorer, room
from greenroom.web.pages.routing import DashboardSlice

SLICE = DashboardSlice(__name__, (*room.PAGES, *explorer.PAGES))
