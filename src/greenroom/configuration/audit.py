"""The audit log in the API: newest first, with the values before and after."""

from typing import Any

import msgspec

from greenroom.model.change import AuditEntry
from greenroom.model.zone import ACCOUNT_ID
from greenroom.web.api_schema import ApiSchema, computed
from greenroom.web.api_shapes import Json, Shown
from greenroom.web.stores import ConfigStore
from greenroom.web.time_format import moment as written

CHUNK = 1_000

_TEXT = {"type": "string"}
_VALUES = {"type": ["object", "null"]}


def _object(**properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


LOG = ApiSchema(
    (
        computed("id", "grows with every entry", Shown(_TEXT)),
        computed("when", "time of the change", Shown({"type": "string", "format": "date-time"})),
        computed("actor", "author of the change", Shown(_object(id=_TEXT, type=_TEXT))),
        computed(
            "action",
            "created, changed or removed",
            Shown(_object(type=_TEXT, result={"type": "boolean"})),
        ),
        computed("resource", "changed object", Shown(_object(type=_TEXT, id=_TEXT))),
        computed(
            "metadata",
            "name, parent and revision of the object",
            Shown(_object(name=_TEXT, parent=_TEXT, revision={"type": "integer"})),
        ),
        computed("owner", "the account", Shown(_object(id=_TEXT))),
        computed("interface", "always empty", Shown(_TEXT)),
        computed("oldValue", "`oldValueJson` as text", Shown(_TEXT)),
        computed("newValue", "`newValueJson` as text", Shown(_TEXT)),
        computed(
            "oldValueJson",
            "the changed fields before the change; null after a creation",
            Shown(_VALUES),
        ),
        computed(
            "newValueJson",
            "the changed fields after the change; null after a deletion",
            Shown(_VALUES),
        ),
    )
)


def page(store: ConfigStore, skip: int, count: int) -> list[Json]:
    before = None
    while skip > 0:
        passed = store.audit(min(skip, CHUNK), before)
        if not passed:
            return []
        skip -= len(passed)
        before = passed[-1].number
    return [show(entry) for entry in store.audit(count, before)]


def show(entry: AuditEntry) -> Json:
    # Secrets were left out when the entry was written.
    return {
        "id": str(entry.number),
        "when": written(entry.at_ms),
        "actor": {"id": entry.author, "type": "user"},
        "action": {"type": entry.action, "result": True},
        "resource": {"type": entry.kind, "id": entry.id},
        "metadata": {"name": entry.name, "parent": entry.parent, "revision": entry.revision},
        "owner": {"id": ACCOUNT_ID},
        "interface": "",
        "oldValue": _text(entry.before),
        "newValue": _text(entry.after),
        "oldValueJson": entry.before,
        "newValueJson": entry.after,
    }


def _text(value: Any) -> str:
    return "" if value is None else msgspec.json.encode(value).decode()
