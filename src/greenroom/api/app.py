"""The control listener: health for load balancers, metrics, room states."""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from greenroom.api.metrics import Exposition
from greenroom.configuration.state import Observed
from greenroom.configuration.status import status

PREFIX = "/client/v4"


def under_prefix(api: ASGIApp) -> Mount:
    """Also takes paths with a line break."""
    mount = Mount(PREFIX, api)
    mount.path_regex = re.compile(mount.path_regex.pattern, re.DOTALL)
    return mount


def control_app(
    observed: Observed,
    exposition: Exposition,
    more: Iterable[BaseRoute] = (),
    dashboard: ASGIApp | None = None,
) -> Starlette:
    """The dashboard serves all remaining paths. At `/` clients that do not accept HTML get a list
    of the others.
    """

    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_request: Request) -> Response:
        state = observed.state()
        unusable = "".join(f"cannot be used: {fault}\n" for fault in state.faults)
        return PlainTextResponse(f"{state.phase}\n{unusable}", 200 if state.ready else 503)

    async def metrics(request: Request) -> Response:
        text, media_type = exposition.text(request.headers.get("accept", ""))
        return Response(text, media_type=media_type)

    async def overview(_request: Request) -> Response:
        return _Indented(status(observed.state()))

    answers: dict[str, Callable[[Request], Any]] = {
        "/healthz": healthz,
        "/readyz": readyz,
        "/metrics": metrics,
        "/status": overview,
    }

    async def index(request: Request) -> Any:
        if dashboard is not None and "text/html" in request.headers.get("accept", ""):
            return dashboard
        return PlainTextResponse(
            "greenroom control listener\n" + "".join(f"{path}\n" for path in answers),
            headers={"Vary": "Accept"},
        )

    rest = [] if dashboard is None else [Mount("/", dashboard)]
    return Starlette(
        routes=[
            Route("/", index),
            *(Route(path, answer) for path, answer in answers.items()),
            *more,
            *rest,
        ],
        exception_handlers={ClientDisconnect: _aborted},
    )


async def _aborted(_request: Request, _error: Exception) -> Response:
    return Response(status_code=400)  # nobody reads it


class _Indented(JSONResponse):
    def render(self, content: Any) -> bytes:
        # Indented for people.
        return json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n"
