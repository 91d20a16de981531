"""Two-step sign-in of one's own account: turned on with a first code, turned off with the password."""

from starlette.responses import Response

from greenroom.accounts import people as accounts
from greenroom.accounts.dashboard.people import own_account
from greenroom.accounts.dashboard.session import SIGN_IN, browser_of, signed_in
from greenroom.accounts.two_step import enrolment, totp_uri
from greenroom.decision.cookies import SESSION_COOKIE
from greenroom.model.account import Role, recovery_hash
from greenroom.web.pages.forms import Faults
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import Threads, action, view
from greenroom.web.refusals import Refused

PATH = "/account/two-step"


def ask(page: PageRequest) -> Response:
    return _form(page, Faults())


def turn_on(page: PageRequest) -> Response:
    """Ends the account's other sessions."""
    account = own_account(page)
    if account is None:
        return page.redirect("/account")
    offered = enrolment(page.cookie(SESSION_COOKIE), page.field("seed"))
    hashes = [recovery_hash(code.replace("-", "")) for code in offered.recovery]
    plan = accounts.turn_on_two_step(account.id, offered.secret, hashes)
    try:
        page.parts[SIGN_IN].confirm(account, page.field("old"))
        wanted = page.config.trial(plan)
        page.parts[SIGN_IN].codes.check(
            wanted, page.field("code"), device=f"enrolment {account.id}"
        )
        account = page.change(plan)
    except Refused as refused:
        return _form(page, Faults(refused.faults), refused.status)
    return signed_in(
        page, page.parts[SIGN_IN].as_account(account, browser_of(page)), "/account?notice=saved"
    )


def turn_off(page: PageRequest) -> Response:
    """Ends the account's other sessions."""
    account = own_account(page)
    if account is None:
        return page.redirect("/account")
    try:
        page.parts[SIGN_IN].confirm(account, page.field("old"))
        account = page.change(accounts.turn_off_two_step(account.id))
    except Refused as refused:
        return _form(page, Faults(refused.faults), refused.status)
    return signed_in(
        page, page.parts[SIGN_IN].as_account(account, browser_of(page)), "/account?notice=saved"
    )


def _form(page: PageRequest, faults: Faults, status: int = 200) -> Response:
    import segno  # a page that few people see

    account = own_account(page)
    if account is None:
        return page.redirect("/account")
    offered = enrolment(page.cookie(SESSION_COOKIE), page.field("seed"))
    picture = segno.make(totp_uri(offered.secret, account.name), error="m", micro=False)
    old = faults.take("old")
    return page.render(
        "two_step.html",
        status,
        account=account,
        offered=offered,
        picture=picture.svg_data_uri(scale=5, border=4, dark="#000", light="#fff"),
        old=old,
        problems=faults.general,
    )


PAGES = (
    view(PATH, ask, filtered=True),
    action(PATH, turn_on, Role.VIEWER, filtered=True, threads=Threads.PASSWORDS),
    action(f"{PATH}/off", turn_off, Role.VIEWER, filtered=True, threads=Threads.PASSWORDS),
)
