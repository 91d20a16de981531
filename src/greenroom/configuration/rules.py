"""Bypass rules of a room. Expressions are checked when saved."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from greenroom.configuration.rooms import room_of
from greenroom.model.change import Put
from greenroom.model.configuration import Configuration
from greenroom.model.fields import field_problems
from greenroom.model.rule import RULES_MAX, Rule, RuleSet
from greenroom.rules import ListMembership, compile_lists, rule_problems
from greenroom.web.api_schema import (
    ApiSchema,
    overlaid,
    read_as,
    read_each,
    required,
)
from greenroom.web.api_shapes import Json
from greenroom.web.config_service import (
    ChangeContext,
    ConfigChange,
    PlannedChange,
    refuse_read_only,
)
from greenroom.web.refusals import (
    ApiFault,
    Code,
    Refused,
    faults_of,
    not_found,
    refuse_if,
    too_many,
)
from greenroom.web.time_format import moment as written

RULE = required(ApiSchema.of(Rule), "action")

_WORDS: Json = {
    "index": {"type": "integer", "minimum": 0},
    "before": {"type": "string"},
    "after": {"type": "string"},
}
POSITION: Json = {
    "description": (
        "Where the rule goes. `index` counts from 1; `before` and `after` name another rule, empty:"
        " the first, the last place. null: it stays where it is."
    ),
    "oneOf": [
        *(
            {
                "type": "object",
                "properties": {
                    name: schema if name == word else {"type": "null"}
                    for name, schema in _WORDS.items()
                },
                "required": [word],
                "additionalProperties": False,
            }
            for word in _WORDS
        ),
        {"type": "null"},
    ],
}

EDIT: Json = RULE.schema("edit")
EDIT["properties"]["position"] = POSITION


def rules_of(known: Configuration, zone_id: str, room_id: str) -> tuple[Rule, ...]:
    room_of(known, zone_id, room_id)
    return known.rules_of(room_id)


def show(rules: Sequence[Rule]) -> list[Json]:
    return [
        RULE.show({item.name: getattr(rule, item.name) for item in fields(Rule)}) for rule in rules
    ]


def append(zone_id: str, room_id: str, document: Any) -> ConfigChange:
    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        rules = _changeable(known, zone_id, room_id)
        values, faults = _read(document, memberships(known))
        faults += too_many(rules, RULES_MAX, "rules in this room")
        refuse_if(faults)
        return _put(room_id, (*rules, _made(values, at)))

    return plan


def replace_all(
    zone_id: str, room_id: str, documents: Any, own_ids: frozenset[str] = frozenset()
) -> ConfigChange:
    """An existing rule keeps its id and version. `own_ids`: a new rule takes its document's id if
    it is one of these.
    """

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        rules = _changeable(known, zone_id, room_id)
        lists = memberships(known)
        read = read_each(documents, RULES_MAX, "rules", lambda each: _read(each, lists))
        left, free = list(rules), set(own_ids)
        return _put(
            room_id,
            tuple(
                _kept(values, document, left, free, at)
                for values, document in zip(read, documents, strict=True)
            ),
        )

    return plan


def edit(zone_id: str, room_id: str, rule_id: str, document: Any) -> ConfigChange:
    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        rules = _changeable(known, zone_id, room_id)
        place = _place_of(rules, rule_id)
        if not isinstance(document, dict):
            raise Refused(ApiFault(Code.BAD_BODY, "the body must be a JSON object"))
        asked = {name: value for name, value in document.items() if name != "position"}
        values, faults = _read(overlaid(show([rules[place]])[0], asked), memberships(known))
        others = [*rules[:place], *rules[place + 1 :]]
        where, wrong = (
            _position(document["position"], others, place)
            if document.get("position") is not None
            else (place, [])
        )
        refuse_if(faults + wrong)
        others.insert(where, _changed(rules[place], values, at))
        return _put(room_id, tuple(others))

    return plan


def delete(zone_id: str, room_id: str, rule_id: str) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        rules = _changeable(known, zone_id, room_id)
        place = _place_of(rules, rule_id)
        return _put(room_id, rules[:place] + rules[place + 1 :])

    return plan


def memberships(known: Configuration) -> Mapping[str, ListMembership]:
    """Checking expressions does not need the items."""
    return compile_lists(known.lists.records())


def _changeable(known: Configuration, zone_id: str, room_id: str) -> tuple[Rule, ...]:
    refuse_read_only(room_of(known, zone_id, room_id), "waiting room")
    return rules_of(known, zone_id, room_id)


def _read(document: Any, lists: Mapping[str, ListMembership]) -> tuple[Json, list[ApiFault]]:
    values, faults = read_as(RULE, document, partial(field_problems, Rule))
    if "/expression" not in {fault.pointer for fault in faults}:
        faults += faults_of(
            rule_problems(values["expression"], "expression", lists), Code.EXPRESSION
        )
    return values, faults


def _put(room_id: str, rules: tuple[Rule, ...]) -> PlannedChange:
    return PlannedChange(
        [Put(RuleSet(id=room_id, rules=rules), room_id)], lambda _after: show(rules)
    )


def _made(values: Json, at: ChangeContext, own_id: str = "") -> Rule:
    return Rule(id=own_id or at.new_id(), last_updated=written(at.now_ms), **values)


def _changed(rule: Rule, values: Json, at: ChangeContext) -> Rule:
    if replace(rule, **values) == rule:
        return rule
    return replace(
        rule, **values, version=str(int(rule.version) + 1), last_updated=written(at.now_ms)
    )


def _kept(
    values: Json, document: Json, left: list[Rule], free: set[str], at: ChangeContext
) -> Rule:
    own_id = document.get("id")
    found = next((rule for rule in left if rule.id == own_id), None)
    found = found or next((rule for rule in left if replace(rule, **values) == rule), None)
    if found is None:
        if not isinstance(own_id, str) or own_id not in free:
            return _made(values, at)
        free.remove(own_id)
        return _made(values, at, own_id)
    left.remove(found)
    return _changed(found, values, at)


def _place_of(rules: Sequence[Rule], rule_id: str) -> int:
    for place, rule in enumerate(rules):
        if rule.id == rule_id:
            return place
    raise not_found("rule", rule_id)


def _position(asked: Any, others: Sequence[Rule], place: int) -> tuple[int, list[ApiFault]]:
    """`place` if invalid. Two of three keys may be null."""
    if isinstance(asked, dict):
        asked = {word: value for word, value in asked.items() if value is not None}
    if (
        not isinstance(asked, dict)
        or len(asked) != 1
        or not set(asked) <= {"index", "before", "after"}
    ):
        return place, [
            ApiFault(
                Code.INVALID,
                "position: must be an object with one of index, before and after",
                "/position",
            )
        ]
    (word, value), *_ = asked.items()
    at = f"/position/{word}"
    if word == "index":
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            return place, [
                ApiFault(
                    Code.INVALID,
                    "position.index: must be a whole number, 1 for the first place",
                    at,
                )
            ]
        return (
            min(max(value, 1), len(others) + 1) - 1,
            [],
        )  # the published tests send 0 and mean the first place
    if not isinstance(value, str):
        return place, [
            ApiFault(Code.INVALID, f"position.{word}: must be the id of a rule, or empty", at)
        ]
    if not value:
        return (0 if word == "before" else len(others)), []
    for index, rule in enumerate(others):
        if rule.id == value:
            return (index if word == "before" else index + 1), []
    return place, [
        ApiFault(Code.INVALID, f"position.{word}: no other rule {value[:64]!r} in this room", at)
    ]
