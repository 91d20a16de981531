from collections.abc import Callable
from urllib.parse import quote

from starlette.responses import Response

from greenroom.accounts import people as accounts
from greenroom.accounts.oidc_provider import OidcProvider
from greenroom.accounts.sign_in import (
    DEVICE_MS,
    LINK_PATH,
    LONGEST_MS,
    BrowserFacts,
    SecondStep,
    SignedIn,
    SignIn,
)
from greenroom.decision.cookies import DEVICE_COOKIE, SESSION_COOKIE
from greenroom.model.account import PASSWORD_LEAST, Role
from greenroom.model.oidc import OidcSettings
from greenroom.web.config_service import ConfigService
from greenroom.web.pages.request import PagePart, PageParts, PageRequest
from greenroom.web.pages.routing import PUBLIC, Threads, action, view
from greenroom.web.refusals import Refused
from greenroom.web.stores import SessionStore

# What the pages of accounts use, and the browser that asks.

OIDC = PagePart[Callable[[], OidcProvider | None]]("OpenID Connect")
SESSIONS = PagePart[SessionStore]("sessions")
SIGN_IN = PagePart[SignIn]("sign-in")


def oidc_settings(parts: PageParts) -> OidcSettings | None:
    now = parts.find(OIDC)
    provider = now() if now else None
    return provider.settings if provider else None


def put_sign_in(parts: PageParts, sessions: SessionStore, config: ConfigService) -> SignIn:
    sign_in = SignIn(sessions, config, lambda: oidc_settings(parts))
    parts.put(SESSIONS, sessions).put(SIGN_IN, sign_in)
    return sign_in


def browser_of(page: PageRequest) -> BrowserFacts:
    client = page.request.client
    agent = page.request.headers.get("user-agent", "")
    return BrowserFacts(client.host if client else "", agent, page.cookie(DEVICE_COOKIE))


AFTER = "/rooms"


QUERY_SIGNS = "/?-._~:@!$&'()*+,;=%"


def home(page: PageRequest) -> Response:
    return page.redirect(AFTER)


def ask(page: PageRequest) -> Response:
    if page.session:
        return _sent_on(page, safe_path(page.query("next")))
    return sign_in_form(page)


def take(page: PageRequest) -> Response:
    done: SignedIn | SecondStep
    try:
        if page.field("token"):
            done = page.parts[SIGN_IN].with_token(page.known, page.field("token"), browser_of(page))
        else:
            done = page.parts[SIGN_IN].with_password(
                page.known, page.field("name"), page.field("password"), browser_of(page)
            )
    except Refused as refused:
        return sign_in_form(page, refused)
    if isinstance(done, SecondStep):
        return _code_form(page, done.secret)
    return signed_in(page, done, safe_path(page.field("next")))


def take_code(page: PageRequest) -> Response:
    secret = page.field("second")
    try:
        done = page.parts[SIGN_IN].with_code(
            page.known, secret, page.field("code"), browser_of(page)
        )
    except Refused as refused:
        if page.parts[SIGN_IN].may_go_on(secret):
            return _code_form(page, secret, refused)
        return sign_in_form(page, refused)
    return signed_in(page, done, safe_path(page.field("next")))


def ask_link(page: PageRequest) -> Response:
    """Programs follow links, so only sending the form uses the link up."""
    good = page.parts[SIGN_IN].link_is_good(page.query("key"))
    return _link_form(page, page.query("key"), None, 200 if good else 401, good=good)


def take_link(page: PageRequest) -> Response:
    key, name, first = (
        page.field("key"),
        page.field("name").strip().lower(),
        not page.known.accounts,
    )
    if not page.parts[SIGN_IN].link_is_good(key):
        return _link_form(page, key, None, 401, good=False)
    made = (
        accounts.add(name, Role.ADMIN.word, (), page.field("password"), first=True)
        if first and page.field("make")
        else None
    )
    try:
        if made:
            page.config.trial(made)
        page.parts[SIGN_IN].use_link(key, browser_of(page))
    except Refused as refused:
        return _link_form(page, key, refused, 400, good=True)
    if made:
        account = page.config.change("one-time link (dashboard)", made)
        return signed_in(page, page.parts[SIGN_IN].as_account(account, browser_of(page)), AFTER)
    return signed_in(page, page.parts[SIGN_IN].as_link(browser_of(page)), AFTER)


def leave(page: PageRequest) -> Response:
    page.parts[SIGN_IN].end(page.cookie(SESSION_COOKIE))
    provider = {"left": "oidc"} if page.session and page.session.row.facts else {}
    answer = page.redirect("/sign-in", notice="signed-out", **provider)
    page.set_cookie(answer, SESSION_COOKIE, "", 0)
    return answer


def safe_path(path: str) -> str:
    """Never leads to another site."""
    plain = (
        path.startswith("/")
        and not path.startswith("//")
        and "\\" not in path
        and path.isprintable()
    )
    return path if plain and not path.startswith("/sign-") else AFTER


def _sent_on(page: PageRequest, path: str) -> Response:
    where, _, query = path.partition("?")
    answer = page.redirect(where)
    if query:
        answer.headers["location"] = f"{page.url(where)}?{quote(query, safe=QUERY_SIGNS)}"
    return answer


def signed_in(page: PageRequest, done: SignedIn, path: str) -> Response:
    page.parts[SIGN_IN].end(page.cookie(SESSION_COOKIE))
    answer = _sent_on(page, path)
    page.set_cookie(answer, SESSION_COOKIE, done.secret, LONGEST_MS // 1000)
    if done.device:
        page.set_cookie(answer, DEVICE_COOKIE, done.device, DEVICE_MS // 1000, "strict")
    return answer


def sign_in_form(page: PageRequest, refused: Refused | None = None) -> Response:
    oidc = oidc_settings(page.parts)
    return page.render(
        "sign_in.html",
        refused.status if refused else 200,
        problem=refused.faults[0].message if refused else "",
        name=page.field("name"),
        next=page.field("next") or page.query("next"),
        first=not page.known.accounts and not oidc,
        oidc=oidc.label if oidc else "",
        left=page.query("left") == "oidc",
    )


def _code_form(page: PageRequest, secret: str, refused: Refused | None = None) -> Response:
    return page.render(
        "sign_in_code.html",
        refused.status if refused else 200,
        problem=refused.faults[0].message if refused else "",
        second=secret,
        next=page.field("next"),
    )


def _link_form(
    page: PageRequest, key: str, refused: Refused | None, status: int, *, good: bool
) -> Response:
    problems: dict[str, str] = (
        {fault.pointer.strip("/"): fault.message for fault in refused.faults} if refused else {}
    )
    return page.render(
        "sign_in_link.html",
        status,
        good=good,
        key=key,
        name=page.field("name"),
        problems=problems,
        first=not page.known.accounts,
        least=PASSWORD_LEAST,
    )


PAGES = (
    view("/", home, filtered=True),
    view("/sign-in", ask, PUBLIC, filtered=True),
    action("/sign-in", take, PUBLIC, filtered=True, threads=Threads.PASSWORDS),
    action("/sign-in/code", take_code, PUBLIC, filtered=True),
    view(LINK_PATH, ask_link, PUBLIC, filtered=True),
    action(LINK_PATH, take_link, PUBLIC, filtered=True, threads=Threads.PASSWORDS),
    action("/sign-out", leave, Role.VIEWER, filtered=True),
)
