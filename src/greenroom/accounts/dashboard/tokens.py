"""API tokens: made here or on the command line, shown once, revoked here."""

from starlette.responses import Response

from greenroom.accounts import tokens
from greenroom.model.account import SCOPES, Role
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import action, view
from greenroom.web.refusals import Refused

SCOPE_WORDS = {
    "read": "Read",
    "edit": "Read and write",
    "analytics": "Query analytics",
    "probe": "Report probes (health check agents)",
}


def table(page: PageRequest) -> Response:
    return _shown(page)


def create(page: PageRequest) -> Response:
    scopes = [scope for scope in page.form.get("scope", ()) if scope in SCOPES]
    days = page.field("days").strip()
    lasts = int(days) if days.isascii() and days.isdigit() and 0 < len(days) < 6 else None
    problems = (
        ["days: must be a whole number from 1 to 36500, or empty"]
        if days and not 1 <= (lasts or 0) <= 36_500
        else []
    )
    try:
        if problems:
            return _shown(page, problems=problems, status=400)
        secret, token = page.change(
            tokens.create(
                page.field("name").strip(), scopes, list(page.form.get("zone", ())), days=lasts
            )
        )
    except Refused as refused:
        return _shown(
            page, problems=[fault.message for fault in refused.faults], status=refused.status
        )
    page.known = page.config.store.read()
    return _shown(page, secret=secret, made=token.name)


def revoke(page: PageRequest) -> Response:
    page.change(tokens.revoke(page.path("token_id")))
    return page.redirect("/tokens", notice="revoked")


def _shown(
    page: PageRequest,
    *,
    problems: list[str] | None = None,
    secret: str = "",
    made: str = "",
    status: int = 200,
) -> Response:
    return page.render(
        "tokens.html",
        status,
        tokens=tokens.every(page.known),
        zones=page.person.zones(page.known),
        names={entry.id: entry.record.name for entry in page.known.zones.values()},
        scopes=SCOPE_WORDS,
        problems=problems or [],
        secret=secret,
        made=made,
        now_ms=page.now_ms,
    )


PAGES = (
    view("/tokens", table, Role.ADMIN),
    action("/tokens", create, Role.ADMIN),
    action("/tokens/{token_id}/revoke", revoke, Role.ADMIN),
)
