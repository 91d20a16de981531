"""What the process gives to the pages of health checks."""

from greenroom.health.service import HealthService
from greenroom.web.pages.request import PagePart

HEALTH_VIEW = PagePart[HealthService]("health")
