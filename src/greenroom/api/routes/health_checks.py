"""Health checks of a zone, under both of their published addresses."""

from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from greenroom.api.dependencies import Document, Editor, Paged, WithConfig
from greenroom.api.envelope import answered
from greenroom.api.openapi import told
from greenroom.api.routing import Depends, Router
from greenroom.control import health_checks
from greenroom.control.health_view import HealthView
from greenroom.control.zones import zone_of

PREFIXES = {"": "/zones/{zone_id}/healthchecks", "smart shield ": "/zones/{zone_id}/smart_shield/healthchecks"}
"""What stands before the tag -> where the same calls are."""


def health_view(request: Request) -> HealthView:
    """The health checks at work."""
    found: HealthView = request.app.state.health
    return found


WithHealth = Annotated[HealthView, Depends(health_view)]


def routes_of(tag: str, prefix: str) -> Router:
    """The calls below one prefix."""
    router = Router(tags=[f"{tag}health checks"], prefix=prefix)

    @router.get("", **told("[HealthCheck]", info="Page", may="read"))
    def list_health_checks(config_service: WithConfig, health: WithHealth, page: Paged, zone_id: str) -> Response:
        """List the health checks of a zone."""
        known = config_service.look(lambda known: known)
        zone_of(known, zone_id)
        shown, info = page.cut(known.health_checks.of(zone_id))
        return answered([health_checks.show(entry, health) for entry in shown], info)

    @router.post("", **told("HealthCheck", body="HealthCheckCreate"))
    def create_health_check(caller: Editor, config_service: WithConfig, health: WithHealth, document: Document, zone_id: str) -> Response:
        """Create a health check."""
        return answered(config_service.change(caller.author, health_checks.create(zone_id, document, health)))

    @router.get("/{healthcheck_id}", **told("HealthCheck", may="read"))
    def get_health_check(config_service: WithConfig, health: WithHealth, zone_id: str, healthcheck_id: str) -> Response:
        """Get a health check with its state."""
        entry = config_service.look(lambda known: health_checks.check_of(known, zone_id, healthcheck_id))
        return answered(health_checks.show(entry, health))

    @router.put("/{healthcheck_id}", **told("HealthCheck", body="HealthCheckCreate"))
    def put_health_check(
        caller: Editor, config_service: WithConfig, health: WithHealth, document: Document, zone_id: str, healthcheck_id: str
    ) -> Response:
        """Replace a health check."""
        change = health_checks.change(zone_id, healthcheck_id, document, True, health)
        return answered(config_service.change(caller.author, change))

    @router.patch("/{healthcheck_id}", **told("HealthCheck", body="HealthCheckEdit"))
    def edit_health_check(
        caller: Editor, config_service: WithConfig, health: WithHealth, document: Document, zone_id: str, healthcheck_id: str
    ) -> Response:
        """Change some fields of a health check."""
        change = health_checks.change(zone_id, healthcheck_id, document, False, health)
        return answered(config_service.change(caller.author, change))

    @router.delete("/{healthcheck_id}", **told("Id", change=True))
    def delete_health_check(caller: Editor, config_service: WithConfig, zone_id: str, healthcheck_id: str) -> Response:
        """Delete a health check; an incident that is open ends with it."""
        return answered(config_service.change(caller.author, health_checks.delete(zone_id, healthcheck_id)))

    return router


routers = tuple(routes_of(tag, prefix) for tag, prefix in PREFIXES.items())
