"""What the pages of analytics ask."""

from typing import Protocol

from greenroom.analytics.question import AnalyticsStore
from greenroom.web.pages.parts import PagePart
from greenroom.web.pages.person import Person


class AsksAnalytics(Protocol):
    def ask(self, person: Person, query: str, variables: str, operation: str) -> tuple[int, bytes]:
        """Returns status and JSON; `variables` is JSON, or empty. Blocks."""


ANALYTICS_STORE = PagePart[AnalyticsStore]("analytics")
QUERIES = PagePart[AsksAnalytics]("queries")
