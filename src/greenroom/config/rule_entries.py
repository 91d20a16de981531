"""Reads `[[rooms.rules]]` and `[[lists]]`; compiles expressions once to check them."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from greenroom.config.records import read_document
from greenroom.config.toml_lines import step
from greenroom.errors import InvalidConfig, Problem
from greenroom.model.fields import Unique
from greenroom.model.rule import (
    RULES_MAX,
    Rule,
    RuleList,
    list_field_problems,
    rule_field_problems,
)
from greenroom.rules import ListMembership, compile_lists, rule_problems
from greenroom.web.api_schema import ApiSchema
from greenroom.web.api_shapes import Several

LISTS_MAX = 1_000
"""Keeps a broken generated file from exhausting the memory."""

RULE = ApiSchema.of(Rule)
LIST = ApiSchema.of(RuleList, shapes={"items": Several()})


def list_id(name: str) -> str:
    """Depends on the name only."""
    return hashlib.sha256(f"list/{name}".encode()).hexdigest()[:32]


def read_lists(
    raw: Any, problems: list[Problem]
) -> tuple[tuple[RuleList, ...], dict[str, ListMembership]]:
    """The lists, and what rules may be checked against, where bad lists are empty."""
    if not isinstance(raw, list) or not all(isinstance(entry, dict) for entry in raw):
        problems.append(
            Problem("lists", "must be written as [[lists]] tables with name, kind and items")
        )
        return (), {}
    if len(raw) > LISTS_MAX:
        problems.append(Problem("lists", f"must be at most {LISTS_MAX} lists, not {len(raw)}"))
        return (), {}
    known: dict[str, ListMembership] = {}
    lists: list[RuleList] = []
    names = Unique("list")
    for index, entry in enumerate(raw):
        at = step("lists", index)
        values, wrong = read_document(LIST, entry, at, list_field_problems, ("id",))
        problems += wrong
        if wrong:
            continue
        found = RuleList(id=list_id(values["name"]), **values)
        if twice := names.problems(step(at, "name"), found.name):
            problems += twice
            continue
        try:
            known |= compile_lists([found])
            lists.append(found)
        except InvalidConfig as invalid:
            problems += [
                Problem(f"{at}{problem.pointer.removeprefix('lists[0]')}", problem.reason)
                for problem in invalid.problems
            ]
            known |= compile_lists([RuleList(name=found.name, kind=found.kind)])
    return tuple(lists), known


def read_rules(
    raw: Any,
    pointer: str,
    room_id: str,
    lists: Mapping[str, ListMembership],
    text_line: Callable[[str], int],
    problems: list[Problem],
) -> tuple[Rule, ...]:
    """Problems of an expression have a caret, and the line of the fault."""
    if not isinstance(raw, list) or not all(isinstance(entry, dict) for entry in raw):
        problems.append(
            Problem(pointer, "must be written as [[rooms.rules]] tables with an expression")
        )
        return ()
    if len(raw) > RULES_MAX:
        problems.append(Problem(pointer, f"must be at most {RULES_MAX} rules, not {len(raw)}"))
        return ()
    rules: list[Rule] = []
    for index, entry in enumerate(raw):
        at = step(pointer, index)
        values, found = read_document(RULE, entry, at, rule_field_problems)
        expression = step(at, "expression")
        if isinstance(values.get("expression"), str) and not any(
            problem.pointer == expression for problem in found
        ):
            first = text_line(expression)
            found += [
                Problem(expression, problem.reason, first + problem.line - 1 if first else 0)
                for problem in rule_problems(values["expression"], expression, lists)
            ]
        problems += found
        if not found:
            rules.append(Rule(id=_rule_id(room_id, index, values["expression"]), **values))
    return tuple(rules)


def _rule_id(room_id: str, index: int, expression: str) -> str:
    return hashlib.sha256(f"{room_id}/{index}/{expression}".encode()).hexdigest()[:32]
