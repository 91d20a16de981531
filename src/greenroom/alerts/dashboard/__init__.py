"""Notifications in the dashboard."""

from greenroom.alerts.dashboard import notifications

PAGES = notifications.PAGES
SEARCHES = (notifications.find,)
