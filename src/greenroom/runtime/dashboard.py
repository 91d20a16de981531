"""The dashboard of one process: made from its parts, and announced with a one-time sign-in link
when it is new.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from greenroom.accounts.dashboard.session import OIDC
from greenroom.accounts.oidc_provider import ConfiguredProvider
from greenroom.alerts.view import NOTIFICATION_VIEW, NotificationView
from greenroom.analytics.dashboard.parts import ANALYTICS_STORE, QUERIES, ExplorerQueries
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
from greenroom.model.branding import LOGO_BYTES_MAX
from greenroom.model.clock import Clock
from greenroom.outbound import Guard, OutboundPolicy, fetch_picture
from greenroom.outbound.guard import Listening
from greenroom.runtime.dry_runs import DryRunProcesses
from greenroom.status_page.dashboard.preview import INCIDENTS, STATUS_PREVIEW, StatusPreview
from greenroom.web.config_service import ConfigService
from greenroom.web.pages.request import PageParts
from greenroom.web.stores import ConfigStore, SessionStore


class Running(NamedTuple):
    observed: Observed
    explains: Explains
    origin_problems: OriginProblems
    health: HealthService | None
    notifications: NotificationView | None
    analytics: AnalyticsStore | None
    status: StatusPreview | None = None
    ticket_keys: TicketKeys | None = None


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
        ExplorerQueries(store, clock, ALL_DATASETS, all_answers(answers, running.health, clock))
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
