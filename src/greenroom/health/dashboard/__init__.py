"""The health checks in the dashboard."""

from greenroom.health.dashboard import checks

PAGES = checks.PAGES
