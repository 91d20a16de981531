"""The dashboard of one process: made from its parts, and announced with a one-time sign-in link
when it is new.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from greenroom.accounts.dashboard.session import OIDC
from greenroom.accounts.oidc_provider import ConfiguredProvider
from greenroom.alerts.view import NOTIFICATION_VIEW, NotificationView
from greenroom.analytics.dashboard.parts import ANALYTICS_STORE, QUERIES
from greenroom.analytics.graphql.datasets import DatasetAnswer
from greenroom.analytics.question import AnalyticsStore
from greenroom.api.management import ALL_DATASETS, all_answers
from greenroom.config_file.process_config import ProcessConfig
from greenroom.configuration.dashboard.parts import EXPLAINS, ORIGIN_PROBLEMS
from greenroom.configuration.explain_request import Explains
from greenroom.configuration.state import Observed
from greenroom.configuration.zones import OriginProblems
from greenroom.dashboard import Dashboard
from greenroom.dashboard.parts import DRY_RUNS, FETCH_LOGO, TICKET_KEYS, TicketKeys
from greenroom.health.dashboard.parts import HEALTH_VIEW
from greenroom.health.service import HealthService
from greenroom.keys.ticket_keys import KeyRing, TicketKey, ticket_keys
from greenroom.model.account import Token
from greenroom.model.branding import LOGO_BYTES_MAX
from greenroom.model.clock import Clock
from greenroom.outbound import Guard, OutboundPolicy, fetch_picture
from greenroom.outbound.guard import Listening
from greenroom.runtime.dry_runs import DryRunProcesses
from greenroom.status_page.dashboard.preview import INCIDENTS, STATUS_PREVIEW, StatusPreview
from greenroom.web.authenticator import Caller
from greenroom.web.config_service import ConfigService
from greenroom.web.pages.request import PageParts, Person
from greenroom.web.stores import ConfigStore, SessionStore

if TYPE_CHECKING:
    from greenroom.analytics.graphql.endpoint import GraphqlEndpoint


class Running(NamedTuple):
    observed: Observed
    explains: Explains
    origin_problems: OriginProblems
    health: HealthService | None
    notifications: NotificationView | None
    analytics: AnalyticsStore | None
    status: StatusPreview | None = None
    ticket_keys: TicketKeys | None = None


class AnalyticsQueries:
    def __init__(
        self,
        store: ConfigStore,
        clock: Clock,
        answers: Mapping[str, DatasetAnswer],
        health: HealthService | None,
    ) -> None:
        self._make = partial(_endpoint, store, clock, all_answers(answers, health, clock))
        self._guard = threading.Lock()
        self._made: GraphqlEndpoint | None = None

    def ask(self, person: Person, query: str, variables: str, operation: str) -> tuple[int, bytes]:
        # its library takes a quarter of a second to import, so it is imported when the first query
        # comes
        with self._guard:
            self._made = self._made or self._make()
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
        answer = self._made.ask(Caller(token), body.encode("utf-8", "replace"))
        return answer.status_code, bytes(answer.body)


def _endpoint(
    store: ConfigStore, clock: Clock, answers: Mapping[str, DatasetAnswer]
) -> "GraphqlEndpoint":
    from greenroom.analytics.graphql.endpoint import GraphqlEndpoint

    return GraphqlEndpoint(store, clock, ALL_DATASETS, answers)


class KeyFile:
    """The processes that share it follow within a second."""

    def __init__(self, data: Path, clock: Clock) -> None:
        self._data = data
        self._clock = clock

    def every(self) -> list[TicketKey]:
        return ticket_keys(self._data, self._clock.now_ms())

    def rotate(self) -> TicketKey:
        now_ms = self._clock.now_ms()
        KeyRing(self._data, now_ms).rotate(now_ms)
        return self.every()[0]


def open_dashboard(
    store: ConfigStore,
    sessions: SessionStore,
    clock: Clock,
    running: Running,
    answers: Mapping[str, DatasetAnswer],
    config: Callable[[], ProcessConfig],
    listening: Listening,
) -> Dashboard:
    """`answers` are those of GraphQL about rooms, empty where no analytics are kept."""

    def outbound() -> OutboundPolicy:
        return config().sending.outbound

    def fetch_logo(url: str) -> str:
        return asyncio.run(
            fetch_picture(Guard(outbound(), listening=listening), url, LOGO_BYTES_MAX)
        )

    queries = (
        AnalyticsQueries(store, clock, answers, running.health).ask
        if answers or running.health
        else None
    )
    parts = PageParts()
    parts.put(EXPLAINS, running.explains).put(ORIGIN_PROBLEMS, running.origin_problems)
    parts.put(HEALTH_VIEW, running.health).put(NOTIFICATION_VIEW, running.notifications)
    parts.put(INCIDENTS, running.notifications.incidents if running.notifications else None)
    parts.put(ANALYTICS_STORE, running.analytics).put(QUERIES, queries)
    parts.put(STATUS_PREVIEW, running.status).put(TICKET_KEYS, running.ticket_keys)
    parts.put(DRY_RUNS, DryRunProcesses()).put(FETCH_LOGO, fetch_logo)
    parts.put(OIDC, ConfiguredProvider(lambda: config().oidc, outbound, clock, listening).now)
    return Dashboard(ConfigService(store, clock), sessions, running.observed, parts)
