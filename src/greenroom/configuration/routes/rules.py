"""Bypass rules of a waiting room; every answer holds all rules of the room."""

from starlette.responses import Response

from greenroom.configuration import rules
from greenroom.configuration.dependencies import WithConfig
from greenroom.web.dependencies import Document, Editor
from greenroom.web.envelope import answered
from greenroom.web.openapi import told
from greenroom.web.routing import Router

router = Router(tags=["rules"], prefix="/zones/{zone_id}/waiting_rooms/{waiting_room_id}/rules")


@router.get("", **told("[Rule]", may="read"))
def list_rules(config_service: WithConfig, zone_id: str, waiting_room_id: str) -> Response:
    """List the rules of a waiting room."""
    return answered(
        config_service.look(
            lambda known: rules.show(rules.rules_of(known, zone_id, waiting_room_id))
        )
    )


@router.post("", **told("[Rule]", body="RuleCreate"))
def create_rule(
    caller: Editor,
    config_service: WithConfig,
    document: Document,
    zone_id: str,
    waiting_room_id: str,
) -> Response:
    """Append a rule."""
    return answered(
        config_service.change(caller.author, rules.append(zone_id, waiting_room_id, document))
    )


@router.put("", **told("[Rule]", body="[RuleCreate]"))
def put_rules(
    caller: Editor,
    config_service: WithConfig,
    document: Document,
    zone_id: str,
    waiting_room_id: str,
) -> Response:
    """Replace the rules of a waiting room."""
    return answered(
        config_service.change(caller.author, rules.replace_all(zone_id, waiting_room_id, document))
    )


@router.patch("/{rule_id}", **told("[Rule]", body="RuleEdit"))
def edit_rule(
    caller: Editor,
    config_service: WithConfig,
    document: Document,
    zone_id: str,
    waiting_room_id: str,
    rule_id: str,
) -> Response:
    """Update fields of a rule, or its position."""
    return answered(
        config_service.change(
            caller.author, rules.edit(zone_id, waiting_room_id, rule_id, document)
        )
    )


@router.delete("/{rule_id}", **told("[Rule]", change=True))
def delete_rule(
    caller: Editor, config_service: WithConfig, zone_id: str, waiting_room_id: str, rule_id: str
) -> Response:
    """Delete a rule."""
    return answered(
        config_service.change(caller.author, rules.delete(zone_id, waiting_room_id, rule_id))
    )
