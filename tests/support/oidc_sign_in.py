"""Signing in to the dashboard through a provider, step by step as a browser does, and answers of a
provider that are changed.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from dashboard_rig import DashboardRig, Visitor
from oidc_rig import CLIENT, RETURN, SECRET, Provider, provider_at

from greenroom.accounts.oidc_provider import OidcProvider
from greenroom.accounts.sign_in import HOUR_MS
from greenroom.model.account import SESSION
from greenroom.model.oidc import OidcEntry, OidcRole, OidcSettings
from greenroom.outbound import OutboundPolicy

BROWSER = httpx.Client(verify=False)

ROLES = (
    OidcRole(claim="groups", value="bosses", role="admin"),
    OidcRole(claim="groups", value="shop", role="operator", zones=("z1.example",)),
)


def use(
    rig: DashboardRig, provider: Provider, roles: tuple[OidcRole, ...] = ROLES, **entry: Any
) -> None:
    """What a reload of the configuration with these settings does."""
    settings = OidcSettings(
        entry=OidcEntry(issuer=provider.issuer, client_id=CLIENT, name="Login", **entry),
        roles=roles,
        secret=SECRET,
    )
    rig.oidc = OidcProvider(settings, OutboundPolicy, rig.clock)


@contextmanager
def provider_of(rig: DashboardRig) -> Iterator[Provider]:
    """A provider that signs people in to this dashboard; afterwards no one is signed in, and no
    failure counts.
    """
    with provider_at(lambda: rig.clock.at_ms // 1000) as found:
        use(rig, found)
        yield found
    rig.clock.at_ms += HOUR_MS  # no test has to wait for the failures of another
    for row in rig.store.sessions.rows(SESSION):
        rig.store.sessions.remove(SESSION, row.id)


def at_provider(visitor: Visitor, path: str = "/sign-in/oidc") -> str:
    """Begins a sign-in and goes to the provider, over HTTP; where that sends the browser back."""
    begun = visitor.get(path)
    assert begun.status_code == 303, begun.text
    answer = BROWSER.get(begun.headers["location"])
    assert answer.status_code == 302
    return answer.headers["location"]


def back(visitor: Visitor, location: str) -> httpx.Response:
    assert location.startswith(f"http://testserver{RETURN}?")
    return visitor.get(location.removeprefix("http://testserver"))


def sign_in(visitor: Visitor, path: str = "/sign-in/oidc") -> httpx.Response:
    return back(visitor, at_provider(visitor, path))


def is_in(visitor: Visitor) -> bool:
    return visitor.get("/rooms").status_code == 200


def reason(answer: httpx.Response) -> str:
    assert answer.status_code in (401, 403, 404, 429, 503), answer.status_code
    found = re.search(r'role="alert">(.*?)</div>', answer.text, re.S)
    return re.sub(r"<[^>]*>", "", found[1]) if found else answer.text


def without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda claims: claims.pop(name) and None


def saying(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda claims: claims.update(values)
