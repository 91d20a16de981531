"""Which policy sends an alert to which destinations. A start within the policy's alert interval of
an earlier start of the same subject is postponed to its end, and dropped if the incident ends
before. While a silence covers the policy nothing is sent, nor is the end of an incident whose start
was silenced.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from greenroom.model.alert import Alert
from greenroom.model.alert_types import ALERTS, SYSTEM
from greenroom.model.notification import AlertPolicy, Silence

Mechanism = Literal["email", "webhook", "pagerduty"]
MECHANISMS: tuple[Mechanism, ...] = ("email", "webhook", "pagerduty")

Fate = Literal["told", "silenced"]


class Destination(NamedTuple):
    mechanism: Mechanism
    id: str

    @property
    def key(self) -> str:
        return f"{self.mechanism}:{self.id}"

    @classmethod
    def of(cls, key: str) -> "Destination":
        mechanism, _, name = key.partition(":")
        for known in MECHANISMS:
            if mechanism == known:
                return cls(known, name)
        raise ValueError(f"not a destination: {key!r}")


@dataclass(frozen=True, slots=True)
class Told:
    start: Fate | None = None
    """How the start of this incident was handled; None when no start is known."""
    postponed: bool = False
    last_start_ms: int | None = None
    """Last start of this subject, which may be postponed to the future."""


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    policy: AlertPolicy
    action: Literal["send", "cancel", "silence"]
    """`cancel`: withdraw the postponed start."""
    not_before_ms: int = 0
    destinations: tuple[Destination, ...] = ()


def verdicts(
    alert: Alert,
    policies: Iterable[AlertPolicy],
    silences: Sequence[Silence],
    told: Callable[[AlertPolicy], Told],
    now_ms: int,
) -> Iterator[PolicyVerdict]:
    for policy in policies:
        if wants(policy, alert):
            found = _verdict(
                alert,
                policy,
                any(silence.covers(policy.id, now_ms) for silence in silences),
                told(policy),
                now_ms,
            )
            if found:
                yield found


def _verdict(
    alert: Alert, policy: AlertPolicy, silent: bool, told: Told, now_ms: int
) -> PolicyVerdict | None:
    if alert.state == "end":
        if told.postponed:
            return PolicyVerdict(policy, "cancel")
        return (
            None
            if silent or told.start == "silenced"
            else PolicyVerdict(policy, "send", now_ms, destinations(policy))
        )
    if silent:
        return PolicyVerdict(policy, "silence")
    if told.last_start_ms is None or not policy.interval_ms:
        return PolicyVerdict(policy, "send", now_ms, destinations(policy))
    return PolicyVerdict(
        policy, "send", max(now_ms, told.last_start_ms + policy.interval_ms), destinations(policy)
    )


def wants(policy: AlertPolicy, alert: Alert) -> bool:
    if not policy.enabled or policy.alert_type != alert.type:
        return False
    row = ALERTS.get(alert.type)
    filters = row.filters if row else {}
    return policy.passes(
        {name: described.read(alert) for name, described in filters.items()},
        {name: (described.default,) for name, described in filters.items() if described.bound},
    )


def destinations(policy: AlertPolicy) -> tuple[Destination, ...]:
    found = [Destination("email", address) for address in policy.emails]
    found += [Destination("webhook", found_id) for found_id in policy.webhook_ids]
    found += [Destination("pagerduty", found_id) for found_id in policy.pagerduty_ids]
    return tuple(dict.fromkeys(found))


def bounds(policies: Iterable[AlertPolicy], alert_type: str) -> tuple[int, ...]:
    described = ALERTS[alert_type].filters["limit"]
    found: set[int] = set()
    for policy in policies:
        if policy.enabled and policy.alert_type == alert_type:
            found |= {
                int(value)
                for value in policy.filters.get("limit") or (described.default,)
                if value.isdecimal()
            }
    if not found and ALERTS[alert_type].category == SYSTEM:
        found.add(int(described.default))  # nobody is notified, but the log has it
    return tuple(sorted(bound for bound in found if described.low <= bound <= described.high))


def filter_problems(alert_type: str, filters: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Returns (filter, problem). Unknown types accept every filter."""
    row = ALERTS.get(alert_type)
    if row is None:
        return []
    problems = []
    for name, values in filters.items():
        described = row.filters.get(name)
        if described is None:
            allowed = ", ".join(row.filters) or "none"
            problems.append((name, f"unknown filter for {alert_type}; it has: {allowed}"))
        elif described.bound and (
            len(values) != 1
            or not values[0].isdecimal()
            or not described.low <= int(values[0]) <= described.high
        ):
            problems.append(
                (name, f"must be one whole number from {described.low} to {described.high} as text")
            )
        elif described.choices:
            wrong = [value for value in values if value not in described.choices]
            problems += [
                (name, f"must be one of {', '.join(described.choices)}, not {value!r:.60}")
                for value in wrong
            ]
    return problems
