"""Accounts in the dashboard: signing in, one's own account, accounts, API tokens."""

from greenroom.accounts.dashboard import oidc, people, session, tokens, two_step

PAGES = (*session.PAGES, *oidc.PAGES, *tokens.PAGES, *people.PAGES, *two_step.PAGES)
