"""What the pages of analytics ask."""

import json
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from greenroom.analytics.graphql.datasets import Dataset, DatasetAnswer
from greenroom.analytics.question import AnalyticsStore
from greenroom.model.account import Token
from greenroom.model.clock import Clock
from greenroom.web.authenticator import Caller
from greenroom.web.pages.request import PagePart, Person
from greenroom.web.stores import ConfigStore

if TYPE_CHECKING:
    from greenroom.analytics.graphql.endpoint import GraphqlEndpoint


class ExplorerQueries:
    """GraphQL queries of people who are signed in."""

    def __init__(
        self,
        store: ConfigStore,
        clock: Clock,
        datasets: Sequence[Dataset],
        answers: Mapping[str, DatasetAnswer],
    ) -> None:
        self._arguments = store, clock, datasets, answers
        self._guard = threading.Lock()
        self._made: GraphqlEndpoint | None = None

    def ask(self, person: Person, query: str, variables: str, operation: str) -> tuple[int, bytes]:
        """Returns status and JSON. `variables` is JSON, or empty. Blocks."""
        try:
            known = json.loads(variables) if variables.strip() else {}
        except (ValueError, RecursionError):
            known = None
        body = json.dumps(
            {
                "query": query,
                "variables": known if isinstance(known, dict) else [],
                "operationName": operation or None,
            }
        )
        token = Token(
            id=person.owner,
            name=person.name,
            scopes=("analytics",),
            zone_ids=person.zone_ids,
            secret_sha256="0" * 64,
        )
        answer = self._endpoint().ask(Caller(token), body.encode("utf-8", "replace"))
        return answer.status_code, bytes(answer.body)

    def _endpoint(self) -> "GraphqlEndpoint":
        # on the first query, because its library takes a quarter of a second to import
        with self._guard:
            if self._made is None:
                from greenroom.analytics.graphql.endpoint import GraphqlEndpoint

                self._made = GraphqlEndpoint(*self._arguments)
            return self._made


ANALYTICS_STORE = PagePart[AnalyticsStore]("analytics")
QUERIES = PagePart[ExplorerQueries]("queries")
