"""Lists and removes unusable stored records. Zones, rooms and a room's rules can also be replaced
in place.
"""

from greenroom.model.change import Remove
from greenroom.model.configuration import Configuration
from greenroom.web.api_schema import ApiSchema, computed
from greenroom.web.api_shapes import Json, Shown
from greenroom.web.config_service import ChangeContext, ConfigChange, PlannedChange
from greenroom.web.refusals import not_found

_TEXT = Shown({"type": "string"})

UNUSABLE = ApiSchema(
    (
        computed("id", "identifier of the record", _TEXT),
        computed("kind", "kind of the record, such as room or event", _TEXT),
        computed("parent", "identifier of what it belongs to", _TEXT),
        computed("name", "its name, as far as it can be read", _TEXT),
        computed("reason", "why it cannot be used", _TEXT),
    )
)


def listing(known: Configuration) -> list[Json]:
    return [
        {
            "id": record_id,
            "kind": kind,
            "parent": entry.parent,
            "name": entry.record.name,
            "reason": entry.record.reason,
        }
        for (kind, record_id), entry in known.unusable.items()
    ]


def remove(kind: str, id: str) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        if (kind, id) not in known.unusable:
            raise not_found("unusable record", id)
        return PlannedChange([Remove(kind, id)], lambda _after: {"id": id})

    return plan
