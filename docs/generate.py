"""Writes docs/reference from the tables in the source, so that it cannot say anything else. Run:
.venv/bin/python docs/generate.py
"""

import json
import types
from collections import Counter
from collections.abc import Iterable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import typer

from greenroom.alerts.policies import POLICIES_MAX
from greenroom.alerts.rules.channels import CHANNELS
from greenroom.api.app import PREFIX
from greenroom.api.management import api_document
from greenroom.api.metrics import EXPORTED, gateway_rows
from greenroom.api.openapi import FORMS
from greenroom.cli import app
from greenroom.config.alert_entries import AlertPolicyEntry, PagerdutyServiceEntry, WebhookEntry
from greenroom.config.documents import EventExtra, Extra, HealthCheckExtra
from greenroom.configuration.events import EVENT, TIMES
from greenroom.gateway.counts import Counts
from greenroom.model.alert_types import ALERTS, example
from greenroom.model.crawler import Crawler
from greenroom.model.event import EVENTS_PER_ROOM, Event
from greenroom.model.fields import Spec, plain_type, specs
from greenroom.model.health_check import (
    ALL_REGIONS,
    CHECKS_MAX,
    REGIONS,
    HealthCheck,
    HttpCheck,
    TcpCheck,
)
from greenroom.model.oidc import OidcEntry, OidcRole
from greenroom.model.room import CookieAttributes, Room
from greenroom.model.rule import EXPRESSION_MAX, RULES_MAX, Rule, RuleList
from greenroom.model.status_page import StatusPage
from greenroom.pages.variables import EXTENSIONS, VARIABLES
from greenroom.rules import FIELDS, FUNCTIONS
from greenroom.rules.functions import FunctionSpec
from greenroom.settings.process import SECTIONS, OriginEntry, Server
from greenroom.web.api_schema import EXTENSION, ApiSchema
from greenroom.web.refusals import CODES

REFERENCE = Path(__file__).parent / "reference"
NAMES = {
    bool: "boolean",
    int: "whole number",
    str: "text",
    tuple: "list",
    dict: "table",
    types.UnionType: "text",
}
NAMES |= dict.fromkeys((CookieAttributes, HttpCheck, TcpCheck), "table")
NOTE = "<!-- Written by docs/generate.py from the source: change the tables there. -->\n\n"
MANY = 12
"""More choices than this make a table unreadable; they are listed below it."""
SHARED = 3
"""A row in as many tables of a page is written once, above them."""


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), *([cell(value) for value in row] for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def shared_rows(tables: Iterable[Iterable[tuple[str, str]]]) -> dict[str, str]:
    """The most frequent meaning of each name that is in several tables."""
    counts = Counter(row for rows in tables for row in rows)
    often = [(times, row) for row, times in counts.items() if times >= SHARED]
    return dict(row for _, row in sorted(often))


def short_table(
    head: tuple[str, str], rows: list[tuple[str, str]], shared: dict[str, str], where: str
) -> str:
    """The names of shared rows in one line, and the others as a table."""
    known = [f"`{name.split()[0]}`" for name, meaning in rows if shared.get(name) == meaning]
    own = [(f"`{name}`", meaning) for name, meaning in rows if shared.get(name) != meaning]
    line = f"[{where}](#{where.lower().replace(' ', '-')}): {', '.join(known)}.\n" if known else ""
    return line + ("\n" if line and own else "") + (table(head, own) if own else "")


def mixed(rule: Spec) -> bool:
    """Whether the choices are of several kinds, so that text needs its quotes."""
    return len(set(map(type, rule.choices))) > 1


def allowed(rule: Spec) -> str:
    if len(rule.choices) > MANY:
        return f"one of {len(rule.choices)}, below"
    if rule.choices:
        return ", ".join(
            f"`{json.dumps(choice) if mixed(rule) else choice}`" for choice in rule.choices
        )
    unit = f" {rule.unit}" if rule.unit else ""
    parts = []
    if rule.low is not None and rule.high is not None:
        parts.append(f"{rule.low:,} to {rule.high:,}{unit}")
    elif rule.low is not None:
        parts.append(f"from {rule.low:,}{unit}")
    elif rule.high is not None:
        parts.append(f"up to {rule.high:,}{unit}")
    elif unit:
        parts.append(rule.unit)
    if rule.pattern:
        parts.append(f"`{rule.pattern}`")
    return "; ".join(parts)


def default(item: Any) -> str:
    if item.default_factory is not MISSING:
        return "empty"
    if item.default is MISSING:
        return "**required**"
    if isinstance(item.default, bool):
        return f"`{str(item.default).lower()}`"
    if isinstance(item.default, int):
        return f"{item.default:,}"
    if isinstance(item.default, CookieAttributes):
        return "both `auto`"
    if isinstance(item.default, tuple) and item.default:
        return ", ".join(f"`{each}`" for each in item.default)
    return f"`{item.default}`" if item.default else "empty"


def keys(record: type, without: Iterable[str] = ()) -> str:
    """The table of one record's keys, as they are written in a file."""
    described = specs(record)
    rows = []
    for item in fields(record):
        if item.name in without or item.name not in described:
            continue
        rule = described[item.name]
        kind = plain_type(item.type)
        shown = rule if kind in (int, str, tuple) or mixed(rule) else Spec(rule.help)
        if kind is str and not rule.choices and not rule.pattern:
            shown = (
                Spec(rule.help, high=rule.high, unit="characters") if rule.high else Spec(rule.help)
            )
        if kind is tuple:
            shown = Spec(rule.help, high=rule.high, unit="entries")
        mark = " *(extension)*" if rule.extension else ""
        written = "true, false or text" if mixed(rule) else NAMES.get(kind, kind.__name__)
        bounded = ", ".join(part for part in (written, allowed(shown)) if part)
        rows.append((f"`{item.name}`", bounded, default(item), rule.help + mark))
    return table(("key", "type", "default", "meaning"), rows)


def configuration() -> str:
    described = specs(Room)
    lists = [(name, rule.choices) for name, rule in described.items() if len(rule.choices) > MANY]
    parts = [
        "# The configuration file\n\n" + NOTE,
        (
            "One TOML file. `greenroom check FILE` reports every problem in it. Keys are at the top"
            " of the file, in the tables\nbelow, or in one `[[rooms]]` table for each room."
            " Relative paths start at the directory of the file.\n\n"
        ),
        "## At the top\n\n" + keys(Server),
        (
            "\n`origin` (text, or a table as below) is the application that receives requests;"
            " `[origins]` has one such\nentry for each host with another origin.\n"
        ),
        "\n### An origin as a table\n\n" + keys(OriginEntry),
    ]
    written: dict[str, str] = {}
    for name, record in SECTIONS.items():
        body = keys(record)
        same = written.setdefault(body, name)
        parts.append(f"\n## `[{name}]`\n\n" + (body if same == name else f"As `[{same}]`.\n"))
    parts.append(
        "\n## `[[rooms]]`\n\nNames, bounds and defaults are those of Cloudflare Waiting Room,"
        " except for the rows marked *extension* and\nfor the two limits, whose minimum is 1.\n\n"
        + keys(Room, without=["id"])
    )
    parts.append("\nA file also has these keys:\n\n" + keys(Extra))
    parts.append(
        "\n`additional_routes` is a list of tables with `host` and `path`.\n\n###"
        " `cookie_attributes`\n\n" + keys(CookieAttributes)
    )
    parts.append(
        f"\n## `[[rooms.events]]`\n\nEvents of the room above them, at most {EVENTS_PER_ROOM}: [the"
        " how-to](../howto/run-a-sale.md). An event inherits from the room what it does not"
        " set. Times have a time zone; quotes are optional. Only the pre-queue may be left out.\n\n"
        + "".join(f"- `{f.name}`: {f.rule.help}\n" for f in EVENT.fields if f.name in TIMES)
        + f"\n{keys(EventExtra)}\n{keys(Event, ['id', *TIMES.values(), 'written_times'])}"
    )
    parts.append(
        f"\n## `[[rooms.rules]]`\n\nBypass rules of the room above them, at most {RULES_MAX}: [the"
        " language](rules.md), [the how-to](../howto/bypass-rules.md).\n\n"
        + keys(Rule, without=["id", "version", "last_updated"])
    )
    parts.append(
        "\n## `[[lists]]`\n\nNamed lists that the expressions of any room can use as `$name`.\n\n"
        + keys(RuleList, without=["id"])
    )
    parts.append(
        "\n## `[[crawlers]]`\n\nCrawlers in addition to the built-in ones: [the"
        " how-to](../howto/countries-and-crawlers.md).\n\n" + keys(Crawler)
    )
    parts.append(
        "\n## `[dashboard.oidc]`\n\nSign-in to the dashboard through an OpenID Connect provider: "
        "[the how-to](../howto/dashboard.md#sign-in-with-the-accounts-of-your-organization).\n\n"
        + keys(OidcEntry)
        + "\n### `[[dashboard.oidc.roles]]`\n\nThe first row that fits a person counts. Without one"
        " there is no access.\n\n" + keys(OidcRole)
    )
    parts.append(
        "\n## `[[status_pages]]`\n\nPublic pages on `status_listen`: [the"
        " how-to](../howto/status-page.md).\n\n" + keys(StatusPage, without=["id"])
    )
    parts.append(
        f"\n## `[[health_checks]]`\n\nAt most {CHECKS_MAX:,}. In every number 0 means the"
        " default.\n\n"
        + keys(HealthCheck, without=["id"])
        + "\nIn a file there is also:\n\n"
        + keys(HealthCheckExtra)
        + "\n### `http_config`\n\nA table, also as `[health_checks.http_config]`.\n\n"
        + keys(HttpCheck)
        + "\n### `tcp_config`\n\nA table.\n\n"
        + keys(TcpCheck)
    )
    parts.append(
        "\n## `[[webhooks]]`\n\nWhere alerts go: [the how-to](../howto/get-notified.md). Secrets"
        " are in files of their own.\n\n"
        + keys(WebhookEntry)
        + "\n## `[[pagerduty_services]]`\n\n"
        + keys(PagerdutyServiceEntry)
        + f"\n## `[[alert_policies]]`\n\nWho is told about what, at most {POLICIES_MAX}. [The"
        " alerts](alerts.md) with their filters.\n\n" + keys(AlertPolicyEntry)
    )
    lists.append(("check_regions", (*REGIONS, ALL_REGIONS)))
    lists.append(("alert_type", tuple(sorted(ALERTS))))
    for name, choices in lists:
        parts.append(
            f"\n### Values of `{name}`\n\n" + " ".join(f"`{choice}`" for choice in choices) + "\n"
        )
    return "".join(parts)


def variables() -> str:
    published = (
        (f"`{row.name}`", row.kind, "page" if row.template_only else "page, JSON", row.help)
        for row in VARIABLES
    )
    ours = ((f"`{row.template_name}`", f"`{row.name}`", row.kind, row.help) for row in EXTENSIONS)
    return (
        f"# Variables of the waiting page\n\n{NOTE}The variables of a custom page"
        " (`custom_page_html`, in Mustache) and of the JSON response.\n\n## Published by"
        " Cloudflare\n\nIn JSON they are in the object `cfWaitingRoom`, in this order.\n\n"
        + table(("name", "type", "in", "meaning"), published)
        + "\n## Extensions of greenroom\n\nIn JSON they are in the object `greenroom`.\n\n"
        + table(("in a page", "in JSON", "type", "meaning"), ours)
    )


def leaves(command: Any, name: str) -> Iterable[tuple[str, Any]]:
    """Every command that can be run, with its full name; groups of commands are walked into."""
    inside = getattr(command, "commands", None)
    if inside is None:
        yield name, command
    for word, child in (inside or {}).items():
        yield from leaves(child, f"{name} {word}")


def options(command: Any) -> list[tuple[str, str]]:
    rows = []
    for option in (param for param in command.params if not getattr(param, "hidden", False)):
        if option.name == "help":
            continue
        words = (
            [option.name.upper()]
            if option.param_type_name == "argument"
            else [*option.opts, option.metavar or ""]
        )
        needed = "**Required.** " if option.required else ""
        rows.append((" ".join(words).strip(), needed + (option.help or "")))
    return rows


def commands() -> str:
    found = list(leaves(typer.main.get_command(app), "greenroom"))
    shared = shared_rows(
        [row for row in options(command) if row[0].startswith("-")] for _, command in found
    )
    head = ("option", "meaning")
    parts = [
        f"# Commands\n\n{NOTE}## Common options\n\nA command names those that it has.\n\n",
        table(head, ((f"`{name}`", meaning) for name, meaning in shared.items())) + "\n",
    ]
    for name, command in found:
        rows = short_table(head, options(command), shared, "Common options")
        parts.append(f"## `{name}`\n\n{(command.help or '').strip()}\n\n{rows}\n")
    return "".join(parts).rstrip() + "\n"


def metrics() -> str:
    counts = [(name, meaning, gauge) for name, meaning, gauge, _ in Counts().described()]
    gateway = gateway_rows(
        [count[:2] for count in counts], frozenset(name for name, _, gauge in counts if gauge)
    )
    rows = []
    for row in (*EXPORTED, *gateway):
        labels = ", ".join(f"`{label}`" for label in row.labels)
        rows.append(
            (
                f"`{row.name}`",
                row.kind("x", "x").type,
                labels,
                row.help,
            )
        )
    head = (
        "The metrics that `/metrics` on the control listener exports for Prometheus, in addition to"
        " the usual `process_*` metrics.\n\n"
    )
    return "# Metrics\n\n" + NOTE + head + table(("name", "kind", "labels", "meaning"), rows)


def alerts() -> str:
    parts = [
        "# Alerts and channels\n\n" + NOTE,
        (
            "Every type of alert that greenroom raises: its filters for policies, and its fields in"
            " the `data` of a webhook. What is\npaired has a start and an end with the same"
            " `alert_correlation_id`. How to use them: [Get notified](../howto/get-notified.md).\n"
        ),
    ]
    shared_filters = shared_rows(
        [(name, described.help) for name, described in row.filters.items()]
        for row in ALERTS.values()
    )
    shared_fields = shared_rows(row.fields.items() for row in ALERTS.values())
    for title, head, shared in (
        ("Common filters", ("filter", "takes"), shared_filters),
        ("Common fields", ("field", "meaning"), shared_fields),
    ):
        common = [(f"`{name}`", meaning) for name, meaning in shared.items()]
        parts.append(f"\n## {title}\n\n" + table(head, common))
    for row in ALERTS.values():
        paired = "Paired." if row.paired else "Each alert is one event."
        parts.append(
            f"\n## `{row.type}`\n\n{row.description} {paired}\n\n> {example(row, 0).text}\n"
        )
        named_filters = [(name, described.help) for name, described in row.filters.items()]
        if named_filters:
            filters = short_table(
                ("filter", "takes"), named_filters, shared_filters, "Common filters"
            )
            parts.append("\n" + filters)
        found = list(row.fields.items())
        parts.append(
            "\n" + short_table(("field", "meaning"), found, shared_fields, "Common fields")
        )
    channels = [
        (f"`{row.name}`", row.help, row.secret_help or "not used") for row in CHANNELS.values()
    ]
    parts.append(
        "\n## Channels of webhooks\n\nThe channel follows from the URL, or from `greenroom.channel`"
        " of the webhook.\n\n"
    )
    return "".join(parts) + table(("channel", "for", "its secret"), channels)


def signature(name: str, spec: FunctionSpec) -> str:
    params = [
        param.name if index < spec.needed else f"{param.name}?"
        for index, param in enumerate(spec.params)
    ]
    return f"`{name}({', '.join(params)}{', ...' if spec.repeats else ''})`"


def rules() -> str:
    fields_ = ((f"`{name}`", str(spec.kind), spec.help) for name, spec in FIELDS.items())
    functions = (
        (signature(name, spec), str(spec.gives) if spec.gives else "as the arguments", spec.help)
        for name, spec in FUNCTIONS.items()
    )
    operators = (
        (
            "`eq` `==`, `ne` `!=`",
            "String, IP address, Integer",
            "equal, not equal; an address, not a network",
        ),
        (
            "`lt` `<`, `le` `<=`, `gt` `>`, `ge` `>=`",
            "String, Integer",
            "order; strings by their bytes",
        ),
        ("`contains`", "String", "contains this text; case-sensitive"),
        (
            "`matches` `~`",
            "String",
            "a regular expression (RE2: no look-around, no back-references) is found in it",
        ),
        (
            "`wildcard`",
            "String",
            "the whole value fits the pattern, `*` for any text; case-insensitive",
        ),
        ("`strict wildcard`", "String", "the same, case-sensitive"),
        (
            "`in`",
            "String, IP address, Integer",
            "one of `{...}` (items, ranges `a..b`, networks; blanks between) or of list `$name`",
        ),
    )
    return (
        f"# The language of bypass rules\n\n{NOTE}The language of Cloudflare, for expressions of at"
        f" most {EXPRESSION_MAX:,} characters.\n[Let some visitors bypass a"
        " room](../howto/bypass-rules.md) shows how to use it.\n\nBinding, tightest first: `not`"
        ' (`!`), `and` (`&&`), `xor` (`^^`), `or` (`||`); parentheses group. Strings are `"..."`'
        ' with `\\"`, `\\\\` and `\\xHH`, or raw: `r"..."`, `r#"..."#`. `array[0]`, `map["key"]`'
        ' and `map["key"][0]` read one value; `array[*]` reads all of them inside `any()` and'
        " `all()`. A missing value makes a comparison false.\n\n## Operators\n\n"
        + table(("operator", "for", "meaning"), operators)
        + "\n## Fields\n\n"
        + table(("field", "type", "meaning"), fields_)
        + "\n## Functions\n\nA `?` marks an optional parameter.\n\n"
        + table(("function", "gives", "meaning"), functions)
    )


SMART_SHIELD = "/smart_shield/"
SMART_SHIELD_TOO = "Also under `/zones/{zone_id}/smart_shield/healthchecks`.\n\n"
FIELD_HEAD = ("field", "type", "default", "meaning")


def api() -> str:
    found = api_document()
    parts = [
        f"# The management API\n\n{NOTE}Under `{PREFIX}` on the control listener, compatible with"
        " the API that Cloudflare published.\n`/openapi.json` below it is the same for programs."
        " How to use it: [Use the API](../howto/use-the-api.md). The meaning of\nerrors: [Errors"
        " of the API](api-errors.md).\n\n*Scope* is what the"
        " [token](commands.md#greenroom-token-create) must have; `edit` includes `read`.\nFields"
        " with a default take `null`, which unsets them.\n"
    ]
    operations: dict[str, list[tuple[str, ...]]] = {}
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            content = (
                operation.get("requestBody", {})
                .get("content", {})
                .get("application/json", {})
                .get("schema", {})
            )
            answer = operation["responses"]["200"]["content"]["application/json"]["schema"][
                "properties"
            ].get("result", {})
            shown = (
                f"`{method.upper()} {path}`",
                operation["summary"],
                named(content),
                named(answer),
                operation["x-greenroom-scope"],
            )
            if SMART_SHIELD not in path:  # the published second address of the same calls
                operations.setdefault(operation["tags"][0], []).append(shown)
    heads = ("call", "what it does", "body", "result", "scope")
    for tag, rows in operations.items():
        also = SMART_SHIELD_TOO if tag.lower() == "health checks" else ""
        parts.append(f"\n## {tag.capitalize()}\n\n{also}{table(heads, rows)}")
    events = rows_of(FORMS["Event"])
    for name, form in FORMS.items():
        own = rows_of(form)
        if name == "EventDetails":  # what the room decides is filled in
            assert set(own) <= set(events), "EventDetails needs a table of its own"
            gone = [row[0] for row in events if row not in own]
            parts.append(
                f"\n### {name}\n\nAs [Event](#event) with the settings that it inherits from its"
                f" room, without {' and '.join(gone)}.\n"
            )
        else:
            parts.append(f"\n### {name}\n\n{table(FIELD_HEAD, own)}")
    return "".join(parts)


def named(schema: dict[str, Any]) -> str:
    """The schema a call takes or gives; what a form has is described once, under its own name."""
    if schema.get("type") == "array":
        return f"list of {named(schema['items'])}"
    name = schema.get("$ref", "").rpartition("/")[2]
    base = name.removesuffix("Create").removesuffix("Edit")
    if base in FORMS:
        return f"[{base}](#{base.lower()})" + (", some fields" if name.endswith("Edit") else "")
    return f"`{name}`" if name else ""


def rows_of(form: ApiSchema) -> list[tuple[str, ...]]:
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
    rows: list[tuple[str, ...]] = []
    for name, schema in properties.items():
        if name == EXTENSION:
            continue
        default = (
            "**required**"
            if name in needed
            else f"`{json.dumps(schema['default'])}`"
            if "default" in schema
            else ""
        )
        default = "*read only*" if schema.get("readOnly") else default
        bounded = ", ".join(part for part in (typed(schema), bounds(schema)) if part)
        rows.append((f"`{name}`", bounded, default, schema.get("description", "")))
    return rows


def typed(schema: dict[str, Any]) -> str:
    kind = schema.get("type", "")
    kinds = kind if isinstance(kind, list) else [kind]
    return " or ".join(name for name in kinds if name != "null")


def bounds(schema: dict[str, Any]) -> str:
    choices = [choice for choice in schema.get("enum", ()) if choice is not None]
    if len(choices) > MANY:
        return f"one of {len(choices)}, as in [the file](configuration.md)"
    if choices:
        return ", ".join(f"`{json.dumps(choice)}`" for choice in choices)
    parts = []
    for low, high, unit in (("minimum", "maximum", ""), ("minLength", "maxLength", " characters")):
        if low in schema or high in schema:
            ends = [f"{schema[key]:,}" if key in schema else "" for key in (low, high)]
            if all(ends):
                parts.append(" to ".join(ends) + unit)
            else:
                parts.append(f"from {ends[0]}{unit}" if ends[0] else f"up to {ends[1]}{unit}")
    if "maxItems" in schema:
        parts.append(f"up to {schema['maxItems']:,} entries")
    parts += (
        [f"`{schema['pattern']}`"]
        if "pattern" in schema and schema.get("format") != "date-time"
        else []
    )
    parts += [schema["format"]] if "format" in schema else []
    return "; ".join(parts)


ERRORS_HEAD = """A response with `success: false` has at least one `{code, message}` in `errors`; it reports all problems at once.
`source.pointer` is a JSON pointer to the field in the request. Codes below 28000 are those of Cloudflare's API; codes from
28001 on are specific to greenroom, because Cloudflare publishes none for waiting rooms.

"""


def api_errors() -> str:
    rows = [
        (f"`{int(code)}`", code.name.lower().replace("_", " "), str(meaning.status), meaning.text)
        for code, meaning in CODES.items()
    ]
    return f"# Errors of the API\n\n{NOTE}{ERRORS_HEAD}" + table(
        ("code", "name", "status", "meaning"), rows
    )


PAGES = {
    "api.md": api,
    "api-errors.md": api_errors,
    "commands.md": commands,
    "configuration.md": configuration,
    "variables.md": variables,
    "metrics.md": metrics,
    "alerts.md": alerts,
    "rules.md": rules,
}


def main() -> None:
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page())


if __name__ == "__main__":
    main()
