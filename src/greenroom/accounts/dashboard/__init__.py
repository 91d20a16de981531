"""Accounts in the dashboard: signing in, one's own account, accounts, API tokens."""

from greenroom.accounts.dashboard import oidc, people, session, tokens, two_step
from greenroom.web.pages.routing import DashboardSlice

SLICE = DashboardSlice(
    __name__, (*session.PAGES, *oidc.PAGES, *tokens.PAGES, *people.PAGES, *two_step.PAGES)
)
