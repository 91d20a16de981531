"""The management API as one application, mounted under PREFIX on the control listener."""

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from greenroom.alerts import routes as alerting
from greenroom.alerts.view import NotificationView
from greenroom.analytics.graphql.datasets import DATASETS, DatasetAnswer
from greenroom.analytics.graphql.route import graphql_routes
from greenroom.api import data_centers, preview
from greenroom.api.app import PREFIX
from greenroom.api.health_datasets import HEALTH_EVENTS, HEALTH_GROUPS, health_answers
from greenroom.api.openapi import document
from greenroom.api.preview import Previews, preview_routes
from greenroom.configuration.explain_request import Explains
from greenroom.configuration.list_items import Catalogue, Operations
from greenroom.configuration.routes import (
    accounts,
    events,
    explain,
    figures,
    lists,
    rooms,
    rules,
    zones,
)
from greenroom.configuration.state import Observed
from greenroom.configuration.zones import OriginProblems
from greenroom.health import routes as health_checks
from greenroom.health.service import HealthService
from greenroom.model.clock import Clock
from greenroom.offers import changes as offers
from greenroom.status_page import incident_notes
from greenroom.status_page import routes as status_pages
from greenroom.web.authenticator import Authenticator
from greenroom.web.config_service import ConfigService
from greenroom.web.envelope import Front, broken, no_route, refused
from greenroom.web.refusals import CODES, Code, Refused
from greenroom.web.routing import SlowWork
from greenroom.web.stores import ConfigStore, SessionStore

log = structlog.get_logger("greenroom.api")

ROUTERS = (
    accounts.router,
    zones.router,
    preview.router,
    rooms.router,
    figures.router,
    events.router,
    rules.router,
    offers.router,
    lists.router,
    *health_checks.routers,
    health_checks.agents,
    data_centers.router,
    alerting.router,
    incident_notes.router,
    status_pages.router,
    accounts.audit_router,
    accounts.unusable_router,
    explain.router,
)
"""Literal segments come before ids: `settings` and `preview` stand where a room's id would."""


NO_DATASETS: Mapping[str, DatasetAnswer] = MappingProxyType({})

ROUTES = tuple(route for router in ROUTERS for route in router.routes)


ALL_DATASETS = (*DATASETS, HEALTH_EVENTS, HEALTH_GROUPS)


def all_answers(
    datasets: Mapping[str, DatasetAnswer], health: HealthService | None, clock: Clock
) -> dict[str, DatasetAnswer]:
    return {**datasets, **(health_answers(health, clock.now_ms) if health else {})}


@cache
def api_document() -> dict[str, Any]:
    return document(ROUTERS, PREFIX)


def management_api(
    store: ConfigStore,
    sessions: SessionStore,
    clock: Clock,
    observed: Observed,
    origin_problems: OriginProblems,
    explains: Explains | None = None,
    health: HealthService | None = None,
    notifications: NotificationView | None = None,
    datasets: Mapping[str, DatasetAnswer] = NO_DATASETS,
) -> Front:
    """`sessions` counts wrong tokens."""
    previews = Previews(clock)
    without_token = [*preview_routes(previews, clock), Route("/openapi.json", _openapi)]
    graphql = graphql_routes(store, clock, ALL_DATASETS, all_answers(datasets, health, clock))
    app = Starlette(routes=[*ROUTES, *graphql, *without_token], exception_handlers=HANDLERS)
    app.router.redirect_slashes = False
    app.state.config_service = ConfigService(store, clock)
    app.state.authenticator = Authenticator(store, clock, sessions)
    app.state.observed = observed
    app.state.origin_problems = origin_problems
    app.state.previews = previews
    app.state.explains = explains
    app.state.health = health
    app.state.notifications = notifications or NotificationView()
    app.state.incidents = app.state.notifications.incidents
    app.state.outbound = SlowWork(4)
    app.state.figures = SlowWork(2, waiting=100)
    app.state.operations = Operations()
    app.state.catalogue = Catalogue()
    return Front(app)


async def _openapi(_request: Request) -> Response:
    return JSONResponse(api_document())


async def _refused(_request: Request, error: Refused) -> Response:
    headers = {}
    if error.faults[0].code is Code.SLOW_DOWN:
        headers = {"Retry-After": str(max(1, error.retry_after_s)), "X-Should-Retry": "false"}
    if error.status == CODES[Code.NO_CREDENTIALS].status:
        headers["WWW-Authenticate"] = "Bearer"
    return refused(error, headers)


async def _routed_nowhere(request: Request, error: HTTPException) -> Response:
    headers = (
        {"Allow": _allowed(request)} if error.status_code == CODES[Code.NO_METHOD].status else {}
    )
    return refused(no_route(error.status_code, request.method, request.url.path), headers)


def _allowed(request: Request) -> str:
    """A literal segment (`settings`) wins over an id."""
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    alone = [route for route in request.app.routes if isinstance(route, Route)]
    matching = [route for route in alone if route.path_regex.match(path)]
    closest = min(matching, key=lambda route: len(route.param_convertors)).path
    return ", ".join(
        sorted(
            {
                method
                for route in matching
                if route.path == closest
                for method in route.methods or ()
            }
        )
    )


async def _broken(_request: Request, error: Exception) -> Response:
    # The toolkit raises the error again after the answer; the front logs it.
    return refused(broken(error))


async def _aborted(request: Request, _error: ClientDisconnect) -> Response:
    log.info("upload_aborted", path=request.url.path)
    return Response(status_code=400)  # nobody reads it


HANDLERS: dict[type[Exception], Callable[[Request, Any], Any]] = {
    Refused: _refused,
    HTTPException: _routed_nowhere,
    ClientDisconnect: _aborted,
    Exception: _broken,
}
