"""What operators reach: API, dashboard, metrics and status pages."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version

from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from greenroom.accounts.dashboard.session import oidc_settings
from greenroom.accounts.sign_in import LINK_PATH
from greenroom.analytics.graphql.datasets import DatasetAnswer
from greenroom.api.app import control_app, under_prefix
from greenroom.api.data_centers import draw_routes
from greenroom.api.management import management_api
from greenroom.api.metrics import METRICS, Exposition, gateway_rows
from greenroom.config.config import Config
from greenroom.configuration.state import Observed
from greenroom.dashboard import PREFIX, Dashboard
from greenroom.decision.forwarded import ForwardedPolicy
from greenroom.errors import GreenroomError
from greenroom.gateway.counts import Counts
from greenroom.gateway.tls import server_context
from greenroom.ledgers.draws import DrawFiles
from greenroom.model.clock import Clock
from greenroom.outbound.guard import Listening
from greenroom.runtime.assemble import process_policy
from greenroom.runtime.dashboard import (
    Running,
    open_dashboard,
)
from greenroom.runtime.listener import AppListener
from greenroom.runtime.metrics_export import export_metrics
from greenroom.runtime.rebinding import BehindProxy, OwnNamesOnly
from greenroom.runtime.status_page import StatusListeners
from greenroom.settings.process import Address
from greenroom.web.client_address import WithClientAddress
from greenroom.web.stores import ConfigStore, SessionStore


class ControlListener(AppListener):
    def __init__(self, app: ASGIApp, listener: socket.socket, config: Config) -> None:
        """OSError when the certificate cannot be read."""
        own = config.control_tls
        self._tls = server_context(own.cert, own.key) if own else None
        super().__init__(app, listener, self._tls)

    def configure(self, config: Config) -> None:
        """OSError when the certificate cannot be used; the old one stays."""
        if self._tls and config.control_tls:
            server_context(config.control_tls.cert, config.control_tls.key)
            self._tls.load_cert_chain(config.control_tls.cert, config.control_tls.key)


def control_listeners(
    app: ASGIApp, config: Callable[[], Config], listener: socket.socket | None
) -> list[ControlListener]:
    def policy() -> ForwardedPolicy:
        return process_policy(config())

    if listener is None:
        return []
    by_socket = listener.family == socket.AF_UNIX
    known = WithClientAddress(app, policy, by_socket=by_socket)
    placed = BehindProxy(known, policy, PREFIX, by_socket=by_socket)
    return [ControlListener(OwnNamesOnly(placed, policy), listener, config())]


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
        draws: DrawFiles,
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
        routes = [under_prefix(api), *draw_routes(running.observed, draws), *routes]
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
    return Exposition(observed, (*METRICS, *rows))


async def sign_in_lines(dashboard: Dashboard, control: Address, *, tls: bool) -> list[str]:
    """None when there is an account or a token, or a provider that knows admins: a link in the log
    would be a way around it.
    """
    settings = oidc_settings(dashboard.parts)
    if settings and any(row.role == "admin" for row in settings.roles):
        return []
    hint = (
        f"; at your proxy, or at http://127.0.0.1:8081 after ssh -L 8081:{control.path}"
        if control.path
        else ""
    )
    host = "127.0.0.1" if control.host in ("0.0.0.0", "::") else control.host  # noqa: S104  compared, not bound
    at = "" if control.path else f"http{'s' if tls else ''}://{Address(host, control.port)}"
    with contextlib.suppress(
        GreenroomError
    ):  # the store cannot be reached: signing in has to wait, visitors need not
        known = await asyncio.to_thread(dashboard.config.store.read)
        if not known.accounts and not known.tokens:
            key = await asyncio.to_thread(dashboard.sign_in.make_link)
            return [f"sign in    {at}{LINK_PATH}?key={key}  (works once, for 24 hours{hint})"]
    return []
