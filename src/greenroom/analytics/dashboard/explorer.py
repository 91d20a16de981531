from starlette.responses import Response

from greenroom.analytics.dashboard.parts import QUERIES
from greenroom.model.account import Role
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import Threads, action, view

FIRST_QUERY = """# Queries see the zones that you may see. Press Ctrl-Enter to run one, Ctrl-Space for what may stand here.
{
  viewer {
    zones {
      zoneTag
      perHour: waitingRoomAnalyticsAdaptiveGroups(limit: 24, orderBy: [datetimeHour_DESC]) {
        max { totalActiveUsers totalQueuedUsers }
        percentile { totalTimeWaitedP95 }
        dimensions { datetimeHour waitingRoomId }
      }
    }
  }
}
"""


def show(page: PageRequest) -> Response:
    there = page.part(QUERIES) is not None
    return page.render(
        "explorer.html",
        there=there,
        first=FIRST_QUERY,
    )


def ask(page: PageRequest) -> Response:
    queries = page.part(QUERIES)
    if queries is None:
        return Response(
            b'{"data":null,"errors":[{"message":"this process keeps no analytics"}]}',
            media_type="application/json",
        )
    status, body = queries.ask(
        page.person, page.field("query"), page.field("variables"), page.field("operationName")
    )
    return Response(body, status, media_type="application/json")


PAGES = (
    view("/explorer", show, filtered=True),
    action("/explorer", ask, Role.VIEWER, filtered=True, threads=Threads.QUERIES),
)
