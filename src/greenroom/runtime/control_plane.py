"""What operators reach: API, dashboard, metrics and status pages."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Sequence
from importlib.metadata import version

from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from greenroom.accounts.sign_in import LINK_PATH
from greenroom.alerts.service import Notifications
from greenroom.api.app import control_app, under_prefix
from greenroom.api.data_centers import draw_routes
from greenroom.api.management import management_api
from greenroom.api.metrics import METRICS, Exposition, gateway_rows
from greenroom.config_file.process_config import ProcessConfig
from greenroom.configuration.state import Observed
from greenroom.dashboard import PREFIX, Dashboard
from greenroom.errors import GreenroomError
from greenroom.gateway.counts import Counts
from greenroom.gateway.tls import server_context
from greenroom.health.service import HealthService
from greenroom.model.clock import Clock
from greenroom.request.forwarded import ForwardedPolicy
from greenroom.runtime.analytics import NoAnalytics
from greenroom.runtime.assemble import process_policy
from greenroom.runtime.dashboard import KeyFile, Running, open_dashboard
from greenroom.runtime.data_dir import DataDir
from greenroom.runtime.explain import RunningExplain
from greenroom.runtime.followed_config import FollowedConfig
from greenroom.runtime.listener import AppListener
from greenroom.runtime.metrics_export import export_metrics
from greenroom.runtime.rebinding import BehindProxy, OwnNamesOnly
from greenroom.runtime.status_page import StatusListeners
from greenroom.settings.process import Address
from greenroom.web.client_address import WithClientAddress


class ControlListener(AppListener):
    def __init__(self, app: ASGIApp, listener: socket.socket, config: ProcessConfig) -> None:
        """OSError when the certificate cannot be read."""
        own = config.control_tls
        self._tls = server_context(own.cert, own.key) if own else None
        super().__init__(app, listener, self._tls)

    def configure(self, config: ProcessConfig) -> None:
        """OSError when the certificate cannot be used; the old one stays."""
        if self._tls and config.control_tls:
            server_context(config.control_tls.cert, config.control_tls.key)
            self._tls.load_cert_chain(config.control_tls.cert, config.control_tls.key)


def control_listener(
    app: ASGIApp, config: Callable[[], ProcessConfig], listener: socket.socket
) -> ControlListener:
    def policy() -> ForwardedPolicy:
        return process_policy(config())

    by_socket = listener.family == socket.AF_UNIX
    known = WithClientAddress(app, policy, by_socket=by_socket)
    placed = BehindProxy(known, policy, PREFIX, by_socket=by_socket)
    return ControlListener(OwnNamesOnly(placed, policy), listener, config())


class ControlPlane:
    def __init__(
        self,
        observed: Observed,
        followed: FollowedConfig,
        data: DataDir,
        clock: Clock,
        health: HealthService,
        notifications: Notifications,
        analytics: NoAnalytics,
        status: StatusListeners,
        routes: Sequence[BaseRoute],
        listener: socket.socket | None,
    ) -> None:
        """`routes` beside the API's; no `listener`: none."""

        def config() -> ProcessConfig:
            return followed.config

        store, sessions, answers = followed.layered, followed.store.sessions, analytics.answers()
        running = Running(
            observed,
            RunningExplain(config, followed.lookups, clock.now_ms, observed),
            followed.origin_problems,
            health,
            notifications,
            analytics.store(),
            status.preview(),
            KeyFile(data.path, clock),
        )
        api = management_api(
            store,
            sessions,
            clock,
            observed,
            running.origin_problems,
            running.explains,
            health,
            notifications,
            answers,
        )
        listening = followed.published.everywhere
        self._dashboard = open_dashboard(
            store, sessions, clock, running, answers, config, listening
        )
        routes = [under_prefix(api), *draw_routes(observed, data.draws), *routes]
        app = control_app(observed, _exposition(observed), routes, self._dashboard)
        self._observed, self._config = observed, config
        self._status = status
        self._listener = None if listener is None else control_listener(app, config, listener)
        self.run = status.run

    async def start(self, ending: contextlib.AsyncExitStack) -> None:
        own = [self._listener] if self._listener else []
        for listener in (*own, *self._status.fixed):
            ending.push_async_callback(listener.close)
            await listener.start()

    def configure(self, config: ProcessConfig) -> None:
        """OSError when a certificate cannot be used."""
        if self._listener:
            self._listener.configure(config)

    async def export_metrics(self) -> None:
        await export_metrics(
            lambda: _exposition(self._observed),
            lambda: self._config().metrics,
            version("greenroom"),
        )

    async def sign_in_lines(self, control: Address) -> list[str]:
        tls = bool(self._config().control_tls)
        return await sign_in_lines(self._dashboard, control, tls=tls)


def _exposition(observed: Observed) -> Exposition:
    described = list(Counts().described())
    gauges = frozenset(name for name, _, gauge, _ in described if gauge)
    rows = gateway_rows([(name, meaning) for name, meaning, _, _ in described], gauges)
    return Exposition(observed, (*METRICS, *rows))


async def sign_in_lines(dashboard: Dashboard, control: Address, *, tls: bool) -> list[str]:
    """Empty when there is an account or a token, or a provider that knows admins: a link in the
    log would be a way around it.
    """
    if dashboard.sign_in.provider_knows_admins():
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
