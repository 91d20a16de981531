"""The status page in the dashboard: messages, and the editor of pages."""

from greenroom.status_page.dashboard import editor, messages
from greenroom.web.pages.routing import DashboardSlice

SLICE = DashboardSlice(__name__, (*editor.PAGES, *messages.PAGES))
