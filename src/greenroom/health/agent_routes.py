"""Probe agents: their reports, and a list of them for operators."""

from starlette.responses import Response

from greenroom.health import probe_agents
from greenroom.health.routes import RunningHealth
from greenroom.web.dependencies import Document
from greenroom.web.envelope import answered
from greenroom.web.openapi import told
from greenroom.web.routing import Router

router = Router(tags=["probe agents"], prefix="/accounts/{account_id}/probe_agents")


@router.get("", **told("[Agent]", may="read"))
async def list_agents(health: RunningHealth, account_id: str) -> Response:
    """List the probe agents that have joined."""
    del account_id  # there is one, and May has looked at it
    return answered(probe_agents.listed(health))


@router.put("/{agent_name}", **told("AgentOrders", body="AgentReport", may="probe"))
async def report(
    health: RunningHealth, document: Document, account_id: str, agent_name: str
) -> Response:
    """Report results as an agent, and get the checks to probe. `greenroom probe` does this."""
    del account_id
    return answered(probe_agents.report(health, agent_name, document))


@router.delete("/{agent_name}", **told("Id", may="probe", change=True))
async def remove_agent(health: RunningHealth, account_id: str, agent_name: str) -> Response:
    """Remove an agent that ends or will not come back, so that its region does not wait for it."""
    del account_id
    return answered(probe_agents.leave(health, agent_name))
