"""Writes docs/reference from the tables in the source, so that it cannot say anything else. Run:
.venv/bin/python docs/generate.py
"""

import json
import re
import types
from collections.abc import Iterable
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import typer
from generate_api import MANY, NOTE, PATTERN_MAX, api, api_errors, entry, shared_rows, span
from generate_log import log

from greenroom.alerts.file_tables import PolicyExtra, ServiceExtra, WebhookExtra
from greenroom.alerts.policies import POLICIES_MAX
from greenroom.alerts.rules.channels import CHANNELS
from greenroom.api.metrics import METRICS, gateway_rows
from greenroom.cli import app
from greenroom.config_file.documents import EventExtra, Extra
from greenroom.configuration.events import EVENT, TIMES
from greenroom.gateway.counts import Counts
from greenroom.health.checks import FileExtra as HealthCheckExtra
from greenroom.model.alert_types import ALERTS, ROOMS
from greenroom.model.crawler import Crawler
from greenroom.model.event import EVENTS_PER_ROOM, OVERRIDES, Event
from greenroom.model.fields import Spec, plain_type, specs
from greenroom.model.health_check import (
    ALL_REGIONS,
    CHECKS_MAX,
    REGIONS,
    HealthCheck,
    HttpCheck,
    TcpCheck,
)
from greenroom.model.notification import AlertPolicy, PagerdutyService, Webhook
from greenroom.model.oidc import OidcEntry, OidcRole
from greenroom.model.room import Room
from greenroom.model.route import CookieAttributes
from greenroom.model.rule import EXPRESSION_MAX, RULES_MAX, Rule, RuleList
from greenroom.model.status_page import StatusPage
from greenroom.pages.variables import EXTENSIONS, VARIABLES
from greenroom.rules import FIELDS, FUNCTIONS
from greenroom.rules.fields import ALIASES
from greenroom.rules.functions import FunctionSpec
from greenroom.settings.process import SECTIONS, OriginEntry, PrometheusLogin, Server

REFERENCE = Path(__file__).parent / "reference"
NAMES = {
    bool: "boolean",
    int: "integer",
    str: "string",
    tuple: "list",
    dict: "table",
    types.UnionType: "string",
}
NAMES |= dict.fromkeys((CookieAttributes, HttpCheck, TcpCheck), "table")
USUAL_LENGTHS = (2_048, 4_096)
"""Characters of a URL and of a path of a file, which the head of the page says once."""


def short_list(rows: list[tuple[str, str]], shared: dict[str, str], where: str) -> str:
    """The names of shared rows in one line, and the others as a list, by meaning."""
    known = [f"`{name.split()[0]}`" for name, meaning in rows if shared.get(name) == meaning]
    names: dict[str, list[str]] = {}
    for name, meaning in rows:
        if shared.get(name) != meaning:
            names.setdefault(meaning, []).append(name)
    own = [entry("`, `".join(same), (), meaning) for meaning, same in names.items()]
    line = f"[{where}](#{where.lower().replace(' ', '-')}): {', '.join(known)}.\n" if known else ""
    return line + ("\n" if line and own else "") + "".join(own)


def mixed(rule: Spec) -> bool:
    """Whether the choices are of several kinds, so that text needs its quotes."""
    return len(set(map(type, rule.choices))) > 1


def allowed(rule: Spec) -> str:
    if len(rule.choices) > MANY:
        return f"one of {len(rule.choices)}, below"
    if rule.choices:
        return ", ".join(
            f"`{json.dumps(choice) if mixed(rule) else choice}`"
            for choice in rule.choices
            if choice != ""
        )
    pattern = f"`{rule.pattern}`" if rule.pattern and len(rule.pattern) <= PATTERN_MAX else ""
    bounds = span(rule.low, rule.high, f" {rule.unit}" if rule.unit else "")
    return ", ".join(part for part in (bounds, pattern) if part)


def default(item: Any) -> str:
    """Empty where the page says it for all: nothing, false and empty are no news."""
    if item.default is MISSING and item.default_factory is MISSING:
        return "**required**"
    if item.default_factory is not MISSING or not isinstance(
        item.default, (bool, int, str, tuple, CookieAttributes)
    ):
        return ""
    if isinstance(item.default, bool):
        return "default `true`" if item.default else ""
    if isinstance(item.default, int):
        return f"default {item.default:,}"
    if isinstance(item.default, CookieAttributes):
        return "default both `auto`"
    if isinstance(item.default, tuple) and item.default:
        return "default " + ", ".join(f"`{each}`" for each in item.default)
    return f"default `{item.default}`" if item.default else ""


def keys(record: type, without: Iterable[str] = (), **choices: tuple[str, ...]) -> str:
    """The list of one record's keys, as they are written in a file. `choices` of a file only."""
    described = specs(record)
    for name, found in choices.items():
        described[name] = replace(described[name], choices=found)
    lines = []
    for item in fields(record):
        if item.name in without or item.name not in described:
            continue
        rule = described[item.name]
        kind = plain_type(item.type)
        shown = rule if kind in (int, str, tuple) or mixed(rule) else Spec(rule.help)
        if kind is tuple:
            shown = Spec(rule.help, high=rule.high)
        if kind is str and item.name != "expression" and rule.high in USUAL_LENGTHS:
            shown = replace(rule, low=None, high=None)
        bounded = allowed(shown)
        if not shown.choices:
            clear = kind is str or shown.unit or item.default is True or type(item.default) is int
            named = "" if clear else NAMES.get(kind, "table")
            bounded = ", ".join(part for part in (named, bounded) if part)
        mark = "*extension*" if rule.extension else ""
        lines.append(entry(item.name, (bounded, default(item), mark), rule.help))
    return "".join(lines)


def configuration() -> str:
    described = specs(Room)
    lists = [(name, rule.choices) for name, rule in described.items() if len(rule.choices) > MANY]
    parts = [
        "# The configuration file\n\n" + NOTE,
        (
            "One TOML file. `greenroom check FILE` reports every problem in it. Keys are at the top"
            " of the file, in the tables\nbelow, or in one `[[rooms]]` table for each room."
            " Relative paths start at the directory of the file.\nLengths of strings are in"
            " characters, of lists in entries; paths of files have at most 4,096 characters, URLs"
            " and their paths 2,048. A key with a unit or a number as default is an integer, another"
            " one without a type a string; without a default it is empty or false.\n\n"
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
        " except for *extensions* and the minimum\nof the two limits, which is 1.\n\n"
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
        + f"\n{keys(EventExtra)}\n"
        + keys(Event, ["id", *TIMES.values(), "written_times", *OVERRIDES])
        + f"- {', '.join(f'`{name}`' for name in OVERRIDES)}: as of the room, during the event\n"
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
        "\n## `[[prometheus]]`\n\nSign-in to a Prometheus that [measures a room's origin]"
        "(../howto/follow-the-origin.md#where-greenroom-does-not-see-the-answers).\n\n"
        + keys(PrometheusLogin)
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
        + keys(HealthCheck, without=["id"]).replace("; 0 = the default", "")
        + "\nIn a file there is also:\n\n"
        + keys(HealthCheckExtra)
        + "\n### `http_config`\n\nA table, also as `[health_checks.http_config]`.\n\n"
        + keys(HttpCheck)
        + "\n### `tcp_config`\n\nA table.\n\n"
        + keys(TcpCheck)
    )
    parts.append(
        "\n## `[[webhooks]]`\n\nWhere alerts go: [the how-to](../howto/get-notified.md). Secrets"
        " are in files of their own. `url` or `url_file` is required, and names are unique.\n\n"
        + keys(Webhook, ["id", "secret", "channel", "shown_url"]).replace(
            ", **required**): URL", "): URL"
        )
        + keys(WebhookExtra)
        + "\n## `[[pagerduty_services]]`\n\n"
        + keys(PagerdutyService, ["id", "routing_key"])
        + keys(ServiceExtra)
        + f"\n## `[[alert_policies]]`\n\nWho is told about what, at most {POLICIES_MAX}. [The"
        " alerts](alerts.md) with their filters.\n\n"
        + keys(
            AlertPolicy,
            ["id", "webhook_ids", "pagerduty_ids"],
            alert_type=tuple(sorted(ALERTS)),
        ).replace(", below, **required**)", " [alerts](alerts.md), **required**)")
        + keys(PolicyExtra)
    )
    lists.append(("check_regions", (*REGIONS, ALL_REGIONS)))
    for name, choices in lists:
        parts.append(
            f"\n### Values of `{name}`\n\n" + " ".join(f"`{choice}`" for choice in choices) + "\n"
        )
    return "".join(parts)


def variables() -> str:
    published = (
        entry(row.name, (row.kind, "page only" if row.template_only else ""), row.help)
        for row in VARIABLES
    )
    ours = (entry(row.template_name, (row.kind,), row.help) for row in EXTENSIONS)
    assert all(
        row.template_name == f"greenroom{row.name[0].upper()}{row.name[1:]}" for row in EXTENSIONS
    ), "needs its name in JSON"
    return (
        f"# Variables of the waiting page\n\n{NOTE}The variables of a custom page"
        " (`custom_page_html`, in Mustache) and of the JSON response.\n\n## Published by"
        " Cloudflare\n\nIn JSON they are in the object `cfWaitingRoom`, in this order.\n\n"
        + "".join(published)
        + "\n## Extensions of greenroom\n\nIn JSON they are in the object `greenroom`,"
        " without this prefix (`peopleAhead`).\n\n" + "".join(ours)
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
    shared = shared_rows(options(command) for _, command in found)
    common = "".join(entry(name, (), meaning) for name, meaning in shared.items())
    parts = [
        f"# Commands\n\n{NOTE}## Common options\n\nA command names those that it has.\n\n{common}\n"
    ]
    for name, command in found:
        rows = short_list(options(command), shared, "Common options").replace(
            "[Common options](#common-options): ", ""
        )
        parts.append(f"## `{name}`\n\n{(command.help or '').strip()}\n\n{rows}\n")
    return "".join(parts).rstrip() + "\n"


def metrics() -> str:
    counts = [(name, meaning, gauge) for name, meaning, gauge, _ in Counts().described()]
    gateway = gateway_rows(
        [count[:2] for count in counts], frozenset(name for name, _, gauge in counts if gauge)
    )
    lines: dict[tuple[str, ...], list[str]] = {}
    for row in (*METRICS, *gateway):
        kind = row.kind("x", "x").type
        usual = "counter" if row.name.endswith("_total") else "gauge"
        labels = " ".join(f"`{label}`" for label in row.labels)
        meaning = re.sub(r"status \dxx$", "such a status", row.help)
        lines.setdefault(("" if kind == usual else kind, labels, meaning), []).append(row.name)
    head = (
        "The metrics that `/metrics` on the control listener exports for Prometheus, in addition to"
        " the usual `process_*` metrics.\nNames that end with `_total` are counters, others are"
        " gauges unless the list says otherwise. Labels are in parentheses.\n\n"
    )
    told = (entry("`, `".join(names), of[:2], of[2]) for of, names in lines.items())
    return "# Metrics\n\n" + NOTE + head + "".join(told)


def alerts() -> str:
    parts = [
        "# Alerts and channels\n\n" + NOTE,
        (
            "Every type of alert that greenroom raises: its filters for policies, and its fields in"
            " the `data` of a webhook. What is\npaired has a start and an end with the same"
            " `alert_correlation_id`. How to use them: [Get notified](../howto/get-notified.md).\n"
        ),
    ]
    of_rooms = [row for row in ALERTS.values() if row.category == ROOMS]
    room_filters = set.intersection(*(set(row.filters) for row in of_rooms))
    room_fields = set.intersection(*(set(row.fields) for row in of_rooms))
    names = [
        ", ".join(f"`{name}`" for name in sorted(found)) for found in (room_filters, room_fields)
    ]
    parts.append(
        f"\nWhat is of a room has the filters {names[0]} and the fields {names[1]}, listed below.\n"
    )
    shared_filters = shared_rows(
        [(name, described.help) for name, described in row.filters.items()]
        for row in ALERTS.values()
    )
    shared_fields = shared_rows(row.fields.items() for row in ALERTS.values())
    for title, shared in (("Common filters", shared_filters), ("Common fields", shared_fields)):
        common = "".join(entry(name, (), meaning) for name, meaning in shared.items())
        parts.append(f"\n## {title}\n\n{common}")
    for row in ALERTS.values():
        of_room = room_filters <= set(row.filters) and room_fields <= set(row.fields)
        kind = ("Paired" if row.paired else "One event") + (", of a room." if of_room else ".")
        parts.append(f"\n## `{row.type}`\n\n{row.description} {kind}\n")
        filters = [(name, described.help) for name, described in row.filters.items()]
        for title, rows, shared, known in (
            ("Filters", filters, shared_filters, room_filters),
            ("Fields", list(row.fields.items()), shared_fields, room_fields),
        ):
            own = [each for each in rows if not (of_room and each[0] in known)]
            found = short_list(own, shared, f"Common {title.lower()}")
            if found:
                lead = "" if found.startswith("[") else f"{title}:\n\n"
                parts.append(f"\n{lead}{found}")
    channels = (
        entry(row.name, (), f"{row.help}; secret: {row.secret_help or 'not used'}")
        for row in CHANNELS.values()
    )
    parts.append(
        "\n## Channels of webhooks\n\nThe channel follows from the URL, or from `greenroom.channel`"
        " of the webhook.\n\n"
    )
    return "".join(parts) + "".join(channels)


OPERATORS = """- `eq` `==`, `ne` `!=` (String, IP address, Integer): equal, not equal; an address, not a network
- `lt` `<`, `le` `<=`, `gt` `>`, `ge` `>=` (String, Integer): order; strings by their bytes
- `contains` (String): contains this text; case-sensitive
- `matches` `~` (String): a regular expression (RE2: no look-around, no back-references) is found in it
- `wildcard` (String): the whole value fits the pattern, `*` for any text; case-insensitive
- `strict wildcard` (String): the same, case-sensitive
- `in` (String, IP address, Integer): one of `{...}` (items, ranges `a..b`, networks; blanks between) or of list `$name`
"""


def signature(name: str, spec: FunctionSpec) -> str:
    params = [
        param.name if index < spec.needed else f"{param.name}?"
        for index, param in enumerate(spec.params)
    ]
    return f"{name}({', '.join(params)}{', ...' if spec.repeats else ''})"


def rules() -> str:
    names: dict[tuple[str, str], list[str]] = {}
    raw = [name for name in FIELDS if name.startswith("raw.")]
    assert all(FIELDS[name].kind == FIELDS[name.removeprefix("raw.")].kind for name in raw)
    for name, spec in FIELDS.items():
        if name not in (*ALIASES, *raw):
            names.setdefault((str(spec.kind), spec.help), []).append(name)
    fields_ = [
        entry("`, `".join(same), () if kind == "String" else (kind,), meaning)
        for (kind, meaning), same in names.items()
    ]
    old = ", ".join(f"`{name}`" for name in ALIASES)
    functions = (
        entry(
            signature(name, spec),
            (f"→ {spec.gives}" if spec.gives else "→ as the arguments",),
            spec.help,
        )
        for name, spec in FUNCTIONS.items()
    )
    return (
        f"# The language of bypass rules\n\n{NOTE}The language of Cloudflare, for expressions of at"
        f" most {EXPRESSION_MAX:,} characters.\n[Let some visitors bypass a"
        " room](../howto/bypass-rules.md) shows how to use it.\n\nBinding, tightest first: `not`"
        ' (`!`), `and` (`&&`), `xor` (`^^`), `or` (`||`); parentheses group. Strings are `"..."`'
        ' with `\\"`, `\\\\` and `\\xHH`, or raw: `r"..."`, `r#"..."#`. `array[0]`, `map["key"]`'
        ' and `map["key"][0]` read one value; `array[*]` reads all of them inside `any()` and'
        " `all()`. A missing value makes a comparison false.\n\n## Operators\n\n"
        + OPERATORS
        + "\n## Fields\n\nWithout a type: String, empty when there is none.\n\n"
        + "".join(fields_)
        + f"- {', '.join(f'`{name}`' for name in raw)}: as without `raw.`, but as sent, before normalization\n"
        + f"\nDeprecated names of `ip.src...`: {old}.\n"
        + "\n## Functions\n\nA `?` marks an optional parameter.\n\n"
        + "".join(functions)
    )


PAGES = {
    "api.md": api,
    "api-errors.md": api_errors,
    "commands.md": commands,
    "configuration.md": configuration,
    "variables.md": variables,
    "metrics.md": metrics,
    "log.md": log,
    "alerts.md": alerts,
    "rules.md": rules,
}


def main() -> None:
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page())


if __name__ == "__main__":
    main()
