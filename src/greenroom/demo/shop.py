"""The shop of the demo, which shows on each page how many visitors it serves."""

import secrets
from collections.abc import Callable
from pathlib import Path
from string import Template

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from greenroom.demo.products import PRODUCTS

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
    """Whoever has bought something makes room for the next visitor."""

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
