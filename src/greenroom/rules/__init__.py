"""The language of bypass rules: expressions checked when saved, compiled to closures, evaluated for
every request.
"""

from collections.abc import Callable, Mapping, Sequence

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.rule import Rule
from greenroom.model.visit import Arrival
from greenroom.rules.compare import ListMembership
from greenroom.rules.compile import checked
from greenroom.rules.fields import FIELDS
from greenroom.rules.functions import FUNCTIONS
from greenroom.rules.grammar import parse
from greenroom.rules.lists import NO_LISTS, compile_lists
from greenroom.rules.reading import (
    NOTHING_KNOWN,
    Lookups,
    NothingKnown,
    Place,
    RequestFacts,
)
from greenroom.rules.syntax import (
    RuleFault,
    RuleRefused,
    draw,
    line_of,
)

__all__ = [
    "FIELDS",
    "FUNCTIONS",
    "NOTHING_KNOWN",
    "NO_LISTS",
    "BypassRules",
    "CompiledCondition",
    "ListMembership",
    "Lookups",
    "NothingKnown",
    "Place",
    "RequestFacts",
    "compile_bypass",
    "compile_lists",
    "compile_rule",
    "parse",
    "rule_faults",
    "rule_problems",
]

CompiledCondition = Callable[[RequestFacts], bool | None]
"""None is a missing value and counts as false."""

BypassRules = Callable[[Arrival, int, Lookups], Rule | None]
"""The first enabled rule that lets this arrival by. Never raises."""


def compile_rule(source: str, lists: Mapping[str, ListMembership] = NO_LISTS) -> CompiledCondition:
    """Raises InvalidConfig with every problem. The function may raise any error during evaluation;
    compile_bypass turns errors into "no bypass".
    """
    try:
        return checked(parse(source), lists)
    except RuleRefused as refused:
        raise InvalidConfig(
            [
                Problem("expression", draw(source, fault), line_of(source, fault))
                for fault in refused.faults
            ]
        ) from None


def rule_faults(
    source: str, lists: Mapping[str, ListMembership] = NO_LISTS
) -> tuple[RuleFault, ...]:
    try:
        checked(parse(source), lists)
    except RuleRefused as refused:
        return refused.faults
    return ()


def rule_problems(
    source: str, pointer: str = "expression", lists: Mapping[str, ListMembership] = NO_LISTS
) -> list[Problem]:
    try:
        compile_rule(source, lists)
    except InvalidConfig as invalid:
        return [Problem(pointer, problem.reason, problem.line) for problem in invalid.problems]
    return []


def compile_bypass(
    rules: Sequence[Rule],
    lists: Mapping[str, ListMembership] = NO_LISTS,
    failed: Callable[[Rule, Exception], None] = lambda _rule, _error: None,
) -> BypassRules:
    """Raises InvalidConfig with the problems of every rule, disabled ones included. `failed`
    receives a rule that fails during evaluation, which then does not hold.
    """
    conditions: list[tuple[Rule, CompiledCondition]] = []
    problems: list[Problem] = []
    for index, rule in enumerate(rules):
        try:
            conditions.append((rule, compile_rule(rule.expression, lists)))
        except InvalidConfig as invalid:
            problems += [
                Problem(f"rules[{index}].expression", problem.reason, problem.line)
                for problem in invalid.problems
            ]
    if problems:
        raise InvalidConfig(problems)
    conditions = [(rule, holds) for rule, holds in conditions if rule.enabled]

    def bypass(arrival: Arrival, now_ms: int, lookups: Lookups = NOTHING_KNOWN) -> Rule | None:
        facts = RequestFacts(arrival, now_ms, lookups)
        for rule, holds in conditions:
            try:
                if holds(facts):
                    return rule
            except (
                Exception
            ) as error:  # a broken rule must not stop a visit, and must never be a pass
                failed(rule, error)
        return None

    return bypass
