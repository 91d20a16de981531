"""The demo's own page on the control listener: live numbers, and the switch for the crowd."""

from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route

from greenroom.decision.arrival import origin_of
from greenroom.demo.crowd import CROWD_MAX, CROWD_NORMAL, DemoCrowd

FORM_MAX = 1_000

_HERE = Path(__file__).parent
_PAGE = Template((_HERE / "console.html").read_text(encoding="utf-8"))
_STYLE = (_HERE / "shop.css").read_text(encoding="utf-8")


def console_routes(
    crowd: DemoCrowd, shop_url: Callable[[], str], room: Callable[[], Mapping[str, Any]]
) -> list[Route]:
    async def page(_request: Request) -> Response:
        state = room()
        return HTMLResponse(
            _PAGE.substitute(
                style=_STYLE,
                shop=shop_url(),
                capacity=state["total_active_users"],
                rate=state["new_users_per_minute"],
                size=crowd.size,
                normal=crowd.size or CROWD_NORMAL,
                most=CROWD_MAX,
            ),
            headers={"Cache-Control": "no-store"},
        )

    async def numbers(_request: Request) -> Response:
        doing = {
            "size": crowd.size,
            "waiting": crowd.doing("waiting"),
            "shopping": crowd.doing("shopping"),
            **crowd.counts,
        }
        return JSONResponse({"crowd": doing, "room": room()}, headers={"Cache-Control": "no-store"})

    async def switch(request: Request) -> Response:
        if not _from_here(request):
            return PlainTextResponse("only the demo page may send this request\n", 403)
        size = await _wanted_size(request)
        if size is None:
            return PlainTextResponse(f"size must be a number from 0 to {CROWD_MAX}\n", 400)
        crowd.resize(size)
        return RedirectResponse("/demo", 303)

    return [
        Route("/demo", page),
        Route("/demo/state", numbers),
        Route("/demo/crowd", switch, methods=["POST"]),
    ]


def _from_here(request: Request) -> bool:
    # A page of another site, open in the same browser, may not play with the crowd.
    origin = request.headers.get("origin")
    if origin is None:
        return True
    scheme, _, authority = origin.partition("://")
    host = request.headers.get("host", "")
    sent = origin_of(scheme, authority.encode("latin-1"))
    return bool(sent) and sent == origin_of(scheme, host.encode("latin-1"))


async def _wanted_size(request: Request) -> int | None:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > FORM_MAX:
            return None
    form = {name: values[0] for name, values in parse_qs(body.decode("latin-1")).items()}
    if form.get("switch") == "off":
        return 0
    text = form.get("size", str(CROWD_NORMAL))
    return (
        min(CROWD_MAX, int(text)) if text.isascii() and text.isdigit() and len(text) < 9 else None
    )
