"""Alert policies in the API, and the list of available alerts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from greenroom.alerts.rules.matching import filter_problems
from greenroom.alerts.view import NotificationView
from greenroom.errors import Problem
from greenroom.model.alert import TEST_IDS, Alert
from greenroom.model.alert_types import ALERTS, AlertType, example
from greenroom.model.change import Put, Remove
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.fields import Spec, specs
from greenroom.model.notification import (
    DESTINATIONS_MAX,
    EMAILS_MAX,
    FILTER_VALUES_MAX,
    FILTERS_MAX,
    AlertPolicy,
    record_problems,
)
from greenroom.web.api_schema import (
    NEEDED,
    READ_ONLY,
    ApiField,
    ApiSchema,
    computed,
    read_as,
)
from greenroom.web.api_shapes import Json, Plain, Shown
from greenroom.web.config_service import (
    ChangeContext,
    ConfigChange,
    DocumentSection,
    PlannedChange,
    entry_of,
    refuse_read_only,
)
from greenroom.web.refusals import (
    ApiFault,
    Code,
    Refused,
    refuse_if,
    too_many,
)
from greenroom.web.time_format import moment as written

POLICIES_MAX = 500

PUBLISHED_TYPES = tuple(
    """
abuse_report_alert access_custom_certificate_expiration_type advanced_ddos_attack_l4_alert
advanced_ddos_attack_l7_alert advanced_http_alert_error bgp_hijack_notification
billing_usage_alert block_notification_block_removed block_notification_new_block
block_notification_review_rejected bot_traffic_basic_alert brand_protection_alert
brand_protection_digest clickhouse_alert_fw_anomaly clickhouse_alert_fw_ent_anomaly
cloudforce_one_request_notification cni_maintenance_notification custom_analytics
custom_bot_detection_alert custom_ssl_certificate_event_type dedicated_ssl_certificate_event_type
device_connectivity_anomaly_alert dos_attack_l4 dos_attack_l7 expiring_service_token_alert
failing_logpush_job_disabled_alert fbm_auto_advertisement fbm_dosd_attack fbm_volumetric_attack
health_check_status_notification hostname_aop_custom_certificate_expiration_type
http_alert_edge_error http_alert_origin_error image_notification image_resizing_notification
incident_alert load_balancing_health_alert load_balancing_pool_enablement_alert logo_match_alert
magic_tunnel_health_check_event magic_wan_tunnel_health maintenance_event_notification
mtls_certificate_store_certificate_expiration_type pages_event_alert radar_notification
real_origin_monitoring scriptmonitor_alert_new_code_change_detections
scriptmonitor_alert_new_hosts scriptmonitor_alert_new_malicious_hosts
scriptmonitor_alert_new_malicious_scripts scriptmonitor_alert_new_malicious_url
scriptmonitor_alert_new_max_length_resource_url scriptmonitor_alert_new_resources
secondary_dns_all_primaries_failing secondary_dns_primaries_failing secondary_dns_warning
secondary_dns_zone_successfully_updated secondary_dns_zone_validation_warning
security_insights_alert sentinel_alert stream_live_notifications synthetic_test_latency_alert
synthetic_test_low_availability_alert traffic_anomalies_alert tunnel_health_event
tunnel_update_event universal_ssl_event_type web_analytics_metrics_update
zone_aop_custom_certificate_expiration_type
""".split()
)
"""Cloudflare's; greenroom raises only `health_check_status_notification` and its own."""

ALERT_TYPES = tuple(sorted({*PUBLISHED_TYPES, *ALERTS}))

PARTS = {"email": "emails", "webhooks": "webhook_ids", "pagerduty": "pagerduty_ids"}
"""Name inside `mechanisms` -> field of the record."""

_MOST = {"email": EMAILS_MAX, "webhooks": DESTINATIONS_MAX, "pagerduty": DESTINATIONS_MAX}


@dataclass(frozen=True, slots=True)
class Mechanisms:
    def read(self, pointer: str, value: Any, problems: list[Problem], /) -> Any:
        if not isinstance(value, dict):
            problems.append(Problem(pointer, "must be an object"))
            return {}
        found = {}
        for name, listed in value.items():
            if listed is None and name in PARTS:
                continue
            at = f"{pointer}.{name}"
            if name not in PARTS:
                problems.append(Problem(at, f"unknown mechanism; known: {', '.join(PARTS)}"))
            elif not isinstance(listed, list) or not all(
                isinstance(item, dict) and isinstance(item.get("id"), str) for item in listed
            ):
                problems.append(Problem(at, 'must be a list of objects such as {"id": "…"}'))
            else:
                found[PARTS[name]] = tuple(dict.fromkeys(item["id"] for item in listed))
        return found

    def show(self, value: Any) -> Any:
        return {
            name: [{"id": found} for found in value[field]]
            for name, field in PARTS.items()
            if value[field]
        }

    def schema(self, _rule: Spec, /) -> Json:
        # Keys beside `id` are ignored.
        item = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
        properties = {
            name: {"type": "array", "items": item, "maxItems": most} for name, most in _MOST.items()
        }
        return {"type": "object", "properties": properties, "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class Filters:
    def read(self, pointer: str, value: Any, problems: list[Problem], /) -> Any:
        # Null is no filter at all.
        if not isinstance(value, dict):
            problems.append(Problem(pointer, "must be an object"))
            return {}
        return {
            name: tuple(listed) if isinstance(listed, list) else listed
            for name, listed in value.items()
            if listed is not None
        }

    def show(self, value: Any) -> Any:
        return {name: list(values) for name, values in value.items()} or None

    def schema(self, _rule: Spec, /) -> Json:
        # The list of available alerts says which names an alert type has.
        values = {
            "type": "array",
            "items": {"type": "string", "maxLength": 300},
            "maxItems": FILTER_VALUES_MAX,
        }
        return {
            "type": ["object", "null"],
            "additionalProperties": {**values, "type": ["array", "null"]},
            "maxProperties": FILTERS_MAX,
        }


_TIME = Shown({"type": "string", "format": "date-time"})
_RULES = specs(AlertPolicy)

POLICY = ApiSchema(
    (
        ApiField("id", _RULES["id"], Plain(str), ""),
        ApiField("name", _RULES["name"], Plain(str)),
        ApiField("description", _RULES["description"], Plain(str, or_null=True), ""),
        ApiField("enabled", _RULES["enabled"], Plain(bool), True),
        ApiField("alert_type", replace(_RULES["alert_type"], choices=ALERT_TYPES), Plain(str)),
        ApiField("alert_interval", _RULES["alert_interval"], Plain(str, or_null=True), ""),
        ApiField(
            "mechanisms",
            Spec("where alerts go: e-mail addresses, ids of webhooks and of PagerDuty services"),
            Mechanisms(),
            NEEDED,
        ),
        ApiField("filters", Spec("which alerts of the type count"), Filters(), {}),
        computed("created", "creation time", _TIME),
        computed("modified", "time of the last change", _TIME),
        READ_ONLY,
    )
)


def show(entry: Entry[AlertPolicy]) -> Json:
    record = entry.record
    values = {
        name: getattr(record, name)
        for name in (
            "id",
            "name",
            "description",
            "enabled",
            "alert_type",
            "alert_interval",
            "filters",
        )
    }
    values["mechanisms"] = {field: getattr(record, field) for field in PARTS.values()}
    times = {"created": written(entry.created_ms), "modified": written(entry.modified_ms)}
    return POLICY.show({**values, **times, "read_only": entry.read_only})


def policy_of(known: Configuration, policy_id: str) -> Entry[AlertPolicy]:
    return entry_of(known.alert_policies, "policy", policy_id)


def create(document: Any) -> ConfigChange:
    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        values, faults = _read(document)
        faults += too_many(known.alert_policies, POLICIES_MAX, "policies")
        refuse_if(faults)
        return _put(AlertPolicy(id=at.new_id(), **values))

    return plan


def change(policy_id: str, document: Any) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        entry = policy_of(known, policy_id)
        refuse_read_only(entry, "policy")
        if not isinstance(document, dict):
            raise Refused(ApiFault(Code.BAD_BODY, "the body must be a JSON object"))
        values, faults = _read({**show(entry), **document})
        refuse_if(faults)
        return _put(replace(entry.record, **values))

    return plan


def delete(policy_id: str) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        refuse_read_only(policy_of(known, policy_id), "policy")
        silences = [
            Remove("silence", entry.id)
            for entry in known.silences.values()
            if entry.record.policy_id == policy_id
        ]
        return PlannedChange([*silences, Remove("alert_policy", policy_id)], lambda _after: None)

    return plan


def send_test(
    known: Configuration, policy_id: str, view: NotificationView, at: ChangeContext
) -> str:
    """Returns the correlation id of the test."""
    policy = policy_of(known, policy_id).record
    row = ALERTS.get(policy.alert_type)
    if row is None:
        raise Refused(
            ApiFault(
                Code.INVALID,
                f"greenroom raises no alerts of the type {policy.alert_type}",
                "/alert_type",
            )
        )
    made = example(row, at.now_ms)
    test = Alert(
        type=made.type,
        time_ms=at.now_ms,
        correlation_id=f"{TEST_IDS}{at.new_id()}",
        text=f"This is a test. {made.text}",
        subject_name=made.subject_name,
        data=made.data,
    )
    view.put_test(policy, test)
    return test.correlation_id


def warnings(known: Configuration, document: Any) -> list[str]:
    """Destinations that do not exist: allowed, but worth a message."""
    problems: list[Problem] = []
    wanted = document.get("mechanisms") if isinstance(document, dict) else None
    parts = Mechanisms().read("mechanisms", wanted, problems) if wanted is not None else {}
    missing = [
        f"there is no webhook {found}"
        for found in parts.get("webhook_ids", ())
        if found not in known.webhooks
    ]
    services = known.pagerduty_services
    return missing + [
        f"there is no PagerDuty service {found}"
        for found in parts.get("pagerduty_ids", ())
        if found not in services
    ]


AVAILABLE: Json = {
    "type": "object",
    "additionalProperties": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                **{name: {"type": "string"} for name in ("type", "display_name", "description")},
                "filter_options": {"type": "array", "items": {"type": "object"}},
            },
            "required": ["type", "display_name", "description", "filter_options"],
        },
    },
}


def available() -> Json:
    """Category -> its alerts with their filters."""
    found: dict[str, list[Json]] = {}
    for row in ALERTS.values():
        found.setdefault(row.category, []).append(_available(row))
    return found


def _available(row: AlertType) -> Json:
    options = [
        {
            "Key": name,
            "ComparisonOperator": "==",
            "Optional": True,
            "Description": described.help,
            "AvailableValues": list(described.choices),
        }
        for name, described in row.filters.items()
    ]
    return {
        "type": row.type,
        "display_name": row.display_name,
        "description": row.description,
        "filter_options": options,
    }


def _read(document: Any) -> tuple[Json, list[ApiFault]]:
    values, faults = read_as(POLICY, document, _problems)
    values |= values.pop("mechanisms", {}) or {}
    return {**dict.fromkeys(PARTS.values(), ()), **values}, faults


def _problems(values: Json) -> list[Problem]:
    parts = values.get("mechanisms") or {}
    flat = {name: value for name, value in values.items() if name != "mechanisms"} | parts
    named = {field: name for name, field in PARTS.items()}
    return [_renamed(problem, named) for problem in policy_problems(flat, ALERT_TYPES)]


def policy_problems(values: Mapping[str, Any], types: Sequence[str]) -> list[Problem]:
    """`types`: allowed types; messages name those that greenroom raises."""
    found = record_problems(AlertPolicy, values)
    kind, filters = values.get("alert_type"), values.get("filters")
    if isinstance(kind, str) and kind and kind not in types:
        reason = f"must be one of {', '.join(sorted(ALERTS))}, not {kind!r:.60}"
        found.append(Problem("alert_type", reason))
    if isinstance(kind, str) and filters and not found:
        found += [
            Problem(f"filters.{name}", reason) for name, reason in filter_problems(kind, filters)
        ]
    return found


def _renamed(problem: Problem, named: Mapping[str, str]) -> Problem:
    field, bracket, rest = problem.pointer.partition("[")
    if field not in named:
        return problem
    return Problem(
        f"mechanisms.{named[field]}" + (f"[{rest}.id" if bracket else ""), problem.reason
    )


def _put(record: AlertPolicy) -> PlannedChange:
    return PlannedChange([Put(record)], lambda _after: {"id": record.id})


SECTION = DocumentSection(
    "alert_policies",
    "alert_policy",
    POLICIES_MAX,
    lambda entry: POLICY.brief(show(entry)),
    lambda wanted: create(wanted.document),
)
