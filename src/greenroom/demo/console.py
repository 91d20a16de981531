"""The demo's own page on the control listener: live numbers, and the switch for the crowd."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from email.parser import BytesParser
from email.policy import HTTP
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from string import Template
from typing import Any, NamedTuple
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

from greenroom.demo.shop import PRODUCTS
from greenroom.notifier import ended
from greenroom.request.arrival import origin_of

TIMEOUT_S = 20.0

ANSWER_MAX = 1 << 20

_HEADERS = (
    "Host: {host}\r\nUser-Agent: greenroom-demo-crowd\r\nAccept:"
    " text/html,application/xhtml+xml\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode:"
    " navigate\r\nSec-Fetch-Dest: document\r\nConnection: close\r\n"
)


class ShopPage(NamedTuple):
    """`refresh_s` is None when the page does not reload itself."""

    status: int
    refresh_s: float | None


class Browser:
    """A minimal browser: HTTP/1.1, cookies, and the reload that a page wants."""

    def __init__(self, address: str, port: int, host: str) -> None:
        self._address = address
        self._port = port
        self._host = host
        self._cookies: dict[str, str] = {}

    async def load(self, path: str, method: str = "GET") -> ShopPage:
        """Raises OSError (TimeoutError too) without a usable answer."""
        head = f"{method} {path} HTTP/1.1\r\n" + _HEADERS.format(host=self._host)
        if method == "POST":
            head += "Content-Length: 0\r\n"
        if self._cookies:
            head += (
                "Cookie: "
                + "; ".join(f"{name}={value}" for name, value in self._cookies.items())
                + "\r\n"
            )
        async with asyncio.timeout(TIMEOUT_S):
            answer = await self._exchange(head.encode() + b"\r\n")
        first, _, rest = answer.partition(b"\r\n")
        words = first.split(b" ", 2)
        if len(words) < 2 or not words[1].isdigit():
            raise ConnectionError("not an HTTP answer")
        headers = BytesParser(policy=HTTP).parsebytes(
            rest.partition(b"\r\n\r\n")[0], headersonly=True
        )
        for line in headers.get_all("Set-Cookie", []):
            self._keep(str(line))
        return ShopPage(int(words[1]), _seconds(str(headers.get("Refresh", ""))))

    async def _exchange(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(self._address, self._port)
        try:
            writer.write(request)
            await writer.drain()
            return await _read_all(reader)
        finally:
            writer.close()

    def _keep(self, line: str) -> None:
        try:
            jar = SimpleCookie(line)
        except CookieError:
            return
        for name, morsel in jar.items():
            if morsel["max-age"] == "0":
                self._cookies.pop(name, None)
            else:
                self._cookies[name] = morsel.coded_value


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    parts, size = [], 0
    while size < ANSWER_MAX and (part := await reader.read(65_536)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _seconds(refresh: str) -> float | None:
    number = refresh.split(";")[0].strip()
    return float(number) if number.isdigit() else None


CROWD_MAX = 500

CROWD_NORMAL = 14
"""Leaves a line of about two minutes."""

ARRIVAL_S = 0.25

PATIENCE_S = (240.0, 900.0)
LOOKS = (5, 9)
LOOK_S = (5.0, 12.0)
"""Visits of a minute or so: the shop is full, and not only as many as may come in a minute."""


class DemoCrowd:
    def __init__(self, new_browser: Callable[[], Browser], chance: random.Random) -> None:
        self.size = 0
        self.counts: Counter[str] = Counter(let_in=0, bought=0, gave_up=0, failed=0)
        self._new_browser = new_browser
        self._chance = chance
        self._visits: dict[asyncio.Task[None], str] = {}

    def resize(self, size: int) -> None:
        self.size = max(0, min(CROWD_MAX, size))

    def doing(self, what: str) -> int:
        return sum(state == what for state in self._visits.values())

    async def run(self) -> None:
        try:
            while True:
                self._bring_to_size()
                await asyncio.sleep(ARRIVAL_S)
        finally:
            await ended(list(self._visits))

    def _bring_to_size(self) -> None:
        for visit in list(self._visits)[self.size :]:
            visit.cancel()
        if len(self._visits) < self.size:
            visit = asyncio.create_task(self._visit())
            self._visits[visit] = "arriving"
            visit.add_done_callback(self._gone)

    def _gone(self, visit: asyncio.Task[None]) -> None:
        del self._visits[visit]
        if not visit.cancelled() and visit.exception() is not None:
            self.counts["failed"] += 1

    def _now(self, what: str) -> None:
        task = asyncio.current_task()
        if task in self._visits:
            self._visits[task] = what

    async def _visit(self) -> None:
        browser = self._new_browser()
        if await self._wait(browser):
            self.counts["let_in"] += 1
            self._now("shopping")
            await self._shop(browser)

    async def _wait(self, browser: Browser) -> bool:
        patience_s = self._chance.uniform(*PATIENCE_S)
        page = await browser.load("/")
        while page.refresh_s is not None:
            self._now("waiting")
            patience_s -= page.refresh_s
            if patience_s < 0:
                self.counts["gave_up"] += 1
                return False
            await asyncio.sleep(page.refresh_s)
            page = await browser.load("/")
        return page.status == 200

    async def _shop(self, browser: Browser) -> None:
        slug = ""
        for _ in range(self._chance.randint(*LOOKS)):
            await asyncio.sleep(self._chance.uniform(*LOOK_S))
            slug = self._chance.choice(PRODUCTS).slug
            if _held(await browser.load(f"/products/{slug}")):
                return
        await browser.load(f"/basket?add={slug}", "POST")
        await asyncio.sleep(self._chance.uniform(*LOOK_S))
        if not _held(await browser.load("/checkout", "POST")):
            self.counts["bought"] += 1


def _held(page: ShopPage) -> bool:
    return page.refresh_s is not None


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
