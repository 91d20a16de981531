"""Draws on the control listener: announced ones, files of those held, and the verifier."""

from collections.abc import Callable
from importlib import resources
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from greenroom.configuration.state import Observed
from greenroom.configuration.status import announced
from greenroom.errors import StorageFailed
from greenroom.ledgers.draws import DrawFiles

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
