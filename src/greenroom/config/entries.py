"""Reads tables of a configuration file by the schemas of the API, as read-only entries."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from greenroom.config.toml_lines import step
from greenroom.errors import Problem
from greenroom.model.configuration import Entry, R
from greenroom.model.fields import Unique, field_problems, specs, unknown_field, wrong_fields
from greenroom.web.api_schema import ApiSchema, not_said


def unknown_keys(raw: Mapping[str, Any], known: Iterable[str], pointer: str = "") -> list[Problem]:
    names = list(known)
    return [unknown_field(step(pointer, key), key, names) for key in raw if key not in names]


def file_id(*parts: object) -> str:
    """Depends on these only, so tickets, draws and histories survive restarts and reordering."""
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()[:32]


FILE_ZONE_ID = file_id("the configuration file")
"""The zone of the file's rooms whose host lies in no zone of the store."""


def file_entry(record: R, parent: str = "") -> Entry[R]:
    return Entry(record, parent, 0, 0, 0, read_only=True)


def tables(
    raw: Any, pointer: str, most: int, problems: list[Problem]
) -> list[tuple[str, dict[str, Any]]]:
    """(pointer, table) of each entry; none, and a problem, when it is no list of at most `most`."""
    if not isinstance(raw, list) or not all(isinstance(entry, dict) for entry in raw):
        name = re.sub(r"\[\d+\]", "", pointer)
        problems.append(Problem(pointer, f"must be written as [[{name}]] tables"))
        return []
    if len(raw) > most:
        problems.append(Problem(pointer, f"must be at most {most} entries, not {len(raw)}"))
        return []
    return [(step(pointer, index), entry) for index, entry in enumerate(raw)]


TableRead = tuple[dict[str, Any], list[Problem]]
"""The values of a table, meaningless where they have problems."""

ReadTable = Callable[[dict[str, Any], str], TableRead]


def read_named(
    raw: Any, section: str, most: int, what: str, read: ReadTable, problems: list[Problem]
) -> list[dict[str, Any]]:
    """The values of the right tables; each has a name and an id of its own."""
    found: list[dict[str, Any]] = []
    names, ids = Unique(what), Unique(f"{what} with the id")
    for at, entry in tables(raw, section, most, problems):
        values, wrong = read(entry, at)
        if not wrong_fields(wrong, f"{at}.") & {"name", "id"}:
            wrong += names.problems(step(at, "name"), values["name"]) or ids.problems(
                step(at, "id"), values.get("id", values["name"])
            )
        problems += wrong
        if not wrong:
            found.append(values)
    return found


def read_document(
    form: ApiSchema,
    raw: Mapping[str, Any],
    pointer: str,
    problems_of: Callable[[dict[str, Any]], list[Problem]],
    beside: type | None = None,
    ignored: Sequence[str] = (),
) -> TableRead:
    """The values of a table that the API has too, read by its schema, and everything wrong with
    them. `beside` describes keys that are not fields.
    """
    described = specs(beside) if beside else {}
    extra = {
        name: tuple(raw[name]) if isinstance(raw[name], list) else raw[name]
        for name in described
        if name in raw
    }
    wrong = field_problems(beside, extra, f"{pointer}.") if beside else []
    problems: list[Problem] = []
    unknown: list[Problem] = []
    values = form.read_table(raw, (*described, *ignored), problems, unknown)
    problems += not_said(problems, problems_of(values))
    problems += form.missing(values, problems)
    return values, [
        *wrong,
        *(Problem(step(pointer, found.pointer), found.reason) for found in unknown),
        *(Problem(f"{pointer}.{found.pointer}", found.reason) for found in problems),
    ]


ID_PATTERN = r"[A-Za-z0-9_-]+"
