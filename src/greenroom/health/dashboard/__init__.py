"""The health checks in the dashboard."""

from greenroom.health.dashboard import analytics, checks

PAGES = (*analytics.PAGES, *checks.PAGES)
SEARCHES = (checks.find,)
