"""Serves the pages; computes facts at most once in ten seconds."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from greenroom.model.status_page import StatusPage
from greenroom.status_page.render import CSP, atom, document, html
from greenroom.status_page.view import StatusFacts, view

FRESH_S = 10

HEADERS = {
    "Cache-Control": f"public, max-age={FRESH_S}",
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}

Ask = Callable[[], Awaitable[StatusFacts]]


class FactsCache:
    """Fetches one at a time, and keeps old facts while that fails."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._guard = asyncio.Lock()
        self._facts: StatusFacts | None = None
        self._asked_s = 0.0

    async def get(self) -> StatusFacts:
        """Raises what the fetch raises while there are no facts."""
        async with self._guard:
            if self._facts is None or time.monotonic() - self._asked_s >= FRESH_S:
                try:
                    self._facts = await self._ask()
                except Exception:
                    if self._facts is None:
                        raise
                self._asked_s = time.monotonic()
            return self._facts


def status_pages(pages: Callable[[], Sequence[StatusPage]], ask: Ask) -> Starlette:
    cache = FactsCache(ask)

    async def answer(request: Request) -> Response:
        path = request.url.path
        base, _, last = path.rpartition("/")
        form = last if last in _FORMS else ""
        wanted = (base or "/") if form else (path.rstrip("/") or "/")
        page = _page(pages(), wanted, request.url.hostname or "")
        if page is None:
            return PlainTextResponse("There is no status page here.\n", 404, headers=HEADERS)
        found = view(page, await cache.get())
        at = page.path.rstrip("/")
        if form == "status.json":
            return _sent(request, msgspec.json.encode(document(found)), "application/json")
        if form == "feed.atom":
            whole = str(request.base_url).rstrip("/") + at
            return _sent(
                request,
                atom(found, f"{whole}/", f"{whole}/feed.atom").encode(),
                "application/atom+xml",
            )
        return _sent(
            request,
            html(found, f"{at}/feed.atom", f"{at}/status.json").encode(),
            "text/html; charset=utf-8",
        )

    return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "HEAD"])])


_FORMS = ("status.json", "feed.atom")


def _page(pages: Sequence[StatusPage], path: str, host: str) -> StatusPage | None:
    here = [page for page in pages if page.path == path and page.host in ("", host)]
    return max(here, key=lambda page: page.host != "", default=None)


def _sent(request: Request, body: bytes, kind: str) -> Response:
    tag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
    headers = {**HEADERS, "ETag": tag}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=kind)
