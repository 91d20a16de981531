"""What operators reach: API, dashboard, metrics and status pages."""

import contextlib
import socket
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version

from starlette.routing import BaseRoute

from greenroom.analytics.graphql.datasets import DatasetAnswer
from greenroom.api.app import control_app, under_prefix
from greenroom.api.management import management_api
from greenroom.api.metrics import EXPORTED, Exposition, gateway_rows
from greenroom.config.config import Config
from greenroom.configuration.state import Observed
from greenroom.gateway.counts import Counts
from greenroom.model.clock import Clock
from greenroom.outbound.guard import Listening
from greenroom.runtime.dashboard import (
    Running,
    control_listeners,
    open_dashboard,
    sign_in_lines,
)
from greenroom.runtime.metrics_export import export_metrics
from greenroom.runtime.status_page import StatusListeners
from greenroom.settings.process import Address
from greenroom.web.stores import ConfigStore, SessionStore


class ControlPlane:
    def __init__(
        self,
        running: Running,
        store: ConfigStore,
        sessions: SessionStore,
        clock: Clock,
        answers: Mapping[str, DatasetAnswer],
        status: StatusListeners,
        config: Callable[[], Config],
        routes: Sequence[BaseRoute],
        listening: Listening,
        listener: socket.socket | None,
    ) -> None:
        """`answers` as for `open_dashboard`; `routes` beside the API's; no `listener`: none."""
        api = management_api(
            store,
            sessions,
            clock,
            running.observed,
            running.origin_problems,
            running.explains,
            running.health,
            running.notifications,
            answers,
            running.data_centers,
        )
        shown = running._replace(status=status.preview())
        self._dashboard = open_dashboard(store, sessions, clock, shown, answers, config, listening)
        routes = [under_prefix(api), *routes]
        app = control_app(running.observed, _exposition(running.observed), routes, self._dashboard)
        self._observed, self._config = running.observed, config
        self._status = status
        self._listeners = control_listeners(app, config, listener)
        self.run = status.run

    async def start(self, ending: contextlib.AsyncExitStack) -> None:
        for listener in (*self._listeners, *self._status.fixed):
            ending.push_async_callback(listener.close)
            await listener.start()

    def configure(self, config: Config) -> None:
        """OSError when a certificate cannot be used."""
        for listener in self._listeners:
            listener.configure(config)

    async def export_metrics(self) -> None:
        await export_metrics(
            lambda: _exposition(self._observed),
            lambda: self._config().metrics,
            version("greenroom"),
        )

    async def sign_in_lines(self, control: Address, *, tls: bool) -> list[str]:
        return await sign_in_lines(self._dashboard, control, tls=tls)


def _exposition(observed: Observed) -> Exposition:
    described = list(Counts().described())
    gauges = frozenset(name for name, _, gauge, _ in described if gauge)
    rows = gateway_rows([(name, meaning) for name, meaning, _, _ in described], gauges)
    return Exposition(observed, (*EXPORTED, *rows))
