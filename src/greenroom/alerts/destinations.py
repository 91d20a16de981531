"""Destinations of alerts: webhooks with their secrets, and PagerDuty services."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from greenroom.alerts.rules.channels import CHANNELS, channel_of, shown_url
from greenroom.alerts.rules.matching import Destination
from greenroom.alerts.view import NotificationView
from greenroom.errors import Problem
from greenroom.model.change import Put, Remove
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.fields import Spec, is_sealed, specs, wrong_fields
from greenroom.model.notification import PagerdutyService, Webhook, record_problems
from greenroom.outbound import OutboundRefused, read_target
from greenroom.web.api_schema import (
    READ_ONLY,
    UNSET,
    ApiField,
    ApiSchema,
    computed,
    read_as,
)
from greenroom.web.api_shapes import Json, Plain, Shown
from greenroom.web.config_service import (
    ChangeContext,
    ConfigChange,
    ConfigService,
    DocumentSection,
    PlannedChange,
    SectionEntry,
    entry_of,
    opaque_id,
    refuse_read_only,
)
from greenroom.web.refusals import (
    ApiFault,
    Code,
    Refused,
    not_found,
    refuse_if,
    too_many,
)
from greenroom.web.time_format import moment as written

WEBHOOKS_MAX = 200
SERVICES_MAX = 50

MASK = "***"
"""Stands for a secret in an exported document."""


@dataclass(frozen=True, slots=True)
class Secret:
    def read(self, pointer: str, value: Any, problems: list[Problem], /) -> Any:
        # A sealed value comes from a copy of the store and cannot be opened elsewhere.
        if isinstance(value, str) and is_sealed(value):
            problems.append(Problem(pointer, "must be the secret itself, not a sealed one"))
        return "" if value is None else value

    def show(self, value: Any) -> Any:
        # Never reached: records that are shown have no such field.
        return value

    def schema(self, rule: Spec, /) -> Json:
        return {
            "type": ["string", "null"],
            "maxLength": rule.high,
            "pattern": f"^{rule.pattern}$",
            "writeOnly": True,
        }


_RULES = specs(Webhook)
_TIME_OR_NULL = Shown({"type": ["string", "null"], "format": "date-time"})

WEBHOOK = ApiSchema(
    (
        ApiField("id", _RULES["id"], Plain(str), ""),
        ApiField("name", _RULES["name"], Plain(str)),
        ApiField("url", _RULES["url"], Plain(str)),
        ApiField("secret", _RULES["secret"], Secret(), UNSET),
        computed(
            "type",
            "the service that the URL was recognised as, in the words that Cloudflare published",
            Shown({"type": "string", "enum": sorted({row.published for row in CHANNELS.values()})}),
        ),
        computed("created_at", "creation time", Shown({"type": "string", "format": "date-time"})),
        computed("last_success", "when it last took a message", _TIME_OR_NULL),
        computed("last_failure", "when it last did not", _TIME_OR_NULL),
        computed(
            "channel",
            "whose message format is used; recognised by the URL when it is left out",
            Plain(str),
            writable=True,
            extension=True,
            choices=tuple(CHANNELS),
        ),
        READ_ONLY,
    )
)

PAGERDUTY = ApiSchema(
    (
        ApiField("id", specs(PagerdutyService)["id"], Plain(str), ""),
        ApiField("name", specs(PagerdutyService)["name"], Plain(str)),
        ApiField("routing_key", specs(PagerdutyService)["routing_key"], Secret(), UNSET),
    )
)


def show(entry: Entry[Webhook], states: dict[str, tuple[int | None, int | None]]) -> Json:
    """Without the secret, and the secret part of the URL."""
    record = entry.record
    success_ms, failure_ms = states.get(Destination("webhook", record.id).key, (None, None))
    return WEBHOOK.show(
        {
            "id": record.id,
            "name": record.name,
            "url": record.shown_url,
            "type": CHANNELS[record.channel].published,
            "created_at": written(entry.created_ms),
            "last_success": None if success_ms is None else written(success_ms),
            "last_failure": None if failure_ms is None else written(failure_ms),
            "channel": record.channel,
            "read_only": entry.read_only,
        }
    )


def webhook_of(known: Configuration, webhook_id: str) -> Entry[Webhook]:
    return entry_of(known.webhooks, "webhook", webhook_id)


def read_webhook(
    known: Configuration,
    webhook_id: str | None,
    document: Any,
    view: NotificationView,
    new_id: Callable[[], str],
) -> Webhook:
    """Raises Refused with all faults. A secret that is not sent is kept only for the same server,
    so whoever changes the server must know it.
    """
    entry = None if webhook_id is None else webhook_of(known, webhook_id)
    if entry is not None:
        refuse_read_only(entry, "webhook")
    old = None if entry is None else entry.record
    values, faults = read_as(WEBHOOK, document, webhook_problems)
    url, channel = values.get("url"), values.get("channel")
    kept = old is not None and url == old.shown_url
    if url is not None and not kept and not any(fault.pointer == "/url" for fault in faults):
        problem = view.url_problem(url)
        faults += [ApiFault(Code.INVALID, f"url: {problem}", "/url")] if problem else []
    if old is None:
        faults += too_many(known.webhooks, WEBHOOKS_MAX, "webhooks")
    refuse_if(faults)
    if old is not None and kept:
        where, shown_as, otherwise = old.url, old.shown_url, CHANNELS[old.channel]
    else:
        where = shown_as = str(url)
        otherwise = channel_of(where)
    row = CHANNELS[channel] if channel else otherwise
    keeps_secret = old is not None and (kept or _same_server(old.shown_url, where))
    named = {
        "name": values["name"],
        "url": where,
        "secret": values.get("secret", old.secret if old is not None and keeps_secret else ""),
        "channel": row.name,
        "shown_url": shown_url(row, shown_as),
    }
    return replace(old, **named) if old is not None else Webhook(id=new_id(), **named)


def webhook_problems(values: Json) -> list[Problem]:
    """Does not judge whether the URL may be called."""
    channel, url = values.get("channel"), values.get("url")
    found = record_problems(Webhook, {**values, "channel": "generic"})
    if channel is not None and (not isinstance(channel, str) or channel not in CHANNELS):
        reason = f"must be one of {', '.join(CHANNELS)}, not {channel!r:.60}"
        found.append(Problem("channel", reason))
    if isinstance(url, str) and "url" not in wrong_fields(found):
        try:
            read_target(url)
        except OutboundRefused as refused:
            found.append(Problem("url", str(refused)))
    return found


def save(
    webhook_id: str | None, document: Any, view: NotificationView, made: Webhook
) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        record = read_webhook(known, webhook_id, document, view, lambda: made.id)
        return PlannedChange([Put(record)], lambda _after: {"id": record.id})

    return plan


def keep(
    config: ConfigService,
    author: str,
    view: NotificationView,
    webhook_id: str | None,
    document: Any,
) -> tuple[Json, str]:
    """Tests a webhook whose URL or secret is new. Returns the answer, and the problem of the test.
    Raises Refused.
    """
    made = config.look(lambda known: read_webhook(known, webhook_id, document, view, opaque_id))
    old = (
        None
        if webhook_id is None
        else config.look(lambda known: webhook_of(known, webhook_id)).record
    )
    same = old is not None and (old.url, old.secret, old.channel) == (
        made.url,
        made.secret,
        made.channel,
    )
    problem = "" if same or view.webhook_test == "off" else view.test(made)
    if problem and view.webhook_test == "required":
        raise test_failed(problem)
    return config.change(author, save(webhook_id, document, view, made)), problem


def delete(webhook_id: str) -> ConfigChange:
    """Policies that name the webhook skip it."""

    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        refuse_read_only(webhook_of(known, webhook_id), "webhook")
        return PlannedChange([Remove("webhook", webhook_id)], lambda _after: None)

    return plan


def services(known: Configuration) -> list[Json]:
    return [
        PAGERDUTY.show({"id": entry.id, "name": entry.record.name})
        for entry in known.pagerduty_services.values()
    ]


def create_service(document: Any, kept_key: str | None = None) -> ConfigChange:
    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        values, faults = read_as(
            PAGERDUTY, document, lambda values: record_problems(PagerdutyService, values)
        )
        if kept_key is not None:
            values["routing_key"] = kept_key
            faults = [fault for fault in faults if fault.pointer != "/routing_key"]
        if "routing_key" not in values:
            reason = "routing_key: is required: the integration key of an Events API v2 integration"
            faults.append(ApiFault(Code.REQUIRED, reason, "/routing_key"))
        faults += too_many(known.pagerduty_services, SERVICES_MAX, "PagerDuty services")
        refuse_if(faults)
        record = PagerdutyService(id=at.new_id(), **values)
        return PlannedChange([Put(record)], lambda _after: {"id": record.id})

    return plan


def delete_services(service_id: str | None = None) -> ConfigChange:
    """Without an id, all that were made through the API."""

    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        if service_id is not None and service_id not in known.pagerduty_services:
            raise not_found("PagerDuty service", service_id)
        if service_id is not None:
            refuse_read_only(known.pagerduty_services[service_id], "PagerDuty service")
        all_of_them = [
            entry.id for entry in known.pagerduty_services.values() if not entry.read_only
        ]
        gone = all_of_them if service_id is None else [service_id]
        return PlannedChange(
            [Remove("pagerduty_service", found) for found in gone], lambda _after: None
        )

    return plan


ELIGIBLE: Json = {
    "type": "object",
    "additionalProperties": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "eligible": {"type": "boolean"},
                "ready": {"type": "boolean"},
                "type": {"type": "string"},
            },
            "required": ["eligible", "ready", "type"],
        },
    },
}


def eligible(view: NotificationView) -> Json:
    def row(kind: str, ready: bool) -> list[Json]:
        return [{"eligible": True, "ready": ready, "type": kind}]

    return {
        "Email": row("email", view.mail_ready),
        "PagerDuty": row("pagerduty", True),
        "Webhooks": row("webhook", True),
    }


def test_failed(problem: str) -> Refused:
    return Refused(ApiFault(Code.WEBHOOK_TEST, f"webhook test failed: {problem}", "/url"))


def _same_server(one: str, other: str) -> bool:
    first, second = urlsplit(one), urlsplit(other)
    return (first.scheme, first.netloc) == (second.scheme, second.netloc)


def _exported_webhook(entry: Entry[Any]) -> Json:
    return WEBHOOK.brief(show(entry, {})) | ({"secret": MASK} if entry.record.secret else {})


def _plan_webhook(wanted: SectionEntry) -> ConfigChange:
    key, document = wanted.id, wanted.document
    old = wanted.before.webhooks.get(key)
    told = (
        {name: value for name, value in document.items() if (name, value) != ("secret", MASK)}
        if isinstance(document, dict)
        else document
    )

    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        if isinstance(document, dict) and (
            old is None or old.read_only or document.get("url") != old.record.shown_url
        ):
            _refuse_masked("secret", document.get("secret") == MASK)
            _refuse_masked("url", str(document.get("url", "")).endswith(MASK))
        base = known if old is None else known.changed(known.revision, [old])
        made = read_webhook(
            base, None if old is None else key, told, NotificationView(), lambda: key
        )
        return PlannedChange([Put(made)], lambda _after: None)

    return plan


def _plan_service(wanted: SectionEntry) -> ConfigChange:
    document = wanted.document
    old = wanted.before.pagerduty_services.get(wanted.id)
    masked = isinstance(document, dict) and document.get("routing_key") == MASK

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        _refuse_masked("routing_key", masked and old is None)
        return create_service(document, old.record.routing_key if masked and old else None)(
            known, at
        )

    return plan


def _refuse_masked(name: str, masked: bool) -> None:
    if masked:
        raise Refused(
            ApiFault(
                Code.REQUIRED,
                f"{name}: is not part of an export; write it in place of {MASK}",
                f"/{name}",
            )
        )


SECTIONS = (
    DocumentSection("webhooks", "webhook", WEBHOOKS_MAX, _exported_webhook, _plan_webhook),
    DocumentSection(
        "pagerduty_services",
        "pagerduty_service",
        SERVICES_MAX,
        lambda entry: {"name": entry.record.name, "routing_key": MASK},
        _plan_service,
    ),
)
