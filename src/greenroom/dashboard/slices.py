"""The slices with pages in the dashboard. No two have a template or an asset of the same name."""

from greenroom.accounts import dashboard as accounts
from greenroom.alerts import dashboard as alerts
from greenroom.analytics import dashboard as analytics
from greenroom.configuration import dashboard as configuration
from greenroom.health import dashboard as health
from greenroom.offers import dashboard as offers
from greenroom.status_page import dashboard as status_page

SLICES = (
    accounts.SLICE,
    configuration.SLICE,
    offers.SLICE,
    health.SLICE,
    alerts.SLICE,
    status_page.SLICE,
    analytics.SLICE,
)

PACKAGES = ("greenroom.dashboard", *(one.package for one in SLICES))
