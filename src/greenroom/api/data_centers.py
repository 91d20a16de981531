"""Data centers: which are silent, and giving one up. An extension: Cloudflare has no such calls."""

from collections.abc import Callable
from importlib import resources
from typing import Any

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from greenroom.configuration import data_centers
from greenroom.configuration.dependencies import WithConfig
from greenroom.configuration.state import Observed
from greenroom.configuration.status import announced
from greenroom.errors import StorageFailed
from greenroom.ledgers.draws import DrawFiles
from greenroom.web.dependencies import Editor
from greenroom.web.envelope import answered
from greenroom.web.openapi import documented
from greenroom.web.routing import Router

# Draws on the control listener: announced ones, files of those held, and the verifier.

VERIFY_PAGE = "verify_draw.html"


def verify_page() -> str:
    return (resources.files("greenroom.pages") / VERIFY_PAGE).read_text("utf-8")


def draw_routes(observed: Observed, draws: DrawFiles) -> list[BaseRoute]:
    async def index(_request: Request) -> Response:
        upcoming: list[dict[str, Any]] = [
            found for room in observed.state().rooms for found in announced(room)
        ]
        return _answer(
            lambda: JSONResponse(
                {"announced": upcoming, "held": [f"/draws/{one}.json" for one in draws.listed()]}
            )
        )

    async def one(request: Request) -> Response:
        return _answer(lambda: _file(draws.file(request.path_params["draw_id"])))

    async def verify(_request: Request) -> Response:
        return HTMLResponse(verify_page())

    return [
        Route("/draws", index),
        Route("/draws/verify", verify),
        Route("/draws/{draw_id}.json", one),
    ]


def _file(content: bytes | None) -> Response:
    return (
        Response(content, media_type="application/json")
        if content is not None
        else PlainTextResponse("unknown draw\n", 404)
    )


def _answer(make: Callable[[], Response]) -> Response:
    try:
        return make()
    except StorageFailed as error:
        return PlainTextResponse(f"{error}\n", 503)


router = Router(
    tags=["data centers"],
    prefix="/accounts/{account_id}/data_centers",
    schemas={"DataCenter": data_centers.DATA_CENTER},
)
log = structlog.get_logger("greenroom.api")


@router.get("", **documented("[DataCenter]", may="read"))
async def list_data_centers(request: Request) -> Response:
    """List the data centers that share the rooms; ask the process that is the coordinator to see
    which are silent.
    """
    return answered(data_centers.listed(request.app.state.observed.state()))


@router.post("/{data_center}/give_up", **documented("DataCenter", change=True))
async def give_up(
    caller: Editor,
    config_service: WithConfig,
    request: Request,
    data_center: str,
) -> Response:
    """Give up a data center in which nothing runs any more: others get its units when its last
    session must have ended.
    """
    found = await data_centers.give_up(request.app.state.observed, data_center)
    log.warning("data_center_given_up", data_center=data_center, author=caller.author)
    await run_in_threadpool(data_centers.noted, config_service, caller.author, found)
    return answered(found)
