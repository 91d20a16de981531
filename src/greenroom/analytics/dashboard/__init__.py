"""Analytics in the dashboard: the charts of a room, and the GraphQL explorer."""

from greenroom.analytics.dashboard import explorer, room

PAGES = (*room.PAGES, *explorer.PAGES)
