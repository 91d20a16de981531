"""Local accounts and their sessions; and, for everyone, their own password and sessions."""

from starlette.responses import Response

from greenroom.accounts import people as accounts
from greenroom.accounts.dashboard.session import SESSIONS, SIGN_IN, browser_of, signed_in
from greenroom.accounts.sign_in import oidc_name
from greenroom.model.account import PASSWORD_LEAST, ROLES, SESSION, Account, Role
from greenroom.model.configuration import Entry
from greenroom.web.pages.forms import Faults
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import Threads, action, view
from greenroom.web.refusals import Refused, not_found

ROLE_WORDS = {
    "viewer": "Viewer: looks at everything in the zones",
    "operator": "Operator: also changes rooms, events, rules and pages",
    "admin": "Admin: also manages accounts, tokens and keys",
}

EVERY_ZONE = "*"


def table(page: PageRequest) -> Response:
    return page.render(
        "accounts.html",
        accounts=accounts.every(page.known),
        names=_zone_names(page),
        sessions=page.parts[SESSIONS].rows(SESSION),
        owners=_owner_names(page),
        here=page.session.row.id if page.session else "",
    )


def new(page: PageRequest) -> Response:
    return _form(page, None, Faults())


def create(page: PageRequest) -> Response:
    zones = list(page.form.get("zone", ()))
    name = page.field("name").strip().lower()
    try:
        page.change(accounts.add(name, _role(page), zones, page.field("password")))
    except Refused as refused:
        return _form(page, None, Faults(refused.faults), refused.status)
    return page.redirect("/accounts", notice="created")


def edit(page: PageRequest) -> Response:
    return _form(page, _entry(page), Faults())


def save(page: PageRequest) -> Response:
    entry = _entry(page)
    password = page.field("password") or None
    try:
        page.change(
            accounts.edit(entry.id, role=_role(page), zones=_zones(page), password=password)
        )
    except Refused as refused:
        return _form(page, entry, Faults(refused.faults), refused.status)
    return page.redirect("/accounts", notice="saved")


def _zones(page: PageRequest) -> list[str] | None:
    """Empty: all; None: unchanged. Nothing ticked is no choice: an account whose only zone was
    removed must not get all zones.
    """
    ticked = page.form.get("zone", ())
    chosen = [zone for zone in ticked if zone != EVERY_ZONE]
    return chosen if chosen or EVERY_ZONE in ticked else None


def remove(page: PageRequest) -> Response:
    page.change(accounts.remove(page.path("account_id")))
    return page.redirect("/accounts", notice="removed")


def reset_two_step(page: PageRequest) -> Response:
    page.change(accounts.turn_off_two_step(page.path("account_id")))
    return page.redirect("/accounts", notice="saved")


def end_session(page: PageRequest) -> Response:
    page.parts[SESSIONS].remove(SESSION, page.path("session_id"))
    return page.redirect("/accounts", notice="revoked")


def own(page: PageRequest) -> Response:
    return _own(page, Faults())


def change_own_password(page: PageRequest) -> Response:
    """Ends the account's other sessions, and replaces this one."""
    account = own_account(page)
    if account is None:
        return page.redirect("/account")
    try:
        page.parts[SIGN_IN].confirm(account, page.field("old"))
        account = page.change(accounts.edit(account.id, password=page.field("password")))
    except Refused as refused:
        return _own(page, Faults(refused.faults), refused.status)
    return signed_in(
        page, page.parts[SIGN_IN].as_account(account, browser_of(page)), "/account?notice=saved"
    )


def end_own(page: PageRequest) -> Response:
    for row in page.parts[SESSIONS].rows(SESSION):
        if page.session and row.owner == page.person.owner and row.id != page.session.row.id:
            page.parts[SESSIONS].remove(SESSION, row.id)
    return page.redirect("/account", notice="revoked")


def _own(page: PageRequest, faults: Faults, status: int = 200) -> Response:
    rows = [row for row in page.parts[SESSIONS].rows(SESSION) if row.owner == page.person.owner]
    account = own_account(page)
    old, fresh = faults.take("old"), faults.take("password")
    here = page.session.row.id if page.session else ""
    return page.render(
        "account.html",
        status,
        account=account,
        rows=rows,
        here=here,
        old=old,
        fresh=fresh,
        problems=faults.general,
        least=PASSWORD_LEAST,
    )


def own_account(page: PageRequest) -> Account | None:
    kind, _, rest = page.person.owner.partition(":")
    entry = page.known.accounts.get(rest.partition(":")[0]) if kind == "account" else None
    return entry.record if entry else None


def _role(page: PageRequest) -> str:
    return page.field("role") if page.field("role") in ROLES else "viewer"


def _entry(page: PageRequest) -> Entry[Account]:
    account = accounts.find(page.known, page.path("account_id"))
    if account is None:
        raise not_found("account", page.path("account_id"))
    return page.known.accounts[account.id]


def _zone_names(page: PageRequest) -> dict[str, str]:
    return {entry.id: entry.record.name for entry in page.known.zones.values()}


def _owner_names(page: PageRequest) -> dict[str, str]:
    named = {f"account:{entry.id}": entry.record.name for entry in page.known.accounts.values()}
    named |= {
        f"token:{entry.id}": f"token {entry.record.name}" for entry in page.known.tokens.values()
    }
    return named | {
        row.owner: oidc_name(row) for row in page.parts[SESSIONS].rows(SESSION) if row.facts
    }


def _form(
    page: PageRequest, entry: Entry[Account] | None, faults: Faults, status: int = 200
) -> Response:
    record = entry.record if entry else None
    sent = bool(page.form)
    problems = {name: faults.take(name) for name in ("name", "password", "role", "zone_ids")}
    return page.render(
        "account_form.html",
        status,
        entry=entry,
        name=page.field("name") if sent or record is None else record.name,
        role=page.field("role") if sent or record is None else record.role,
        chosen=set(page.form.get("zone", ())) if sent or record is None else set(record.zone_ids),
        zones=page.person.zones(page.known),
        every_zone=EVERY_ZONE,
        everywhere=EVERY_ZONE in page.form.get("zone", ())
        if sent or record is None
        else not record.zone_ids,
        roles=ROLE_WORDS,
        problems=problems,
        general=faults.general,
        least=PASSWORD_LEAST,
    )


PAGES = (
    view("/accounts", table, Role.ADMIN),
    view("/accounts/new", new, Role.ADMIN),
    action("/accounts/new", create, Role.ADMIN, threads=Threads.PASSWORDS),
    view("/accounts/{account_id}/edit", edit, Role.ADMIN),
    action("/accounts/{account_id}/edit", save, Role.ADMIN, threads=Threads.PASSWORDS),
    action("/accounts/{account_id}/reset-two-step", reset_two_step, Role.ADMIN),
    action("/accounts/{account_id}/remove", remove, Role.ADMIN),
    action("/sessions/{session_id}/end", end_session, Role.ADMIN),
    view("/account", own, filtered=True),
    action(
        "/account/password",
        change_own_password,
        Role.VIEWER,
        filtered=True,
        threads=Threads.PASSWORDS,
    ),
    action("/account/sessions", end_own, Role.VIEWER, filtered=True),
)
