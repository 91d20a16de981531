"""Reads `[[rooms.rules]]` and `[[lists]]`; compiles expressions once to check them."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from greenroom.config.records import read_record, unknown_keys
from greenroom.config.toml_lines import step
from greenroom.errors import InvalidConfig, Problem
from greenroom.model.fields import specs
from greenroom.model.rule import RULES_MAX, Rule, RuleList, rule_field_problems
from greenroom.rules import ListMembership, compile_lists, rule_problems

LISTS_MAX = 1_000
"""Keeps a broken generated file from exhausting the memory."""

KEYS = tuple(name for name, rule in specs(Rule).items() if not rule.read_only)


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
    for index, entry in enumerate(raw):
        at = step("lists", index)
        found = read_record(RuleList, entry, at, problems)
        odd = (
            [
                Problem(step(step(at, "items"), i), "must be text in quotes")
                for i, item in enumerate(found.items)
                if type(item) is not str
            ]
            if found
            else []
        )
        problems += odd
        if found is None or odd:
            continue
        if found.name in known:
            problems.append(Problem(step(at, "name"), f"duplicate list name {found.name}"))
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
        values = {key: value for key, value in entry.items() if key in KEYS}
        found = unknown_keys(entry, KEYS, at) + rule_field_problems(values, f"{at}.")
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
