"""Notifications: policies, webhooks and services, silences, and notes on incidents."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.fields import NAME_WORDS, FormSpec, field_problems, spec, vars_of, wrong_fields

EMAILS_MAX = 20

DESTINATIONS_MAX = 50

FILTERS_MAX = 44

FILTER_VALUES_MAX = 200

INTERVAL_MAX_MS = 7 * 86_400_000

EMAIL = r"[^@\s,;<>\"()\[\]]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?"

SHORT_ID = r"[0-9A-Za-z_-]{1,64}"


class _Checked:
    def __post_init__(self) -> None:
        problems = record_problems(type(self), vars_of(self))
        if problems:
            raise InvalidConfig(problems)


@dataclass(frozen=True, kw_only=True)
class AlertPolicy(_Checked):
    id: str = spec("opaque identifier, unique", "", read_only=True)
    name: str = spec(
        "name, for people",
        example="The shop is down",
        low=1,
        high=200,
        one_line=True,
        form=FormSpec("alert", "Name"),
    )
    description: str = spec("only your team sees it", "", high=2_000, form=FormSpec("note", "Note"))
    enabled: bool = spec("whether it is active", True, form=FormSpec("note", "Switched on"))
    alert_type: str = spec(
        "type of alert",
        example="health_check_status_notification",
        low=1,
        high=100,
        form=FormSpec("alert", "When"),
    )
    alert_interval: str = spec(
        "minimum time between two notifications about the same subject, such as 30m or 1h30m;"
        " empty: notify of every incident",
        "",
        high=20,
        pattern=r"([0-9]+(ms|s|m|h))*",
        pattern_words="be numbers with the unit h, m, s or ms, such as 30m or 1h30m",
        example="30m",
        form=FormSpec("alert", "Send at most every"),
    )
    emails: tuple[str, ...] = spec("e-mail recipients", (), high=EMAILS_MAX)
    webhook_ids: tuple[str, ...] = spec("webhooks to call", (), high=DESTINATIONS_MAX)
    pagerduty_ids: tuple[str, ...] = spec("PagerDuty services to notify", (), high=DESTINATIONS_MAX)
    filters: dict[str, tuple[str, ...]] = spec(
        "name of a filter -> the values that pass it; a filter that is not given passes all", {}
    )

    def passes(
        self,
        about: Mapping[str, Collection[str]],
        defaults: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> bool:
        """Whether its filters pass a subject with the values of `about`, by filter."""
        return all(
            not (wanted := self.filters.get(name) or defaults.get(name))
            or not set(wanted).isdisjoint(values)
            for name, values in about.items()
        )

    @property
    def interval_ms(self) -> int:
        """0: none."""
        return duration_ms(self.alert_interval) or 0


@dataclass(frozen=True, kw_only=True)
class Webhook(_Checked):
    """`url` and `secret` are never shown; `shown_url` is the URL without secrets."""

    id: str = spec("opaque identifier, unique", "", read_only=True)
    name: str = spec("name; every message has it", low=1, high=200, one_line=True)
    url: str = spec(
        "URL, `https://` or `http://`",
        example="https://hooks.example.com/alerts",
        low=1,
        high=2_048,
        sealed=True,
    )
    secret: str = spec(
        "secret that identifies the caller to the receiver; it is never shown again",
        "",
        high=1_000,
        pattern=r"[\x20-\x7e]*",
        pattern_words="have only printable ASCII characters",
        sealed=True,
    )
    channel: str = spec(
        "message format",
        "generic",
        low=1,
        high=40,
        pattern=r"[a-z0-9_]+",
        pattern_words="have only lower-case letters (a to z), digits and _",
    )
    shown_url: str = spec("the URL without its secret", "", high=2_048)


@dataclass(frozen=True, kw_only=True)
class PagerdutyService(_Checked):
    """By its Events API v2 routing key, which is never shown."""

    id: str = spec("opaque identifier, unique", "", read_only=True)
    name: str = spec("name, for people", low=1, high=200, one_line=True)
    routing_key: str = spec(
        "integration key of an Events API v2 integration",
        low=1,
        high=100,
        pattern=r"[0-9A-Za-z_-]+",
        pattern_words=NAME_WORDS,
        sealed=True,
    )


@dataclass(frozen=True, kw_only=True)
class Silence(_Checked):
    """Times are kept as written, and as Unix ms."""

    id: str = spec("opaque identifier, unique", "", read_only=True)
    policy_id: str = spec("the policy that is silenced; empty: all policies", "", high=64)
    start_ms: int = spec("start time", unit="ms", low=0)
    end_ms: int = spec("end time", unit="ms", low=0)
    start_time: str = spec("start time, as it was written", "", high=40)
    end_time: str = spec("end time, as it was written", "", high=40)

    def covers(self, policy_id: str, now_ms: int) -> bool:
        return self.policy_id in ("", policy_id) and self.start_ms <= now_ms < self.end_ms


@dataclass(frozen=True, kw_only=True)
class IncidentNote(_Checked):
    id: str = spec("opaque identifier, unique", "", read_only=True)
    incident: str = spec(
        "correlation id of the incident it belongs to; empty: a message of its own", "", high=200
    )
    title: str = spec("heading of a message of its own", "", high=200, one_line=True)
    text: str = spec("plain text; blank lines separate paragraphs", low=1, high=10_000)
    at_ms: int = spec("the time shown with the message", unit="ms", low=0)


def record_problems(record: type, values: Mapping[str, Any]) -> list[Problem]:
    """Leaves out what is missing."""
    problems = field_problems(record, values, whole=False)
    wrong = wrong_fields(problems)
    for name, check in _CHECKS.get(record, {}).items():
        if name in values and name not in wrong:
            problems += check(values)
    return problems


def duration_ms(written: str) -> int | None:
    """`1h30m`; None for another form."""
    if not re.fullmatch(r"([0-9]{1,9}(ms|s|m|h))+", written):
        return None
    units = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
    return sum(
        int(number) * units[unit] for number, unit in re.findall(r"([0-9]+)(ms|s|m|h)", written)
    )


FieldCheck = Callable[[Any], list[Problem]]


def _each(name: str, values: Any, pattern: str, what: str) -> list[Problem]:
    return [
        Problem(f"{name}[{index}]", f"must be {what}, not {value!r:.60}")
        for index, value in enumerate(values)
        if not isinstance(value, str) or not re.fullmatch(pattern, value)
    ]


def _interval_problems(values: Mapping[str, Any]) -> list[Problem]:
    written = values["alert_interval"]
    found = duration_ms(written) if written else 0
    if found is None or found > INTERVAL_MAX_MS:
        return [
            Problem(
                "alert_interval",
                f"must be a duration of at most 168h such as 30m or 1h30m, not {written!r:.60}",
            )
        ]
    return []


def _filter_problems(values: Mapping[str, Any]) -> list[Problem]:
    filters = values["filters"]
    problems = (
        [Problem("filters", f"must be at most {FILTERS_MAX} filters, not {len(filters)}")]
        if len(filters) > FILTERS_MAX
        else []
    )
    for name, wanted in filters.items():
        if not isinstance(wanted, (tuple, list)) or not all(
            isinstance(value, str) and len(value) <= 300 for value in wanted
        ):
            problems.append(
                Problem(f"filters.{name}", "must be a list of strings of at most 300 characters")
            )
        elif len(wanted) > FILTER_VALUES_MAX:
            problems.append(
                Problem(
                    f"filters.{name}",
                    f"must be at most {FILTER_VALUES_MAX} values, not {len(wanted)}",
                )
            )
    return problems


def _silence_problems(values: Mapping[str, Any]) -> list[Problem]:
    if values["end_ms"] <= values.get("start_ms", 0):
        return [Problem("end_time", "must be later than start_time")]
    return []


_CHECKS: Mapping[type, Mapping[str, FieldCheck]] = {
    AlertPolicy: {
        "alert_interval": _interval_problems,
        "emails": lambda values: _each("emails", values["emails"], EMAIL, "an e-mail address"),
        "webhook_ids": lambda values: _each(
            "webhook_ids", values["webhook_ids"], SHORT_ID, "an id"
        ),
        "pagerduty_ids": lambda values: _each(
            "pagerduty_ids", values["pagerduty_ids"], SHORT_ID, "an id"
        ),
        "filters": _filter_problems,
    },
    Silence: {"end_ms": _silence_problems},
}
