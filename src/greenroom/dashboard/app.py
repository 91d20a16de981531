"""The dashboard: for every row of ROUTES the same checks in the same order (transport, sign-in,
role, zone, origin and CSRF token of a write, the form), then the page.
"""

import asyncio
import hmac
import inspect
import ipaddress
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl, quote

import structlog
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from greenroom.accounts.dashboard.session import put_sign_in
from greenroom.accounts.people import AT_ONCE as PASSWORDS_AT_ONCE
from greenroom.configuration.dashboard.parts import LIVE, LiveState
from greenroom.configuration.state import Observed
from greenroom.dashboard.assets import Asset, installed_assets
from greenroom.dashboard.frame import page_frame
from greenroom.dashboard.live_feed import FEED, LiveFeed
from greenroom.dashboard.parts import PEAKS
from greenroom.dashboard.room_peaks import PeakCache
from greenroom.dashboard.routes import ROUTES
from greenroom.decision.cookies import SESSION_COOKIE
from greenroom.errors import InvalidConfig, StorageFailed
from greenroom.model.configuration import Configuration
from greenroom.request.arrival import HOST_MAX, origin_of
from greenroom.web.config_service import ConfigService
from greenroom.web.pages.forms import for_people
from greenroom.web.pages.request import (
    PREFIX,
    DashboardSession,
    Form,
    PageParts,
    PageRequest,
    sent_cookie,
)
from greenroom.web.pages.routing import PageRoute, RouteReach, Threads
from greenroom.web.refusals import Refused
from greenroom.web.routing import SlowWork
from greenroom.web.stores import SessionStore

FORM_MAX = 8 << 20
"""Room for a template of one megabyte in which every character is escaped."""

PUBLIC_FORM_MAX = 16 << 10

PUBLIC_FORM_S = 10

FIELDS_MAX = 5_000

CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "frame-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types default",
    )
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": (
        "same-origin"
    ),  # no-referrer would make browsers send `Origin: null` with our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
FOREVER = "public, max-age=31536000, immutable"

log = structlog.get_logger("greenroom.dashboard")


class Dashboard:
    def __init__(
        self,
        config: ConfigService,
        sessions: SessionStore,
        observed: Observed,
        parts: PageParts,
    ) -> None:
        self.config = config
        self.parts = parts
        self.sign_in = put_sign_in(parts, sessions, config)
        self.live = LiveState(observed, config.clock.now_ms)
        self.feed = LiveFeed(config, parts, self.live, self.sign_in)
        self.peaks = PeakCache()
        parts.put(LIVE, self.live).put(FEED, self.feed).put(PEAKS, self.peaks)
        self._slow = {
            Threads.PASSWORDS: SlowWork(PASSWORDS_AT_ONCE),
            Threads.OUTBOUND: SlowWork(4),
            Threads.QUERIES: SlowWork(2),
        }
        handlers: dict[Any, Callable[[Request, Any], Any]] = {
            HTTPException: self._no_route,
            Refused: self._refused,
            ClientDisconnect: _aborted,
        }
        self._app: ASGIApp = Starlette(
            routes=[
                Route("/static/{name}", _static),
                Route("/favicon.ico", _icon),
                *(Route(row.path, self._answer(row), methods=[row.method]) for row in ROUTES),
            ],
            exception_handlers={
                **handlers,
                StorageFailed: self._unavailable,
                InvalidConfig: self._unavailable,
                Exception: self._broken,
            },
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
                message["headers"] = headers.raw
            await send(message)

        try:
            await self._app(scope, receive, marked)
        except Exception as error:  # answered already; here it is only told
            log.exception("dashboard_request_failed", path=scope.get("path"), reason=str(error))

    def _answer(self, row: PageRoute) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            if not _protected(request):
                page = self._page(request)
                return await self._told(page, 403, "This connection is not encrypted", _NO_TLS)
            known, session = await run_in_threadpool(self._who, request)
            page = self._page(request, known, session)
            refusal = await self._turned_back(row, page)
            if refusal is not None:
                return refusal
            form: Form = {}
            if row.method == "POST":
                meant = _from_own_page(request)
                if meant:
                    form = await (_public_form(request) if row.role is None else _form(request))
                    meant = row.role is None or session is None or _has_csrf(request, session, form)
                if not meant:
                    misnamed = _misnamed(request)
                    if misnamed is not None:
                        page = self._page(request)
                        return await self._told(
                            page, 403, "This form came from another address", misnamed
                        )
                    return await self._told(
                        page, 403, "This form is not valid any more", _NOT_MEANT
                    )
            page = self._page(request, known, session, form)
            if inspect.iscoroutinefunction(row.function):
                done: Response = await row.function(page)
            else:
                slow = self._slow.get(row.threads)
                run = slow.run if slow else run_in_threadpool
                done = await run(row.function, page)
            return done

        return answer

    def _who(self, request: Request) -> tuple[Configuration, DashboardSession | None]:
        known = self.config.store.read()
        return known, self.sign_in.find(known, sent_cookie(request, SESSION_COOKIE))

    async def _turned_back(self, row: PageRoute, page: PageRequest) -> Response | None:
        if row.role is None:
            return None
        if page.session is None:
            return _to_sign_in(page.request)
        person = page.session.person
        if not person.may(row.role) or (row.reach is RouteReach.WHOLE and person.zone_ids):
            needed = (
                f"It needs the role {row.role.word}."
                if not person.may(row.role)
                else "It concerns all zones, and you have some."
            )
            return await self._told(page, 403, "You may not do this", needed)
        if row.reach is RouteReach.ZONE and not person.sees(page.request.path_params["zone_id"]):
            return await self._told(page, 404, "Page not found")
        return None

    def _page(
        self,
        request: Request,
        known: Configuration | None = None,
        session: DashboardSession | None = None,
        form: Form | None = None,
    ) -> PageRequest:
        prefix = request.scope.get(PREFIX, "")
        return PageRequest(
            request,
            page_frame(),
            self.config,
            self.parts,
            known=known or Configuration(),
            session=session,
            form=form or {},
            prefix=prefix,
        )

    async def _told(self, page: PageRequest, status: int, title: str, *texts: str) -> Response:
        return await run_in_threadpool(
            page.render, "message.html", status, title=title, texts=list(filter(None, texts))
        )

    async def _no_route(self, request: Request, error: HTTPException) -> Response:
        title = "Page not found" if error.status_code == 404 else "This cannot be done here"
        return await self._told(self._page(request), error.status_code, title)

    async def _refused(self, request: Request, error: Refused) -> Response:
        known, session = await run_in_threadpool(self._who, request)
        texts = [for_people(fault.message) for fault in error.faults]
        page = self._page(request, known, session)
        return await self._told(page, error.status, "Nothing was changed", *texts)

    async def _unavailable(self, request: Request, error: Exception) -> Response:
        title = "The configuration store cannot be used at the moment"
        return await self._told(self._page(request), 503, title, str(error))

    async def _broken(self, request: Request, _error: Exception) -> Response:
        return await self._told(
            self._page(request), 500, "Something went wrong", "The log of greenroom says what."
        )


_NO_TLS = (
    "Passwords and sessions would cross the network in plain text. Open the dashboard on the"
    " machine itself (for example through `ssh -L 8081:127.0.0.1:8081`), give it a certificate"
    " ([control_tls] in the configuration file), or put a proxy with HTTPS in front of it, list its"
    " address in trusted_proxies, and let it set X-Forwarded-Proto."
)
_NOT_MEANT = (
    "It came from another site, or your session has changed since the page was loaded. Go back,"
    " reload the page and try again."
)

_SET_HOST = (
    "let the proxy in front pass on the Host header (nginx: proxy_set_header Host $http_host), or"
    " list its address in trusted_proxies and let it set X-Forwarded-Host"
)

_OF_PROXIES = frozenset(
    {"x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded", "via"}
)


def _protected(request: Request) -> bool:
    if request.url.scheme == "https":
        return True
    if not _OF_PROXIES.isdisjoint(request.headers.keys()):
        return False  # a proxy that is not trusted may be anywhere
    try:
        return (
            bool(request.client)
            and ipaddress.ip_address(request.client.host if request.client else "").is_loopback
        )
    except ValueError:
        return False


def _to_sign_in(request: Request) -> Response:
    prefix = request.scope.get(PREFIX, "")
    if request.headers.get("hx-request") == "true":
        return Response(status_code=401, headers={"HX-Redirect": f"{prefix}/sign-in"})
    if request.method != "GET":
        return RedirectResponse(f"{prefix}/sign-in", 303)
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(
        f"{prefix}/sign-in?next={quote(request.url.path + query, safe='')}", 303
    )


async def _public_form(request: Request) -> Form:
    try:
        async with asyncio.timeout(PUBLIC_FORM_S):
            return await _form(request, PUBLIC_FORM_MAX)
    except TimeoutError:
        raise HTTPException(408) from None


async def _form(request: Request, most: int = FORM_MAX) -> Form:
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise HTTPException(413)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise HTTPException(413)
        parts.append(part)
    found: dict[str, list[str]] = {}
    try:
        pairs = parse_qsl(
            b"".join(parts).decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=FIELDS_MAX,
        )
    except ValueError:
        raise HTTPException(400) from None
    for name, value in pairs:
        if "\0" in value:
            raise HTTPException(400)
        found.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return found


def _from_own_page(request: Request) -> bool:
    sent, asked = _origins(request)
    if not sent or sent != asked:
        return False
    if request.url.scheme == "https" and not sent.startswith("https:"):
        return False
    return request.headers.get("sec-fetch-site", "same-origin") == "same-origin"


def _origins(request: Request) -> tuple[str, str]:
    """Any scheme is the page's own: a proxy in front that ends TLS need not say so."""
    scheme, _, authority = request.headers.get("origin", "").partition("://")
    asked = request.headers.get("host", "")
    return (
        origin_of(scheme.lower(), authority.encode("latin-1")),
        origin_of(scheme.lower(), asked.encode("latin-1")),
    )


def _misnamed(request: Request) -> str | None:
    """None when both are equal, or when the browser sends no origin."""
    sent, asked = _origins(request)
    if not sent or sent == asked:
        return None
    sent, host = sent[:HOST_MAX], request.headers.get("host", "")[:HOST_MAX]
    log.warning("dashboard_form_from_another_host", origin=sent, host=host, reason=_SET_HOST)
    return (
        f"The page that sent it is at {sent}, but greenroom was asked for the host {host}. If"
        f" {sent} is this dashboard: {_SET_HOST}. If it is not, close that page."
    )


def _has_csrf(request: Request, session: DashboardSession, form: Form) -> bool:
    sent = request.headers.get("x-csrf-token") or (form.get("_csrf") or [""])[-1]
    return hmac.compare_digest(sent.encode("utf-8", "replace"), session.csrf.encode())


async def _aborted(request: Request, _error: ClientDisconnect) -> Response:
    log.info("upload_aborted", path=request.url.path[:200])
    return Response(status_code=400)  # nobody reads it


async def _static(request: Request) -> Response:
    asset = installed_assets().get(request.path_params["name"])
    if asset is None:
        raise HTTPException(404)
    coding, body = _packed(asset, request.headers.get("accept-encoding", ""))
    headers = {"Cache-Control": FOREVER, "Vary": "Accept-Encoding", "Content-Type": asset.kind}
    return Response(body, headers=headers | ({"Content-Encoding": coding} if coding else {}))


async def _icon(_request: Request) -> Response:
    assets = installed_assets()
    asset = assets.get(assets.name("icon.svg"))
    if asset is None:
        raise HTTPException(404)
    return Response(
        asset.body, headers={"Cache-Control": "public, max-age=86400", "Content-Type": asset.kind}
    )


def _packed(asset: Asset, accepted: str) -> tuple[str, bytes]:
    wanted = {
        part.partition(";")[0].strip().lower()
        for part in accepted.split(",")
        if "q=0" not in part.replace(" ", "")
    }
    return next(
        ((coding, body) for coding, body in asset.encodings if coding in wanted), ("", asset.body)
    )
