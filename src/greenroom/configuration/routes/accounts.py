"""Calls that clients make first: the account, and verification of the token."""

from starlette.responses import Response

from greenroom.configuration import zones
from greenroom.web.dependencies import AnyCaller, FilteredReader, Paged
from greenroom.web.envelope import answered
from greenroom.web.openapi import told
from greenroom.web.routing import Router
from greenroom.web.time_format import plain_moment

router = Router(tags=["accounts"])


@router.get("/accounts", **told("[Account]", info="Page"))
def list_accounts(caller: FilteredReader, page: Paged) -> Response:
    """List accounts: there is one in each installation."""
    del caller
    return page.answer([zones.show_account()], lambda shown: shown)


@router.get("/accounts/{account_id}", **told("Account"))
def get_account(caller: FilteredReader) -> Response:
    """Get the account."""
    del caller  # there is one account, and May has looked at it
    return answered(zones.show_account())


@router.get("/user/tokens/verify", **told("VerifiedToken"))
def verify_token(caller: AnyCaller) -> Response:
    """Verify the token of this request, of any scope."""
    expires_ms = caller.token.expires_ms
    return answered(
        {"id": caller.token.id, "status": "active"}
        | ({"expires_on": plain_moment(expires_ms)} if expires_ms else {})
    )
