"""Bypass rules of a waiting room; every answer holds all rules of the room."""

from starlette.responses import Response

from greenroom.configuration import rules
from greenroom.configuration.dependencies import Edit, Read, RoomPath
from greenroom.web.dependencies import Document
from greenroom.web.openapi import documented
from greenroom.web.routing import Router

router = Router(
    tags=["rules"],
    prefix="/zones/{zone_id}/waiting_rooms/{waiting_room_id}/rules",
    schemas={
        "Rule": rules.RULE,
        "RuleEdit": rules.EDIT,
    },
)


@router.get("", **documented("[Rule]", may="read"))
def list_rules(read: Read, room: RoomPath) -> Response:
    """List the rules of a waiting room."""
    return read(lambda known: rules.show(rules.rules_of(known, *room)))


@router.post("", **documented("[Rule]", body="RuleCreate"))
def create_rule(edit: Edit, document: Document, room: RoomPath) -> Response:
    """Append a rule."""
    return edit(rules.append(*room, document))


@router.put("", **documented("[Rule]", body="[RuleCreate]"))
def put_rules(edit: Edit, document: Document, room: RoomPath) -> Response:
    """Replace the rules of a waiting room."""
    return edit(rules.replace_all(*room, document))


@router.patch("/{rule_id}", **documented("[Rule]", body="RuleEdit"))
def edit_rule(edit: Edit, document: Document, room: RoomPath, rule_id: str) -> Response:
    """Update fields of a rule, or its position."""
    return edit(rules.edit(*room, rule_id, document))


@router.delete("/{rule_id}", **documented("[Rule]", change=True))
def delete_rule(edit: Edit, room: RoomPath, rule_id: str) -> Response:
    """Delete a rule."""
    return edit(rules.delete(*room, rule_id))
