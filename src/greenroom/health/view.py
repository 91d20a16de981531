"""The running health checks, for pages of the dashboard."""

from greenroom.health.service import HealthService
from greenroom.web.pages.request import PagePart

HEALTH_VIEW = PagePart[HealthService]("health")
