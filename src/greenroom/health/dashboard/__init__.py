"""The health checks in the dashboard."""

from greenroom.health.dashboard import analytics, checks
from greenroom.web.pages.routing import DashboardSlice

SLICE = DashboardSlice(__name__, (*analytics.PAGES, *checks.PAGES), (checks.find,))
