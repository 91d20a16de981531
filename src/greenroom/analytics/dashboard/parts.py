"""What the pages of analytics ask."""

from collections.abc import Callable

from greenroom.analytics.question import AnalyticsStore
from greenroom.web.pages.request import PagePart, Person

AskAnalytics = Callable[[Person, str, str, str], tuple[int, bytes]]
"""(person, query, variables, operation) -> status and JSON. `variables` is JSON, or empty. Blocks."""

ANALYTICS_STORE = PagePart[AnalyticsStore]("analytics")
QUERIES = PagePart[AskAnalytics]("queries")
