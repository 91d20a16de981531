"""Signing in through an OpenID Connect provider, and out of it. The way to the provider is a link,
so that form-action can stay 'self'.
"""

import secrets
from urllib.parse import quote, unquote

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from greenroom.accounts.dashboard.session import (
    OIDC,
    SIGN_IN,
    browser_of,
    safe_path,
    sign_in_form,
    signed_in,
)
from greenroom.accounts.oidc_provider import OidcProvider, check_state
from greenroom.accounts.sign_in import OIDC_MS, SignedIn
from greenroom.decision.cookies import OIDC_COOKIE
from greenroom.request.arrival import origin_of
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import PUBLIC, view
from greenroom.web.refusals import ApiFault, Code, Refused

PATH = "/sign-in/oidc"
RETURN_PATH = f"{PATH}/return"

log = structlog.get_logger("greenroom.dashboard")


async def begin(page: PageRequest) -> Response:
    secret, after = secrets.token_urlsafe(32), safe_path(page.query("next"))
    try:
        where = await _provider(page).begin(secret, _address(page, RETURN_PATH))
    except Refused as refused:
        return await run_in_threadpool(sign_in_form, page, refused)
    answer = RedirectResponse(where, 303)
    value = f"{secret}.{quote(after, safe='')}"
    page.set_cookie(answer, OIDC_COOKIE, value, OIDC_MS // 1000, path=PATH)
    return answer


async def finish(page: PageRequest) -> Response:
    """The cookie's secret is used up in every case."""
    secret, _, after = page.cookie(OIDC_COOKIE).partition(".")
    try:
        answer = await run_in_threadpool(
            signed_in, page, await _done(page, secret), safe_path(unquote(after))
        )
    except Refused as refused:
        answer = await run_in_threadpool(sign_in_form, page, refused)
    page.set_cookie(answer, OIDC_COOKIE, "", 0, path=PATH)
    return answer


async def _done(page: PageRequest, secret: str) -> SignedIn:
    provider, answer = _provider(page), dict(page.request.query_params)
    check_state(answer, secret)  # counts nothing: a picture on any site can lead a browser here
    since_ms = await run_in_threadpool(page.parts[SIGN_IN].reserve, browser_of(page))
    try:
        found = await provider.finish(answer, secret, _address(page, RETURN_PATH))
        try:
            done = await run_in_threadpool(
                page.parts[SIGN_IN].with_oidc, page.known, found, secret, browser_of(page)
            )
        except Refused:
            log.warning(
                "dashboard_sign_in_refused", issuer=found.iss, subject=found.sub, name=found.name
            )
            raise
    except Refused as refused:
        if refused.faults[0].code is Code.UNAVAILABLE:
            await run_in_threadpool(page.parts[SIGN_IN].release, browser_of(page), since_ms)
        raise
    await run_in_threadpool(page.parts[SIGN_IN].release, browser_of(page), since_ms)
    return done


async def leave(page: PageRequest) -> Response:
    try:
        where = await _provider(page).leaving(_address(page, "/sign-in"))
    except Refused as refused:
        return await run_in_threadpool(sign_in_form, page, refused)
    return RedirectResponse(where or page.url("/sign-in"), 303)


def _provider(page: PageRequest) -> OidcProvider:
    now = page.part(OIDC)
    provider = now() if now else None
    if provider is None:
        raise Refused(ApiFault(Code.NO_OBJECT, "no OpenID Connect provider is configured"))
    return provider


def _address(page: PageRequest, path: str) -> str:
    """The provider refuses addresses that it does not know."""
    url = page.request.url
    origin = origin_of(url.scheme, url.netloc.encode("latin-1", "replace"))
    return (origin or f"{url.scheme}://{url.netloc}") + page.url(path)


PAGES = (
    view(PATH, begin, PUBLIC, filtered=True),
    view(RETURN_PATH, finish, PUBLIC, filtered=True),
    view(f"{PATH}/leave", leave, PUBLIC, filtered=True),
)
