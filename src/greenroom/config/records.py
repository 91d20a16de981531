"""Reads tables of a configuration file by the schemas of the API."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from greenroom.config.toml_lines import step
from greenroom.errors import Problem
from greenroom.model.fields import unknown_field
from greenroom.web.api_schema import ApiSchema, not_said


def unknown_keys(raw: Mapping[str, Any], known: Iterable[str], pointer: str = "") -> list[Problem]:
    names = list(known)
    return [unknown_field(step(pointer, key), key, names) for key in raw if key not in names]


def read_document(
    form: ApiSchema,
    raw: Mapping[str, Any],
    pointer: str,
    problems_of: Callable[[dict[str, Any]], list[Problem]],
    beside: Sequence[str] = (),
) -> tuple[dict[str, Any], list[Problem]]:
    """The values of a table that the API has too, read by its schema, and everything wrong with
    them. `beside`: keys that are not fields.
    """
    problems: list[Problem] = []
    unknown: list[Problem] = []
    values = form.read_table(raw, beside, problems, unknown)
    problems += not_said(problems, problems_of(values))
    return values, [
        *(Problem(step(pointer, found.pointer), found.reason) for found in unknown),
        *(Problem(f"{pointer}.{found.pointer}", found.reason) for found in problems),
    ]
