"""The shop of the demo, which shows on each page how many visitors it serves."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from string import Template

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

_LINE = 'fill="none" stroke="currentColor" stroke-width="4"'


@dataclass(frozen=True, slots=True)
class Product:
    """`art` is the inside of an SVG of 100 x 100, `hue` degrees."""

    slug: str
    name: str
    price: int
    line: str
    hue: int
    art: str

    @property
    def picture(self) -> str:
        return f'<svg viewBox="0 0 100 100" role="img" aria-label="{self.name}">{self.art}</svg>'


PRODUCTS = (
    Product(
        slug="lantern",
        name="Garden lantern",
        price=39,
        line="Warm light for late evenings",
        hue=38,
        art=(
            f'<path d="M50 12v10M34 30h32l6 44H28z" {_LINE}/><circle cx="50" cy="54" r="10"'
            ' fill="currentColor"/>'
        ),
    ),
    Product(
        slug="teapot",
        name="Stoneware teapot",
        price=54,
        line="Holds six cups and a long talk",
        hue=200,
        art=(
            '<path d="M26 46h44v14a20 20 0 0 1-20 20h-4a20 20 0 0 1-20-20zM70 50c14-2 14 18-2 18"'
            f' {_LINE}/><path d="M26 54 12 44M40 46c0-12 16-12 16 0" {_LINE}/><circle cx="48"'
            ' cy="32" r="4" fill="currentColor"/>'
        ),
    ),
    Product(
        slug="monstera",
        name="Potted monstera",
        price=29,
        line="Grows whether you watch or not",
        hue=140,
        art=(
            '<path d="M50 66V30M50 44C30 44 24 30 26 18c16 0 24 10 24 26zm0 8c18 0 26-12 24-26-16'
            f' 0-24 12-24 26z" fill="currentColor"/><path d="M34 66h32l-5 22H39z" {_LINE}/>'
        ),
    ),
    Product(
        slug="records",
        name="Record player",
        price=189,
        line="Side B is the better one",
        hue=280,
        art=(
            f'<rect x="14" y="22" width="72" height="56" rx="6" {_LINE}/><circle cx="44" cy="50"'
            f' r="18" {_LINE}/><circle cx="44" cy="50" r="5" fill="currentColor"/><path d="M76'
            f' 32v20l-10 12" {_LINE}/>'
        ),
    ),
    Product(
        slug="blanket",
        name="Wool blanket",
        price=79,
        line="Two sheep, one winter",
        hue=350,
        art=f'<path d="M20 28h60v44H20zM20 42h60M20 58h60M36 28v44M64 28v44" {_LINE}/>',
    ),
    Product(
        slug="kite",
        name="Paper kite",
        price=18,
        line="Wind not included",
        hue=170,
        art=f'<path d="M50 10 76 42 50 74 24 42zM50 10v64M24 42h52M50 74c-8 8 8 10 0 18" {_LINE}/>',
    ),
)


SERVED_SECONDS = 60.0
"""The session of the demo's room."""

VISITORS_MAX = 10_000

BASKET_MAX = 9

COOKIE = "shop"
_HERE = Path(__file__).parent
_PAGE = Template((_HERE / "shop.html").read_text(encoding="utf-8"))
_STYLE = (_HERE / "shop.css").read_text(encoding="utf-8")
_BY_SLUG = {product.slug: product for product in PRODUCTS}
_BACK = '<p><a href="/">Back to the shop</a></p>'


class Shop:
    """Checking out makes room for the next visitor."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        """`now_s` counts seconds and never runs backwards."""
        self._now_s = now_s
        self._seen: dict[str, float] = {}
        self.app = Starlette(
            routes=[
                Route("/", self._front),
                Route("/products/{slug}", self._product),
                Route("/basket", self._basket, methods=["GET", "POST"]),
                Route("/checkout", self._checkout, methods=["GET", "POST"]),
                Route("/{rest:path}", self._missing),
            ]
        )

    @property
    def visitors(self) -> int:
        oldest = self._now_s() - SERVED_SECONDS
        self._seen = {visitor: at for visitor, at in self._seen.items() if at >= oldest}
        return len(self._seen)

    async def _front(self, request: Request) -> Response:
        cards = "".join(
            f'<a class="card" href="/products/{item.slug}"'
            f' style="--hue:{item.hue}">{item.picture}<h2>{item.name}</h2><p>{item.line}</p><b>{item.price}'
            " &euro;</b></a>"
            for item in PRODUCTS
        )
        intro = (
            '<section class="intro"><h1>Opening day.</h1><p>Six good things, today only. Take your'
            " time: you are in.</p></section>"
        )
        return self._page(request, "Opening day", f'{intro}<div class="grid">{cards}</div>')

    async def _product(self, request: Request) -> Response:
        item = _BY_SLUG.get(request.path_params["slug"])
        if item is None:
            return await self._missing(request)
        buy = (
            f'<form method="post" action="/basket?add={item.slug}"><button>Put in'
            " basket</button></form>"
        )
        facts = (
            f'<h1>{item.name}</h1><p>{item.line}.</p><p class="price">{item.price}'
            f" &euro;</p>{buy}{_BACK}"
        )
        return self._page(
            request,
            item.name,
            f'<div class="wide" style="--hue:{item.hue}">{item.picture}<div>{facts}</div></div>',
        )

    async def _basket(self, request: Request) -> Response:
        basket = _read_basket(request)
        added = request.query_params.get("add", "")
        if request.method == "POST" and added in _BY_SLUG:
            basket = [*basket, added][:BASKET_MAX]
        lines = [(_BY_SLUG[slug].name, _BY_SLUG[slug].price) for slug in basket]
        rows = "".join(
            f"<li><span>{name}</span><b>{price} &euro;</b></li>"
            for name, price in [*lines, ("Together", sum(p for _, p in lines))]
        )
        buy = '<form method="post" action="/checkout"><button>Buy</button></form>'
        body = f'<ul class="basket">{rows}</ul>{buy}' if basket else "<p>Nothing in it yet.</p>"
        return self._page(request, "Your basket", f"<h1>Your basket</h1>{body}{_BACK}", basket)

    async def _checkout(self, request: Request) -> Response:
        if request.method != "POST" or not _read_basket(request):
            return self._page(
                request, "Checkout", f"<h1>Checkout</h1><p>Your basket is empty.</p>{_BACK}"
            )
        thanks = (
            "<h1>Thank you!</h1><p>Your order is on its way, and your place in the shop goes to the"
            " next visitor.</p>"
        )
        answer = self._page(
            request,
            "Thank you",
            f'<div class="thanks"><div class="tick">&#10003;</div>{thanks}{_BACK}</div>',
            [],
        )
        answer.headers["Cf-Waiting-Room-Command"] = "revoke"
        self._seen.pop(request.cookies.get(COOKIE, ""), None)
        return answer

    async def _missing(self, request: Request) -> Response:
        return self._page(
            request,
            "Not here",
            f"<h1>Not here</h1><p>There is no such page.</p>{_BACK}",
            status=404,
        )

    def _page(
        self,
        request: Request,
        title: str,
        body: str,
        basket: list[str] | None = None,
        status: int = 200,
    ) -> Response:
        visitor = self._greet(request.cookies.get(COOKIE, ""))
        count = self.visitors
        text = _PAGE.substitute(
            title=title,
            body=body,
            style=_STYLE,
            items=len(_read_basket(request) if basket is None else basket),
            count=count,
            people="visitor" if count == 1 else "visitors",
        )
        answer = HTMLResponse(text, status, {"Cache-Control": "no-store"})
        answer.set_cookie(COOKIE, visitor, httponly=True, samesite="lax")
        if basket is not None:
            answer.set_cookie("basket", ".".join(basket), httponly=True, samesite="lax")
        return answer

    def _greet(self, visitor: str) -> str:
        if visitor not in self._seen:
            visitor = secrets.token_hex(8)
        if visitor in self._seen or len(self._seen) < VISITORS_MAX:
            self._seen[visitor] = self._now_s()
        return visitor


def _read_basket(request: Request) -> list[str]:
    return [
        slug for slug in request.cookies.get("basket", "")[:200].split(".") if slug in _BY_SLUG
    ][:BASKET_MAX]
