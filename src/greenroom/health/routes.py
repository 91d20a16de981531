"""Health checks of a zone, under both of their published addresses, and probe agents."""

from typing import Annotated, Literal

from starlette.requests import Request
from starlette.responses import Response

from greenroom.configuration.dependencies import Edit, Read, WithConfig
from greenroom.configuration.zones import zone_of
from greenroom.health import checks as health_checks
from greenroom.health import history as health_history
from greenroom.health import probe_agents
from greenroom.health.rules.memory import EventQuestion
from greenroom.health.service import HealthService
from greenroom.health.store import EVENTS_KEPT
from greenroom.model.health_check import HealthCheck
from greenroom.web.dependencies import (
    PAGE_MAX,
    PER_PAGE_MAX,
    Document,
    Paged,
    page_info,
)
from greenroom.web.envelope import answered
from greenroom.web.openapi import documented
from greenroom.web.refusals import ApiFault, Code, Refused
from greenroom.web.routing import Depends, Query, Router

PREFIXES = {
    "": "/zones/{zone_id}/healthchecks",
    "smart shield ": "/zones/{zone_id}/smart_shield/healthchecks",
}


def health_service(request: Request) -> HealthService | None:
    found: HealthService | None = request.app.state.health
    return found


def running_health(request: Request) -> HealthService:
    """Raises Refused where no health checks run."""
    found = health_service(request)
    if found is None:
        raise Refused(ApiFault(Code.UNAVAILABLE, "no health checks run in this process"))
    return found


WithHealth = Annotated[HealthService | None, Depends(health_service)]
RunningHealth = Annotated[HealthService, Depends(running_health)]
Region = Annotated[
    str,
    Query(
        pattern="^[A-Za-z]{0,10}$",
        expected="at most 10 letters",
        description="Only events of this region; `Global`: all regions together.",
    ),
]
Time = Annotated[
    str | None,
    Query(
        max_length=40, description="ISO 8601 with a zone; the last 24 hours when nothing is said."
    ),
]
Count = Annotated[
    int | None, Query(ge=1, le=1_000, description="The same as `per_page`, of any number.")
]


def _check(config_service: WithConfig, zone_id: str, healthcheck_id: str) -> HealthCheck:
    return config_service.look(
        lambda known: health_checks.check_of(known, zone_id, healthcheck_id)
    ).record


def _span(config_service: WithConfig, since: Time = None, until: Time = None) -> tuple[int, int]:
    return health_history.span(since, until, config_service.clock.now_ms())


CheckPath = Annotated[HealthCheck, Depends(_check)]
AskedSpan = Annotated[tuple[int, int], Depends(_span)]


def _add_previews(router: Router) -> None:
    # `preview` stands where an id would, so these routes come first.

    @router.post("/preview", **documented("HealthCheck", body="HealthCheckCreate", may="edit"))
    async def create_preview(
        config_service: WithConfig, health: RunningHealth, document: Document, zone_id: str
    ) -> Response:
        """Try a health check without saving it; it runs for ten minutes."""
        config_service.look(lambda known: zone_of(known, zone_id))
        return answered(health_checks.preview(health, zone_id, document))

    @router.get("/preview/{preview_id}", **documented("HealthCheck", may="read"))
    async def get_preview(health: RunningHealth, zone_id: str, preview_id: str) -> Response:
        """Get a health check that is being tried."""
        return answered(health_checks.show_preview(health, zone_id, preview_id))

    @router.delete("/preview/{preview_id}", **documented("Id", may="edit", change=True))
    async def delete_preview(health: RunningHealth, zone_id: str, preview_id: str) -> Response:
        """End the trial of a health check."""
        return answered(health_checks.end_preview(health, zone_id, preview_id))


def routes_of(tag: str, prefix: str) -> Router:
    router = Router(
        tags=[f"{tag}health checks"],
        prefix=prefix,
        schemas={"HealthCheck": health_checks.HEALTH_CHECK},
    )
    _add_previews(router)

    @router.get("", **documented("[HealthCheck]", info="Page", may="read"))
    def list_health_checks(
        config_service: WithConfig, health: WithHealth, page: Paged, zone_id: str
    ) -> Response:
        """List the health checks of a zone."""
        known = config_service.look(lambda known: known)
        found = known.health_checks.of(zone_of(known, zone_id).id)
        return page.answer(found, lambda entry: health_checks.show(entry, health))

    @router.post("", **documented("HealthCheck", body="HealthCheckCreate"))
    def create_health_check(
        edit: Edit, health: WithHealth, document: Document, zone_id: str
    ) -> Response:
        """Create a health check."""
        return edit(health_checks.create(zone_id, document, health))

    @router.get("/{healthcheck_id}", **documented("HealthCheck", may="read"))
    def get_health_check(
        read: Read, health: WithHealth, zone_id: str, healthcheck_id: str
    ) -> Response:
        """Get a health check with its state."""
        return read(
            lambda known: health_checks.show(
                health_checks.check_of(known, zone_id, healthcheck_id), health
            )
        )

    @router.put("/{healthcheck_id}", **documented("HealthCheck", body="HealthCheckCreate"))
    def put_health_check(
        edit: Edit, health: WithHealth, document: Document, zone_id: str, healthcheck_id: str
    ) -> Response:
        """Replace a health check."""
        return edit(health_checks.change(zone_id, healthcheck_id, document, True, health))

    @router.patch("/{healthcheck_id}", **documented("HealthCheck", body="HealthCheckEdit"))
    def edit_health_check(
        edit: Edit, health: WithHealth, document: Document, zone_id: str, healthcheck_id: str
    ) -> Response:
        """Change some fields of a health check."""
        return edit(health_checks.change(zone_id, healthcheck_id, document, False, health))

    @router.delete("/{healthcheck_id}", **documented("Id", change=True))
    def delete_health_check(edit: Edit, zone_id: str, healthcheck_id: str) -> Response:
        """Delete a health check; an incident that is open ends with it."""
        return edit(health_checks.delete(zone_id, healthcheck_id))

    return router


history = Router(
    tags=["history of health checks"],
    prefix="/zones/{zone_id}/healthchecks/{healthcheck_id}",
    schemas={"CheckEvent": health_history.CHECK_EVENT, "CheckFigures": health_history.FIGURES},
)


@history.get("/events", **documented("[CheckEvent]", info="Page", may="analytics"), known_only=True)
def list_events(
    health: RunningHealth,
    check: CheckPath,
    span: AskedSpan,
    region: Region = "",
    only_changes: Annotated[
        bool, Query(description="Only events that changed the status.")
    ] = False,
    status: Annotated[
        Literal["", "Healthy", "Unhealthy"], Query(description="Only events of this status.")
    ] = "",
    page: Annotated[int, Query(ge=1, le=PAGE_MAX, description="Page number, starting at 1.")] = 1,
    per_page: Annotated[
        int, Query(ge=5, le=PER_PAGE_MAX, multiple_of=5, description="Events per page.")
    ] = 100,
    limit: Count = None,
) -> Response:
    """List what the probes of a health check found, newest first."""
    per_page = limit or per_page
    question = EventQuestion(
        *span,
        [check.id],
        region=region,
        only_changes=only_changes,
        healthy=status == "Healthy" if status else None,
        limit=per_page,
        offset=(page - 1) * per_page,
    )
    found = [health_history.show(event) for event in health.history.events(question)]
    total = health.history.count(question, EVENTS_KEPT)
    return answered(found, page_info(page, per_page, len(found), total))


@history.get("/figures", **documented("CheckFigures", may="analytics"))
def get_figures(
    health: RunningHealth,
    check: CheckPath,
    span: AskedSpan,
) -> Response:
    """Get uptime, failures by reason and latency of a health check."""
    return answered(health_history.figures(health, check, *span))


routers = (history, *(routes_of(tag, prefix) for tag, prefix in PREFIXES.items()))


agents = Router(
    tags=["probe agents"],
    prefix="/accounts/{account_id}/probe_agents",
    schemas={
        "Agent": probe_agents.AGENT,
        **probe_agents.report_schemas(),
    },
)


@agents.get("", **documented("[Agent]", may="read"))
async def list_agents(health: RunningHealth) -> Response:
    """List the probe agents that have joined."""
    return answered(probe_agents.listed(health))


@agents.put("/{agent_name}", **documented("AgentOrders", body="AgentReport", may="probe"))
async def report(health: RunningHealth, document: Document, agent_name: str) -> Response:
    """Report results as an agent, and get the checks to probe. `greenroom probe` does this."""
    return answered(probe_agents.report(health, agent_name, document))


@agents.delete("/{agent_name}", **documented("Id", may="probe", change=True))
async def remove_agent(health: RunningHealth, agent_name: str) -> Response:
    """Remove an agent that ends or will not come back, so that its region does not wait for it."""
    return answered(probe_agents.leave(health, agent_name))
