"""What the pages of accounts use, and the browser that asks."""

from collections.abc import Callable

from greenroom.accounts.oidc_provider import OidcProvider
from greenroom.accounts.sign_in import BrowserFacts, SignIn
from greenroom.decision.cookies import DEVICE_COOKIE
from greenroom.model.oidc import OidcSettings
from greenroom.web.pages.parts import PagePart, PageParts
from greenroom.web.pages.request import PageRequest
from greenroom.web.stores import SessionStore

OIDC = PagePart[Callable[[], OidcProvider | None]]("OpenID Connect")
SESSIONS = PagePart[SessionStore]("sessions")
SIGN_IN = PagePart[SignIn]("sign-in")


def oidc_settings(parts: PageParts) -> OidcSettings | None:
    now = parts.find(OIDC)
    provider = now() if now else None
    return provider.settings if provider else None


def browser_of(page: PageRequest) -> BrowserFacts:
    client = page.request.client
    agent = page.request.headers.get("user-agent", "")
    return BrowserFacts(client.host if client else "", agent, page.cookie(DEVICE_COOKIE))
