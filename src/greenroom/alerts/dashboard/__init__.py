"""Notifications in the dashboard."""

from greenroom.alerts.dashboard import notifications
from greenroom.web.pages.routing import DashboardSlice

SLICE = DashboardSlice(__name__, notifications.PAGES, (notifications.find,))
