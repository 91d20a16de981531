"""Reads `[[alert_policies]]`, `[[webhooks]]` and `[[pagerduty_services]]`.

Secrets come from files, which are watched like the configuration file. Policies refer to webhooks
and services by name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from greenroom.alerts.destinations import SERVICES_MAX, WEBHOOKS_MAX, webhook_problems
from greenroom.alerts.policies import POLICIES_MAX, Filters, policy_problems
from greenroom.alerts.rules.channels import CHANNELS, channel_of, shown_url
from greenroom.configuration.file_tables import (
    FileTables,
    NamedFiles,
    ReadTable,
    TableRead,
    file_entry,
    file_id,
    read_document,
    read_named,
    step,
)
from greenroom.errors import Problem
from greenroom.model.alert_types import ALERTS
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.fields import spec, specs
from greenroom.model.notification import (
    DESTINATIONS_MAX,
    AlertPolicy,
    PagerdutyService,
    Webhook,
    record_problems,
)
from greenroom.web.api_schema import ApiSchema
from greenroom.web.api_shapes import Several

POLICY = ApiSchema.of(
    AlertPolicy,
    shapes={"emails": Several(), "filters": Filters()},
    without=("webhook_ids", "pagerduty_ids"),
)
WEBHOOK = ApiSchema.of(Webhook, without=("secret", "channel", "shown_url"))
SERVICE = ApiSchema.of(PagerdutyService, without=("routing_key",))


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookExtra:
    url_file: str = spec(
        "file with the URL on its first line, for services whose URL is a secret", "", high=4_096
    )
    secret_file: str = spec(
        "file with the secret on its first line; it identifies greenroom to the receiver",
        "",
        high=4_096,
    )
    channel: str = spec(
        "message format; left out: recognised by the URL", "", choices=tuple(CHANNELS)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceExtra:
    routing_key_file: str = spec(
        "file with the integration key of an Events API v2 integration on its first line",
        low=1,
        high=4_096,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyExtra:
    webhooks: tuple[str, ...] = spec("names of `[[webhooks]]`", (), high=DESTINATIONS_MAX)
    pagerduty_services: tuple[str, ...] = spec(
        "names of `[[pagerduty_services]]`", (), high=DESTINATIONS_MAX
    )


def _read_file(
    raw: Mapping[str, Any], files: NamedFiles, problems: list[Problem]
) -> list[Entry[Any]]:
    known = {section: _names(raw, section) for section in specs(PolicyExtra)}

    def records(section: str, most: int, what: str, read: ReadTable) -> list[dict[str, Any]]:
        return read_named(raw.get(section, []), section, most, what, read, problems)

    webhooks = records("webhooks", WEBHOOKS_MAX, "webhook", partial(_webhook, files))
    services = records(
        "pagerduty_services", SERVICES_MAX, "PagerDuty service", partial(_service, files)
    )
    policies = records("alert_policies", POLICIES_MAX, "alert policy", partial(_policy, known))
    return [
        *(file_entry(Webhook(**values)) for values in webhooks),
        *(file_entry(PagerdutyService(**values)) for values in services),
        *(file_entry(AlertPolicy(**values)) for values in policies),
    ]


def _names(raw: Mapping[str, Any], section: str) -> set[str]:
    """Includes faulty entries, so that one mistake is one problem."""
    listed = raw.get(section, [])
    return (
        {str(table.get("name")) for table in listed if isinstance(table, dict)}
        if isinstance(listed, list)
        else set()
    )


def _webhook(files: NamedFiles, entry: Mapping[str, Any], at: str) -> TableRead:
    entry = {key: value for key, value in entry.items() if value != "" or key == "name"}
    url, url_problems = files.first_line(entry, at, "url_file")
    secret, problems = files.first_line(entry, at, "secret_file")
    if ("url" in entry) == ("url_file" in entry):
        url_problems = [Problem(step(at, "url"), "is required: one of url and url_file")]
    values, found = read_document(
        WEBHOOK,
        {"url": url, **entry},
        at,
        lambda values: webhook_problems({**values, "secret": secret}),
        WebhookExtra,
    )
    placed = {f"{at}.{name}": f"{at}.{name}_file" for name in ("url", "secret")}
    if "url" in entry:
        del placed[f"{at}.url"]
    if url_problems:
        found = [problem for problem in found if problem.pointer != f"{at}.url"]
    problems += url_problems + [
        replace(problem, pointer=placed.get(problem.pointer, problem.pointer)) for problem in found
    ]
    if problems:
        return values, problems
    channel = CHANNELS[entry["channel"]] if "channel" in entry else channel_of(values["url"])
    return {
        **values,
        "id": file_id("webhook", values["name"]),
        "secret": secret,
        "channel": channel.name,
        "shown_url": shown_url(channel, values["url"]),
    }, problems


def _service(files: NamedFiles, entry: Mapping[str, Any], at: str) -> TableRead:
    key, problems = files.first_line(entry, at, "routing_key_file")
    values, found = read_document(
        SERVICE, entry, at, partial(record_problems, PagerdutyService), ServiceExtra
    )
    if key:
        problems += [
            replace(problem, pointer=f"{at}.routing_key_file")
            for problem in record_problems(PagerdutyService, {"routing_key": key})
        ]
    return {
        **values,
        "id": file_id("pagerduty", values.get("name")),
        "routing_key": key,
    }, found + problems


def _policy(known: Mapping[str, set[str]], entry: Mapping[str, Any], at: str) -> TableRead:
    values, problems = read_document(
        POLICY, entry, at, lambda values: policy_problems(values, tuple(ALERTS)), PolicyExtra
    )
    named = {section: entry.get(section, ()) for section in known}
    named = {section: names if isinstance(names, list) else () for section, names in named.items()}
    problems += [
        Problem(f"{at}.{section}[{index}]", f"there is no [[{section}]] entry named {name!r:.80}")
        for section, names in named.items()
        for index, name in enumerate(names)
        if isinstance(name, str) and name not in known[section]
    ]
    return {
        **values,
        "id": file_id("policy", values.get("name")),
        "webhook_ids": tuple(file_id("webhook", name) for name in named["webhooks"]),
        "pagerduty_ids": tuple(file_id("pagerduty", name) for name in named["pagerduty_services"]),
    }, problems


def _file_lines(documents: Configuration) -> Iterator[str]:
    for webhook in documents.webhooks.records():
        yield f"webhook    {webhook.name}: {webhook.shown_url}"
    for service in documents.pagerduty_services.records():
        yield f"pagerduty  {service.name}"
    for policy in documents.alert_policies.records():
        to = [*policy.emails]
        to += [documents.webhooks[key].record.name for key in policy.webhook_ids]
        to += [documents.pagerduty_services[key].record.name for key in policy.pagerduty_ids]
        off = "" if policy.enabled else ", switched off"
        yield f"alert      {policy.name}: {policy.alert_type} to {', '.join(to)}{off}"


TABLES = FileTables(("webhooks", "pagerduty_services", "alert_policies"), _read_file, _file_lines)
