"""The status page in the dashboard: messages, and the editor of pages."""

from greenroom.status_page.dashboard import editor, messages

PAGES = (*editor.PAGES, *messages.PAGES)
