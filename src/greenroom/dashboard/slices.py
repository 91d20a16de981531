"""Packages with pages of the dashboard: their `templates` and `assets` are found by name.

No two have a file of the same name. The rows of their pages are in `routes.py`.
"""

PACKAGES = (
    "greenroom.dashboard",
    "greenroom.accounts.dashboard",
    "greenroom.alerts.dashboard",
    "greenroom.analytics.dashboard",
    "greenroom.configuration.dashboard",
    "greenroom.health.dashboard",
    "greenroom.offers.dashboard",
    "greenroom.status_page.dashboard",
)
