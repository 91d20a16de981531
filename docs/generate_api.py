"""The pages of the management API, and how a line of the reference looks."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from greenroom.api.app import PREFIX
from greenroom.api.management import ROUTERS, api_document
from greenroom.model.event import Event
from greenroom.model.fields import specs
from greenroom.model.health_check import HealthCheck
from greenroom.model.notification import AlertPolicy
from greenroom.model.room import Room
from greenroom.model.rule import Rule, RuleList
from greenroom.model.status_page import StatusPage
from greenroom.settings.process import Server
from greenroom.web.api_schema import EXTENSION, ApiSchema
from greenroom.web.refusals import CODES

NOTE = "<!-- Written by docs/generate.py from the source: change the tables there. -->\n\n"
MANY = 12
"""More choices than this make a line unreadable; they are listed at the end."""
PATTERN_MAX = 60
"""Longer patterns are left to the description, and to `openapi.json`."""
SHARED = 2
"""A row in as many tables of a page is written once, above them."""
FORMS = {
    name: schema
    for router in ROUTERS
    for name, schema in router.schemas.items()
    if isinstance(schema, ApiSchema)
}


def entry(name: str, facts: Iterable[str], meaning: str) -> str:
    """One line of a list: a name, what it may be, and what it means."""
    inner = ", ".join(fact for fact in facts if fact)
    return (
        f"- `{name}`"
        + (f" ({inner})" if inner else "")
        + (f": {meaning}" if meaning else "")
        + "\n"
    )


def span(low: int | None, high: int | None, unit: str = "") -> str:
    """The bounds of a value: `1-60 seconds`, `min 1`, `max 300`."""
    if low is not None and high is not None:
        return f"{low:,}–{high:,}" + unit
    if low is not None:
        return f"min {low:,}" + unit
    return f"max {high:,}" + unit if high is not None else unit.strip()


def shared_rows(tables: Iterable[Iterable[tuple[str, str]]]) -> dict[str, str]:
    """The most frequent meaning of each name that is in several tables."""
    counts = Counter(row for rows in tables for row in rows)
    often = [(times, row) for row, times in counts.items() if times >= SHARED]
    return dict(row for _, row in sorted(often))


SMART_SHIELD = "/smart_shield/"
SMART_SHIELD_TOO = "Also under `/zones/{zone_id}/smart_shield/healthchecks`.\n\n"
IN_FILES = {
    "Zone": (Server, "at-the-top"),
    "Room": (Room, "rooms"),
    "Event": (Event, "roomsevents"),
    "Rule": (Rule, "roomsrules"),
    "List": (RuleList, "lists"),
    "HealthCheck": (HealthCheck, "health_checks"),
    "StatusPage": (StatusPage, "status_pages"),
    "Policy": (AlertPolicy, "alert_policies"),
}
"""The record that describes the fields of a form in a file, and its place on that page."""


def api() -> str:
    found = api_document()
    parts = [
        f"# The management API\n\n{NOTE}Under `{PREFIX}` on the control listener, compatible with"
        " the API that Cloudflare published.\n`/openapi.json` below it is the same for programs."
        " How to use it: [Use the API](../howto/use-the-api.md). The meaning of\nerrors: [Errors"
        " of the API](api-errors.md).\n\n`GET` needs a"
        " [token](commands.md#greenroom-token-create) with the scope `read`, other calls `edit`,"
        " which includes `read`;\nother scopes are in bold. Then: body → result, or the one type that is both;"
        " `PATCH` takes some fields."
        "\nFields with a default take `null`, which unsets them; without one they are empty, 0 or false. A field"
        " without a type is a string. Values that Cloudflare writes in upper case are accepted in both.\n"
    ]
    operations: dict[str, dict[tuple[str, str], list[str]]] = {}
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            if SMART_SHIELD not in path:  # the published second address of the same calls
                same = operations.setdefault(operation["tags"][0], {})
                same.setdefault((path, call(method, operation)), []).append(method.upper())
    for tag, calls in operations.items():
        also = SMART_SHIELD_TOO if tag.lower() == "health checks" else ""
        paths: dict[str, list[str]] = {}
        for (path, of), verbs in calls.items():
            paths.setdefault(path, []).append(f"`{', '.join(verbs)}` {of}")
        lines = (f"- `{path}`: {'; '.join(found)}\n" for path, found in paths.items())
        parts.append(f"\n## {tag.capitalize()}\n\n{also}{''.join(lines)}")
    forms = {name: rows_of(form) for name, form in FORMS.items()}
    shared = shared_rows(
        [(row.name, row.line) for row in rows if row.read_only] for rows in forms.values()
    )
    common = "".join(shared.values())
    parts.append(f"\n## Common fields\n\nRead only, in every resource that names them.\n\n{common}")
    for name, rows in forms.items():
        if name == "EventDetails":  # what the room decides is filled in
            names = {row.name for row in rows}
            assert names <= {row.name for row in forms["Event"]}, "needs a list of its own"
            gone = [f"`{row.name}`" for row in forms["Event"] if row.name not in names]
            parts.append(
                f"\n### {name}\n\nAs [Event](#event) with the settings that it inherits from its"
                f" room, without {' and '.join(gone)}.\n"
            )
        else:
            parts.append(f"\n### {name}\n\n{resource(name, rows, shared)}")
    return "".join(parts)


PLAIN = re.compile(
    r"(?:Get|List|Create|Replace|Update fields of|Change some fields of|Change|Update|Delete|Add)"
    r" (?:a|an|the|all|one)?\s?(?:\w+ ?){1,3}(?: of a (?:zone|waiting room|list))?"
)
"""What method, address and type say already."""


def call(method: str, operation: dict[str, Any]) -> str:
    """What a call does, takes and returns."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
    takes = named(content.get("schema", {}))
    gives = named(answer["properties"].get("result", {}))
    flow = f"{takes} → {gives}" if takes and gives else (takes and f"{takes} →") or gives
    if method == "patch":  # of some fields, as the page says
        takes = takes.removesuffix(", some fields")
        flow = f"{takes} → {gives}"
    if takes == gives:
        flow = gives
    scope = operation["x-greenroom-scope"]
    usual = "read" if method == "get" else "edit"
    marked = "" if scope == usual else f"**{scope}**"
    inner = ", ".join(part for part in (flow, marked) if part)
    summary = " ".join(operation["summary"].split())
    says = "" if flow and PLAIN.fullmatch(summary) else summary
    return f"{says} ({inner})" if says and inner else says or inner


class FieldRow(NamedTuple):
    name: str
    help: str
    read_only: bool
    facts: tuple[str, ...]

    @property
    def line(self) -> str:
        return entry(self.name, self.facts, self.help)


def resource(name: str, rows: list[FieldRow], shared: dict[str, str]) -> str:
    """The fields of a form; those that a file has too, and those of many forms, by name only."""
    record, anchor = IN_FILES.get(name, (None, ""))
    in_file = {key: _plain(rule.help) for key, rule in specs(record).items()} if record else {}
    same, same_keys, common, own = [], set(), [], []
    for row in rows:
        bare = row.name.removeprefix(f"{EXTENSION}.")
        # a file may have fewer types of alerts
        if in_file.get(bare) == _plain(row.help) and not row.read_only and bare != "alert_type":
            same.append(f"`{row.name}`")
            same_keys.add(bare)
        elif shared.get(row.name) == row.line:
            common.append(f"`{row.name}`")
        else:
            own.append(row)
    listed = f": {', '.join(same)}"
    if len(same) > MANY:
        assert in_file.keys() - same_keys <= {row.name for row in rows}, "needs a list"
        listed = f", extensions in `{EXTENSION}`"
    heads = [
        f"[As in a file](configuration.md#{anchor}){listed}." if same else "",
        f"[Common](#common-fields): {', '.join(common)}." if common else "",
    ]
    parts = [f"{head}\n" for head in heads if head]
    parts.append(together(row for row in own if not row.read_only))
    told = together(row for row in own if row.read_only)
    parts.append(f"Read only:\n\n{told}" if told else "")
    return "\n".join(part for part in parts if part)


def together(rows: Iterable[FieldRow]) -> str:
    """One line for fields that differ by name only."""
    names: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for row in rows:
        names.setdefault((row.facts, row.help), []).append(row.name)
    return "".join(entry("`, `".join(same), *of) for of, same in names.items())


def _plain(text: str) -> str:
    """A description as a file and the API share it: without its unit, capital and full stop."""
    return re.sub(r", in (minutes|seconds|milliseconds|days)$", "", text.rstrip(".")).lower()


def named(schema: dict[str, Any]) -> str:
    """The schema a call takes or gives; what a form has is described once, under its own name."""
    if schema.get("type") == "array":
        return f"list of {named(schema['items'])}"
    name = schema.get("$ref", "").rpartition("/")[2]
    base = name.removesuffix("Create").removesuffix("Edit")
    if base in FORMS:
        return f"[{base}](#{base.lower()})" + (", some fields" if name.endswith("Edit") else "")
    return f"`{name}`" if name else ""


def rows_of(form: ApiSchema) -> list[FieldRow]:
    """The fields of one resource."""
    whole = form.schema("whole")
    needed = {
        *whole.get("required", ()),
        *whole["properties"].get(EXTENSION, {}).get("required", ()),
    }
    properties = {
        **whole["properties"],
        **{
            f"{EXTENSION}.{name}": inner
            for name, inner in whole["properties"].get(EXTENSION, {}).get("properties", {}).items()
        },
    }
    rows = []
    for name, schema in properties.items():
        if name == EXTENSION:
            continue
        read_only = bool(schema.get("readOnly"))
        initial = schema.get("default")
        usual = (
            "**required**"
            if name in needed
            else f"default `{json.dumps(initial)}`"
            if initial
            else ""
        )
        facts = (typed(schema), bounds(schema), "" if read_only else usual)
        rows.append(FieldRow(name, schema.get("description", ""), read_only, facts))
    return rows


def typed(schema: dict[str, Any]) -> str:
    kind = schema.get("type", "")
    kinds = kind if isinstance(kind, list) else [kind]
    shown = " or ".join(name for name in kinds if name != "null")
    return "" if shown == "string" or "enum" in schema else shown


def bounds(schema: dict[str, Any]) -> str:
    choices = [choice for choice in schema.get("enum", ()) if choice is not None]
    if len(choices) > MANY:
        return f"one of {len(choices)}, as in [the file](configuration.md)"
    if choices:
        return ", ".join(f"`{json.dumps(choice)}`" for choice in choices)
    parts = [
        span(schema.get(low), schema.get(high))
        for low, high in (("minimum", "maximum"), ("minLength", "maxLength"))
    ]
    if "maxItems" in schema:
        parts.append(f"max {schema['maxItems']:,}")
    if len(schema.get("pattern", "")) <= PATTERN_MAX and schema.get("format") != "date-time":
        parts.append(f"`{schema['pattern']}`" if "pattern" in schema else "")
    parts.append(schema.get("format", ""))
    return ", ".join(part for part in parts if part)


ERRORS_HEAD = """A response with `success: false` has at least one `{code, message}` in `errors`; it reports all problems at once.
`source.pointer` is a JSON pointer to the field in the request. Codes below 28000 are
Cloudflare's, the others greenroom's own. In parentheses: HTTP status and name.

"""


def api_errors() -> str:
    lines = (
        entry(
            str(int(code)),
            (f"{meaning.status} {code.name.lower().replace('_', ' ')}",),
            meaning.text,
        )
        for code, meaning in CODES.items()
    )
    return f"# Errors of the API\n\n{NOTE}{ERRORS_HEAD}" + "".join(lines)
