"""The API of probe agents."""

import re
from typing import Any

import msgspec

from greenroom.errors import AgentNameTaken, AgentRefused
from greenroom.health.rules.roster import LOCAL
from greenroom.health.service import HealthService
from greenroom.model.health_check import REGIONS
from greenroom.model.probe import AGENT_NAME, AgentReport, Reason
from greenroom.web.api_schema import ApiSchema, computed
from greenroom.web.api_shapes import Json, Shown
from greenroom.web.refusals import ApiFault, Code, Refused, not_found
from greenroom.web.time_format import moment as written

AGENT = ApiSchema(
    (
        computed("name", "name of the agent", Shown({"type": "string"})),
        computed(
            "region",
            "region that its probes count for",
            Shown({"type": "string", "enum": list(REGIONS)}),
        ),
        computed("lost", "it has missed three reports", Shown({"type": "boolean"})),
        computed(
            "last_report", "when it reported last", Shown({"type": "string", "format": "date-time"})
        ),
    )
)

REASONS = frozenset(map(str, Reason))

_, _COMPONENTS = msgspec.json.schema_components(
    [AgentReport], ref_template="#/components/schemas/{name}"
)


def report_schemas() -> dict[str, Json]:
    found = dict(_COMPONENTS)
    found["AgentReport"]["properties"]["region"] = {"type": "string", "enum": list(REGIONS)}
    found["ProbeReport"]["properties"]["reason"] = {
        "type": "string",
        "enum": ["", *Reason],
        "default": "",
    }
    orders = {
        "type": "object",
        "properties": {
            "report_every_s": {"type": "number", "description": "Seconds until the next report."},
            "revision": {
                "type": "string",
                "description": "Of the checks; to be sent with the next report.",
            },
            "checks": {
                "type": ["array", "null"],
                "items": {"type": "object"},
                "description": "What to probe; null: as before.",
            },
        },
        "required": ["report_every_s", "revision", "checks"],
    }
    return {**found, "AgentOrders": orders}


def report(view: HealthService, name: str, document: Any) -> Json:
    """Raises Refused."""
    if not re.fullmatch(AGENT_NAME, name) or name == LOCAL:
        raise Refused(
            ApiFault(
                Code.INVALID,
                f"the name of an agent must match {AGENT_NAME} and not be {LOCAL}: {name[:80]!r}",
            )
        )
    try:
        found = msgspec.convert(document, AgentReport)
    except msgspec.ValidationError as error:
        raise Refused(ApiFault(Code.INVALID, f"the report cannot be used: {error}")) from None
    if found.region not in REGIONS:
        raise Refused(
            ApiFault(
                Code.INVALID,
                f"region: must be one of {', '.join(REGIONS)}, not {found.region[:40]!r}",
                "/region",
            )
        )
    wrong = next(
        (
            result.reason
            for result in found.reports
            if result.reason and result.reason not in REASONS
        ),
        "",
    )
    if wrong:
        raise Refused(
            ApiFault(
                Code.INVALID, f"reason: {wrong!r} is not one of {', '.join(Reason)}", "/reports"
            )
        )
    try:
        orders = view.hear(name, found)
    except AgentNameTaken as error:
        raise Refused(ApiFault(Code.TAKEN, str(error))) from None
    except AgentRefused as error:
        raise Refused(ApiFault(Code.UNAVAILABLE, str(error))) from None
    answer: Json = msgspec.to_builtins(orders)
    return answer


def listed(view: HealthService) -> list[Json]:
    return [
        AGENT.show(
            {
                "name": agent.name,
                "region": agent.region,
                "lost": lost,
                "last_report": written(agent.heard_ms),
            }
        )
        for agent, lost in sorted(view.agents(), key=lambda found: found[0].name)
    ]


def leave(view: HealthService, name: str) -> Json:
    """Raises Refused."""
    if name not in {agent.name for agent, _ in view.agents()}:
        raise not_found("agent", name)
    view.leave(name)
    return {"id": name}
