"""Named lists that rules use as `$name`, and references to them."""

from dataclasses import replace
from functools import partial
from typing import Any

from greenroom.configuration.rules import memberships
from greenroom.model.change import Put, Remove
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.fields import field_problems, taken
from greenroom.model.rule import RuleList
from greenroom.rules import rule_problems
from greenroom.web.api_schema import (
    ApiSchema,
    computed,
    overlaid,
    read_as,
)
from greenroom.web.api_shapes import Json, Plain, Shown
from greenroom.web.config_service import (
    ChangeContext,
    ConfigChange,
    PlannedChange,
    entry_of,
    refuse_read_only,
)
from greenroom.web.refusals import (
    ApiFault,
    Code,
    Refused,
    faults_of,
    refuse_if,
    too_many,
)
from greenroom.web.time_format import plain_moment

LISTS_MAX = 200

_TIME = {"type": "string", "format": "date-time"}
_COUNT = {"type": "integer", "minimum": 0}

LIST = ApiSchema.of(
    RuleList,
    shapes={"description": Plain(str, or_null=True)},
    without=("items",),
    more=(
        computed("num_items", "number of items", Shown(_COUNT)),
        computed(
            "num_referencing_filters",
            "number of rules that refer to it, including disabled rules",
            Shown(_COUNT),
        ),
        computed("created_on", "creation time", Shown(_TIME)),
        computed(
            "modified_on", "time of the last change of the list or of its items", Shown(_TIME)
        ),
    ),
)

FIXED = ("name", "kind")
"""Rules rely on them."""


def list_of(known: Configuration, list_id: str) -> Entry[RuleList]:
    """Raises Refused when there is none."""
    return entry_of(known.lists, "list", list_id)


def show(known: Configuration, entry: Entry[RuleList]) -> Json:
    items = known.list_items.of(entry.id)
    record = entry.record
    return LIST.show(
        {
            "id": record.id,
            "name": record.name,
            "kind": record.kind,
            "description": record.description,
            "num_items": len(items),
            "num_referencing_filters": references(known, record.name),
            "created_on": plain_moment(entry.created_ms),
            "modified_on": plain_moment(
                max([entry.modified_ms, *(item.modified_ms for item in items)])
            ),
        }
    )


def references(known: Configuration, name: str) -> int:
    lists = memberships(known)
    without = {other: membership for other, membership in lists.items() if other != name}
    expressions = [
        rule.expression
        for rules in known.rules.records()
        for rule in rules.rules
        if f"${name}" in rule.expression
    ]
    return sum(
        1
        for text in expressions
        if rule_problems(text, lists=without) and not rule_problems(text, lists=lists)
    )


def create(document: Any) -> ConfigChange:
    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        values, faults = read_as(LIST, document, partial(field_problems, RuleList))
        if any(entry.record.name == values.get("name") for entry in known.lists.values()):
            faults += faults_of([taken("name", "list", values["name"])], Code.TAKEN)
        faults += too_many(known.lists, LISTS_MAX, "lists")
        refuse_if(faults)
        return _put(RuleList(id=at.new_id(), **values))

    return plan


def edit(list_id: str, document: Any) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        entry = list_of(known, list_id)
        refuse_read_only(entry, "list")
        values, faults = read_as(
            LIST, overlaid(show(known, entry), document), partial(field_problems, RuleList)
        )
        for name in FIXED:
            if values.get(name) != getattr(entry.record, name):
                faults.append(
                    ApiFault(
                        Code.INVALID, f"{name}: cannot be changed; create a new list", f"/{name}"
                    )
                )
        refuse_if(faults)
        return _put(replace(entry.record, **values))

    return plan


def delete(list_id: str) -> ConfigChange:
    """Refused while a rule refers to it."""

    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        entry = list_of(known, list_id)
        refuse_read_only(entry, "list")
        name = entry.record.name
        count = references(known, name)
        if count:
            raise Refused(
                ApiFault(
                    Code.IN_USE,
                    f"{count} rule{'s refer' if count > 1 else ' refers'} to ${name}, including"
                    " disabled rules",
                )
            )
        return PlannedChange([Remove("list", list_id)], lambda _after: {"id": list_id})

    return plan


def _put(record: RuleList) -> PlannedChange:
    return PlannedChange([Put(record)], lambda after: show(after, after.lists[record.id]))
