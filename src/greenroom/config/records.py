"""Turns tables of a configuration file into described records and collects all problems."""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from difflib import get_close_matches
from types import UnionType
from typing import Any, TypeVar, cast, get_origin

from greenroom.config.toml_lines import step
from greenroom.errors import Problem
from greenroom.model.fields import check_value, specs

RecordType = TypeVar("RecordType")


def unknown_keys(raw: Mapping[str, Any], known: Iterable[str], pointer: str = "") -> list[Problem]:
    """With a suggestion each."""
    names = list(known)
    problems = []
    for key in raw:
        if key not in names:
            near = get_close_matches(key.lower().replace("-", "_"), names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(names)}"
            problems.append(Problem(step(pointer, key), f"unknown key; {hint}"))
    return problems


def read_record(
    kind: type[RecordType], raw: Any, pointer: str, problems: list[Problem]
) -> RecordType | None:
    """Replaces what is wrong by its default, so that the rest can be checked as well.

    None (and at least one problem) when something without default is missing.
    """
    if not isinstance(raw, dict):
        problems.append(Problem(pointer, f"must be a table, not {raw!r}"))
        return None
    described = specs(kind)
    found = unknown_keys(raw, described, pointer)
    values: dict[str, Any] = {}
    complete = True
    for item in fields(cast(Any, kind)):
        at = step(pointer, item.name)
        required = item.default is MISSING and item.default_factory is MISSING
        if item.name not in raw:
            if required:
                found.append(Problem(at, f"is required: {described[item.name].help}"))
                complete = False
            continue
        problem = check_value(at, raw[item.name], _written(item.type), described[item.name])
        if problem:
            found.append(problem)
            complete = complete and not required
        else:
            value = raw[item.name]
            values[item.name] = tuple(value) if isinstance(value, list) else value
    problems += found
    return kind(**values) if complete else None


def _written(annotation: Any) -> Any:
    """The type in which TOML writes a field of this annotation."""
    kind = get_origin(annotation) or annotation
    if kind is UnionType:
        return annotation
    return list if kind is tuple else kind
